#!/usr/bin/env python3
"""Law: each header compiles alone, without a warning; the public ones also as C++11 and pedantically.

    scripts/laws/headers_alone.py [ROOT]        CC and CXX choose the compilers

A header that speaks the instruction set of another architecture is left out where the cross compiler of
that architecture is not there, those of the Python extension where the headers of Python are not there.
"""
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import tree

MODULES = ["jansson", "libutf8proc", "libpng", "freetype2", "fontconfig", "fribidi", "openblas"]
# A header that speaks one instruction set is compiled for it: its architecture and flags.
ISAS = {
    "avx2": ("x86_64", ["-mavx2", "-mfma", "-mf16c"]),
    "avx512": ("x86_64", ["-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma", "-mf16c"]),
    "neon": ("aarch64", []),
}
C11 = ["-x", "c", "-std=c11", "-D_POSIX_C_SOURCE=200809L"]
CXX11 = ["-x", "c++", "-std=c++11"]
STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def third_party_flags():
    return subprocess.run(
        ["pkg-config", "--cflags", *MODULES], check=True, capture_output=True, text=True
    ).stdout.split()


def isa_headers(root):
    """{path: (architecture, flags)} of the headers that speak one instruction set."""
    headers = {}
    for path in tree.files(root, (".h",), ["src"]):
        for name, needs in ISAS.items():
            if path.stem.endswith(name):
                headers[path] = needs
    return headers


def compiler_for(architecture):
    """The C compiler for it, or None."""
    if architecture == platform.machine():
        return os.environ.get("CC", "cc")
    return shutil.which(f"{architecture}-linux-gnu-gcc")


def left_out(root):
    """{path: what is missing} of the headers that cannot be compiled here."""
    headers = isa_headers(root).items()
    missing = {path: f"a compiler for {needs[0]}" for path, needs in headers if not compiler_for(needs[0])}
    if python_flags() is None:
        missing.update((path, "Python.h") for path in tree.files(root, (".h",), ["python/native"]))
    return missing


def python_flags():
    """How the headers of this Python are found, as the extension finds them; None where they are not there."""
    folder = sysconfig.get_path("include")
    return ["-isystem", folder, "-DPy_LIMITED_API=0x030B0000"] if Path(folder, "Python.h").exists() else None


def compile_alone(root, compiler, flags, folder, header):
    """The compiler's first complaint about a file that includes the header and nothing else, or None."""
    command = shlex.split(compiler) + flags + STRICT
    command += [f"-I{root / 'include'}"] + ([] if folder == "include" else [f"-I{root / folder}"]) + ["-"]
    done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr.splitlines() or ["no message"])[0]


def problems(root):
    root = Path(root)
    c, cxx = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
    third_party = third_party_flags()
    jobs = []
    isas = isa_headers(root)
    for path in tree.files(root, (".h",), ["include", "src"]):
        if path in isas:
            architecture, flags = isas[path]
            if compiler := compiler_for(architecture):
                jobs.append((path, "C11", compiler, C11 + flags))
            continue
        jobs.append((path, "C11", c, C11 + third_party))
        if path.parts[0] == "include":
            jobs.append((path, "pedantic C11", c, ["-x", "c", "-std=c11", "-Wpedantic"]))
            jobs.append((path, "C++11", cxx, CXX11 + ["-Wpedantic"]))
    if (python := python_flags()) is not None:
        jobs += [(path, "C11", c, C11 + python) for path in tree.files(root, (".h",), ["python/native"])]
    found = []
    for path, language, compiler, flags in jobs:
        folder = "python/native" if path.parts[0] == "python" else path.parts[0]
        complaint = compile_alone(root, compiler, flags, folder, path.relative_to(folder))
        if complaint:
            found.append(f"{path}: does not compile alone as {language}: {complaint}")
    return found


if __name__ == "__main__":
    tree.end(problems(sys.argv[1] if len(sys.argv) > 1 else "."))
