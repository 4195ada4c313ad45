"""scripts/bench-peers with a python3 that is a stand-in: it makes environments, imports the modules that a folder
names, and installs into that folder.

    bench_peers_test.py ROOT
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

NEEDED = ("numpy", "onnx", "onnxruntime", "torch")

PYTHON = r"""#!/bin/sh
case "$1 $2" in
'-m venv') # --clear --without-pip FOLDER
    echo made >>"$MACHINE/made"
    mkdir -p "$5/bin" && cp "$0" "$5/bin/python" ;;
'-m pip') # install --quiet --disable-pip-version-check PACKAGE…
    [ ! -e "$MACHINE/offline" ] || { echo 'no network' >&2; exit 1; }
    shift 5
    printf '%s\n' "$@" >>"$MACHINE/installed"
    for package; do
        case $package in *.whl) package=torch ;; esac
        : >"$MACHINE/modules/$package"
    done ;;
'-c import sysconfig'*) echo "$MACHINE" ;;
'-c import site'*) echo /outside ;;
'-c import '*) module=${2#import }; [ -e "$MACHINE/modules/$module" ] ;;
'-c '*) ;;
*) printf '%s\n' "$@" ;;
esac
"""


class Machine:
    def __init__(self, folder, *modules):
        self.folder = Path(folder)
        for name in ("bin", "modules", "build"):
            (self.folder / name).mkdir()
        python = self.folder / "bin" / "python3"
        python.write_text(PYTHON)
        python.chmod(0o755)
        for module in modules:
            (self.folder / "modules" / module).touch()

    def run(self, *arguments, **environment):
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        clean = {name: value for name, value in os.environ.items() if name != "ATTN_TORCH_WHEEL"}
        return subprocess.run([ROOT / "scripts" / "bench-peers", self.folder / "build", *arguments],
                              env={**clean, "PATH": path, "MACHINE": str(self.folder), **environment},
                              capture_output=True, text=True)  # fmt: skip

    def lines(self, name):
        file = self.folder / name
        return file.read_text().split("\n")[:-1] if file.exists() else []


def on_machine(*modules):
    """Runs a test with a machine that has these modules."""

    def decorate(test):
        def run():
            with tempfile.TemporaryDirectory() as folder:
                test(Machine(folder, *modules))

        run.__name__ = test.__name__
        return run

    return decorate


def expect_benchmark(done, machine, *arguments):
    assert done.returncode == 0, done.stderr
    script, *rest = done.stdout.splitlines()
    assert Path(script).samefile(ROOT / "bench" / "peers.py"), script
    assert rest == ["--library", f"{machine.folder}/build/libattn.so", *arguments], rest


@on_machine("pip", *NEEDED)
def uses_what_is_there(machine):
    for _ in range(2):
        expect_benchmark(machine.run("--filter", "a b"), machine, "--filter", "a b")
    assert machine.lines("made") == ["made"]
    assert machine.lines("outside.pth") == ["/outside"]
    assert machine.lines("installed") == []


@on_machine()
def generation_needs_no_environment(machine):
    done = machine.run("generation", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    script, *rest = done.stdout.splitlines()
    assert Path(script).samefile(ROOT / "bench" / "generation.py"), script
    assert rest == ["--tool", f"{machine.folder}/build/attn", "--rounds", "2"], rest
    assert machine.lines("made") == []


@on_machine("pip", "numpy", "torch")
def installs_what_is_missing(machine):
    done = machine.run(ATTN_TORCH_WHEEL="absent.whl")  # not looked at where PyTorch is there
    expect_benchmark(done, machine)
    assert machine.lines("installed") == ["onnx", "onnxruntime"]
    assert "installing" in done.stderr


@on_machine("pip")
def takes_pytorch_from_the_named_file(machine):
    wheel = machine.folder / "torch of mine.whl"
    done = machine.run(ATTN_TORCH_WHEEL=str(wheel))
    assert done.returncode == 1 and "is not there" in done.stderr, done
    wheel.touch()
    expect_benchmark(machine.run(ATTN_TORCH_WHEEL=str(wheel)), machine)
    assert machine.lines("installed") == ["numpy", "onnx", "onnxruntime", str(wheel)]


@on_machine(*NEEDED[:3])
def says_that_pip_is_missing(machine):
    done = machine.run()
    assert done.returncode == 1 and "pip for Python 3 is needed to install torch" in done.stderr, done
    assert done.stdout == ""


@on_machine("pip")
def says_what_could_not_be_installed(machine):
    (machine.folder / "offline").touch()
    done = machine.run()
    assert done.returncode == 1 and "no network" in done.stderr, done
    assert "The packages that are needed: numpy onnx onnxruntime torch" in done.stderr, done
    assert done.stdout == ""


tap.run(
    [
        uses_what_is_there,
        generation_needs_no_environment,
        installs_what_is_missing,
        takes_pytorch_from_the_named_file,
        says_that_pip_is_missing,
        says_what_could_not_be_installed,
    ]
)
