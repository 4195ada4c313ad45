"""The programs of the package's README that need PyTorch or Transformers run and print what it says. Those of
Transformers need the model that they name, or its folder in ATTN_TEST_MODEL."""
import contextlib
import io
import os
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "python" / "README.md"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
ALL = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
PROGRAMS = [program for program in ALL if re.search(r"\b(torch|transformers)\b", program)]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number):
    program, printed = PROGRAMS[number], io.StringIO()
    if MODEL in program:
        folder = os.environ.get("ATTN_TEST_MODEL", "")
        if not Path(folder, "config.json").is_file():
            pytest.skip("ATTN_TEST_MODEL names no folder of the README's model")
        program = program.replace(MODEL, folder)
    with contextlib.redirect_stdout(printed):
        exec(compile(program, f"program {number + 1} of README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == "".join(line + "\n" for line in re.findall(r"^#> (.*)$", program, re.MULTILINE))


def test_there_are_programs():
    assert len(PROGRAMS) == 4
