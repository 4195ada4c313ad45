#!/usr/bin/env python3
"""A step of training GPT-2's shape, by attn and by PyTorch, in turn, on one thread.

    scripts/bench-peers BUILD training [--rounds N] [--steps N] [--layers N] [--batch N] …

Each round runs a process of each, which takes a few steps after one that does not count; the ratio is the median
over the rounds of attn's tokens a second over PyTorch's. PyTorch: f32, scaled_dot_product_attention, fused AdamW, no
dropout, and a heap that keeps its memory, which helps it. attn: `attn bench training`.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Read by the C library at its start: what is freed stays in the process.
HEAP_KEPT = {"MALLOC_TRIM_THRESHOLD_": "1000000000000", "MALLOC_MMAP_MAX_": "0", "MALLOC_TOP_PAD_": "67108864"}


def make_step(given):
    """A step of PyTorch without arguments."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(given.dim), nn.LayerNorm(given.dim)
            self.projections = nn.Linear(given.dim, 3 * given.dim)
            self.output = nn.Linear(given.dim, given.dim)
            self.up, self.down = nn.Linear(given.dim, 4 * given.dim), nn.Linear(4 * given.dim, given.dim)

        def forward(self, x):
            parts = self.projections(self.norm_1(x)).unflatten(2, (3, given.heads, -1)).transpose(1, 3).unbind(2)
            blended = functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.output(blended.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(given.vocab, given.dim), nn.Embedding(given.ctx, given.dim)
            self.blocks = nn.ModuleList(Block() for _ in range(given.layers))
            self.norm = nn.LayerNorm(given.dim)

        def forward(self, ids, labels):
            x = self.words(ids) + self.places.weight
            for block in self.blocks:
                x = block(x)
            logits = functional.linear(self.norm(x), self.words.weight)
            return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(given.vocab, (given.batch, given.ctx + 1))

    def step():
        loss = model(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def peak_mib():
    """The most memory that this process has had."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def run_torch(given):
    """What a process of its own prints: a line of JSON as attn's, with less in it."""
    step = make_step(given)
    step()
    begin = time.process_time()
    for _ in range(given.steps):
        step()
    rate = given.batch * given.ctx * given.steps / (time.process_time() - begin)
    print(json.dumps({"tokens_per_second": rate, "peak_mib": peak_mib()}))


def result_of(command, environment):
    finished = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if finished.returncode:
        sys.exit(f"bench-peers: {finished.stderr.strip()}")
    return json.loads(finished.stdout)


def run_round(given):
    """(attn's result, PyTorch's)"""
    sizes = [f"--{name}={getattr(given, name)}" for name in ("layers", "heads", "dim", "ctx", "vocab", "batch", "steps")]
    return (result_of([given.tool, "bench", "training", "--json", "-t", "1", *sizes], {}),
            result_of([sys.executable, __file__, "--torch", *sizes], HEAP_KEPT))  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(prog="bench-peers training", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tool", default=Path(__file__).parent.parent / "build" / "attn", help=argparse.SUPPRESS)
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    for name, default in (("rounds", 3), ("steps", 2), ("layers", 12), ("heads", 12), ("dim", 768), ("ctx", 256),
                          ("vocab", 50257), ("batch", 4)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    parser.add_argument("--json", action="store_true", help="one object")
    return parser.parse_args()


def main():
    given = arguments()
    if given.torch:
        run_torch(given)
        return
    rounds = []
    for number in range(given.rounds):
        attn, torch = run_round(given)
        rounds.append((attn, torch))
        if not given.json:
            print(f"round {number + 1}: attn {attn['tokens_per_second']:.1f} tokens/s, "
                  f"torch {torch['tokens_per_second']:.1f}", flush=True)  # fmt: skip
    ratio = statistics.median(attn["tokens_per_second"] / torch["tokens_per_second"] for attn, torch in rounds)
    attn, torch = rounds[-1]
    if given.json:
        print(json.dumps({"ratio": ratio, "attn": attn, "torch": torch}))
        return
    shares = ", ".join(f"{name} {attn[name]:.0%}" for name in ("attention", "linear", "optimizer", "rest"))
    print(f"attn is {ratio:.2f} times as fast; its time: {shares}; of the peak {attn['of_peak']:.0%}")
    print(f"most memory: attn {attn['peak_mib']:.0f} MiB, torch {torch['peak_mib']:.0f} MiB")


if __name__ == "__main__":
    main()
