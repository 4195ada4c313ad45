#!/usr/bin/env python3
"""Law: the C program in README.md is examples/first.c, which is compiled and run by a test.

    scripts/laws/readme_example.py [ROOT]
"""
import re
import sys
from pathlib import Path

import tree

BLOCK = re.compile(r"^```c\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def problems(root):
    root = Path(root)
    blocks = BLOCK.findall((root / "README.md").read_text())
    if len(blocks) != 1:
        return [f"README.md: {len(blocks)} blocks of C, expected the one of examples/first.c"]
    if blocks[0] != (root / "examples/first.c").read_text():
        return ["README.md: its block of C is not examples/first.c"]
    return []


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
