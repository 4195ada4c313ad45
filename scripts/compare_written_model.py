#!/usr/bin/env python3
"""Compares models that attn wrote, as Transformers opens them, with attn's own.

    python scripts/compare_written_model.py BUILD/tests/model/write_model [COUNT [SEED]]

write_model is the test program that writes a GPT-2 or a BERT of random numbers into a folder, and answers each line
of token ids with the logits of its last token. Transformers must open the folder without a tensor missing or left
over, and give the same logits within 1e-4 of the largest. Exits with 1 where it does not.
"""

import json
import random
import subprocess
import sys
import tempfile

import torch
import transformers

TOLERANCE = 1e-4


def compare(program, kind, count, source):
    texts = [[source.randrange(300) for _ in range(source.randint(1, 64))] for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(json.dumps(ids) + "\n" for ids in texts)
        answers = subprocess.run([program, kind, folder], input=lines, capture_output=True, text=True, check=True)
        opener = transformers.AutoModelForCausalLM if kind == "gpt2" else transformers.AutoModelForMaskedLM
        model, report = opener.from_pretrained(folder, output_loading_info=True)
        left = {name: list(found) for name, found in report.items() if found}
        if left:
            sys.exit(f"{kind}: Transformers reports {left}")
        model.eval()
        worst = 0
        for ids, line in zip(texts, answers.stdout.splitlines(), strict=True):
            with torch.no_grad():
                expected = model(torch.tensor([ids])).logits[0, -1]
            apart = (torch.tensor(json.loads(line)) - expected).abs().max() / expected.abs().max()
            worst = max(worst, apart.item())
            if not apart <= TOLERANCE:
                sys.exit(f"{kind}: the logits of {ids} are {apart:.2e} of the largest apart")
    print(f"{kind}: {count} texts, {type(model).__name__}, logits at most {worst:.1e} of the largest apart")


def main(program, count=50, seed=1):
    source = random.Random(int(seed))
    for kind in ["gpt2", "bert"]:
        compare(program, kind, int(count), source)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
