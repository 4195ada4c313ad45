#!/usr/bin/env python3
"""Makes tests/data/nn/layers.json: what PyTorch computes in the layers of src/nn, and its gradients.

    golden_layers.py OUTPUT_FILE

Needs torch. Inputs are multiples of 1/64 and so exact in float32; PyTorch computes in float64. Of each
case the file holds the input with dy, the gradient of the output y, and as expected y and the gradient
of each input by its name: dx, dgain, …
"""

import json
import sys

import torch
from torch.nn import functional

random = torch.Generator().manual_seed(5)


def numbers(*shape, limit=2.0):
    """Uniform in -limit..limit."""
    steps = int(64 * limit)
    drawn = torch.randint(-steps, steps + 1, shape, generator=random)
    return drawn.to(torch.float64) / 64


def tensor(values):
    return {
        "shape": list(values.shape),
        "data": [float(f"{x:.9g}") for x in values.detach().flatten().tolist()],
    }


def case(name, layer, inputs, **settings):
    """One case: `layer` of the tensors in `inputs` and of what else it takes in `settings`."""
    for values in inputs.values():
        values.requires_grad_()
    y = layer(**inputs, **settings)
    dy = numbers(*y.shape)
    y.backward(dy)
    shown = {key: tensor(values) for key, values in inputs.items()} | {"dy": tensor(dy)}
    expected = {"y": tensor(y)} | {"d" + key: tensor(values.grad) for key, values in inputs.items()}
    return {"name": name, "input": shown | settings, "expected": expected}


def linear(x, weight, bias):
    return functional.linear(x, weight, bias)


def linear_in_out(x, weight, bias):
    return x @ weight + bias


def layer_norm(x, gain, shift, eps):
    return functional.layer_norm(x, gain.shape, gain, shift, eps)


def rms_norm(x, gain, eps):
    return functional.rms_norm(x, gain.shape, gain, eps)


def swiglu(gate, up):
    return functional.silu(gate) * up


def embedding(table, ids):
    return functional.embedding(torch.tensor(ids), table)


def norm_case(name, layer, rows, width, eps):
    inputs = {"x": numbers(rows, width), "gain": numbers(width)}
    if layer is layer_norm:
        inputs["shift"] = numbers(width)
    return case(name, layer, inputs, eps=eps)


def activation_case(name, function):
    return case(name, lambda x: function(x), {"x": numbers(2, 37, limit=8.0)})


def loss_case(name, classes, labels, limit):
    """The mean over labels that count, and the gradient of the logits."""
    logits = numbers(len(labels), classes, limit=limit).requires_grad_()
    loss = functional.cross_entropy(logits, torch.tensor(labels), ignore_index=-100)
    loss.backward()
    return {
        "name": name,
        "input": {"logits": tensor(logits), "labels": labels},
        "expected": {"loss": float(f"{loss.item():.12g}"), "dlogits": tensor(logits.grad)},
    }


def main(output_file):
    cases = [
        case("linear", linear, {"x": numbers(19, 13), "weight": numbers(11, 13), "bias": numbers(11)}),
        case("linear_in_out", linear_in_out,
             {"x": numbers(19, 13), "weight": numbers(13, 11), "bias": numbers(11)}),
        norm_case("layer_norm", layer_norm, 11, 21, 1e-5),
        norm_case("layer_norm_narrow", layer_norm, 5, 3, 1e-12),
        norm_case("rms_norm", rms_norm, 11, 21, 1e-6),
        norm_case("rms_norm_narrow", rms_norm, 5, 3, 1e-5),
        activation_case("gelu_erf", functional.gelu),
        activation_case("gelu_tanh", lambda x: functional.gelu(x, approximate="tanh")),
        activation_case("relu", functional.relu),
        activation_case("silu", functional.silu),
        case("swiglu", swiglu, {"gate": numbers(2, 37, limit=8.0), "up": numbers(2, 37)}),
        case("embedding", embedding, {"table": numbers(7, 5)}, ids=[3, 0, 3, 6, 6, 3, 1, 0]),
        loss_case("cross_entropy", 37, [3, 36, -100, 0, 17, -100, 5], 4.0),
        loss_case("cross_entropy_large", 19, [1, -100, 18], 10000.0),
    ]
    head = json.dumps({"versions": {"torch": torch.__version__}})[:-1]
    with open(output_file, "w", encoding="utf-8") as file:
        file.write(head + ', "cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
