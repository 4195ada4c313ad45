"""scripts/setup on machines that do not exist: a folder of stand-ins for apt-get, dpkg-query, sudo and
for what they install is all that the script finds.

    setup_test.py ROOT
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

# Package: the command or the pkg-config module by which it is noticed.
COMMANDS = {"gcc": "cc", "g++": "c++", "meson": "meson", "ninja-build": "ninja", "pkgconf": "pkg-config",
            "python3": "python3", "bible-kjv": "bible", "libopenmpi-dev": "mpicc", "openmpi-bin": "mpirun",
            "chromium": "chromium", "chromium-driver": "chromedriver"}  # fmt: skip
MODULES = {
    "libopenblas-openmp-dev": "openblas",
    "libjansson-dev": "jansson",
    "libutf8proc-dev": "libutf8proc",
    "libpng-dev": "libpng",
    "libfreetype-dev": "freetype2",
    "libfontconfig-dev": "fontconfig",
    "libfribidi-dev": "fribidi",
    "libmicrohttpd-dev": "libmicrohttpd",
    "libcmocka-dev": "cmocka",
}
TO_BUILD = {"gcc", "libc6-dev", "meson", "ninja-build", "pkgconf", "python3", *MODULES} - {"libcmocka-dev"}
TO_LOOK = TO_BUILD | {"python3-pip"}
TO_CHECK = TO_LOOK | {"g++", "libcmocka-dev", "python3-dev"}
TO_PYTHON = {"gcc", "libc6-dev", "python3", "python3-pip", "python3-dev", "python3-venv"}
TO_TRAIN = TO_BUILD | {"bible-kjv"}
MPI = {"libopenmpi-dev", "openmpi-bin"}
WEB = {"chromium", "chromium-driver"}

STAND_INS = {
    "id": 'cat "$MACHINE/uid"',
    "dpkg-query": 'for package; do :; done; [ ! -e "$MACHINE/installed/$package" ] || echo installed',
    "apt-get": r"""
echo "$*" >>"$MACHINE/apt-log"
case $* in
*update*) : >"$MACHINE/lists" ;;
*)
    [ -e "$MACHINE/lists" ] || { echo "E: Unable to locate package" >&2; exit 100; }
    [ ! -e "$MACHINE/full" ] || { echo "E: No space left" >&2; exit 100; }
    for argument; do
        [ ! -e "$MACHINE/store/$argument" ] || sh "$MACHINE/store/$argument"
        : >"$MACHINE/installed/$argument"
    done
    ;;
esac""",
    "sudo": '[ "$1" != -n ] || shift; echo "$*" >>"$MACHINE/sudo-log"; exec "$@"',
}
# What the installed commands do.
TOOLS = {
    "cc": '[ -e "$MACHINE/installed/libc6-dev" ]',
    "c++": "",
    "meson": "",
    "ninja": "",
    "bible": "",
    "mpicc": "",
    "mpirun": "",
    "chromium": "",
    "chromedriver": "",
    "python3": """
case $2 in
*sysconfig*) [ -e "$MACHINE/installed/python3-dev" ] && echo "$MACHINE/include" ;;
*venv*) [ -e "$MACHINE/installed/python3-venv" ] ;;
*) [ -e "$MACHINE/installed/python3-pip" ] ;;
esac""",
    "pkg-config": 'case $2 in\n'
    + "".join(f'{module}) [ -e "$MACHINE/installed/{package}" ] ;;\n' for package, module in MODULES.items())
    + "esac",
}
REAL = ["sh", "cat", "head", "tail", "find", "mktemp", "rm", "env", "true"]


class Machine:
    def __init__(self, folder, uid=0, lists=True, without=()):
        self.folder = Path(folder)
        for name in ("bin", "include", "installed", "store"):
            (self.folder / name).mkdir()
        (self.folder / "include" / "Python.h").touch()
        (self.folder / "uid").write_text(f"{uid}\n")
        if lists:
            (self.folder / "lists").touch()
        for name in REAL:
            (self.folder / "bin" / name).symlink_to(shutil.which(name))
        for name, body in STAND_INS.items():
            if name not in without:
                self.add_command(name, body)
        for package, command in COMMANDS.items():
            script = f"cp '{self.folder}/tool-{command}' '{self.folder}/bin/{command}'\n"
            (self.folder / "store" / package).write_text(f"PATH={os.environ['PATH']}\n{script}")
            self.write_script(self.folder / f"tool-{command}", TOOLS[command])

    @staticmethod
    def write_script(path, body):
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def add_command(self, name, body):
        self.write_script(self.folder / "bin" / name, body)

    def install(self, *packages):
        for package in packages:
            (self.folder / "installed" / package).touch()
            if package in COMMANDS:
                self.add_command(COMMANDS[package], TOOLS[COMMANDS[package]])

    def setup(self, step, **more):
        environment = {"PATH": str(self.folder / "bin"), "MACHINE": str(self.folder), "HOME": "/nowhere", **more}
        return subprocess.run(
            [ROOT / "scripts" / "setup", step],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def log(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""


def on(**settings):
    """Runs the test on a machine of its own."""

    def decorate(test):
        def run():
            with tempfile.TemporaryDirectory() as folder:
                test(Machine(folder, **settings))

        run.__name__ = test.__name__
        return run

    return decorate


def packages_of(text):
    """The packages that the line of an installation names; fonts may be on the testing machine or not."""
    line = next(line for line in text.splitlines() if "packages to install" in line)
    return set(line.split(":")[2].split()) - {"fonts-dejavu-core"}


@on(lists=False)
def root_installs_what_a_step_needs_and_says_so(machine):
    done = machine.setup("check")
    assert done.returncode == 0, done.stderr
    assert packages_of(done.stderr) == TO_CHECK, done.stderr
    assert machine.log("apt-log").count("update") == 1
    assert "--no-install-recommends" in machine.log("apt-log")


@on()
def each_step_needs_no_more_than_it_uses(machine):
    assert packages_of(machine.setup("build").stderr) == TO_BUILD
    assert packages_of(machine.setup("look").stderr) == TO_LOOK - TO_BUILD
    assert machine.setup("generate").stderr == ""
    assert packages_of(machine.setup("train").stderr) == TO_TRAIN - TO_BUILD
    assert packages_of(machine.setup("check").stderr) == TO_CHECK - TO_LOOK
    assert packages_of(machine.setup("python").stderr) == TO_PYTHON - TO_CHECK
    assert packages_of(machine.setup("web").stderr) == WEB
    assert packages_of(machine.setup("mpi").stderr) == MPI
    assert "update" not in machine.log("apt-log")


@on()
def a_second_run_does_nothing(machine):
    assert machine.setup("check").returncode == 0
    before = machine.log("apt-log")
    done = machine.setup("check")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    assert machine.log("apt-log") == before


@on(uid=1000)
def sudo_is_used(machine):
    assert machine.setup("build").returncode == 0
    assert "apt-get" in machine.log("sudo-log")


@on(uid=1000, without=["sudo"])
def without_the_right_the_command_is_named(machine):
    machine.install("gcc", "libc6-dev")
    done = machine.setup("build")
    assert done.returncode == 1
    assert packages_of(done.stderr) == TO_BUILD - {"gcc", "libc6-dev"}
    assert "as root" in done.stderr and "apt-get install --no-install-recommends meson" in done.stderr
    assert machine.log("apt-log") == ""


@on(without=["apt-get", "dpkg-query"])
def without_apt_the_needs_are_described(machine):
    done = machine.setup("build")
    assert done.returncode == 1
    for need in ("a C11 compiler", "Meson", "Ninja", "OpenBLAS", "FriBidi"):
        assert need in done.stderr, done.stderr
    assert "cmocka" not in done.stderr


@on(without=["apt-get", "dpkg-query"])
def without_apt_a_complete_machine_is_enough(machine):
    machine.install(*TO_CHECK)
    done = machine.setup("check")
    assert done.returncode == 0 or done.stderr.strip().endswith("font"), done.stderr


@on()
def a_failing_apt_get_is_shown(machine):
    (machine.folder / "full").touch()
    done = machine.setup("build")
    assert done.returncode == 1
    assert "No space left" in done.stderr and "apt-get failed" in done.stderr


@on()
def what_is_installed_but_not_found_ends_the_run(machine):
    machine.install(*TO_BUILD, "fonts-dejavu-core")
    (machine.folder / "bin" / "ninja").unlink()
    done = machine.setup("build")
    assert done.returncode == 1 and "not found" in done.stderr and "Ninja" in done.stderr, done.stderr
    assert machine.log("apt-log") == ""


@on()
def a_compiler_that_is_not_there_is_named(machine):
    done = machine.setup("build", CC="absent-cc -m64")
    assert done.returncode == 1 and "absent-cc" in done.stderr
    assert machine.log("apt-log") == ""


@on()
def an_unknown_step_is_refused(machine):
    done = machine.setup("dance")
    assert done.returncode == 1 and "build, look, generate, train, check, python, web, mpi, clang" in done.stderr


tap.run(
    [
        root_installs_what_a_step_needs_and_says_so,
        each_step_needs_no_more_than_it_uses,
        a_second_run_does_nothing,
        sudo_is_used,
        without_the_right_the_command_is_named,
        without_apt_the_needs_are_described,
        without_apt_a_complete_machine_is_enough,
        a_failing_apt_get_is_shown,
        what_is_installed_but_not_found_ends_the_run,
        a_compiler_that_is_not_there_is_named,
        an_unknown_step_is_refused,
    ]
)
