#!/usr/bin/env python3
"""Law: README.md shows a picture, and what it links to inside the tree is there.

    scripts/laws/readme_links.py [ROOT]
"""
import re
import sys
from pathlib import Path

import tree

LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def problems(root):
    root = Path(root)
    links = LINK.findall((root / "README.md").read_text())
    found = [] if any(sign for sign, _ in links) else ["README.md: no picture"]
    return found + [f"README.md: {target} is not there" for _, target in links
                    if "://" not in target and not (root / target).exists()]


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
