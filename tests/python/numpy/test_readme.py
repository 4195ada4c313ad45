"""The programs of the package's README that need NumPy alone. (The others: transformers/test_readme_programs.py, where
PyTorch is loaded anyway.)"""
import pytest
import readme_programs


@pytest.mark.parametrize("number", range(len(readme_programs.PLAIN)))
def test_program(number):
    readme_programs.check(readme_programs.PLAIN[number])


def test_there_are_programs():
    assert len(readme_programs.PLAIN) == 2
