"""The programs of the package's README that need NumPy alone run and print what it says. (The others:
transformers/test_readme_programs.py, where PyTorch is loaded anyway.)"""
import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "python" / "README.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
PLAIN = [program for program in PROGRAMS if not re.search(r"\b(torch|transformers)\b", program)]


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_program(number):
    program, printed = PLAIN[number], io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, f"program {number + 1} of README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == "".join(line + "\n" for line in re.findall(r"^#> (.*)$", program, re.MULTILINE))


def test_there_are_programs():
    assert len(PLAIN) == 2 and len(PROGRAMS) == 6
