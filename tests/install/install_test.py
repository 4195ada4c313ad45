"""What `meson install` puts down is enough to build and run a program outside the tree: examples/first.c,
in C and in C++, shared and static, found through pkg-config.

    install_test.py ROOT BUILD VERSION PREFIX SANITIZE
"""
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, BUILD, VERSION, PREFIX, SANITIZE = sys.argv[1:]
sys.path.append(str(Path(ROOT, "tests")))

import tap  # noqa: E402

FOLDER = Path(tempfile.mkdtemp(prefix="attn-install-"))
DESTINATION = FOLDER / "root"
INSTALLED = DESTINATION / PREFIX.lstrip("/")
COMPILERS = {"c": (os.environ["CC"], "-std=c11"), "c++": (os.environ["CXX"], "-std=c++11")}


def output(*command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, **settings)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}:\n{done.stdout}{done.stderr}"
    return done.stdout


def only(pattern):
    found = list(INSTALLED.glob(pattern))
    assert len(found) == 1, f"{pattern} in {INSTALLED}: {found}"
    return found[0]


def pkg_config(*arguments):
    environment = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(DESTINATION))
    environment["PKG_CONFIG_LIBDIR"] = str(only("**/pkgconfig/attn.pc").parent)
    return output("pkg-config", *arguments, "attn", env=environment).split()


def dynamic_section(file):
    return output("readelf", "-d", file)


def soname():
    major, minor, _ = VERSION.split(".")
    return f"libattn.so.0.{minor}" if major == "0" else f"libattn.so.{major}"


def attention_of_the_example():
    """What examples/first.c prints, computed here."""
    keys, values = [(1, 0), (0, 1), (1, 1)], [1, 2, 3]
    rows = []
    for query in [(1, 0), (0, 2)]:
        scores = [(query[0] * key[0] + query[1] * key[1]) / math.sqrt(2) for key in keys]
        total = sum(math.exp(score) for score in scores)
        rows.append(sum(math.exp(s) * v for s, v in zip(scores, values)) / total)
    return f"attn {VERSION}: {rows[0]:.4f} {rows[1]:.4f}\n"


def build_and_run(language, static):
    compiler, standard = COMPILERS[language]
    flags = pkg_config("--cflags", "--libs", *(["--static"] if static else []))
    if static:
        flags = ["-l:libattn.a" if flag == "-lattn" else flag for flag in flags]
    if SANITIZE != "none":
        flags.append(f"-fsanitize={SANITIZE}")
    source = shutil.copy(Path(ROOT, "examples", "first.c"), FOLDER)
    program = FOLDER / "first"
    output(*shlex.split(compiler), "-x", language, standard, "-Wall", "-Wextra", "-Werror", source, "-x", "none",
           "-o", program, *flags, cwd=FOLDER)  # fmt: skip
    linked = re.findall(r"NEEDED.*\[(libattn.*)\]", dynamic_section(program))
    assert linked == ([] if static else [soname()]), linked
    environment = dict(os.environ)
    if not static:
        environment["LD_LIBRARY_PATH"] = str(only("**/libattn.so").parent)
    assert output(program, env=environment) == attention_of_the_example()


def installs_into_a_folder():
    output("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", DESTINATION)
    assert {path.name for path in DESTINATION.iterdir()} == {Path(PREFIX).parts[1]}


def header_library_and_package_file_tell_one_version():
    header = only("include/attn.h").read_text()
    parts = [re.search(rf"#define ATTN_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    assert ".".join(parts) == VERSION
    assert pkg_config("--modversion") == [VERSION]
    assert f"soname: [{soname()}]" in dynamic_section(only("**/libattn.so"))
    assert only(f"**/{soname()}").resolve() == only(f"**/libattn.so.{VERSION}")


def c_program_with_the_shared_library():
    build_and_run("c", static=False)


def c_program_with_the_static_library():
    build_and_run("c", static=True)


def cxx_program_with_the_shared_library():
    build_and_run("c++", static=False)


def cxx_program_with_the_static_library():
    build_and_run("c++", static=True)


def the_installed_tool_runs():
    assert VERSION in output(only("bin/attn"), "--version")


def the_fetch_command_is_installed_and_runs():
    command = only("bin/attn-fetch-model")
    environment = dict(os.environ, XDG_DATA_HOME="/data")
    assert output(command, "--directory", env=environment) == "/data/attn/models/all-MiniLM-L6-v2\n"


try:
    tap.run(
        [
            installs_into_a_folder,
            header_library_and_package_file_tell_one_version,
            c_program_with_the_shared_library,
            c_program_with_the_static_library,
            cxx_program_with_the_shared_library,
            cxx_program_with_the_static_library,
            the_installed_tool_runs,
            the_fetch_command_is_installed_and_runs,
        ]
    )
finally:
    shutil.rmtree(FOLDER)
