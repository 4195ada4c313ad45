#!/usr/bin/env python3
"""Makes tests/data/golden/heads.json: what each head does, by NumPy from Transformers' attention.

    golden_heads.py MODELS_DIRECTORY OUTPUT_FILE       (tests/data/models tests/data/golden/heads.json)

Needs numpy, torch and transformers. Eager attention in float64, of small random models that lie in
MODELS_DIRECTORY, over texts of several lengths. The scores are those of src/probe/head_scores.h, from their
definitions, in the order of its struct; null where there is no row of a kind.
"""

import json
import pathlib
import sys

import numpy
import torch
import transformers

CLASSES = {"bert": transformers.BertModel, "gpt2": transformers.GPT2Model, "llama": transformers.LlamaModel}

# Folder, lengths of the texts, and how many ids they are drawn from: few, so that tokens come again.
MODELS = [("bert", [10, 3, 7, 1], 5), ("gpt2", [12, 4, 9], 4), ("gpt2", [1], 4), ("causal/llama_f32", [48, 33, 5], 9)]


def read_attention(model, ids):
    with torch.no_grad():
        result = model(torch.tensor([ids]), output_attentions=True)
    return torch.stack(result.attentions)[:, 0].numpy()


def kept(values, rows):
    """The values of some rows only."""
    return [value for value, row in zip(values, rows) if row]


def text_scores(weights, ids, added, causal):
    """Of one head and text: for each score the values that its mean is over."""
    length = len(ids)
    places = numpy.arange(length)
    logarithms = numpy.log(weights, out=numpy.zeros_like(weights), where=weights > 0)
    behind = [place for place in added if place > 0]
    same = numpy.array(ids)[:, None] == numpy.array(ids)[None, :]
    earlier = same & (places[None, :] < places[:, None])
    following = numpy.zeros_like(earlier)
    following[:, 1:] = earlier[:, :-1]
    following &= places[None, :] < places[:, None]
    seen = length - places if causal else numpy.full(length, length)
    shares = weights.sum(0) / seen
    return [
        -(weights * logarithms).sum(1),
        (weights * abs(places[:, None] - places[None, :])).sum(1),
        numpy.diagonal(weights),
        numpy.diagonal(weights, -1),
        numpy.diagonal(weights, 1),
        weights[:, 0],
        weights[:, behind].sum(1) if behind else [],
        [shares[seen * 2 >= length].max()],
        kept((weights * earlier).sum(1), earlier.any(1)),
        kept((weights * following).sum(1), following.any(1)),
    ]


def head_scores(attention, texts, layer, head, causal):
    per_text = [text_scores(weights[layer, head], text["ids"], text["added"], causal)
                for weights, text in zip(attention, texts)]
    values = [numpy.concatenate([numpy.asarray(part, dtype=float) for part in parts]) for parts in zip(*per_text)]
    return [round(float(value.mean()), 9) if value.size else None for value in values]


def model_case(folder, name, lengths, kinds, generator):
    config = transformers.AutoConfig.from_pretrained(folder / name)
    model = CLASSES[config.model_type].from_pretrained(folder / name, dtype=torch.float64, attn_implementation="eager")
    model.eval()
    causal = config.model_type != "bert"
    texts = []
    for length in lengths:
        ids = generator.integers(1, 1 + kinds, length).tolist()
        if not causal and length > 2:
            ids[0], ids[-1] = config.vocab_size - 1, config.vocab_size - 2
        texts.append({"ids": ids, "added": [] if causal or length <= 2 else [0, length - 1]})
    attention = [read_attention(model, text["ids"]) for text in texts]
    layers, heads = attention[0].shape[:2]
    scores = [[head_scores(attention, texts, layer, head, causal) for head in range(heads)] for layer in range(layers)]
    return {"model": name, "texts": texts, "scores": scores}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    generator = numpy.random.default_rng(7)
    cases = [model_case(pathlib.Path(sys.argv[1]), *settings, generator) for settings in MODELS]
    pathlib.Path(sys.argv[2]).write_text(json.dumps(cases) + "\n")
    for case in cases:
        print(case["model"], [len(text["ids"]) for text in case["texts"]], case["scores"][0][0])


if __name__ == "__main__":
    main()
