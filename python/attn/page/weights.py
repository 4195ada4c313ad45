"""The weights of a page in the form that it carries: small, and of a size known beforehand (src/draw/page_data.h)."""
import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

__all__ = ["COLUMN_LIMIT", "Links", "base64_size", "encode_weights", "find_links", "largest_weight", "whole_size"]

COLUMN_LIMIT = 65536  # a link's column is two bytes
_LINK_LIMIT = 255  # links of a row: their number is a byte
_HELD_SHARE = 0.7  # of a row's mass, that its links hold
_LARGEST_CODE = 65534
_NOT_A_NUMBER_CODE = 65535
_CODE_BYTES = 2
_LINK_BYTES = 4  # column and code

Weights = NDArray[numpy.float32]  # of a panel, [rows, columns]


def base64_size(count: int) -> int:
    return (count + 2) // 3 * 4


def largest_weight(panels: Sequence[Weights]) -> tuple[numpy.float32, bool]:
    """The largest finite weight, 1 where none is above 0, and whether there is one that is not finite."""
    largest, has_not_a_number = numpy.float32(0), False
    for weights in panels:
        is_finite = numpy.isfinite(weights)
        largest = max(largest, weights.max(where=is_finite, initial=0))
        has_not_a_number |= not is_finite.all()
    return (largest if largest > 0 else numpy.float32(1)), has_not_a_number


def _codes(weights: NDArray[numpy.float32], largest: numpy.float32) -> NDArray[numpy.uint16]:
    is_finite = numpy.isfinite(weights)
    part = numpy.where(is_finite, weights, 0).astype(numpy.float64) / numpy.float64(largest)
    codes = numpy.floor(numpy.clip(part, 0, 1) * _LARGEST_CODE + 0.5)
    return numpy.where(is_finite, codes, _NOT_A_NUMBER_CODE).astype("<u2")


def whole_size(panels: Sequence[Weights]) -> int:
    """The length as base64 of all of them."""
    return base64_size(_CODE_BYTES * sum(weights.size for weights in panels))


def encode_weights(panels: Sequence[Weights], largest: numpy.float32) -> str:
    """All of them: base64 of a code of two bytes each."""
    return base64.b64encode(b"".join(_codes(weights, largest).tobytes() for weights in panels)).decode()


@dataclass(frozen=True)
class Links:
    """The strongest links of each row, strongest first, of equal ones the lower column first: those that hold 70 % of
    the row's mass, the sum of its positive weights. What is not a number goes before all and counts nothing."""

    columns: NDArray[numpy.uint16]  # [rows, most]
    weights: NDArray[numpy.float32]  # [rows, most]
    counts: NDArray[numpy.int64]  # [rows]: how many of them are there
    masses: NDArray[numpy.float64]  # [rows]

    def size(self, most: int) -> int:
        """The length as base64, where each row has at most so many links."""
        return base64_size(int((1 + _LINK_BYTES * numpy.minimum(self.counts, most)).sum()))

    def fit(self, budget: int) -> int:
        """The most links a row whose text has at most `budget` bytes and which some row wants; 0 where one is more."""
        most = max(1, int(self.counts.max()))
        while most > 0 and self.size(most) > budget:
            most -= 1
        return most

    def encode(self, most: int, largest: numpy.float32) -> tuple[str, float]:
        """base64 of each row's number of links, and column and code of each; and the part of all mass they hold."""
        most = min(most, self.columns.shape[1])
        counts = numpy.minimum(self.counts, most)
        records = numpy.zeros((len(counts), 1 + _LINK_BYTES * most), numpy.uint8)
        records[:, 0] = counts
        pairs = numpy.stack([self.columns[:, :most].astype("<u2"), _codes(self.weights[:, :most], largest)], axis=-1)
        records[:, 1:] = pairs.reshape(len(counts), -1).view(numpy.uint8)
        is_held = numpy.arange(records.shape[1]) < 1 + _LINK_BYTES * counts[:, None]
        mass = self.masses.sum()
        held = _countable(self.weights[:, :most]).sum(where=numpy.arange(most) < counts[:, None])
        return base64.b64encode(records[is_held].tobytes()).decode(), float(held / mass) if mass > 0 else 1.0


def _countable(weights: NDArray[numpy.float32]) -> NDArray[numpy.float64]:
    """What each adds to a mass."""
    return numpy.where(numpy.isfinite(weights) & (weights > 0), weights, 0).astype(numpy.float64)


def _find_in(weights: Weights) -> Links:
    """Of one panel."""
    most = min(_LINK_LIMIT, weights.shape[1])
    is_number = numpy.isfinite(weights)
    strengths = numpy.where(is_number, weights, numpy.inf)
    columns = numpy.argsort(-strengths, axis=1, kind="stable")[:, :most]
    countable = _countable(weights)
    masses = countable.sum(axis=1)
    chosen = numpy.take_along_axis(countable, columns, axis=1)
    held_before = numpy.cumsum(chosen, axis=1) - chosen
    # A row has its links in falling order, so that what is wanted is a beginning of it.
    is_wanted = numpy.take_along_axis(~is_number, columns, axis=1) | (
        (chosen > 0) & (held_before < _HELD_SHARE * masses[:, None]))
    return Links(columns.astype(numpy.uint16), numpy.take_along_axis(weights, columns, axis=1),
                 is_wanted.sum(axis=1), masses)


def find_links(panels: Sequence[Weights]) -> Links:
    """Of all panels, row by row."""
    found = [_find_in(weights) for weights in panels]
    return Links(*(numpy.concatenate([getattr(links, name) for links in found])
                   for name in ("columns", "weights", "counts", "masses")))
