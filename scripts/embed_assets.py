#!/usr/bin/env python3
"""Writes text files as C arrays: embed_assets.py OUTPUT.c NAME FILE..., those of one ending joined in their order:
NAME_html of all .html, NAME_css of all .css, NAME_js of all .js.

Where an .html file names others in its places, {{style first.css second.css}}, its order is theirs, and each that is
given must be named once; C sees the place as {{style}}."""

import pathlib
import re
import sys

PLACE = re.compile(r"{{(\w+)\s([^{}]+)}}")


def in_order(paths):
    """As the .html file among the paths names them, itself first; without one, or where it names none, as they are."""
    frames = [path for path in paths if path.suffix == ".html"]
    names = [name for path in frames for _, files in PLACE.findall(path.read_text(encoding="utf-8"))
             for name in files.split()]
    if not names:
        return paths
    others = {path.name: path for path in paths if path not in frames}
    if sorted(names) != sorted(others):
        wrong = sorted(set(names) ^ set(others)) or names
        sys.exit(f"{frames[0]}: each file that is embedded with it is named once in a place; see {', '.join(wrong)}")
    return frames + [others[name] for name in names]


def text_of(path):
    text = path.read_text(encoding="utf-8")
    return PLACE.sub(r"{{\1}}", text) if path.suffix == ".html" else text


def c_array(name, paths):
    data = b""
    for path in paths:
        data += text_of(path).encode()
        if b"\0" in data:
            sys.exit(f"{path}: a text file without NUL bytes is expected")
        if not data.endswith(b"\n"):
            data += b"\n"
    lines = [f"const char {name}[] = {{"]
    for begin in range(0, len(data), 16):
        # Character constants, unlike numbers above 127, fit a char that is signed and one that is not.
        lines.append("    " + " ".join(f"'\\x{byte:02x}'," for byte in data[begin : begin + 16]))
    lines.append("    '\\0'};")
    return "\n".join(lines) + "\n"


def main():
    output, inputs = pathlib.Path(sys.argv[1]), in_order([pathlib.Path(argument) for argument in sys.argv[3:]])
    endings = dict.fromkeys(path.suffix for path in inputs)
    arrays = [c_array(f"{sys.argv[2]}_{ending[1:]}", [path for path in inputs if path.suffix == ending])
              for ending in endings]
    output.write_text("\n".join(['#include "draw/page_assets.h"\n'] + arrays), encoding="ascii")


if __name__ == "__main__":
    main()
