"""scripts/run_python_tests.py: what pytest finds, as TAP that scripts/run_tests.py counts."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "scripts"))

from run_tests import Report  # noqa: E402


def run(folder: Path, packages: str = "", **files: str) -> tuple[int, Report, str]:
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(ROOT / "scripts" / "run_python_tests.py"), str(folder)]
    environment = os.environ | {"PYTHONPATH": f"{packages}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    report = Report()
    report.read(done.stdout)
    return done.returncode, report, done.stdout


def test_each_test_is_counted(tmp_path: Path) -> None:
    text = """
import pytest
@pytest.mark.parametrize("name", ["a", "b # skip"])
def test_good(name): print("not ok 1 - printed")
@pytest.mark.skip("no\\nreason")
def test_skipped(): pass
@pytest.mark.xfail(reason="known", strict=True)
def test_known(): assert False
"""
    status, report, output = run(tmp_path, a=text)
    assert (status, report.passed, report.failures) == (0, 3, []), output
    assert len(report.skips) == 1 and "test_skipped (no reason)" in report.skips[0]


def test_failures_are_told(tmp_path: Path) -> None:
    text = """
import pytest
@pytest.fixture
def broken(): raise OSError("set up")
@pytest.fixture
def unclean():
    yield
    raise OSError("torn down")
def test_wrong():
    print("said before")
    assert 1 + 1 == 3
def test_broken(broken): pass
def test_unclean(unclean): pass
@pytest.mark.xfail(strict=True)
def test_better_than_thought(): pass
"""
    status, report, output = run(tmp_path, a=text)
    assert status == 1 and report.passed == 1, output
    assert [failure.split("::")[1] for failure in report.failures] == [
        "test_wrong", "test_broken", "test_unclean", "test_better_than_thought"]  # fmt: skip
    for told in ("assert (1 + 1) == 3", "# said before", "OSError: set up", "OSError: torn down"):
        assert told in output, output


def test_hostile_texts(tmp_path: Path) -> None:
    text = """
import pytest
@pytest.mark.xfail(reason="known # SKIP it\\nnot ok 7 - made up")
def test_known(): assert False
def test_no_text(): raise ValueError("\\udcff \\u2028 \\r not ok 8 - made up \\x00")
"""
    status, report, output = run(tmp_path, a=text)
    assert status == 1 and report.passed == 1 and not report.skips, output
    assert len(report.failures) == 1 and "test_no_text" in report.failures[0], output
    assert "\\udcff" in output and "1..2" in output


def test_a_file_that_cannot_be_read_fails(tmp_path: Path) -> None:
    status, report, output = run(tmp_path, a="import absent\n", b="def test_good(): pass\n")
    assert status != 0 and len(report.failures) == 1 and "test_a.py" in report.failures[0], output


def test_a_file_that_skips_itself_is_one_test(tmp_path: Path) -> None:
    status, report, output = run(tmp_path, a="import pytest\npytest.importorskip('absent')\n")
    assert (status, report.passed, report.failures, len(report.skips)) == (0, 0, [], 1), output


def test_a_library_that_is_too_old_is_as_good_as_none(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "__init__.py").touch()
    information = packages / "torch-2.9.dist-info"
    information.mkdir()
    text = "import pytest\ntorch = pytest.importorskip('torch')\ndef test_good(): pass\n"
    for told, reason in (("unknown", "torch must be 2."), ("2.9.1+cpu", "torch must be 2."), ("2.99", "")):
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {told}\n")
        status, report, output = run(tmp_path / "torch", str(packages), a=text)
        assert (status, report.failures, report.passed) == (0, [], 0 if reason else 1), output
        assert len(report.skips) == (1 if reason else 0), output
        assert all(reason in skip and skip.endswith(f"version is {told})") for skip in report.skips), output
        status, report, output = run(tmp_path / "others", str(packages), a=text)
        assert (status, report.failures, len(report.skips)) == (0, [], 1 if reason else 0), output


def test_a_folder_without_tests_fails(tmp_path: Path) -> None:
    status, _, _ = run(tmp_path)
    assert status != 0


def test_a_crash_is_a_failure(tmp_path: Path) -> None:
    status, report, output = run(tmp_path, a="import os\ndef test_good(): pass\ndef test_crash(): os._exit(0)\n")
    assert status == 0 and report.passed == 1 and "no plan" in report.failures[0], output
