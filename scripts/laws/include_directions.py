#!/usr/bin/env python3
"""Law: includes run one way only, as docs/architecture.md draws it.

    scripts/laws/include_directions.py [ROOT]
"""
import re
import sys
from pathlib import Path

import tree

# Each room and the rooms that it may look into, besides itself and the public headers in include/.
MAY_INCLUDE = {
    "base": set(),
    "kernel": {"base"},
    "attention": {"kernel", "base"},
    "nn": {"attention", "kernel", "base"},
    "text": {"base"},
    "format": {"base"},
    "model": {"attention", "nn", "text", "format", "base"},
    "train": {"model", "nn", "attention", "text", "format", "base"},
    "draw": {"base"},
    "probe": {"model", "base"},
    "serve": {"base"},
    "measure": {"base"},
}
MAY_INCLUDE["cmd"] = set(MAY_INCLUDE) - {"kernel"}
# These see what users see.
PUBLIC_ONLY = ("python", "examples", "bench")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SUFFIXES = (".c", ".h", ".inc", ".cc", ".cpp", ".hpp")


def room_of(path):
    """The room in which a file stands: src/ROOM/…, or the folder at the top."""
    return path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else path.parts[0]


def problem_of(room, bracket, target, public, beside):
    """What is wrong with one include of a file that has the headers `beside` it, or None."""
    if target in public or (room in ("cmd", "bench", "python") and target in beside):
        return None
    if room in PUBLIC_ONLY:
        return None if bracket == "<" else "sees public headers only"
    if bracket == "<":
        return None
    other = target.split("/")[0]
    if "/" not in target or other not in MAY_INCLUDE:
        return "names no room; write ROOM/FILE"
    if other != room and other not in MAY_INCLUDE[room]:
        return f"{room} may look into {', '.join(sorted(MAY_INCLUDE[room])) or 'no other room'} only"
    return None


def problems(root):
    root = Path(root)
    public = {str(path.relative_to("include")) for path in tree.files(root, (".h",), ["include"])}
    found = []
    for path in tree.files(root, SUFFIXES, ["src", "cmd", *PUBLIC_ONLY]):
        room = room_of(path)
        if room not in MAY_INCLUDE and room not in PUBLIC_ONLY:
            found.append(f"{path}: the law knows no room {room}")
            continue
        beside = {header.name for header in (root / path).parent.glob("*.h")}
        for bracket, target in INCLUDE.findall((root / path).read_text()):
            if problem := problem_of(room, bracket, target, public, beside):
                found.append(f"{path}: includes {target}: {problem}")
    return found


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
