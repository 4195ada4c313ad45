#!/usr/bin/env python3
"""Lays the files of the Python package out in a build folder as they are installed.

    stage_package.py STAMP TO FILE... [-- TO FILE...]...

Each FILE is copied into the folder TO beside STAMP, which is then touched. What an earlier run put there and this
one does not name is removed.
"""
import shutil
import sys
from pathlib import Path

SUFFIXES = {".py", ".pyi", ".typed", ".html", ".css", ".js"}


def groups(words):
    """[(folder, files)] of the words between the dashes."""
    found = [[]]
    for word in words:
        if word == "--":
            found.append([])
        else:
            found[-1].append(word)
    return [(group[0], group[1:]) for group in found]


def stage(root, folders):
    staged = set()
    for folder, files in folders:
        target = root / folder
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            staged.add(target / Path(file).name)
            shutil.copy(file, target)
    for path in root.rglob("*"):
        if path.suffix in SUFFIXES and path not in staged:
            path.unlink()


def main():
    stamp = Path(sys.argv[1])
    stage(stamp.parent, groups(sys.argv[2:]))
    stamp.touch()


if __name__ == "__main__":
    main()
