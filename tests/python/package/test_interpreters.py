"""The extension keeps objects of the interpreter that imports it: that is the main one, and once is enough."""
import subprocess
import sys

import pytest

# What NumPy would be if it could be in two interpreters: the extension looks for these two.
IN_ANOTHER = """
import importlib.util, sys, types
numpy = sys.modules["numpy"] = types.ModuleType("numpy")
numpy.dtype, numpy.empty = str, lambda *_: None
spec = importlib.util.spec_from_file_location("attn._native", {path!r})
try:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError as error:
    # From 3.12 on CPython itself may refuse first.
    assert "main interpreter" in str(error) or "subinterpreters" in str(error), error
else:
    raise AssertionError("it was imported")
"""
INTERPRETERS = f"""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import attn, numpy
ones = numpy.ones((2, 4), "float32")
for _ in range(2):
    other = interpreters.create()
    failure = interpreters.run_string(other, {IN_ANOTHER!r}.format(path=attn._native.__file__))
    assert failure is None, failure
    interpreters.destroy(other)
assert (attn.attention(ones, ones, ones) == ones).all() and attn.topk(ones, ones, 1).keys.dtype == "int32"
"""
AGAIN = """
import importlib, sys
import attn, numpy
ones = numpy.ones((2, 4), "float32")
for time in range(10):
    importlib.reload(attn._native)
    del sys.modules["attn._native"]
    import attn._native as native
    references = sys.getrefcount(numpy.empty) if time == 0 else references
    assert (native.forward(ones, ones, ones) == ones).all()
assert sys.getrefcount(numpy.empty) == references, "each import keeps a reference"
"""


@pytest.mark.parametrize("program", (INTERPRETERS, AGAIN), ids=("another-interpreter", "again"))
def test_import(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
