"""The programs of the package's README that need PyTorch or Transformers. Those of Transformers need the model that
they name, or its folder in ATTN_TEST_MODEL."""
import os
from pathlib import Path

import pytest
import readme_programs

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.mark.parametrize("number", range(len(readme_programs.OTHERS)))
def test_program(number):
    program = readme_programs.OTHERS[number]
    if MODEL in program:
        folder = os.environ.get("ATTN_TEST_MODEL", "")
        if not Path(folder, "config.json").is_file():
            pytest.skip("ATTN_TEST_MODEL names no folder of the README's model")
        program = program.replace(MODEL, folder)
    readme_programs.check(program)


def test_there_are_programs():
    assert len(readme_programs.OTHERS) == 4
