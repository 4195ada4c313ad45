#!/usr/bin/env python3
"""Writes text files as C arrays: embed_assets.py OUTPUT.c FILE..., page.html as page_html."""

import pathlib
import sys


def c_array(path):
    data = path.read_bytes()
    if b"\0" in data:
        sys.exit(f"{path}: a text file without NUL bytes is expected")
    name = path.name.replace(".", "_")
    lines = [f"const char {name}[] = {{"]
    for begin in range(0, len(data), 16):
        # Character constants, unlike numbers above 127, fit a char that is signed and one that is not.
        lines.append("    " + " ".join(f"'\\x{byte:02x}'," for byte in data[begin : begin + 16]))
    lines.append("    '\\0'};")
    return "\n".join(lines) + "\n"


def main():
    output, *inputs = [pathlib.Path(argument) for argument in sys.argv[1:]]
    parts = ['#include "draw/page_assets.h"\n'] + [c_array(path) for path in inputs]
    output.write_text("\n".join(parts), encoding="ascii")


if __name__ == "__main__":
    main()
