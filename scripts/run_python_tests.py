#!/usr/bin/env python3
"""Runs the tests of the Python package in one folder with pytest, and prints TAP as the other tests do.

    run_python_tests.py FOLDER [OPTION of pytest]...

Where a library that a folder is about is not installed, each of its files is one skipped test; so is a file that
skips itself while it is read. A library that is older than pyproject.toml asks for counts as not installed. A test that
is expected to fail, and does, passes. Exit status 0 iff no test failed and at least one is there.
"""
import importlib.metadata
import importlib.util
import io
import re
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
# The name of a folder, and what all of it needs.
NEEDS = {"torch": ["torch"], "transformers": ["torch", "transformers"]}


def one_line(text):
    """Without what TAP takes for the begin of a directive."""
    return " ".join(text.replace("#", "").split())


class TapReporter:
    """Writes TAP to `out`."""

    def __init__(self, out):
        self.out = out
        self.results = 0
        self.failed = False

    def say(self, *words):
        print(*words, file=self.out, flush=True)

    def add(self, passed, report, remark=""):
        self.results += 1
        self.failed = self.failed or not passed
        name = one_line(report.nodeid) or "collection"
        self.say("ok" if passed else "not ok", self.results, "-", name + remark)
        if not passed:
            texts = [report.longreprtext] + [f"{title}:\n{text}" for title, text in report.sections]
            for line in "\n".join(texts).splitlines():
                self.say("#", line)

    def skip(self, report):
        # (file, line, "Skipped: reason")
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = " ".join(reason.removeprefix("Skipped: ").split())
        self.add(True, report, f" # SKIP {reason}")

    def pytest_collectreport(self, report):
        if report.skipped:
            self.skip(report)
        elif report.failed:
            self.add(False, report)

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "wasxfail"):
            self.add(True, report, f" ({one_line(report.wasxfail)})" if report.wasxfail else "")
        elif report.skipped:
            self.skip(report)
        elif report.failed:
            self.add(False, report)
        elif report.when == "call":
            self.add(True, report)

    def pytest_internalerror(self, excrepr):
        self.say(f"Bail out! pytest: {excrepr}".replace("\n", "\n# "))

    def pytest_sessionfinish(self):
        self.say(f"1..{self.results}")


def version(text):
    """Its first numbers, which can be compared: (2, 10, 1) of "2.10.1+cpu"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def installed_version(name):
    """As text; "unknown" of what no installer put there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def reasons():
    """{library: why it is not to be used}, of those that the package can use."""
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    found = {}
    for name, least in (need.split(">=") for library in ("torch", "transformers") for need in extras[library]):
        if not importlib.util.find_spec(name):
            found[name] = f"{name} is not installed"
        elif version(installed := installed_version(name)) < version(least):
            found[name] = f"{name} must be {least} or newer; its version is {installed}"
    return found


def main(arguments):
    folder = Path(arguments[0])
    unusable = reasons()
    if missing := [unusable[name] for name in NEEDS.get(folder.name, []) if name in unusable]:
        files = sorted(folder.glob("test_*.py"))
        for number, file in enumerate(files, 1):
            print(f"ok {number} - {file.name} # SKIP {missing[0]}")
        print(f"1..{len(files)}")
        return 0 if files else 1
    sys.modules.update(dict.fromkeys(unusable))  # None: to import them is an ImportError
    # What a failure says may be no text of the locale's, nor of any.
    sys.stdout.reconfigure(errors="backslashreplace")
    reporter = TapReporter(sys.stdout)
    # pytest needs its own reporter to explain failures, but what that prints is not wanted.
    sys.stdout = io.StringIO()
    status = pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[reporter])
    sys.stdout = reporter.out
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:  # every file skipped itself, or there is none
        return 0 if reporter.results and not reporter.failed else 1
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
