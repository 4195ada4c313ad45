"""Queries, keys and values in the form that a page carries, so that it can show how a weight is made."""
import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from attn.page.label import json_labels
from attn.page.weights import base64_size

__all__ = ["Vectors", "codes_size", "encode_vectors", "json_float"]

_LARGEST_CODE = 32767
_NOT_A_NUMBER_CODE = -32768
_CODE_BYTES = 2


@dataclass(frozen=True)
class Vectors:
    """What the heads of a text's layers computed with, as it was multiplied. Tokens are pieces, of which a row of the
    page may have several."""

    queries: NDArray[numpy.float32]  # [layers, heads, tokens, d]
    keys: NDArray[numpy.float32]  # [layers, key heads, tokens, d]
    values: NDArray[numpy.float32]  # as keys
    scale: float
    causal: bool  # a token sees itself and those before it
    labels: Sequence[str]  # of tokens
    row_tokens: Sequence[int]  # the first token of each row,
    row_token_counts: Sequence[int]  # and how many it has

    @property
    def kinds(self) -> tuple[NDArray[numpy.float32], ...]:
        return self.queries, self.keys, self.values


def codes_size(numbers: int) -> int:
    """Bytes of so many numbers of one kind in a page."""
    return base64_size(numbers * _CODE_BYTES)


def json_float(number: float | numpy.floating) -> str:
    """The shortest decimal that reads back as this float32; null for what is not finite."""
    single = numpy.float32(number)
    return repr(float(str(single))) if numpy.isfinite(single) else "null"


def _encode(name: str, numbers: NDArray[numpy.float32]) -> str:
    is_finite = numpy.isfinite(numbers)
    finite = numpy.where(is_finite, numbers, 0).astype(numpy.float64)
    largest = numpy.abs(finite).max(initial=0)
    scaled = finite * (_LARGEST_CODE / largest if largest > 0 else 0)
    rounded = numpy.copysign(numpy.floor(numpy.abs(scaled) + 0.5), scaled)
    codes = numpy.where(is_finite, rounded, _NOT_A_NUMBER_CODE).astype("<i2")
    return f',\n"{name}": {{"largest": {json_float(largest)}, "codes": "{base64.b64encode(codes.tobytes()).decode()}"}}'


def encode_vectors(vectors: Vectors) -> str:
    """The object that src/draw/page_data.h calls "vectors"."""
    layers, heads, _, d = vectors.queries.shape
    row_tokens = ",".join(map(str, vectors.row_tokens))
    row_token_counts = ",".join(map(str, vectors.row_token_counts))
    return "".join([
        f'{{"layers": {layers}, "heads": {heads}, "keyHeads": {vectors.keys.shape[1]}, "d": {d}, ',
        f'"scale": {json_float(vectors.scale)}, "causal": {"true" if vectors.causal else "false"}',
        f',\n"tokens": {json_labels(vectors.labels)}',
        f',\n"rowTokens": [{row_tokens}],\n"rowTokenCounts": [{row_token_counts}]',
        _encode("queries", vectors.queries), _encode("keys", vectors.keys), _encode("values", vectors.values),
        "}",
    ])
