"""The programs of the package's README, each of which prints what its lines `#> …` say."""
import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[2] / "python" / "README.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
# Those of NumPy alone, and those that need PyTorch or Transformers.
PLAIN = [program for program in PROGRAMS if not re.search(r"\b(torch|transformers)\b", program)]
OTHERS = [program for program in PROGRAMS if program not in PLAIN]


def check(program: str) -> None:
    """Runs it and looks at what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "a program of README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == "".join(line + "\n" for line in re.findall(r"^#> (.*)$", program, re.MULTILINE))
