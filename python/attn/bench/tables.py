"""What python -m attn.bench prints: tables for people, or objects for programs."""
from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .overhead import Overhead

if TYPE_CHECKING:  # it needs PyTorch, and the table of overheads does not
    from .comparison import Comparison

NAME_WIDTH = 34
CELL_WIDTH = 10


def cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{CELL_WIDTH}}" for text in texts)


def threads_text(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def comparison_header(threads: Sequence[int]) -> str:
    """Two lines."""
    blocks = "".join(f"{threads_text(number) + ', ms':>{3 * CELL_WIDTH}}" for number in threads)
    return f"{'':<{NAME_WIDTH}}{blocks}\n{'shape':<{NAME_WIDTH}}{cells(['attn', 'torch', 'ratio'] * len(threads))}"


def comparison_line(found: Comparison) -> str:
    texts = []
    for threads, seconds in found.seconds.items():
        texts += [f"{seconds[who] * 1e3:.4g}" for who in ("attn", "torch")] + [f"{found.ratio(threads):.2f}"]
    return f"{found.name:<{NAME_WIDTH}}{cells(texts)}"


def slower_texts(found: Comparison) -> list[str]:
    """For each number of threads on which attn is slower, and by how much a call."""
    lost = {threads: seconds["attn"] - seconds["torch"] for threads, seconds in found.seconds.items()}
    return [f"{found.name} ({threads_text(threads)}, {seconds * 1e6:.1f} µs)"
            for threads, seconds in lost.items() if seconds > 0]  # fmt: skip


def comparison_objects(found: Comparison) -> str:
    """One a line for each number of threads."""
    return "\n".join(
        json.dumps({
            "name": found.name,
            "threads": threads,
            "ms": {who: taken * 1e3 for who, taken in seconds.items()},
            "ratio": found.ratio(threads),
        })
        for threads, seconds in found.seconds.items()
    )  # fmt: skip


def overhead_header(threads: int) -> str:
    title = f"a tiny call, {threads_text(threads)}, µs"
    return f"{title:<{NAME_WIDTH}}{cells(['attn', 'torch', 'above', 'at most'])}"


def overhead_line(found: Overhead) -> str:
    peer = "–" if found.torch is None else f"{found.torch:.2f}"
    texts = [f"{found.attn:.2f}", peer, f"{found.above:.2f}", f"{found.limit:g}"]
    return f"{found.name:<{NAME_WIDTH}}{cells(texts)}"


def overhead_object(found: Overhead, threads: int) -> str:
    times = {"attn": found.attn} | ({} if found.torch is None else {"torch": found.torch})
    return json.dumps({
        "name": f"overhead: {found.name}",
        "threads": threads,
        "us": times,
        "above": found.above,
        "limit": found.limit,
    })  # fmt: skip
