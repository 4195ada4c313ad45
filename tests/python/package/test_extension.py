"""The extension is one for every CPython from 3.11 on, shows nothing but its door, and needs the C library alone."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attn._native
import pytest

EXTENSION = Path(attn._native.__file__)
# Names of the limited API that begin as private ones do, as its macros use them: these, and all that end in _SizeT.
PRIVATE_BUT_STABLE = {"_Py_Dealloc", "_Py_FalseStruct", "_Py_NoneStruct", "_Py_NotImplementedStruct",
                      "_Py_TrueStruct", "_PyObject_New"}  # fmt: skip

if "ATTN_TEST_SANITIZED" in os.environ:
    pytest.skip("a sanitizer adds symbols and libraries of its own", allow_module_level=True)
if not (shutil.which("nm") and shutil.which("readelf")):
    pytest.skip("nm and readelf are not here", allow_module_level=True)


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def names(*options: str) -> set[str]:
    lines = output("nm", "-D", *options, EXTENSION).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_only_its_door_is_to_be_seen() -> None:
    assert names("--defined-only") == {"PyInit__native"}


def test_it_is_named_for_every_python() -> None:
    assert EXTENSION.name == "_native.abi3.so"


def test_it_uses_the_limited_interface_alone() -> None:
    private = {name for name in names("--undefined-only") if name.startswith("_Py") and not name.endswith("_SizeT")}
    assert private <= PRIVATE_BUT_STABLE


def test_it_needs_the_c_library_alone() -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", EXTENSION))
    others = [name for name in needed if not re.fullmatch(r"(libc|libm|libpthread|ld-linux[-\w]*)\.so(\.\d+)*", name)]
    assert not others


@pytest.mark.skipif(not importlib.util.find_spec("abi3audit"), reason="abi3audit is not installed")
def test_abi3audit_agrees() -> None:
    done = subprocess.run([sys.executable, "-m", "abi3audit", "--strict", "--assume-minimum-abi3", "3.11", EXTENSION],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
