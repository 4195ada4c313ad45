"""What a page knows of a text and its attention, as JSON: the format of the tool's pages, which src/draw/page_data.h
states and the scripts of the page read."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from attn.page.colors import dark_colors, light_colors
from attn.page.label import json_label, json_labels
from attn.page.vectors import Vectors, codes_size, encode_vectors, json_float
from attn.page.weights import COLUMN_LIMIT, encode_weights, find_links, largest_weight, whole_size

__all__ = ["MEAN", "PageMap", "page_data"]

MEAN = -1  # in place of a layer or head: the mean over them
_RESERVE = 256  # bytes that the names and numbers written last may add
_VECTORS_BESIDE_LINKS = 1_200_000  # bytes of vectors that may take the place of links


@dataclass(frozen=True)
class PageMap:
    """A text's words and the matrices of what they look at."""

    model: str
    text: str
    pair: str | None
    words: Sequence[str]  # of rows and columns, as the text writes them
    is_special: Sequence[bool]  # which of them are tokens that the model adds
    panels: Sequence[tuple[int, int]]  # layer and head, or MEAN, of each matrix
    weights: Sequence[NDArray[numpy.float32]]  # of each panel [words, words]: row i looks at column j
    vectors: Vectors | None
    vectors_left_out: bool  # they are too many, which the page says


def _flag(name: str, value: bool) -> str:
    return f',\n"{name}": {"true" if value else "false"}'


def _description(page: PageMap, largest: numpy.float32, has_not_a_number: bool) -> str:
    """All but weights and vectors."""
    special = ",".join(str(i) for i, is_special in enumerate(page.is_special) if is_special)
    panels = ", ".join(f'{{"layer": {layer}, "head": {head}}}' for layer, head in page.panels)
    return "".join([
        f'{{"model": {json_label(page.model)}',
        f',\n"text": {json_label(page.text)}',
        f',\n"pair": {json_label(page.pair)}',
        ',\n"measure": null',
        _flag("renormalized", False),
        f',\n"rows": {json_labels(page.words)}',
        ',\n"columns": null',
        f',\n"rowSpecial": [{special}],\n"columnSpecial": [{special}]',
        f',\n"panels": [{panels}]',
        f',\n"largest": {json_float(largest)}',
        _flag("hasNotANumber", has_not_a_number),
        f',\n"light": "{light_colors()}",\n"dark": "{dark_colors()}"',
    ])


def _encode_vectors_within(vectors: Vectors | None, budget: int) -> str | None:
    """None where they have more bytes."""
    if vectors is None or sum(codes_size(kind.size) for kind in vectors.kinds) > budget:
        return None
    text = encode_vectors(vectors)
    return text if len(text.encode()) <= budget else None


def _encode_whole(page: PageMap, largest: numpy.float32, vectors: str | None, budget: int) -> tuple[str, str | None]:
    """Whole weights go before vectors."""
    left = budget - whole_size(page.weights)
    held = vectors if vectors and len(vectors.encode()) <= left else None
    weights = encode_weights(page.weights, largest)
    return f',\n"strongest": 0,\n"weights": "{weights}",\n"share": 1', held


def _encode_links(page: PageMap, largest: numpy.float32, vectors: str | None, budget: int) -> tuple[str, str | None]:
    """Vectors that are not too many go before links, but for the strongest of each row."""
    links = find_links(page.weights)
    least = links.size(1)
    if least > budget:
        raise ValueError(f"text: its page would have about {least / 1e6:.1f} MB even with one link a word, "
                         f"{budget / 1e6:.1f} are the most: shorten it")
    size = len(vectors.encode()) if vectors else 0
    held = vectors if size <= min(_VECTORS_BESIDE_LINKS, budget - least) else None
    strongest = links.fit(budget - size if held else budget)
    weights, share = links.encode(strongest, largest)
    return f',\n"strongest": {strongest},\n"weights": "{weights}",\n"share": {json_float(share)}', held


def page_data(page: PageMap, budget: int) -> str:
    """The object, of at most `budget` bytes: all weights where they fit, and the vectors where these fit beside them;
    else the strongest links of each row. ValueError where not even those fit."""
    if len(page.words) > COLUMN_LIMIT:
        raise ValueError(f"text: {len(page.words)} words are too many for a page, at most {COLUMN_LIMIT} are shown")
    largest, has_not_a_number = largest_weight(page.weights)
    description = _description(page, largest, has_not_a_number)
    left = max(0, budget - len(description.encode()) - _RESERVE)
    vectors = _encode_vectors_within(page.vectors, left)
    encode = _encode_whole if whole_size(page.weights) <= left else _encode_links
    weights, held = encode(page, largest, vectors, left)
    left_out = page.vectors_left_out or (page.vectors is not None and held is None)
    return "".join([description, weights, _flag("vectorsLeftOut", left_out), f',\n"vectors": {held or "null"}}}'])
