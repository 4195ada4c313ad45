#!/usr/bin/env python3
"""libattn beside PyTorch's scaled_dot_product_attention and ONNX Runtime's MultiHeadAttention: the same numbers,
one process, one thread, in turn.

    scripts/bench-peers BUILD [--filter TEXT] [--rounds N] [--json] [--precision exact|bf16]

In each round every contender runs once, or for a few milliseconds; times are medians over the rounds. The ratio
is the best peer's time over libattn's: below 1 libattn is slower. Ends with status 1 where a result differs from
PyTorch's in f32 by more than the tolerance.
"""
import argparse
import json
import sys
import time
from pathlib import Path

# What it has in common with python -m attn.bench stands there; the package need not be built.
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "python" / "attn" / "bench"))

import contenders
import libattn
import onnxruntime
import shapes
import torch
from inputs import TOLERANCE
from timing import medians

PEERS = ("torch", "onnxruntime")


def differences(contenders, expected, tolerance):
    """What is wrong with the contenders' results, one line each."""
    found = []
    for one in contenders:
        one.call()
        difference = (one.result() - expected).abs().max().item()
        if not difference <= tolerance:
            found.append(f"{one.name} differs by {difference:.2g}, at most {tolerance:g} is allowed")
    return found


def line(name, seconds):
    """A row of the table: milliseconds of each, ratio."""
    cells = [f"{seconds[who] * 1e3:.4g}" if who in seconds else "–" for who in ("attn", *PEERS)]
    return f"{name:<34}" + "".join(f"{cell:>13}" for cell in cells) + f"{ratio(seconds):>9.2f}"


def ratio(seconds):
    return min(seconds[peer] for peer in PEERS if peer in seconds) / seconds["attn"]


def arguments():
    parser = argparse.ArgumentParser(prog="bench-peers", description=__doc__.split("\n\n")[0])
    parser.add_argument("--library", dest="path", default=Path(__file__).parent.parent / "build" / "libattn.so")
    parser.add_argument("--filter", default="", metavar="TEXT", help="shapes whose names contain it")
    parser.add_argument("--rounds", type=int, default=15, metavar="N")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--precision", choices=libattn.PRECISIONS, default="exact", help="libattn's")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds takes a number from 1 on")
    return given


def main():
    given = arguments()
    chosen = [shape for shape in shapes.standard() if given.filter in shape.name]
    if not chosen:
        sys.exit(f"bench-peers: no shape is named like {given.filter!r}")
    torch.set_num_threads(1)
    try:
        attention = libattn.Attention(given.path)
    except (OSError, RuntimeError) as error:
        sys.exit(f"bench-peers: {error}")
    print(f"attn {attention.version} ({attention.isa}), torch {torch.__version__}, onnxruntime "
          f"{onnxruntime.__version__}; one thread, ms, medians of {given.rounds} rounds", file=sys.stderr)  # fmt: skip
    if not given.json:
        print(f"{'shape':<34}" + "".join(f"{who:>13}" for who in ("attn", *PEERS)) + f"{'ratio':>9}", flush=True)

    slower, wrong = [], []
    for shape in chosen:
        with torch.inference_mode():
            try:
                racers, expected = contenders.contenders(attention, shape, given.precision)
            except RuntimeError as error:
                sys.exit(f"bench-peers: {shape.name}: {error}")
            wrong += [f"{shape.name}: {text}" for text in differences(racers, expected, TOLERANCE[shape.type])]
            # CPU time of the process: a second thread would count, other programs do not.
            seconds = medians({one.name: one.call for one in racers}, given.rounds, time.process_time)
        if ratio(seconds) < 1:
            slower.append(shape.name)
        if given.json:
            times = {name: taken * 1e3 for name, taken in seconds.items()}
            print(json.dumps({"name": shape.name, "ms": times, "ratio": ratio(seconds)}), flush=True)
        else:
            print(line(shape.name, seconds), flush=True)
    if not given.json:
        print(f"slower than a peer: {' '.join(slower) or 'none'}")
    for text in wrong:
        print(f"bench-peers: {text}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
