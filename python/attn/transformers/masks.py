"""Masks for Transformers' models: Booleans of the shape that Transformers wants, which remember what they were made of.

Transformers makes one mask a forward pass, [B, 1, Lq, Lk], and gives it to every layer. Most are a range (causal, a
window) over keys of which some are padding, and libattn skips whole blocks of keys that it knows to lie outside of a
range. So a mask that is nothing but that carries a KeyRange, which the attention function takes in its place. What a
model makes of a mask by any operation is a new tensor without one, and an operation in place counts up the mask's
version, so that a changed mask is used as it is.
"""
from typing import Any, NamedTuple

import torch
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function, sdpa_mask
from transformers.utils.import_utils import is_tracing

_ATTRIBUTE = "_attn_key_range"


class KeyRange(NamedTuple):
    """What a mask says: query i keeps key j iff j stands in the range around i + offset and is no padding."""

    padding: torch.Tensor | None
    """[B, 1, 1, Lk] bool, True for a real key, or None where all keys that the range reaches are real."""
    causal: bool
    offset: int
    window: tuple[int | None, int | None] | None


class _Marked(NamedTuple):
    key_range: KeyRange
    version: int


def attention_mask(**settings: Any) -> torch.Tensor | None:
    """The mask function of the "attn" implementation: what Transformers' sdpa_mask returns, as cheap as it can be.

    None where no mask is needed: no padding, and the queries are all of the text, or a single one at its end, or the
    model is not causal.
    """
    # What is made in inference mode has no version, by which a change of the mask is seen.
    with torch.inference_mode(False):
        mask: torch.Tensor | None = sdpa_mask(**settings)
        if mask is None and _begins_longer_cache(**settings):
            mask = sdpa_mask(**settings | {"allow_is_causal_skip": False})
        if mask is None or settings.get("use_vmap") or is_tracing(mask):
            return mask
        return _mark(mask, **settings)


def key_range(mask: torch.Tensor) -> KeyRange | None:
    """What `mask` was made of, or None where that is unknown or no longer true."""
    if torch.compiler.is_compiling():
        return None
    marked: _Marked | None = getattr(mask, _ATTRIBUTE, None)
    if marked is None or marked.version != mask._version:
        return None
    return marked.key_range


def _begins_longer_cache(*, q_length: int, kv_length: int, allow_is_causal_skip: bool = True, **_: Any) -> bool:
    """Whether no mask would mean that the queries stand at the begin of the keys, as in a static cache that is empty.
    To the attention function it means the end, so that a model may leave out the first queries (Gemma 4 does)."""
    return allow_is_causal_skip and 1 < q_length < kv_length


def _mark(
    mask: torch.Tensor,
    *,
    mask_function: Any,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int | torch.Tensor = 0,
    attention_mask: torch.Tensor | None = None,
    local_size: int | None = None,
    **_: Any,
) -> torch.Tensor:
    """`mask`, with its range where it is known to be one; where queries make no difference, seen without them."""
    padding = None
    if attention_mask is not None:
        first = int(kv_offset)
        # A static cache is longer than the text so far.
        missing = first + kv_length - attention_mask.shape[-1]
        real = torch.nn.functional.pad(attention_mask, (0, missing)) if missing > 0 else attention_mask
        padding = real[: mask.shape[0], None, None, first : first + kv_length].to(torch.bool)
    if mask_function is bidirectional_mask_function:
        return mask if padding is None else padding.expand(mask.shape)

    offset = int(q_offset) - int(kv_offset)
    if mask_function is causal_mask_function:
        _set(mask, KeyRange(_needed(padding, offset + q_length), True, offset, None))
    elif local_size is not None:
        # Chunks have a local size too, and other versions may count otherwise: so the mask itself is asked.
        for causal, window in ((True, (local_size - 1, None)), (False, (local_size, local_size))):
            known = KeyRange(padding, causal, offset, window)
            if _says(mask, known):
                reached = offset + q_length if causal else kv_length
                _set(mask, known._replace(padding=_needed(padding, reached)))
                break
    return mask


def _set(mask: torch.Tensor, known: KeyRange) -> None:
    setattr(mask, _ATTRIBUTE, _Marked(known, mask._version))


def _needed(padding: torch.Tensor | None, reached: int) -> torch.Tensor | None:
    """`padding`, or None where the keys before `reached`, which alone are looked at, are all real."""
    return None if padding is None or bool(padding[..., :reached].all()) else padding


def _says(mask: torch.Tensor, known: KeyRange) -> bool:
    """Whether `mask` keeps exactly the keys of `known`, which has a window."""
    left, right = known.window or (None, None)
    kept = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device)
    kept = kept.triu(known.offset - (left or 0)).tril(known.offset + (0 if known.causal else right or 0))
    expected = kept if known.padding is None else kept & known.padding
    return torch.equal(mask, expected.expand(mask.shape))
