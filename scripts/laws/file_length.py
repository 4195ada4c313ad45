#!/usr/bin/env python3
"""Law: no file that people write has more than 600 lines.

    scripts/laws/file_length.py [ROOT]
"""
import sys
from pathlib import Path

import tree

LIMIT = 600
SUFFIXES = (".c", ".h", ".inc", ".cc", ".cpp", ".hpp", ".py", ".sh", ".js", ".css", ".html", ".md",
            "meson.build", "Makefile")  # fmt: skip


def problems(root):
    found = []
    for path in tree.files(root, SUFFIXES):
        if path.parts[:2] == ("tests", "data"):
            continue
        lines = len(Path(root, path).read_text().splitlines())
        if lines > LIMIT:
            found.append(f"{path}: {lines} lines, at most {LIMIT}")
    return found


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
