#!/usr/bin/env python3
"""Makes tests/data/golden/what_if.json: what small models of Transformers' tell where heads are zeroed and links masked.

    golden_what_if.py MODELS_DIRECTORY OUTPUT_FILE

Needs torch and transformers. MODELS_DIRECTORY is tests/data/models, with what golden_causal.py and golden_masked_words.py
made. Computed in float64 by eager attention: a hook before the output projection zeroes the numbers of the heads that
are ablated, and one before the attention adds −inf to the mask of the pairs that are cut.

Each entry has a model, ids, token types, "ablated" and "where" as lists of [layer, head] (−1: all), and "cuts" of queries and
keys; then for each place (−1: the next word; else the token of a [MASK]) the probabilities of the whole vocabulary
before and after and their divergence Σ before·ln(before/after); and of a BERT 1 − cos of the mean of the last hidden
states before and after, and of each token's.
"""

import inspect
import json
import pathlib
import sys

import torch
import transformers

CAUSAL = [
    dict(),
    dict(ablated=[[0, 1]]),
    dict(ablated=[[1, -1]]),
    dict(ablated=[[0, 0], [1, 2]]),
    dict(cuts=[dict(queries=[11], keys=[3, 4])]),
    dict(cuts=[dict(queries=[5, 6, 11], keys=[2]), dict(queries=[11], keys=[11])], where=[[0, 2], [1, 0]]),
    dict(ablated=[[0, 2]], cuts=[dict(queries=[11], keys=[0])], where=[[1, -1]]),
]
MASKED = [
    dict(),
    dict(ablated=[[0, 1]]),
    dict(ablated=[[1, -1], [2, 3]]),
    dict(cuts=[dict(queries=[3], keys=[2])]),
    dict(cuts=[dict(queries=[0, 3, 8], keys=[9, 1, 3]), dict(queries=[5], keys=[5])], where=[[0, 0], [2, -1]]),
    dict(ablated=[[2, 0]], cuts=[dict(queries=[3], keys=[0, 1, 2, 4, 5, 6, 7, 8])]),
]
IDS = 12


def attention_modules(model):
    """Of each layer: the module that attends, and its output projection."""
    if model.config.model_type == "gpt2":
        return [(block.attn, block.attn.c_proj) for block in model.transformer.h]
    if model.config.model_type == "llama":
        return [(layer.self_attn, layer.self_attn.o_proj) for layer in model.model.layers]
    return [(layer.attention.self, layer.attention.output.dense) for layer in model.bert.encoder.layer]


def named(pairs, layer, heads):
    return {head for head in range(heads) for named_layer, named_head in pairs
            if named_layer in (-1, layer) and named_head in (-1, head)}


def hide(mask):
    def hook(module, args, kwargs):
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        given = bound.arguments.get("attention_mask")
        bound.arguments["attention_mask"] = mask if given is None else given + mask
        return bound.args, bound.kwargs
    return hook


def zero(heads, size):
    def hook(_, args):
        blended = args[0].clone()
        for head in heads:
            blended[..., head * size:(head + 1) * size] = 0
        return (blended,)
    return hook


def change(model, what, tokens):
    """Hooks of a change; remove() each."""
    heads, hooks = model.config.num_attention_heads, []
    for layer, (attention, output) in enumerate(attention_modules(model)):
        off = named(what.get("ablated", []), layer, heads)
        if off:
            size = getattr(model.config, "head_dim", None) or model.config.hidden_size // heads
            hooks.append(output.register_forward_pre_hook(zero(off, size)))
        mask = torch.zeros(1, heads, tokens, tokens, dtype=torch.float64)
        for cut in what.get("cuts", []):
            for head in named(what.get("where", [[-1, -1]]), layer, heads):
                for query in cut["queries"]:
                    mask[0, head, query, cut["keys"]] = -torch.inf
        if mask.isinf().any():
            hooks.append(attention.register_forward_pre_hook(hide(mask), with_kwargs=True))
    return hooks


def run(model, ids, types, places, what):
    inputs = {"input_ids": torch.tensor([ids]), "output_hidden_states": True}
    if types:
        inputs["token_type_ids"] = torch.tensor([types])
    hooks = change(model, what, len(ids))
    with torch.no_grad():
        result = model(**inputs)
    for hook in hooks:
        hook.remove()
    return result.logits[0, places].double().log_softmax(-1), result.hidden_states[-1][0]


def rounded(numbers):
    return [float(f"{number:.9g}") for number in numbers.flatten().tolist()]


def distance(a, b):
    return 1 - torch.nn.functional.cosine_similarity(a, b, dim=-1)


def entry(name, model, ids, types, places, what):
    before, hidden_before = run(model, ids, types, places, {})
    after, hidden_after = run(model, ids, types, places, what)
    made = {"model": name, "ids": ids, "types": types, "ablated": what.get("ablated", []),
            "cuts": what.get("cuts", []), "where": what.get("where", []), "places": [
        {"token": place, "before": rounded(before[n].exp()), "after": rounded(after[n].exp()),
         "divergence": float(f"{(before[n].exp() * (before[n] - after[n])).sum():.9g}")}
        for n, place in enumerate(places)]}
    if model.config.model_type == "bert":
        made["embedding"] = rounded(distance(hidden_before.mean(0), hidden_after.mean(0)))[0]
        made["tokens"] = rounded(distance(hidden_before, hidden_after))
    return json.dumps(made)


def main(models, output):
    lines = []
    for name in ("causal/gpt2_f32", "causal/llama_f32"):
        model = transformers.AutoModelForCausalLM.from_pretrained(models / name, dtype=torch.float64,
                                                                  attn_implementation="eager").eval()
        ids = json.loads((models / f"{name}.json").read_text())["ids"][:IDS]
        lines += [entry(name, model, ids, [], [-1], what) for what in CAUSAL]
    name = "masked_words"
    model = transformers.AutoModelForMaskedLM.from_pretrained(models / name, dtype=torch.float64,
                                                              attn_implementation="eager").eval()
    texts = json.loads((models / name / "golden.json").read_text())
    for text in (texts[0], texts[2]):
        lines += [entry(name, model, text["ids"], text["types"], text["places"], what) for what in MASKED]
    pathlib.Path(output).write_text("[" + ",\n".join(lines) + "]\n")
    print(f"{len(lines)} entries")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
