#!/usr/bin/env python3
"""Trains the same GPT with attn and with PyTorch, on the same batches from the same weights, and compares the
losses.

    scripts/compare_training.py ATTN CORPUS [options of attn train]

Needs torch, transformers and safetensors. Only the windows of text and their order are taken from attn's rules
(written again below); model, loss, gradient, clipping, AdamW and rates are PyTorch's. Options: those of a GPT
without dropout. Prints both losses side by side; exit status 1 unless the losses of the first 100 steps are within
0.2 % and the last loss of the held-out text within 2 %.
"""
import csv
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

CLOSE_STEPS = 100  # roundings grow from step to step
ORDER, SHIFT = 0, 1  # purposes of random numbers, as src/train/random.h numbers them


def philox(seed, purpose, a, b):
    """The first word of Philox4x32-10 (J. Salmon et al., 2011)."""
    mask = 0xFFFFFFFF
    key = [seed & mask, seed >> 32 & mask]
    x = [b & mask, b >> 32 & mask, a & mask, purpose]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [p1 >> 32 ^ x[1] ^ key[0], p1 & mask, p0 >> 32 ^ x[3] ^ key[1], p0 & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return x[0]


class Windows:
    """Windows of `length` tokens: an epoch takes each once, in a random order, from a random shift on."""

    def __init__(self, tokens, length, seed):
        fitting = tokens // length
        self.length, self.seed = length, seed
        self.count = max(1, fitting - 1)
        self.slack = tokens - self.count * length
        self.epoch = None

    def begin(self, number):
        epoch, place = divmod(number, self.count)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, list(range(self.count))
            for i in range(self.count - 1, 0, -1):
                other = philox(self.seed, ORDER, epoch, i) * (i + 1) >> 32
                self.order[i], self.order[other] = self.order[other], self.order[i]
            self.shift = philox(self.seed, SHIFT, epoch, 0) * (self.slack + 1) >> 32
        return self.shift + self.order[place] * self.length


def split(text, share):
    """Training and held-out bytes: cut at the last end of a line with a word before it."""
    end = len(text) - int(len(text) * share)
    while end < len(text) and end > 1 and not (text[end] == 10 and text[end - 1] not in b" \t\n\v\f\r"):
        end -= 1
    return text[:end], text[end:]


def rate(settings, done):
    warmup, total = settings["warmup"], settings["steps"]
    if done < warmup:
        return settings["lr"] * done / warmup
    progress = min(1, (done - warmup) / (total - warmup))
    share = (1 + math.cos(math.pi * progress)) / 2 if settings["schedule"] == "cosine" else 1 - progress
    return settings["final-lr"] + (settings["lr"] - settings["final-lr"]) * share


def held_out_loss(model, ids, context):
    """The mean over all of it but its first token, in windows of the context."""
    total = 0.0
    with torch.no_grad():
        for begin in range(0, len(ids) - 1, context):
            window = ids[begin : begin + context + 1]
            logits = model(window[None, :-1]).logits[0]
            total += float(torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum"))
    return total / (len(ids) - 1)


def train(folder, corpus, settings):
    """The losses of all steps, and that of the held-out text after the last."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    training, held_out = (
        torch.tensor(tokenizer(part.decode())["input_ids"]) for part in split(corpus, settings["held-out"])
    )
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() == 2], "weight_decay": settings["decay"]},
        {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0},
    ]
    betas = settings["beta1"], settings["beta2"]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=settings["epsilon"])
    context, batch = settings["ctx"], settings["batch"]
    windows = Windows(len(training) - 1, context, settings["seed"])
    losses = []
    model.train()
    for done in range(settings["steps"]):
        begins = [windows.begin(done * batch + i) for i in range(batch)]
        ids = torch.stack([training[begin : begin + context + 1] for begin in begins])
        logits = model(ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if settings["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(parameters, settings["clip"])
        for group in optimizer.param_groups:
            group["lr"] = rate(settings, done)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses, held_out_loss(model, held_out, context)


def run_attn(attn, corpus, folder, options):
    """The first step has the rate 0, and so leaves the weights that training begins with."""
    first = [*options, "--warmup", "10"] if "--warmup" not in options else options
    subprocess.run([attn, "train", "-f", corpus, "-o", folder / "start", *first, "--stop-after", "1"], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run([attn, "train", "-f", corpus, "-o", folder / "attn", *first], check=True)
    with safe_open(folder / "start/training.safetensors", "pt") as state:
        settings = json.loads(state.metadata()["settings"])
    with open(folder / "attn/training.csv") as rows:
        return settings, list(csv.DictReader(rows))


def main(attn, corpus, options):
    with tempfile.TemporaryDirectory(prefix="attn-compare-") as scratch:
        folder = Path(scratch)
        settings, rows = run_attn(attn, corpus, folder, options)
        losses, held_out = train(folder / "start", Path(corpus).read_bytes(), settings)
    apart = [abs(float(row["loss"]) / loss - 1) for row, loss in zip(rows, losses, strict=True)]
    worst = max(apart[:CLOSE_STEPS])
    every = max(1, len(rows) // 10)
    for row, loss in list(zip(rows, losses, strict=True))[::every]:
        print(f"step {row['step']:>6}: attn {float(row['loss']):.6f}, PyTorch {loss:.6f}")
    ours = float(rows[-1]["held_out"])
    print(f"held-out text: attn {ours:.6f}, PyTorch {held_out:.6f}")
    print(f"largest relative difference of a step's loss: {worst:.2e} in the first {CLOSE_STEPS}, {max(apart):.2e}")
    return not (worst <= 2e-3 and abs(ours / held_out - 1) <= 0.02)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
