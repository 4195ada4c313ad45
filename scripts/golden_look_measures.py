#!/usr/bin/env python3
"""Makes tests/data/golden/look_measures.json: what PyTorch says of the measures of `attn look`.

    golden_look_measures.py MODELS_DIRECTORY OUTPUT_DIRECTORY

Needs torch and transformers. MODELS_DIRECTORY is tests/data/models, whose small random models are read (see
golden_language_model.py and golden_causal.py). Everything is computed in float64 from the numbers of the files:

    norm      of what a key adds: v_j·Wo formed head by head with NumPy's einsum from the values that the model
              itself projects, weighted, summed over heads, and only then measured
    rollout   the product of ½·(mean over heads) + ½·I over the layers
    grad      autograd's gradient of y by each attention weight, times the weight, where that is positive; y is
              ln p of the likeliest next token, or of a BERT ½·‖mean of the last hidden states‖²

by word: the keys of a word are added, its queries averaged, and rows divided by their sums over all tokens, those
that belong to no word (-1) too. The file holds for each model its folder, the ids, the word of each token, and for
each measure its matrices in order: the mean of all, then of each layer, then each head (a rollout has none).
"""

import json
import pathlib
import sys

import numpy
import torch
import transformers

MODELS = ["bert", "gpt2", "causal/llama_f32", "causal/llama_bf16"]
WORDS = [-1, 0, 0, 1, 2, 2, 2, 3, -1]


class Run:
    """One reading: weights [layers][heads][t][t], their gradients, values [layers][heads][t][d], Wo [layers]."""

    def __init__(self, folder):
        auto = transformers.AutoModel if folder.name == "bert" else transformers.AutoModelForCausalLM
        options = {"attn_implementation": "eager", "dtype": torch.float64}
        if folder.name == "bert":
            options["add_pooling_layer"] = False
        self.model = auto.from_pretrained(folder, **options).eval()
        self.config = self.model.config
        self.heads = self.config.num_attention_heads
        self.kind = self.config.model_type
        generator = torch.Generator().manual_seed(7)
        self.ids = torch.randint(1, self.config.vocab_size, (len(WORDS),), generator=generator).tolist()
        values, hooks = [], []
        for layer in self.layers():
            hooks.append(self.projection(layer).register_forward_hook(
                lambda module, given, result: values.append(result.detach()[0])))
        result = self.model(torch.tensor([self.ids]), output_attentions=True)
        for hook in hooks:
            hook.remove()
        for weights in result.attentions:
            weights.retain_grad()
        if self.kind == "bert":
            y = 0.5 * result.last_hidden_state[0].mean(axis=0).square().sum()
        else:
            y = result.logits[0, -1].log_softmax(-1).max()
        y.backward()
        self.weights = [weights.detach()[0].numpy() for weights in result.attentions]
        self.gradients = [weights.grad[0].numpy() for weights in result.attentions]
        self.values = [self.split(one.numpy()) for one in values]
        self.outputs = [self.output(layer).detach().numpy() for layer in self.layers()]

    def layers(self):
        if self.kind == "bert":
            return self.model.encoder.layer
        return self.model.transformer.h if self.kind == "gpt2" else self.model.model.layers

    def projection(self, layer):
        if self.kind == "bert":
            return layer.attention.self.value
        return layer.attn.c_attn if self.kind == "gpt2" else layer.self_attn.v_proj

    def output(self, layer):
        """[heads·d][width]"""
        if self.kind == "gpt2":
            return layer.attn.c_proj.weight
        return (layer.attention.output.dense if self.kind == "bert" else layer.self_attn.o_proj).weight.T

    def split(self, projected):
        """[heads][t][d]; a key head that several heads share stands once for each."""
        if self.kind == "gpt2":
            projected = projected[:, -self.config.n_embd:]
        key_heads = getattr(self.config, "num_key_value_heads", None) or self.heads
        values = projected.reshape(len(self.ids), key_heads, -1).transpose(1, 0, 2)
        return values.repeat(self.heads // key_heads, axis=0)


def added(run, layer):
    """[heads][queries][keys][width]: what each head adds of each key to each query's row."""
    values, output = run.values[layer], run.outputs[layer]
    parts = output.reshape(run.heads, -1, output.shape[1])
    return numpy.einsum("hij,hjd,hdw->hijw", run.weights[layer], values, parts)


def by_word(tokens):
    """Rows of words, and their sums over all tokens."""
    words = numpy.array(WORDS)
    count = words.max() + 1
    rows = numpy.stack([tokens[words == word].mean(axis=0) for word in range(count)])
    return numpy.stack([rows[:, words == word].sum(axis=1) for word in range(count)], axis=1), rows.sum(axis=1)


def shares(tokens):
    rows, sums = by_word(tokens)
    return rows / numpy.where(sums > 0, sums, 1)[:, None]


def norm(run):
    vectors = [added(run, layer) for layer in range(len(run.weights))]
    means = [shares(numpy.linalg.norm(one.sum(axis=0), axis=-1)) for one in vectors]
    heads = [shares(numpy.linalg.norm(head, axis=-1)) for one in vectors for head in one]
    return [numpy.mean(means, axis=0), *means, *heads]


def rollout(run):
    product, layers = numpy.eye(len(run.ids)), []
    for weights in run.weights:
        product = (0.5 * weights.mean(axis=0) + 0.5 * numpy.eye(len(run.ids))) @ product
        layers.append(shares(product))
    return [layers[-1], *layers]


def grad(run):
    products = [numpy.maximum(weights * gradient, 0) for weights, gradient in zip(run.weights, run.gradients)]
    means = [one.mean(axis=0) for one in products]
    heads = [shares(head) for one in products for head in one]
    return [shares(numpy.mean(means, axis=0)), *(shares(mean) for mean in means), *heads]


def main(models, output):
    lines = []
    for name in MODELS:
        run = Run(models / name)
        entry = {"model": name, "ids": run.ids, "words": WORDS}
        for measure in (norm, rollout, grad):
            entry[measure.__name__] = [[round(float(x), 9) for x in matrix.flatten()] for matrix in measure(run)]
        lines.append(json.dumps(entry))
        print(f"{name}: {len(run.weights)} layers of {run.heads} heads")
    (output / "look_measures.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
