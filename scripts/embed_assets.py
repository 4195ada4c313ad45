#!/usr/bin/env python3
"""Writes text files as C arrays: embed_assets.py OUTPUT.c NAME FILE..., those of one ending joined in their order:
NAME_html of all .html, NAME_css of all .css, NAME_js of all .js."""

import pathlib
import sys


def c_array(name, paths):
    data = b""
    for path in paths:
        data += path.read_bytes()
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
    output, inputs = pathlib.Path(sys.argv[1]), [pathlib.Path(argument) for argument in sys.argv[3:]]
    endings = dict.fromkeys(path.suffix for path in inputs)
    arrays = [c_array(f"{sys.argv[2]}_{ending[1:]}", [path for path in inputs if path.suffix == ending])
              for ending in endings]
    output.write_text("\n".join(['#include "draw/page_assets.h"\n'] + arrays), encoding="ascii")


if __name__ == "__main__":
    main()
