"""scripts/check_aarch64 on machines that have what it needs, and on those that do not.

    check_aarch64_test.py ROOT
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402


def run(setup, machine="x86_64"):
    """What ninja was called with and what `skipped` says, on a machine where setup behaves like this."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scripts").mkdir()
        (folder / "bin").mkdir()
        shutil.copy(ROOT / "scripts" / "check_aarch64", folder / "scripts")
        stand_ins = {
            "scripts/setup": setup,
            "scripts/configure": 'echo "$@" >>log',
            "bin/ninja": 'echo "ninja $*" >>log',
            "bin/uname": f"echo {machine}",
        }
        for path, body in stand_ins.items():
            (folder / path).write_text(f"#!/bin/sh\n{body}\n")
            (folder / path).chmod(0o755)
        done = subprocess.run(
            ["scripts/check_aarch64", "build/aarch64"],
            cwd=folder,
            env={"PATH": f"{folder}/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        log, skipped = folder / "log", folder / "build/aarch64/skipped"
        return log.read_text() if log.exists() else "", skipped.read_text() if skipped.exists() else None


def builds_where_the_tools_are():
    log, skipped = run("exit 0")
    assert skipped is None
    assert "build/aarch64 --cross-file=" in log and "ninja -C build/aarch64" in log, log


def tells_in_one_line_what_is_lacking():
    log, skipped = run(
        """echo 'setup: packages to install: qemu' >&2
echo 'setup: there is no right to install packages here; please run, as root:
    apt-get install qemu' >&2
exit 1"""
    )
    expected = "there is no right to install packages here; please run, as root: apt-get install qemu\n"
    assert (log, skipped) == ("", expected), skipped


def does_not_emulate_what_the_machine_is():
    log, skipped = run("exit 0", machine="aarch64")
    assert log == "" and "this machine is one" in skipped, skipped


tap.run(
    [builds_where_the_tools_are, tells_in_one_line_what_is_lacking, does_not_emulate_what_the_machine_is]
)
