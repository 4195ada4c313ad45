"""Compares libattn with PyTorch's scaled_dot_product_attention, forward and backward, and measures what a call costs.

    python -m attn.bench [--filter TEXT] [--threads N,N] [--rounds N] [--quick] [--overhead] [--json]

Both compute the same numbers in one process, in turn: attn.torch.scaled_dot_product_attention and
torch.nn.functional.scaled_dot_product_attention, without gradient in torch.inference_mode(); of the shapes called
backward, torch.autograd.grad alone. Times are medians over the rounds, CPU time on one thread and else time that
passes. The ratio is PyTorch's time over libattn's: below 1 libattn is slower. Few queries go to
attn_decode, as attn.torch chooses; shapes that differ in that alone are one row.

Ends with status 1 where a result differs from the formula in f32 by more than the tolerance.
"""
import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import attn

from . import overhead, tables

if TYPE_CHECKING:
    from .shapes import Shape


def numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"whole numbers from 1 on, as 1,2, and not {text!r}")
    return tuple(int(part) for part in parts)


def number(text: str) -> int:
    if "," in text:
        raise argparse.ArgumentTypeError(f"one number, and not {text!r}")
    return numbers(text)[0]


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m attn.bench", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--filter", default="", metavar="TEXT", help="shapes whose names contain it")
    parser.add_argument("--threads", type=numbers, default=(1, 2), metavar="N,N", help="numbers of threads; else 1,2")
    parser.add_argument("--rounds", type=number, metavar="N", help="of each shape; else 15, or what takes 1.5 s")
    parser.add_argument("--quick", action="store_true", help="small shapes alone, and few rounds")
    parser.add_argument("--overhead", action="store_true", help="only what calls on tiny inputs cost")
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser.parse_args(words)


def show_progress(text: str) -> None:
    """On a terminal, in place of what was shown before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def show_machine(given: argparse.Namespace) -> None:
    print(f"attn {attn.__version__} ({attn.isa()}), {os.cpu_count()} CPUs", end="", file=sys.stderr)
    if find_spec("torch"):
        import torch

        from .comparison import product_rate

        rates = ", ".join(f"{product_rate(threads) / 1e9:.0f} on {tables.threads_text(threads)}"
                          for threads in given.threads)  # fmt: skip
        print(f", torch {torch.__version__}; GFLOP/s of PyTorch's f32 products: {rates}", end="", file=sys.stderr)
    print(file=sys.stderr)


def chosen_shapes(given: argparse.Namespace) -> "list[Shape]":
    if not find_spec("torch"):
        sys.exit("attn.bench: there is no PyTorch to compare with; --overhead alone does without")
    from .comparison import shapes_named

    found = shapes_named(given.filter, given.quick)
    if not found:
        sys.exit(f"attn.bench: no {'small ' if given.quick else ''}shape is named like {given.filter!r}")
    return found


def show_comparisons(given: argparse.Namespace, shapes: "list[Shape]") -> list[str]:
    """Prints a line for each shape as it comes, and returns what is wrong."""
    from .comparison import Effort, compare

    effort = Effort(5, 0.1) if given.quick else Effort(15, 1.5)
    if given.rounds:
        effort = Effort(given.rounds)
    if not given.json:
        print(tables.comparison_header(given.threads), flush=True)
    slower, wrong = [], []
    for place, shape in enumerate(shapes):
        show_progress(f"{shape.name} ({place + 1} of {len(shapes)})")
        found = compare(shape, given.threads, effort)
        show_progress("")
        print(tables.comparison_objects(found) if given.json else tables.comparison_line(found), flush=True)
        slower += tables.slower_texts(found)
        wrong += found.wrong
    if not given.json:
        print(f"slower than PyTorch: {', '.join(slower) or 'none'}\n")
    return wrong


def show_overheads(given: argparse.Namespace) -> None:
    rounds = 20 if given.quick else 300
    for threads in given.threads:
        found = overhead.of_numpy(threads, rounds)
        if find_spec("torch"):
            found += overhead.of_torch(threads, rounds)
        if given.json:
            print("\n".join(tables.overhead_object(one, threads) for one in found), flush=True)
        else:
            lines = [tables.overhead_header(threads), *(tables.overhead_line(one) for one in found)]
            print("\n".join(lines), flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """`words` are the arguments of the command, by default its own; returns its status."""
    given = arguments(words)
    shapes = [] if given.overhead else chosen_shapes(given)
    show_machine(given)
    wrong = show_comparisons(given, shapes) if shapes else []
    show_overheads(given)
    for text in wrong:
        print(f"attn.bench: {text}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
