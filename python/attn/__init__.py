"""Exact attention for CPUs, and the weights that it used.

    import attn
    out = attn.attention(q, k, v, causal=True)
    top = attn.topk(q, k, 4, causal=True)

q, k and v are NumPy arrays, or any others that have DLPack or the buffer protocol. Nothing is copied.

    attention, decode           softmax(scale · q·kᵀ) · v
    weights                     its softmax, all of it
    topk, entropy, received     what can be told of the softmax without holding it
    gradients                   the way back
    attn.torch                  for PyTorch: an operator with autograd, and a drop-in
    attn.transformers           for Transformers: the implementation "attn"
    look                        shows in a notebook which words a model looks at

docs/python.md of the project has the rest.
"""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attn.functions import (
    Gradients,
    TopK,
    attention,
    decode,
    entropy,
    get_threads,
    gradients,
    isa,
    received,
    set_threads,
    topk,
    version,
    weights,
)

if TYPE_CHECKING:
    from attn.notebook import look

__all__ = [
    "Gradients",
    "TopK",
    "attention",
    "decode",
    "entropy",
    "get_threads",
    "gradients",
    "isa",
    "look",
    "received",
    "set_threads",
    "topk",
    "weights",
]
__version__ = version

# Whose libraries are imported only when they are asked for: PyTorch and Transformers take seconds to load.
_MODULES = ("notebook", "torch", "transformers")


def __getattr__(name: str) -> Any:
    if name == "look":
        return import_module("attn.notebook").look
    if name in _MODULES:
        return import_module(f"attn.{name}")
    raise AttributeError(f"module 'attn' has no attribute {name!r}")


def __dir__() -> list[str]:
    # Without _MODULES, until they are imported: help(attn) asks for all names, and must not load what may be missing.
    return sorted({*globals(), *__all__})
