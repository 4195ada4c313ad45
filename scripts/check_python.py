#!/usr/bin/env python3
"""Tests the Python package as its users get it: make check-python.

    check_python.py FOLDER

A wheel of this tree is built, installed into a virtual environment that is made anew in FOLDER, and tests/python runs
there with pytest; its folder package also runs mypy --strict on what is installed.

PyTorch is the one that python3 has; else the file that ATTN_TORCH_WHEEL names; else what pip has without an index, by
find-links of its own configuration. Where there is none, the tests that need it are skipped by name.
"""
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import run_tests

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "build" / "attn"
ROOMS = sorted(path.name for path in (ROOT / "tests" / "python").iterdir() if any(path.glob("test_*.py")))
TOOLS = ["pytest", "mypy"]
WITH_TORCH = ["transformers", "tokenizers", "expecttest", "ipython", "ipykernel", "nbclient"]
ROOM_SECONDS = 600


class Environment:
    """A virtual environment of its own."""

    def __init__(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = Path(folder, "bin", "python")

    def pip_install(self, *words, check=True):
        """Whether pip installed it. With `check` a failure ends the process after pip's own words."""
        options = ["--quiet", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"]
        done = subprocess.run([self.python, "-m", "pip", "install", *options, *words],
                              stderr=None if check else subprocess.DEVNULL)  # fmt: skip
        if check and done.returncode != 0:
            sys.exit(f"check_python: pip could not install {' '.join(words)}")
        return done.returncode == 0

    def also_sees(self, packages):
        """Packages of another environment, after its own."""
        purelib = self.ask("import sysconfig; print(sysconfig.get_path('purelib'))")
        Path(purelib, "beside.pth").write_text(f"{packages}\n")

    def ask(self, program):
        return subprocess.run(
            [self.python, "-c", program], check=True, capture_output=True, text=True
        ).stdout.strip()


def installed_torch():
    """The folder of packages in which this Python has PyTorch, or None."""
    program = "import pathlib, torch; print(pathlib.Path(torch.__file__).parent.parent)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def add_torch(environment):
    """Gives the environment PyTorch and Transformers if there is a PyTorch, and says which."""
    named = os.environ.get("ATTN_TORCH_WHEEL")
    if packages := installed_torch():
        environment.also_sees(packages)
    elif named:
        if not Path(named).is_file():
            sys.exit(f"check_python: ATTN_TORCH_WHEEL names {named}, which is not there")
        environment.pip_install(named)
    elif environment.pip_install("--no-index", "--no-deps", "torch", check=False):
        version = environment.ask("import importlib.metadata as m; print(m.version('torch'))")
        environment.pip_install(f"torch=={version}")  # what it needs, from the index
    else:
        print("PyTorch: none (install it for python3, or name its wheel in ATTN_TORCH_WHEEL)")
        return
    environment.pip_install(*WITH_TORCH)
    versions = "import torch, transformers as t; print(f'PyTorch {torch.__version__}, Transformers {t.__version__}')"
    print(environment.ask(versions), flush=True)


def run_room(environment, room, wheel, folder):
    """The tests of a room, as a line of a log of Meson tells it."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "ATTN_TEST_WHEEL": str(wheel), **run_tests.models()}
    if TOOL.exists():  # else its test is skipped
        variables["ATTN_TOOL"] = str(TOOL)
    command = [environment.python, ROOT / "scripts" / "run_python_tests.py", ROOT / "tests" / "python" / room]
    entry = {"name": f"python/{room}", "result": "OK"}
    started = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=ROOM_SECONDS)
        entry |= {"returncode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
    except subprocess.TimeoutExpired as late:
        entry |= {"returncode": 1, "result": "TIMEOUT", "stdout": (late.stdout or b"").decode(errors="replace")}
    print(entry["name"], "OK" if entry["returncode"] == 0 else "...", f"{time.monotonic() - started:.1f}s", flush=True)
    return entry


def main(folder):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    built = subprocess.run([ROOT / "scripts" / "build_wheel", folder, "--wheel"], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        return 1
    wheel = Path(built.stdout.strip())
    print(wheel.name, flush=True)
    environment = Environment(folder / "environment")
    add_torch(environment)
    environment.pip_install(str(wheel), *TOOLS)
    environment.pip_install("abi3audit", check=False)  # without it its test is skipped
    log = folder / "log.json"
    entries = [run_room(environment, room, wheel, folder) for room in ROOMS]
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return run_tests.summarize([run_tests.Run(log, len(ROOMS))])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
