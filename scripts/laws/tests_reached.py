#!/usr/bin/env python3
"""Law: no dead tests. Each C file in tests/ is named in some meson.build there, each Python file too, or
imported by one that is. Where tests/python/meson.build names a folder, pytest finds the files in it; there a file's name
is the module's in all folders, and no two have the same.

    scripts/laws/tests_reached.py [ROOT]
"""
import os
import re
import sys
from pathlib import Path

import tree


def named_files(root):
    """The files that quoted strings in the meson.build files of tests/ name: as they are, and where the
    build file adds an ending in a loop (name + '_test.c'), with it."""
    named = set()
    for build in tree.files(root, ("meson.build",), ["tests"]):
        text = re.sub(r"#.*", "", (root / build).read_text())
        strings = re.findall(r"'([^'\n]*)'", text)
        endings = re.findall(r"\+\s*'([^'\n]+\.(?:c|py))'", text)
        for string in strings:
            for ending in ["", *endings]:
                named.add(Path(os.path.normpath(build.parent / (string + ending))))
    return named


def found_by_pytest(path, named):
    """Whether it is a file that pytest takes by its name, in a folder that is named."""
    taken = path.name.startswith("test_") or path.name == "conftest.py"
    return path.parts[:2] == ("tests", "python") and path.parent in named and taken


def same_names(scripts):
    """pytest on all folders at once would take one file for the other; it knows conftest.py by its folder."""
    first, found = {}, []
    for path in scripts:
        if path.parts[:2] == ("tests", "python") and path.name != "conftest.py":
            other = first.setdefault(path.name, path)
            if other != path:
                found.append(f"{path}: {other} has the same name")
    return found


def problems(root):
    root = Path(root)
    scripts = tree.files(root, (".py",), ["tests"])
    imported = set()
    for path in scripts:
        imported.update(re.findall(r"^\s*(?:import|from)\s+(\w+)", (root / path).read_text(), re.MULTILINE))
    named = named_files(root)
    found = []
    for path in tree.files(root, (".c", ".cc", ".cpp"), ["tests"]) + scripts:
        if path.suffix == ".py" and path.stem in imported:
            continue
        if path not in named and not found_by_pytest(path, named):
            found.append(f"{path}: no meson.build in tests/ names it")
    return found + same_names(scripts)


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
