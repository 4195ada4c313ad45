"""What a page shows of a Transformers model that reads a text: the weights of its heads, and what they are made of."""
import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from attn.page.file import PAGE_LIMIT
from attn.page.vectors import codes_size

__all__ = ["HeadVectors", "Heads", "check_model", "read_heads"]

_IMPLEMENTATION = "attn"
_WEIGHT_ERROR = 1e-3  # of weights that are made of queries and keys alone; more: something else is in them

Numbers = NDArray[numpy.float32]


def check_model(model: Any) -> None:
    """TypeError or ValueError where the weights of its attention cannot be seen."""
    config: Any = getattr(model, "config", None)
    if not callable(model) or not hasattr(config, "get_text_config"):
        raise TypeError(f"model is {type(model).__name__}; it must be a model of Transformers, as "
                        "AutoModel.from_pretrained gives one")
    if config.is_encoder_decoder:
        raise ValueError(f"model is {type(model).__name__}, an encoder and a decoder; look shows models of one of them")
    # The one place where a model keeps it.
    implementation = config.get_text_config()._attn_implementation
    if implementation != _IMPLEMENTATION:
        raise ValueError(f'model is on the attention implementation "{implementation}"; call '
                         'attn.transformers.register(), then model.set_attn_implementation("attn")')


@dataclass(frozen=True)
class HeadVectors:
    """What weights are made of: queries [layers, heads, tokens, d], keys and values [layers, key heads, tokens, d], as
    they were multiplied, and the scale of their products."""

    queries: Numbers
    keys: Numbers
    values: Numbers
    scale: float


@dataclass(frozen=True)
class Heads:
    """What was seen of one text."""

    weights: list[Numbers]  # of each layer [heads, tokens, tokens]: row i is what token i looks at
    is_causal: bool  # whether no token looks at one behind it
    vectors: HeadVectors | None  # None where there is more to the weights than queries and keys
    vectors_left_out: bool  # or where they are more than a page holds


class _Recorder:
    """Keeps queries, keys and values of each call, until they are more than a page holds."""

    def __init__(self) -> None:
        self.calls: list[tuple[Numbers, Numbers, Numbers]] = []
        self.scales: set[float] = set()
        self.bytes_in_page = 0

    @property
    def is_full(self) -> bool:
        return self.bytes_in_page > PAGE_LIMIT

    def record(self, query: Any, key: Any, value: Any, scale: float | None) -> None:
        tensors = (query, key, value)
        self.bytes_in_page += sum(codes_size(tensor.numel()) for tensor in tensors)
        if self.is_full:
            self.calls.clear()
            return
        query, key, value = (tensor[0].detach().float().cpu().numpy().copy() for tensor in tensors)
        self.calls.append((query, key, value))
        self.scales.add(query.shape[-1] ** -0.5 if scale is None else scale)

    def vectors(self) -> HeadVectors | None:
        """None where layers differ in shape, or values from keys: a page has one shape for all."""
        shapes = {numbers.shape for _, *others in self.calls for numbers in others}
        if len({query.shape for query, _, _ in self.calls}) != 1 or len(shapes) != 1 or len(self.scales) != 1:
            return None
        queries, keys, values = (numpy.stack(kind) for kind in zip(*self.calls))
        is_of_one_size = queries.shape[2:] == keys.shape[2:] and queries.shape[1] % keys.shape[1] == 0
        return HeadVectors(queries, keys, values, self.scales.pop()) if is_of_one_size else None


# While it is held, the implementation is one that records.
_is_recording = threading.Lock()


@contextlib.contextmanager
def _recording() -> Iterator[_Recorder]:
    """Of what this thread calls; calls of other threads go on as they do."""
    from transformers import AttentionInterface
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    recorder, thread = _Recorder(), threading.get_ident()
    with _is_recording:
        original = ALL_ATTENTION_FUNCTIONS[_IMPLEMENTATION]

        def attention(module: Any, query: Any, key: Any, value: Any, *arguments: Any, **named: Any) -> Any:
            if threading.get_ident() == thread:
                recorder.record(query, key, value, named.get("scaling"))
            return original(module, query, key, value, *arguments, **named)

        AttentionInterface.register(_IMPLEMENTATION, attention)
        try:
            yield recorder
        finally:
            AttentionInterface.register(_IMPLEMENTATION, original)


@contextlib.contextmanager
def _reading(model: Any) -> Iterator[None]:
    """Without dropout, gradients and graphs that were compiled; each part of the model is left in its mode."""
    import torch

    learning = [part for part in model.modules() if part.training]
    model.eval()
    try:
        # What records cannot be part of a graph.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        for part in learning:
            part.training = True


def _weights(attentions: Any, tokens: int) -> list[Numbers]:
    layers = [layer for layer in attentions or () if layer is not None]
    shapes = {tuple(getattr(layer, "shape", ())) for layer in layers}
    if len(shapes) != 1 or (shape := shapes.pop())[:1] != (1,) or shape[2:] != (tokens, tokens):
        raise ValueError(f"model gives no weights [1, heads, {tokens}, {tokens}], of as many heads in each layer, for "
                         f"{tokens} tokens; look shows models that do, outside of attn.transformers.inspections()")
    return [layer[0].float().cpu().numpy() for layer in layers]


def _makes(vectors: HeadVectors, layers: list[Numbers], is_causal: bool) -> bool:
    """Whether the weights are the softmax of the scaled products, and nothing else is in them."""
    if len(layers) != len(vectors.queries):
        return False
    group = vectors.queries.shape[1] // vectors.keys.shape[1]
    for queries, keys, weights in zip(vectors.queries, vectors.keys, layers):
        scores = queries @ numpy.repeat(keys, group, axis=0).swapaxes(1, 2) * numpy.float32(vectors.scale)
        if is_causal:
            scores[:, ~numpy.tri(scores.shape[1], dtype=bool)] = -numpy.inf
        exponentials = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        made = exponentials / exponentials.sum(axis=-1, keepdims=True)
        if not numpy.abs(made - weights).max() <= _WEIGHT_ERROR:
            return False
    return True


def read_heads(model: Any, inputs: Mapping[str, list[int]], tokens: int) -> Heads:
    """Runs the model over one text, whose tokens `inputs` has by the names of the model's arguments. ValueError for
    tokens that it has not, and where it gives no weights."""
    import torch

    tensors = {name: torch.tensor([numbers], device=model.device) for name, numbers in inputs.items()}
    with _recording() as recorder, _reading(model):
        try:
            output = model(**tensors, output_attentions=True)
        except IndexError as error:  # as embeddings have it
            raise ValueError(f"text has {tokens} tokens, and the model has no place for one of them: shorten it, or "
                             "give the model's own tokenizer") from error
    weights = _weights(getattr(output, "attentions", None), tokens)
    is_causal = not any(numpy.triu(layer, 1).any() for layer in weights)
    vectors = None if recorder.is_full else recorder.vectors()
    if vectors is not None and not _makes(vectors, weights, is_causal):
        vectors = None
    return Heads(weights, is_causal, vectors, recorder.is_full)
