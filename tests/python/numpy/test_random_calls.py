"""Random calls of every function: right results or clear refusals, and never a crash.

1,000 calls, 10,000 where the library runs under AddressSanitizer (ATTN_TEST_SANITIZED=1), or ATTN_FUZZ_CALLS of them. A
failure names its call; random_results.run(SEED, NUMBER) makes it again.
"""
import os

import pytest
from random_calls import FUNCTIONS, draw
from random_results import run

SEED = int(os.environ.get("ATTN_FUZZ_SEED", "1"))
CALLS = int(os.environ.get("ATTN_FUZZ_CALLS", "10000" if os.environ.get("ATTN_TEST_SANITIZED") == "1" else "1000"))
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls(part):
    accepted, count = 0, 0
    for number in range(part, CALLS, PARTS):
        try:
            accepted += run(SEED, number)
        except Exception as error:
            raise AssertionError(f"call {number} of seed {SEED}, {draw(SEED, number).function}: {error}") from error
        count += 1
    assert accepted >= count // 3 and (accepted < count or count < 20)


def test_the_calls_are_of_all_kinds():
    calls = [draw(SEED, number) for number in range(400)]
    assert {call.function for call in calls} == set(FUNCTIONS)
    assert sum(call.kind == "right" for call in calls) > 200 and sum(call.kind == "wild" for call in calls) > 10
    assert sum(call.kind not in ("right", "wild") for call in calls) > 50
    assert {call.arrays["q"].ndim for call in calls} == {2, 3, 4}
    assert any(call.outputs for call in calls) and any(0 in call.arrays["q"].shape for call in calls)


def test_a_call_is_the_same_each_time():
    for number in range(20):
        first, second = draw(SEED, number), draw(SEED, number)
        assert first.function == second.function and first.kind == second.kind
        assert all(first.arrays[name].tobytes() == second.arrays[name].tobytes() for name in first.arrays)
