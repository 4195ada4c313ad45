#!/usr/bin/env python3
"""Makes tests/data/golden/bert.json and bert.bin: what PyTorch computes with a BERT model.

    golden_bert.py MODEL_DIRECTORY OUTPUT_DIRECTORY [FULL_DIRECTORY]

Needs torch, transformers and tokenizers. Eager attention in float32. The full tensors are far too
large to keep, so the files hold a sample that is the same in every run:

    bert.json   for each text: token ids and types, which values were kept and where they begin in
                bert.bin (counted in floats)
    bert.bin    little-endian float32:
                  embedding    [hidden]         mean over all tokens, then L2
                  hidden       [hidden]         some rows of the last hidden state
                  attention    [tokens]         some rows of some heads' weights
                  square_sums  [layers][heads]  Σ w² / tokens: a checksum of all the weights

FULL_DIRECTORY, where given, receives the whole tensors of text N as N.bin: the hidden state
[tokens][hidden], then the weights [layers][heads][tokens][tokens].
"""

import json
import pathlib
import random
import sys

import numpy
import tokenizers
import torch
import transformers

HIDDEN_ROWS = 64
ATTENTION_ROWS = 200

PARAGRAPH = (
    "In the beginning the archive was a single shelf, and every letter that reached the town ended "
    "there. Later, when the railway came, three clerks sorted what one had sorted before; they "
    "numbered the boxes, lost some of them, and quarrelled about the rest. "
)

TEXTS = [
    ("The robot picked up the screwdriver because it was heavy.", None),
    ("The robot picked up the screwdriver because it was broken.", None),
    ("a", None),
    ("", None),
    ("Hello, world!", None),
    ("Crème brûlée à l'époque, naïve façade; Ångström, İstanbul, Straße.", None),
    ("我喜欢自然语言处理。東京へ行きます。", None),
    ("한국어 문장도 있습니다.", None),
    ("Great 😂😂 weekend 👨‍👩‍👧 at the 🏖️!", None),
    ("مرحبا بالعالم, שלום עולם", None),
    ("C++ != C#; printf(\"%d\\n\", 1e-12); x_1 = y^2 @ 100%", None),
    ("antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis", None),
    ("The capital of France is [MASK].", None),
    ("Who wrote it?", "Nobody knows who wrote the letter that opened the case."),
    ("Ein Satz auf Deutsch.", "Une phrase en français, plus longue que l'autre."),
    ("tabs\tand\nnew lines and\u00a0spaces", None),
    ("1 22 333 4444 55555 3.14159 2026-01-31 12:30", None),
    (PARAGRAPH, None),
    (PARAGRAPH * 4, "What did the clerks lose? " + PARAGRAPH),
    (PARAGRAPH * 20, None),
]


def encode(tokenizer, text, pair, limit):
    encoding = tokenizer.encode(text, pair)
    ids, types = encoding.ids, encoding.type_ids
    if len(ids) > limit:
        ids, types = ids[: limit - 1] + ids[-1:], types[:limit]
    return ids, types


def main(model_directory, output_directory, full_directory=None):
    tokenizer = tokenizers.Tokenizer.from_file(f"{model_directory}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = transformers.AutoModel.from_pretrained(
        model_directory, attn_implementation="eager", dtype=torch.float32
    ).eval()
    limit = model.config.max_position_embeddings

    runs = []
    for text, pair in TEXTS:
        ids, types = encode(tokenizer, text, pair, limit)
        with torch.no_grad():
            result = model(
                input_ids=torch.tensor([ids]),
                token_type_ids=torch.tensor([types]),
                output_attentions=True,
            )
        hidden = result.last_hidden_state[0]
        weights = torch.stack(result.attentions)[:, 0]
        runs.append((text, pair, ids, types, hidden.numpy(), weights.numpy()))

    pick = random.Random(1)
    layers, heads = runs[0][5].shape[:2]
    rows = [(n, t) for n, run in enumerate(runs) for t in range(len(run[2]))]
    hidden_rows = set(pick.sample(rows, HIDDEN_ROWS - len(runs)))
    hidden_rows |= {(n, pick.randrange(len(run[2]))) for n, run in enumerate(runs)}
    attention_rows = set()
    while len(attention_rows) < ATTENTION_ROWS:
        n = len(attention_rows) % len(runs)
        query = pick.randrange(len(runs[n][2]))
        attention_rows.add((n, pick.randrange(layers), pick.randrange(heads), query))

    kept, size, texts = [], 0, []

    def keep(values):
        nonlocal size
        begin = size
        kept.append(numpy.ascontiguousarray(values, dtype="<f4").ravel())
        size += kept[-1].size
        return begin

    for n, (text, pair, ids, types, hidden, weights) in enumerate(runs):
        mean = hidden.astype(numpy.float64).mean(axis=0)
        entry = {
            "text": text,
            "pair": pair,
            "ids": ids,
            "types": types,
            "embedding": keep(mean / numpy.linalg.norm(mean)),
            "square_sums": keep((weights.astype(numpy.float64) ** 2).sum(axis=(2, 3)) / len(ids)),
            "hidden": [
                {"row": row, "begin": keep(hidden[row])} for m, row in sorted(hidden_rows) if m == n
            ],
            "attention": [
                {"layer": l, "head": h, "query": q, "begin": keep(weights[l, h, q])}
                for m, l, h, q in sorted(attention_rows)
                if m == n
            ],
        }
        texts.append(entry)
        if full_directory:
            whole = numpy.concatenate([hidden.ravel(), weights.ravel()]).astype("<f4")
            whole.tofile(pathlib.Path(full_directory) / f"{n}.bin")

    output = pathlib.Path(output_directory)
    numpy.concatenate(kept).tofile(output / "bert.bin")
    versions = {module.__name__: module.__version__ for module in (torch, transformers, tokenizers)}
    with open(output / "bert.json", "w", encoding="utf-8") as file:
        head = {"versions": versions, "hidden_size": model.config.hidden_size}
        head |= {"layers": layers, "heads": heads, "floats": size}
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in texts)
        file.write(json.dumps(head)[:-1] + ', "texts": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
