#!/usr/bin/env python3
"""Runs the tests of a build folder and counts them one by one.

    scripts/run_tests.py BUILD       run all tests of BUILD, then report
    scripts/run_tests.py --log FILE  report on a testlog.json of Meson that is there

Meson counts executables; here each line `ok` or `not ok` of their TAP output is a test. The report
names each skipped test with its reason, shows the output of executables in which something failed, and
ends with `N passed, N failed, N skipped`. Also failed: an executable that crashes, runs out of time,
prints no plan, or prints more or fewer tests than its plan. Exit status 0 iff no test failed and at
least one passed.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

RESULT = re.compile(r"(not )?ok\b\s*(\d+)?\s*(?:-\s*)?(.*)")
PLAN = re.compile(r"1\.\.(\d+)\s*(?:#\s*skip\S*\s*(.*))?$", re.IGNORECASE)
SKIP = re.compile(r"#\s*skip\S*\s*(.*)", re.IGNORECASE)
PROGRESS = re.compile(r"\s*(\d+/\d+) (?:.* / )?(.*?)\s+(OK|FAIL|SKIP|ERROR|TIMEOUT|INTERRUPT)\b\s*(\d\S*)?")


class Report:
    """What one executable's output says: counts, and a line for each skip and each failure."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = []

    def read(self, output):
        plan = None
        results = 0
        spoken = ""  # the line before a result: there stands the reason of a test that cmocka skips
        for line in output.splitlines():
            if result := RESULT.match(line):
                results += 1
                self._add(result, spoken)
                spoken = ""
            elif planned := PLAN.match(line):
                if plan is not None:
                    self.failures.append("more than one plan")
                plan = int(planned[1])
                if plan == 0:
                    self.skips.append(f"all ({planned[2] or spoken or 'no reason given'})")
            elif line.startswith("Bail out!"):
                self.failures.append(line)
            else:
                spoken = line.lstrip("# ")
        if plan is None:
            self.failures.append("no plan: the executable did not get to its end")
        elif plan != results:
            self.failures.append(f"{plan} tests planned, {results} reported")

    def _add(self, result, spoken):
        failed, number, text = result.groups()
        if skip := SKIP.search(text):
            # "name # SKIP reason", or cmocka's "# SKIP name" with the reason printed before it
            name = text[: skip.start()].strip()
            reason = skip[1] if name else spoken
            self.skips.append(f"{name or skip[1]} ({reason or 'no reason given'})")
        elif failed:
            self.failures.append(text or f"test {number}")
        else:
            self.passed += 1


def read_test(entry):
    """The report on one line of testlog.json."""
    report = Report()
    report.read(entry.get("stdout", ""))
    if entry["result"] in ("TIMEOUT", "INTERRUPT"):
        report.failures.append(entry["result"].lower())
    elif entry["returncode"] != 0 and not report.failures:
        report.failures.append(f"all tests passed, but exit status {entry['returncode']}")
    return report


def summarize(log, executables=None):
    """Prints the report on a log, in which `executables` lines are expected; returns the status."""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    passed = failed = skipped = 0
    skips, failures = [], []
    if executables is not None and len(entries) != executables:
        failed += 1
        failures.append(f"failed: {executables} executables were to run, {len(entries)} did")
    for entry in entries:
        name = entry["name"].split(":")[-1].split(" / ")[-1].strip()
        report = read_test(entry)
        passed += report.passed
        failed += len(report.failures)
        skipped += len(report.skips)
        skips += [f"skipped: {name}: {skip}" for skip in report.skips]
        if report.failures:
            output = (entry.get("stdout", "") + entry.get("stderr", "")).rstrip()
            failures.append(f"---- {name} ----\n{output}")
            failures += [f"failed: {name}: {failure}" for failure in report.failures]
    for line in failures + skips:
        print(line)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 0 if passed and not failed else 1


def run(build):
    """Runs Meson's tests, showing one line for each executable; returns the log and their number."""
    log = Path(build, "meson-logs", "testlog.json")
    log.unlink(missing_ok=True)
    environment = dict(os.environ)
    fetch = Path(__file__).with_name("attn-fetch-model")
    model = subprocess.run([fetch, "--directory"], check=True, capture_output=True, text=True)
    environment["ATTN_TEST_MODEL"] = model.stdout.rstrip("\n")
    environment.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    command = ["meson", "test", "-C", build, "--no-rebuild", "--timeout-multiplier", "4"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as tests:
        for line in tests.stdout:
            # Of Meson's verdicts only OK says the same as the report, which follows.
            if progress := PROGRESS.match(line):
                place, name, verdict, seconds = progress.groups()
                print(place, name, verdict if verdict == "OK" else "...", seconds or "", flush=True)
    if not log.exists():
        sys.exit(f"run_tests: Meson ran no tests in {build}")
    return log, len(json.loads(Path(build, "meson-info", "intro-tests.json").read_text()))


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--log":
        return summarize(Path(arguments[1]))
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        return summarize(*run(arguments[0]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
