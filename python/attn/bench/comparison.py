"""attn.torch beside PyTorch on one shape after the other."""
import math
import os
import time
from dataclasses import dataclass

import torch

from .calls import differences, distinct_shapes, make_problem
from .shapes import Shape
from .timing import Clock, medians, seconds_a_call, settle

QUICK_PRODUCTS = 1 << 29


@dataclass(frozen=True)
class Effort:
    """How long a shape is measured on each number of threads: no more than so many rounds, and none is begun after
    so many seconds but the first few."""

    rounds: int
    seconds: float = math.inf


@dataclass
class Comparison:
    """Of one shape: seconds by contender, by number of threads; and what is wrong with the results."""

    name: str
    seconds: dict[int, dict[str, float]]
    wrong: list[str]

    def ratio(self, threads: int) -> float:
        """PyTorch's time over attn's: below 1 attn is slower."""
        return self.seconds[threads]["torch"] / self.seconds[threads]["attn"]


def shapes_named(text: str, quick: bool) -> list[Shape]:
    """Those whose names contain the text; of them the small ones alone with `quick`."""
    named = [shape for shape in distinct_shapes() if text in shape.name]
    return [shape for shape in named if shape.products <= QUICK_PRODUCTS] if quick else named


def clock_of(threads: int) -> Clock:
    """CPU time of the process, where one thread works: other programs do not count, a second thread would."""
    return time.process_time if threads == 1 else time.perf_counter


def compare(shape: Shape, threads: tuple[int, ...], effort: Effort) -> Comparison:
    torch.set_num_threads(os.cpu_count() or 1)
    found = Comparison(shape.name, {}, [])
    with torch.inference_mode(not shape.backward):
        problem = make_problem(shape)
        for number in threads:
            torch.set_num_threads(number)
            found.wrong += [f"{shape.name}: {text} (threads: {number})" for text in differences(problem)]
            settle()
            found.seconds[number] = medians(problem.calls, effort.rounds, clock_of(number), effort.seconds)
    return found


def product_rate(threads: int) -> float:
    """Floating-point operations a second in PyTorch's product of two f32 matrices: what the machine gives."""
    size = 512
    torch.set_num_threads(threads)
    settle()
    one, other = torch.ones(2, size, size)
    return 2 * size**3 / min(seconds_a_call(lambda: one @ other, 1, clock_of(threads)) for _ in range(20))
