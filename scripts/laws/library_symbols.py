#!/usr/bin/env python3
"""Law: libattn.so exports exactly what include/attn.h declares with ATTN_API, needs nothing but the C
library, its mathematics and the thread runtime; each global symbol in libattn.a begins with attn_.

    scripts/laws/library_symbols.py HEADER SHARED STATIC
"""
import re
import subprocess
import sys
from pathlib import Path

import tree

DECLARATION = re.compile(r"\bATTN_API\b[^;]*?\b(\w+)\s*\(")
NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
# ld-linux is the loader; libpthread is a part of newer C libraries; libomp is libgomp's counterpart in a build with Clang.
ALLOWED = re.compile(r"(libc|libm|libpthread|libgomp|libomp|ld-linux[-\w]*)\.so(\.\d+)*")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", Path(header).read_text(), flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
    return set(DECLARATION.findall(text))


def defined(library, *options):
    """Names of global symbols that the library defines."""
    rows = (line.split() for line in output("nm", "-g", "--defined-only", *options, library).splitlines())
    return {row[2] for row in rows if len(row) == 3}


def problems(header, shared, static):
    found = []
    exports, promises = defined(shared, "-D"), declared(header)
    found += [f"{shared}: exports {name}, which {header} does not declare" for name in sorted(exports - promises)]
    found += [f"{shared}: lacks {name}, which {header} declares" for name in sorted(promises - exports)]
    found += [
        f"{static}: global symbol {name} does not begin with attn_"
        for name in sorted(defined(static))
        if not name.startswith("attn_")
    ]
    found += [
        f"{shared}: needs {name}"
        for name in NEEDED.findall(output("readelf", "-d", shared))
        if not ALLOWED.fullmatch(name)
    ]
    return found


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: library_symbols.py HEADER SHARED STATIC")
    tree.end(problems(*sys.argv[1:]))
