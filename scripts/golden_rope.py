#!/usr/bin/env python3
"""Makes tests/data/nn/rope.json: what Transformers' Llama makes of queries by rotary embedding.

    golden_rope.py OUTPUT_FILE

Needs torch and transformers. Inputs are multiples of 1/64 and so exact in float32. Cosines and sines
are those of the d/2 pairs; LlamaRotaryEmbedding computes them in float32, and so does all of this.
"""

import json
import sys

import torch
import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

random = torch.Generator().manual_seed(6)
HEADS = 2


def tensor(values):
    return {
        "shape": list(values.shape),
        "data": [float(f"{x:.9g}") for x in values.detach().flatten().tolist()],
    }


def case(d, theta, position):
    settings = {"hidden_size": HEADS * d, "num_attention_heads": HEADS, "max_position_embeddings": 8192}
    try:
        config = LlamaConfig(rope_parameters={"rope_type": "default", "rope_theta": theta}, **settings)
    except TypeError:
        config = LlamaConfig(rope_theta=theta, **settings)
    rotary = LlamaRotaryEmbedding(config)
    x = torch.randint(-128, 129, (1, HEADS, 1, d), generator=random).float() / 64
    cosines, sines = rotary(x, torch.tensor([[position]]))
    y, _ = apply_rotary_pos_emb(x, x, cosines, sines)
    return {
        "name": f"d_{d}_theta_{theta:g}_position_{position}",
        "input": {"heads": HEADS, "head_dim": d, "theta": theta, "position": position,
                  "x": tensor(x.reshape(HEADS, d))},
        "expected": {"cosines": tensor(cosines[0, 0, : d // 2]), "sines": tensor(sines[0, 0, : d // 2]),
                     "y": tensor(y.reshape(HEADS, d))},
    }


def main(output_file):
    cases = [
        case(d, theta, position)
        for d in (8, 64)
        for theta in (1e4, 1e5)
        for position in (0, 1, 63, 2047, 8191)
    ]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    head = json.dumps({"versions": versions})[:-1]
    with open(output_file, "w", encoding="utf-8") as file:
        file.write(head + ', "cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
