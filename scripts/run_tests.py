#!/usr/bin/env python3
"""Runs the tests of a build folder and counts them one by one.

    scripts/run_tests.py BUILD                    run all tests of BUILD but the suite web, then report
    scripts/run_tests.py BUILD --also NAME=BUILD  and those of another build, as "NAME room/name"
    scripts/run_tests.py BUILD … --suite SUITE …  in all of them the tests of these suites only
    scripts/run_tests.py --log FILE               report on a testlog.json of Meson that is there

Meson counts executables; here each line `ok` or `not ok` of their TAP output is a test. The report
names each skipped test with its reason, shows the output of executables in which something failed, and
ends with `N passed, N failed, N skipped`. Also failed: an executable that crashes, runs out of time,
prints no plan, or prints more or fewer tests than its plan. Exit status 0 iff no test failed and at
least one passed.

A further build that this machine could not make holds a file `skipped` instead, with the reason: it
counts as one skipped test.
"""
import ctypes
import json
import os
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

RESULT = re.compile(r"(not )?ok\b\s*(\d+)?\s*(?:-\s*)?(.*)")
PLAN = re.compile(r"1\.\.(\d+)\s*(?:#\s*skip\S*\s*(.*))?$", re.IGNORECASE)
SKIP = re.compile(r"#\s*skip\S*\s*(.*)", re.IGNORECASE)
ONLY_WHEN_ASKED = {"web"}  # as in tests/meson.build
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


class Run:
    """Tests that have run: their log, how many executables it must hold if that is known, and what stands
    before their names."""

    def __init__(self, log, executables=None, prefix=""):
        self.log = log
        self.executables = executables
        self.prefix = prefix


def summarize(runs, skips=()):
    """Prints one report on the runs, after what was skipped without a run; returns the status."""
    passed = failed = 0
    skips, failures = list(skips), []
    for run in runs:
        entries = [json.loads(line) for line in run.log.read_text().splitlines()]
        if run.executables is not None and len(entries) != run.executables:
            failed += 1
            failures.append(
                f"failed: {run.prefix}{run.executables} executables were to run, {len(entries)} did"
            )
        for entry in entries:
            name = run.prefix + entry["name"].split(":")[-1].split(" / ")[-1].strip()
            report = read_test(entry)
            passed += report.passed
            failed += len(report.failures)
            skips += [f"skipped: {name}: {skip}" for skip in report.skips]
            if report.failures:
                output = (entry.get("stdout", "") + entry.get("stderr", "")).rstrip()
                failures.append(f"---- {name} ----\n{output}")
                failures += [f"failed: {name}: {failure}" for failure in report.failures]
    for line in failures + skips:
        print(line)
    print(f"{passed} passed, {failed} failed, {len(skips)} skipped", flush=True)
    return 0 if passed and not failed else 1


def in_suites(test, suites):
    """Whether a test of intro-tests.json, with suites such as "attn:base", is in one of these, or where
    none is named in any but those that run only when asked for."""
    own = {suite.split(":")[-1] for suite in test["suite"]}
    return not own.isdisjoint(suites) if suites else own.isdisjoint(ONLY_WHEN_ASKED)


def fast_blas(environment):
    """What an OpenBLAS that is older than the CPU has to be told, as src/nn/blas_kernels.h explains: the
    programs of the tests do not start anew, and the bits of its oldest kernels depend on the threads."""
    try:
        name = ctypes.CDLL("libopenblas.so.0").openblas_get_corename
        flags = Path("/proc/cpuinfo").read_text().split()
    except (OSError, AttributeError):
        return {}
    name.restype = ctypes.c_char_p
    if "OPENBLAS_CORETYPE" in environment or name() != b"Prescott" or "avx2" not in flags:
        return {}
    return {"OPENBLAS_CORETYPE": "SKYLAKEX" if "avx512bw" in flags else "HASWELL"}


def models():
    """The variables that tell tests where the default models are; without them tests skip by name, or use the
    caller's own."""
    fetch = Path(__file__).with_name("attn-fetch-model")
    found = {}
    for variable, model in [("ATTN_TEST_MODEL", "encoder"), ("ATTN_TEST_GENERATOR", "generator")]:
        folder = subprocess.run([fetch, "--directory", model], check=True, capture_output=True, text=True)
        if Path(folder.stdout.rstrip("\n")).exists():
            found[variable] = folder.stdout.rstrip("\n")
    return found


def run_build(build, suites, prefix=""):
    """Runs Meson's tests, showing one line for each executable."""
    expected = json.loads(Path(build, "meson-info", "intro-tests.json").read_text())
    for suite in suites:
        if not any(in_suites(test, [suite]) for test in expected):
            sys.exit(f"run_tests: no test in {build} is of the suite {suite}")
    log = Path(build, "meson-logs", "testlog.json")
    log.unlink(missing_ok=True)
    environment = os.environ | models()
    environment.update(fast_blas(environment))
    environment.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    command = ["meson", "test", "-C", build, "--no-rebuild", "--timeout-multiplier", "4"]
    command += [word for suite in suites for word in ("--suite", suite)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as tests:
        for line in tests.stdout:
            # Of Meson's verdicts only OK says the same as the report, which follows.
            if progress := PROGRESS.match(line):
                place, name, verdict, seconds = progress.groups()
                verdict = verdict if verdict == "OK" else "..."
                print(place, prefix + name, verdict, seconds or "", flush=True)
    if not log.exists():
        sys.exit(f"run_tests: Meson ran no tests in {build}")
    return Run(log, sum(in_suites(test, suites) for test in expected), prefix)


def run_builds(build, further, suites):
    """The tests of a build, and of further ones, given as {name: folder}."""
    runs, skips = [run_build(build, suites)], []
    for name, folder in further.items():
        reason = Path(folder, "skipped")
        if reason.exists():
            skips.append(f"skipped: {name}: all ({reason.read_text().strip()})")
        else:
            runs.append(run_build(folder, suites, f"{name} "))
    return summarize(runs, skips)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--log":
        return summarize([Run(Path(arguments[1]))])
    if arguments and not arguments[0].startswith("-"):
        options = list(zip_longest(arguments[1::2], arguments[2::2], fillvalue=""))
        names = [value for option, value in options if option == "--also" and "=" in value]
        suites = [value for option, value in options if option == "--suite" and value]
        if len(names) + len(suites) == len(options):
            return run_builds(arguments[0], dict(name.split("=", 1) for name in names), suites)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
