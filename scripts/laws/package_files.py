#!/usr/bin/env python3
"""Law: python/attn/meson.build names each file of the Python package, and python/meson.build each C file of its
extension: what they do not name would be in no build and in no wheel.

    scripts/laws/package_files.py [ROOT]
"""
import re
import sys
from pathlib import Path

import tree

# A build file, the folder whose files it names, and their endings.
LISTS = [
    ("python/attn/meson.build", "python/attn", (".py", ".pyi", ".typed")),
    ("python/meson.build", "python/native", (".c",)),
]


def problems(root):
    root = Path(root)
    found = []
    for build, folder, suffixes in LISTS:
        text = re.sub(r"#.*", "", (root / build).read_text()) if (root / build).exists() else ""
        named = {Path(build).parent / name for name in re.findall(r"'([^'\n]*)'", text)}
        for path in tree.files(root, suffixes, [folder]):
            if path not in named:
                found.append(f"{path}: {build} does not name it")
    return found


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
