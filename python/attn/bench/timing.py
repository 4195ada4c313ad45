"""How long calls take, each in turn with the others. bench/ of the source tree uses it too."""
import math
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import TypeVar

Call = Callable[[], object]
Clock = Callable[[], float]
Name = TypeVar("Name")

SLICE = 0.003  # seconds that a call is repeated in a round, at least once
FEWEST_ROUNDS = 3


def seconds_a_call(call: Call, times: int, clock: Clock) -> float:
    repeats = repeat(None, times)
    begin = clock()
    for _ in repeats:
        call()
    return (clock() - begin) / times


def settle() -> None:
    """Waits until the process is at rest, a second at most: threads that have done their part look for more for a
    while, and their time would count as the process's."""
    for _ in range(200):
        begin = time.process_time()
        time.sleep(0.005)
        if time.process_time() - begin < 0.001:
            return


def times_a_slice(call: Call, clock: Clock) -> int:
    call()
    estimate = seconds_a_call(call, 1, clock)
    if estimate < SLICE:
        estimate = seconds_a_call(call, 3, clock)
    return max(1, round(SLICE / estimate))


def medians(calls: Mapping[Name, Call], rounds: int, clock: Clock, enough: float = math.inf) -> dict[Name, float]:
    """Seconds a call, the median over the rounds; in each, every call is repeated for a slice. When `enough`
    seconds have gone by, FEWEST_ROUNDS will do."""
    times = {name: times_a_slice(call, clock) for name, call in calls.items()}
    taken: dict[Name, list[float]] = {name: [] for name in calls}
    order = list(calls)
    begin = time.perf_counter()
    for number in range(rounds):
        if number >= FEWEST_ROUNDS and time.perf_counter() - begin > enough:
            break
        first = number % len(order)  # nobody always follows the same one
        for name in order[first:] + order[:first]:
            taken[name].append(seconds_a_call(calls[name], times[name], clock))
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def least(calls: Mapping[Name, Call], rounds: int, times: int) -> dict[Name, float]:
    """Seconds a call where nothing disturbed it: the least over the rounds of the mean of `times` calls."""
    taken = {name: math.inf for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name] = min(taken[name], seconds_a_call(call, times, time.perf_counter))
    return taken
