"""Tests in Python: functions in a list, results as TAP.

    def finds_the_word(): assert ...
    tap.run([finds_the_word, ...])

A function fails by any exception, and skips by raising tap.Skip("reason").
"""
import sys
import traceback


class Skip(Exception):
    """Why a test cannot run here."""


def run(tests):
    """Runs the tests in order and ends the process, with status 1 if one failed."""
    print(f"1..{len(tests)}", flush=True)
    failed = False
    for number, test in enumerate(tests, 1):
        name = test.__name__.replace("_", " ")
        try:
            test()
        except Skip as skip:
            print(f"ok {number} - {name} # SKIP {skip}", flush=True)
        except Exception:
            failed = True
            print(f"not ok {number} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
        else:
            print(f"ok {number} - {name}", flush=True)
    sys.exit(failed)
