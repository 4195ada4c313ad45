"""What is in the wheel that ATTN_TEST_WHEEL names, and that the types of the installed package are sound."""
import importlib.util
import os
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WHEEL = os.environ.get("ATTN_TEST_WHEEL", "")

if not WHEEL:
    pytest.skip("make check-python builds a wheel", allow_module_level=True)


@pytest.fixture(scope="module")
def wheel() -> zipfile.ZipFile:
    return zipfile.ZipFile(WHEEL)


def information(wheel: zipfile.ZipFile, name: str) -> Message:
    place = next(entry for entry in wheel.namelist() if entry.endswith(f".dist-info/{name}"))
    return Parser().parsestr(wheel.read(place).decode())


def test_it_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    package, page = ROOT / "python", ROOT / "src" / "draw" / "page"
    expected = {
        str(path.relative_to(package))
        for path in (package / "attn").rglob("*")
        if path.suffix in (".py", ".pyi", ".typed")
    }
    expected |= {f"attn/page/{path.name}" for path in page.iterdir() if path.suffix in (".html", ".css", ".js")}
    expected -= {"attn/page/ask.js"}
    expected.add("attn/_native.abi3.so")
    held = {name for name in wheel.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    assert held == expected
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_it_is_for_every_python_from_3_11_on(wheel: zipfile.ZipFile) -> None:
    assert information(wheel, "WHEEL")["Tag"].startswith("cp311-abi3-")
    assert information(wheel, "METADATA")["Requires-Python"] == ">=3.11"


def test_it_depends_on_numpy_alone(wheel: zipfile.ZipFile) -> None:
    needs = information(wheel, "METADATA").get_all("Requires-Dist") or []
    always = [need for need in needs if "extra" not in need]
    assert len(always) == 1 and always[0].startswith("numpy")


def test_it_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    metadata = information(wheel, "METADATA")
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "python" / "README.md").read_text()


def test_it_is_small(wheel: zipfile.ZipFile) -> None:
    assert Path(WHEEL).stat().st_size <= 2_000_000


def mypy(folder: Path, *what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, *what],
                          cwd=folder, capture_output=True, text=True)  # fmt: skip


USED_RIGHT = """
import numpy
import attn

x = numpy.ones((2, 3, 4), numpy.float32)
out = attn.attention(x, x, x, mask=x > 0, causal=True, align="bottom-right", window=(1, None), key_lengths=[3])
top: attn.TopK = attn.topk(x, x, 2, causal=True)
d: attn.Gradients = attn.gradients(x, x, x, x, wanted=("q",), scale=0.5)
words: list[str] = attn.look(None, None, "text").words
"""
USED_WRONG = {
    "attn.attention(x, x, x, causal=1.5)": "arg-type",
    "attn.weights(x, x, windows=(1, 1))": "call-arg",
    "attn.decode(x, x, x, align='left')": "arg-type",
    "attn.topk(x, [1.0], 2)": "arg-type",
}


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
def test_what_users_write_is_checked(tmp_path: Path) -> None:
    (tmp_path / "used.py").write_text(USED_RIGHT + "".join(f"{call}\n" for call in USED_WRONG))
    done = mypy(tmp_path, "used.py")
    first = USED_RIGHT.count("\n") + 1
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(found) == len(USED_WRONG), done.stdout + done.stderr
    for number, (line, code) in enumerate(zip(found, USED_WRONG.values()), first):
        assert line.startswith(f"used.py:{number}: ") and line.endswith(f"[{code}]"), line


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
def test_types_of_the_installed_package_are_sound(tmp_path: Path) -> None:
    what = ["-p", "attn"]
    if not importlib.util.find_spec("transformers"):
        what = ["-m", "attn", "-m", "attn.functions"]
    done = mypy(tmp_path, *what)
    assert done.returncode == 0, done.stdout + done.stderr
