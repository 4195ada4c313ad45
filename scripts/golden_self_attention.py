#!/usr/bin/env python3
"""Makes tests/data/nn/self_attention.json: what PyTorch's multi-head attention gives, forward and backward.

    golden_self_attention.py OUTPUT_DIRECTORY

Needs torch and transformers. float32, no dropout. Each case has sequences packed one behind the other
(`starts`), the parameters under PyTorch's names, an input x, the output y, and the gradients of
sum(y∘dy): dx, and under `gradients` one for each parameter.

    packed     nn.MultiheadAttention: in_proj_weight [3·width][width]
    separate   the same function with q_proj_weight, k_proj_weight and v_proj_weight
    conv1d     GPT2Attention of Transformers: c_attn.weight [width][3·width]
"""

import json
import pathlib
import sys

import torch
import transformers
from torch.nn import functional
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

STARTS = (0, 5, 6, 13)


def future(length):
    """True where a token must not look."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def packed(width, heads, causal, bias):
    module = torch.nn.MultiheadAttention(width, heads, bias=bias, batch_first=True)

    def run(x):
        mask = future(len(x)) if causal else None
        return module(x[None], x[None], x[None], attn_mask=mask, need_weights=False)[0][0]

    return dict(module.named_parameters()), run


def separate(width, heads, causal, bias):
    names = [f"{part}_proj_weight" for part in "qkv"] + ["out_proj.weight"]
    parameters = {name: torch.nn.Parameter(torch.empty(width, width)) for name in names}
    if bias:
        parameters["in_proj_bias"] = torch.nn.Parameter(torch.empty(3 * width))
        parameters["out_proj.bias"] = torch.nn.Parameter(torch.empty(width))

    def run(x):
        rows = x[:, None]  # [length][batch][width]
        result = functional.multi_head_attention_forward(
            rows, rows, rows, width, heads, None, parameters.get("in_proj_bias"), None, None, False, 0.0,
            parameters["out_proj.weight"], parameters.get("out_proj.bias"), need_weights=False,
            attn_mask=future(len(x)) if causal else None, use_separate_proj_weight=True,
            q_proj_weight=parameters["q_proj_weight"], k_proj_weight=parameters["k_proj_weight"],
            v_proj_weight=parameters["v_proj_weight"],
        )  # fmt: skip
        return result[0][:, 0]

    return parameters, run


def conv1d(width, heads, causal, bias):
    assert causal and bias
    config = transformers.GPT2Config(n_embd=width, n_head=heads, n_positions=32, attn_implementation="eager",
                                     attn_pdrop=0.0, resid_pdrop=0.0)  # fmt: skip
    module = GPT2Attention(config, layer_idx=0)

    def run(x):
        mask = torch.zeros(len(x), len(x)).masked_fill(future(len(x)), torch.finfo(torch.float32).min)
        return module(x[None], attention_mask=mask[None, None])[0][0]

    return dict(module.named_parameters()), run


def tensor(values):
    """9 significant digits are exactly the float32."""
    return {"shape": list(values.shape), "data": [float(f"{v:.9g}") for v in values.detach().flatten()]}


def case(kind, width, heads, causal, bias):
    parameters, run = kind(width, heads, causal, bias)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.normal_(0.0, 0.3 if name.endswith("bias") else 1.5 / width**0.5)
    x = torch.randn(STARTS[-1], width, requires_grad=True)
    dy = torch.randn(STARTS[-1], width)
    y = torch.cat([run(x[begin:end]) for begin, end in zip(STARTS, STARTS[1:])])
    (y * dy).sum().backward()
    return {
        "name": f"{kind.__name__}, {heads} heads, {'causal' if causal else 'all'}{'' if bias else ', no bias'}",
        "kind": kind.__name__,
        "width": width,
        "heads": heads,
        "causal": causal,
        "starts": list(STARTS),
        "parameters": {name: tensor(parameter) for name, parameter in parameters.items()},
        "x": tensor(x),
        "dy": tensor(dy),
        "y": tensor(y),
        "dx": tensor(x.grad),
        "gradients": {name: tensor(parameter.grad) for name, parameter in parameters.items()},
    }


def main(output_directory):
    torch.manual_seed(1)
    cases = [
        case(packed, 12, 3, causal=False, bias=True),
        case(packed, 8, 1, causal=True, bias=False),
        case(separate, 8, 4, causal=False, bias=False),
        case(separate, 12, 2, causal=True, bias=True),
        case(conv1d, 12, 2, causal=True, bias=True),
    ]
    versions = {module.__name__: module.__version__ for module in (torch, transformers)}
    with open(pathlib.Path(output_directory, "self_attention.json"), "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(one) for one in cases)
        file.write(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
