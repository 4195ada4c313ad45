"""The program under "Python" in the project's README runs: as it stands, but for the model's folder."""
import os
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "README.md"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def test_the_program_runs():
    programs = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(programs) == 1 and MODEL in programs[0]
    folder = os.environ.get("ATTN_TEST_MODEL", "")
    if not Path(folder, "config.json").is_file():
        pytest.skip("ATTN_TEST_MODEL names no folder of the README's model")
    names = {"__name__": "readme"}
    exec(compile(programs[0].replace(MODEL, folder), "the program of README.md", "exec"), names)
    assert names["out"].shape == (1, 12, 512, 64)
    assert len(names["layers"]) == 6 and names["layers"][0].shape == (1, 12, 10, 10)
