"""What attentions hold while a user asks for less than whole weights."""
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import NamedTuple

import torch

_MOST = 64  # as attn.torch.inspect()


class Request(NamedTuple):
    """The arguments of inspections(), and of attn.torch.inspect()."""

    top: int
    entropy: bool
    maximum: bool
    received: bool


_request: ContextVar[Request | None] = ContextVar("attn_inspections", default=None)


def requested() -> Request | None:
    """What the surrounding inspections() asks for."""
    # A context variable cannot be read in a graph.
    return None if torch.compiler.is_compiling() else _request.get()


@contextmanager
def inspections(
    *, top: int = 0, entropy: bool = False, maximum: bool = False, received: bool = False
) -> Iterator[None]:
    """Within it, `output_attentions=True` gives for each layer an attn.torch.Inspection in place of the weights
    [B, H, Lq, Lk], which are never made: memory grows with L, not with L×L.

        with attn.transformers.inspections(top=8, entropy=True):
            layers = model(**inputs, output_attentions=True).attentions
        layers[0].top_keys    # [B, H, Lq, 8]

    top       how many of the largest weights of each query, 0 (none) to 64: top_weights and top_keys
    entropy   of each query's weights, in nats: [B, H, Lq]
    maximum   the largest weight of each query: [B, H, Lq]
    received  what each key gets from all queries together: [B, H, Lk]

    Holds for the thread (or asynchronous task) that enters it; the innermost one counts. Models under torch.compile
    give whole weights.

    ValueError: top is out of range, or nothing is asked for. TypeError: top is no integer.
    """
    if not isinstance(top, Integral):
        raise TypeError(f"top must be an integer of 0 to {_MOST}, not {top!r}")
    if not 0 <= top <= _MOST:
        raise ValueError(f"top must be 0 to {_MOST}, not {top}")
    if not (top or entropy or maximum or received):
        raise ValueError("top, entropy, maximum or received must be given: inspections() is asked for nothing")
    token = _request.set(Request(top, entropy, maximum, received))
    try:
        yield
    finally:
        _request.reset(token)
