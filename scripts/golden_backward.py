#!/usr/bin/env python3
"""Makes tests/data/golden/backward.txt and backward.bin: gradients of attention from PyTorch.

    golden_backward.py OUTPUT_DIRECTORY

Needs torch. Inputs are the numbers of the tests' harness (tests/harness/random.c), made again here.
scaled_dot_product_attention gives the output, or plain tensor operations where it lacks the option
(soft cap, sinks); autograd gives the gradients of sum(o * d_o). Problems of f32 are computed in
float64, so that the error is the library's alone; those of bf16 in bfloat16, as PyTorch trains.

    backward.txt   one problem a line, what is not given being 0:
                     name type B H Hkv Lq Lk d_qk d_v causal cap bias[4] sinks keep
                   causal is bottom-right; bias is the shape of a bias, 0 0 0 0 without one; sinks
                   and keep are 1 where there are some
    backward.bin   for each problem in turn dq, dk, dv, and dbias and dsinks where there are such:
                   little-endian float32
"""

import pathlib
import struct
import sys

import torch

MASK = (1 << 64) - 1

# name, type, (B, H, Hkv, Lq, Lk, d_qk, d_v), causal, cap, bias, sinks, keep
PROBLEMS = [
    ("dense", "f32", (2, 2, 2, 19, 33, 8, 8), 0, 0, (0, 0, 0, 0), 0, 0),
    ("causal", "f32", (1, 2, 2, 40, 40, 16, 8), 1, 0, (0, 0, 0, 0), 0, 0),
    ("grouped", "f32", (1, 6, 2, 17, 29, 8, 12), 0, 0, (0, 0, 0, 0), 0, 0),
    ("grouped_causal", "f32", (1, 4, 1, 17, 50, 8, 8), 1, 0, (0, 0, 0, 0), 0, 0),
    ("bias", "f32", (2, 2, 2, 13, 21, 5, 7), 0, 0, (2, 2, 13, 21), 0, 0),
    ("bias_of_heads", "f32", (2, 4, 2, 13, 21, 5, 7), 0, 0, (1, 4, 1, 21), 0, 0),
    ("bias_of_batches", "f32", (3, 2, 1, 9, 100, 6, 4), 1, 0, (3, 1, 1, 100), 0, 0),
    ("keep", "f32", (2, 2, 2, 18, 35, 8, 8), 0, 0, (0, 0, 0, 0), 0, 1),
    ("cap", "f32", (1, 2, 2, 20, 31, 8, 8), 0, 0.75, (0, 0, 0, 0), 0, 0),
    ("sinks", "f32", (2, 4, 2, 20, 31, 8, 4), 0, 0, (0, 0, 0, 0), 1, 0),
    ("all", "f32", (2, 4, 2, 20, 31, 8, 4), 1, 1.5, (1, 4, 20, 31), 1, 1),
    ("bf16_dense", "bf16", (1, 2, 2, 33, 65, 16, 16), 0, 0, (0, 0, 0, 0), 0, 0),
    ("bf16_causal", "bf16", (1, 4, 2, 32, 32, 16, 16), 1, 0, (0, 0, 0, 0), 0, 0),
]


class Random:
    """splitmix64, as tests/harness/random.c has it."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def tensor(self, shape, low, high):
        count = 1
        for size in shape:
            count *= size
        unit = [(self.bits() >> 11) / 9007199254740991.0 for _ in range(count)]
        numbers = torch.tensor([low + (high - low) * u for u in unit], dtype=torch.float64)
        return numbers.to(torch.float32).reshape(shape)

    def mask(self, shape, one_in):
        """attention_add_keep of tests/harness/attention_problem.c."""
        kept = []
        for _ in range(torch.Size(shape).numel()):
            excluded = 1 + self.bits() % one_in == 1
            if not excluded:
                self.bits()
            kept.append(not excluded)
        return torch.tensor(kept).reshape(shape)


def inputs(problem):
    """In the order in which tests/attention/gradient_golden_test.c makes them."""
    _, _, (b, h, hkv, lq, lk, d_qk, d_v), _, _, bias_shape, sinks, keep = problem
    source = Random(1)
    made = {
        "q": source.tensor((b, h, lq, d_qk), -2, 2),
        "k": source.tensor((b, hkv, lk, d_qk), -2, 2),
        "v": source.tensor((b, hkv, lk, d_v), -1, 1),
    }
    if bias_shape[0]:
        made["bias"] = Random(2).tensor(bias_shape, -2, 2)
    if sinks:
        made["sinks"] = torch.tensor([0.5 * n - 1 for n in range(h)])
    if keep:
        made["keep"] = Random(3).mask((b, 1, lq, lk), 3)
    made["d_o"] = Random(4).tensor((b, h, lq, d_v), -1, 1)
    return made


def kept_places(problem, made):
    _, _, (_, _, _, lq, lk, _, _), causal, _, _, _, _ = problem
    kept = torch.ones(lq, lk, dtype=torch.bool)
    if causal:
        kept = kept.tril(lk - lq)
    return kept & made["keep"] if "keep" in made else kept


def by_definition(problem, made):
    """softmax(cap · tanh(scale · q·k / cap) + bias) with a sink in the denominator, times v."""
    _, _, (b, h, hkv, lq, _, d_qk, _), _, cap, _, _, _ = problem
    k = made["k"].repeat_interleave(h // hkv, 1)
    v = made["v"].repeat_interleave(h // hkv, 1)
    scores = made["q"] @ k.transpose(-1, -2) / d_qk**0.5
    if cap:
        scores = cap * torch.tanh(scores / cap)
    if "bias" in made:
        scores = scores + made["bias"]
    scores = scores.masked_fill(~kept_places(problem, made), float("-inf"))
    if "sinks" in made:
        sink = made["sinks"].reshape(1, h, 1, 1).expand(b, h, lq, 1)
        return torch.cat([scores, sink], -1).softmax(-1)[..., :-1] @ v
    return scores.softmax(-1) @ v


def by_torch(problem, made):
    _, _, (b, h, _, lq, lk, _, _), causal, _, _, _, _ = problem
    mask = None
    if causal or "bias" in made or "keep" in made:
        mask = torch.zeros(b, h, lq, lk, dtype=made["q"].dtype)
        if "bias" in made:
            mask = mask + made["bias"]
        mask = mask.masked_fill(~kept_places(problem, made), float("-inf"))
    return torch.nn.functional.scaled_dot_product_attention(
        made["q"], made["k"], made["v"], attn_mask=mask, enable_gqa=True
    )


def gradients(problem):
    name, kind, _, _, cap, _, sinks, _ = problem
    made = inputs(problem)
    dtype = torch.float64 if kind == "f32" else torch.bfloat16
    for key, tensor in made.items():
        if key != "keep":
            made[key] = tensor.to(dtype).requires_grad_(key != "d_o")
    output = (by_definition if cap or sinks else by_torch)(problem, made)
    output.backward(made["d_o"])
    wanted = [made[key].grad for key in ("q", "k", "v", "bias", "sinks") if key in made]
    for gradient in wanted:
        if not gradient.isfinite().all():
            sys.exit(f"{name}: a gradient is not finite: a row without a key?")
    return wanted


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    lines, data = [], bytearray()
    for problem in PROBLEMS:
        name, kind, sizes, causal, cap, bias, sinks, keep = problem
        fields = [name, kind, *sizes, causal, cap, *bias, sinks, keep]
        lines.append(" ".join(str(field) for field in fields))
        for gradient in gradients(problem):
            numbers = gradient.to(torch.float32).flatten().tolist()
            data += struct.pack(f"<{len(numbers)}f", *numbers)
    (directory / "backward.txt").write_text("\n".join(lines) + "\n")
    (directory / "backward.bin").write_bytes(data)
    print(f"{len(PROBLEMS)} problems, {len(data)} bytes, torch {torch.__version__}")


if __name__ == "__main__":
    main()
