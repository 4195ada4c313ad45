"""The report of scripts/run_tests.py on logs written here: nothing that went wrong may be missed.

    run_tests_test.py ROOT
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

GOOD = "1..2\nok 1 - a\nok 2 - b\n"


def report(*outputs, **more):
    """Exit status, last line and all lines of the report on executables with these outputs."""
    entry = {"name": "room - attn:room/name", "result": "OK", "returncode": 0, **more}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        log.writelines(json.dumps(dict(entry, stdout=output)) + "\n" for output in outputs)
        log.flush()
        done = subprocess.run(
            [ROOT / "scripts" / "run_tests.py", "--log", log.name], capture_output=True, text=True
        )
    lines = done.stdout.splitlines()
    return done.returncode, lines[-1], lines


def expect(status, last, *outputs, **more):
    found = report(*outputs, **more)
    assert found[:2] == (status, last), found
    return found[2]


def tests_are_counted_over_all_executables():
    expect(0, "4 passed, 0 failed, 0 skipped", GOOD, GOOD)


def a_plan_at_the_end_counts_too():
    expect(0, "1 passed, 0 failed, 0 skipped", "ok 1 - a\n1..1\n")


def a_failure_is_shown_with_its_output():
    output = "1..2\nok 1 - a\nnot ok 2 - b\n# 1 != 2\n"
    lines = expect(1, "1 passed, 1 failed, 0 skipped", output, returncode=1, result="FAIL")
    assert "# 1 != 2" in lines and "failed: room/name: b" in lines, lines


def a_skip_is_named_with_its_reason():
    lines = expect(0, "1 passed, 0 failed, 1 skipped", "1..2\nok 1 - a\nok 2 - b # SKIP no AVX2\n")
    assert "skipped: room/name: b (no AVX2)" in lines, lines


def a_skip_of_cmocka_is_named_with_what_was_printed_before():
    for reason in ("no model", "# no model"):
        output = f"1..2\nok 1 - a\n{reason}\nnot ok 2 # SKIP b\n"
        lines = expect(0, "1 passed, 0 failed, 1 skipped", output, result="FAIL")
        assert "skipped: room/name: b (no model)" in lines, lines


def an_executable_that_skips_everything_is_named():
    lines = expect(0, "2 passed, 0 failed, 1 skipped", GOOD, "1..0 # SKIP no libpng\n")
    assert "skipped: room/name: all (no libpng)" in lines, lines


def a_crash_is_a_failure():
    expect(1, "1 passed, 1 failed, 0 skipped", "1..2\nok 1 - a\n", returncode=-11, result="FAIL")
    expect(1, "0 passed, 1 failed, 0 skipped", "", returncode=-11, result="FAIL")


def a_crash_after_the_last_test_is_a_failure():
    expect(1, "2 passed, 1 failed, 0 skipped", GOOD, returncode=-6, result="FAIL")


def a_missing_plan_is_a_failure():
    expect(1, "1 passed, 1 failed, 0 skipped", "ok 1 - a\n")


def a_test_too_many_is_a_failure():
    expect(1, "2 passed, 1 failed, 0 skipped", "1..1\nok 1 - a\nok 2 - b\n")


def running_out_of_time_is_a_failure():
    expect(1, "2 passed, 1 failed, 0 skipped", GOOD, result="TIMEOUT", returncode=0)


def bailing_out_is_a_failure():
    expect(1, "1 passed, 2 failed, 0 skipped", "1..2\nok 1 - a\nBail out! no disk\n", returncode=0)


def no_test_at_all_is_not_a_success():
    expect(1, "0 passed, 0 failed, 0 skipped")
    expect(1, "0 passed, 0 failed, 1 skipped", "1..1\nok 1 - a # SKIP not here\n")


def run_builds(further, *options, tests=({"suite": ["attn:room"]},)):
    """The report on a build whose Meson is a stand-in that leaves the log which lies in the folder, and
    tells what more it was asked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "meson").write_text(
            '#!/bin/sh\ncp "$3/canned" "$3/meson-logs/testlog.json"\nshift 6\necho "1/1 asked: $* OK 0.1s"\n'
        )
        (folder / "meson").chmod(0o755)
        for build, output in {"native": GOOD, **further}.items():
            for inside in ("meson-logs", "meson-info"):
                (folder / build / inside).mkdir(parents=True)
            (folder / build / "meson-info/intro-tests.json").write_text(json.dumps(tests))
            entry = {"name": "attn:room/name", "result": "OK", "returncode": 0, "stdout": output}
            (folder / build / "canned").write_text(json.dumps(entry) + "\n")
            if output is None:
                (folder / build / "skipped").write_text("no emulator\n")
        also = [word for build in further for word in ("--also", f"{build}={folder / build}")]
        done = subprocess.run(
            [ROOT / "scripts" / "run_tests.py", folder / "native", *also, *options],
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout.splitlines()


def further_builds_count_under_their_names():
    status, lines = run_builds({"arm": "1..2\nok 1 - a\nok 2 - b # SKIP no memory\n"})
    assert (status, lines[-1]) == (0, "3 passed, 0 failed, 1 skipped"), lines
    assert "skipped: arm room/name: b (no memory)" in lines, lines
    status, lines = run_builds({"arm": "1..1\nnot ok 1 - a\n"})
    assert (status, lines[-1]) == (1, "2 passed, 1 failed, 0 skipped"), lines
    assert "failed: arm room/name: a" in lines, lines


def a_further_build_that_was_not_made_is_one_skip():
    status, lines = run_builds({"arm": None})
    assert (status, lines[-1]) == (0, "2 passed, 0 failed, 1 skipped"), lines
    assert "skipped: arm: all (no emulator)" in lines, lines


def suites_choose_tests():
    tests = [{"suite": ["attn:a"]}, {"suite": ["attn:b", "attn:c"]}, {"suite": ["attn:d"]}]
    # The stand-in runs one test, whatever is asked for.
    for suites, last in (
        (["c"], "2 passed, 0 failed, 0 skipped"),
        (["b", "c"], "2 passed, 0 failed, 0 skipped"),
        (["a", "c"], "2 passed, 1 failed, 0 skipped"),
        ([], "2 passed, 1 failed, 0 skipped"),
    ):
        options = [word for suite in suites for word in ("--suite", suite)]
        status, lines = run_builds({}, *options, tests=tests)
        assert lines[-1] == last, (suites, lines)
        assert " ".join(["1/1 asked:", *options, "OK 0.1s"]) in lines, lines


def the_suite_web_runs_only_when_it_is_asked_for():
    tests = [{"suite": ["attn:room"]}, {"suite": ["attn:web"]}]
    for options, last in (
        ([], "2 passed, 0 failed, 0 skipped"),
        (["--suite", "web"], "2 passed, 0 failed, 0 skipped"),
        (["--suite", "web", "--suite", "room"], "2 passed, 1 failed, 0 skipped"),
    ):
        status, lines = run_builds({}, *options, tests=tests)
        assert lines[-1] == last, (options, lines)


def a_suite_without_tests_is_refused():
    status, lines = run_builds({}, "--suite", "room", "--suite", "moor")
    assert status == 1 and lines == [], (status, lines)


def arguments_that_are_not_known_are_refused():
    for options in (["--suite"], ["room"], ["--also", "arm"], ["--sweet", "room"]):
        status, lines = run_builds({}, *options)
        assert status == 2 and lines == [], (options, status, lines)


tap.run(
    [
        tests_are_counted_over_all_executables,
        a_plan_at_the_end_counts_too,
        a_failure_is_shown_with_its_output,
        a_skip_is_named_with_its_reason,
        a_skip_of_cmocka_is_named_with_what_was_printed_before,
        an_executable_that_skips_everything_is_named,
        a_crash_is_a_failure,
        a_crash_after_the_last_test_is_a_failure,
        a_missing_plan_is_a_failure,
        a_test_too_many_is_a_failure,
        running_out_of_time_is_a_failure,
        bailing_out_is_a_failure,
        no_test_at_all_is_not_a_success,
        further_builds_count_under_their_names,
        a_further_build_that_was_not_made_is_one_skip,
        suites_choose_tests,
        the_suite_web_runs_only_when_it_is_asked_for,
        a_suite_without_tests_is_refused,
        arguments_that_are_not_known_are_refused,
    ]
)
