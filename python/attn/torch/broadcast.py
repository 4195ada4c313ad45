"""PyTorch's shapes, [..., L, d] with any leading axes that broadcast, as libattn's [B, H, L, d]."""
from typing import Any

import torch
from torch import Size, Tensor

_broadcast_shapes: Any = torch.broadcast_shapes


def group_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """key and value for enable_gqa, with as many heads as each other: query head h reads key head h / (H/Hkv), where H
    and Hkv are the sizes of the third axis from the end."""
    if min(query.dim(), key.dim(), value.dim()) < 3:
        raise ValueError("query, key and value must have at least 3 axes with enable_gqa: [..., H, L, d]")
    heads, key_heads, value_heads = query.shape[-3], key.shape[-3], value.shape[-3]
    for name, count in (("key", key_heads), ("value", value_heads)):
        if count != heads and (count == 0 or heads % count != 0):
            raise ValueError(f"{name} must have a number of heads that divides query's {heads}, not {count}")
    if key_heads == value_heads:
        return key, value
    return key.repeat_interleave(heads // key_heads, -3), value.repeat_interleave(heads // value_heads, -3)


def leading_shape(query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> tuple[list[int], int]:
    """The leading axes of the result, and how many heads key and value have: as many, or fewer where query heads
    share them."""
    try:
        keys = _broadcast_shapes(key.shape[:-2], value.shape[:-2])
        if grouped:
            batch = _broadcast_shapes(query.shape[:-3], keys[:-1])
            return [*batch, query.shape[-3]], keys[-1]
        lead = _broadcast_shapes(query.shape[:-2], keys)
    except RuntimeError:
        raise ValueError("the leading axes of query, key and value must broadcast with each other, not "
                         f"{_shapes(query, key, value)}"
                         + ("" if grouped else " (fewer key heads than query heads: enable_gqa)")) from None
    if not lead:
        return [], 0
    # One head that all queries share stays one: its gradient is then summed as it is made.
    return list(lead), keys[-1] if keys else 1


def fit(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        grouped: bool) -> tuple[Tensor, Tensor, Tensor, Tensor | None, list[int]]:
    """The four with 2 to 4 axes and equal batches, and the leading axes that the result is to have. Nothing is copied
    but what has more than four axes that cannot be merged."""
    if grouped:
        key, value = group_heads(query, key, value)
    lead, key_heads = leading_shape(query, key, value, grouped)
    if mask is not None and mask.dim() > len(lead) + 2:
        raise ValueError(f"attn_mask must have at most the {len(lead) + 2} axes of the scores, not {mask.dim()}")
    key_lead = [*lead[:-1], key_heads] if lead else []
    query, key, value = _expand(query, lead), _expand(key, key_lead), _expand(value, key_lead)
    if len(lead) > 2:
        query, key, value = query.flatten(0, -4), key.flatten(0, -4), value.flatten(0, -4)
        if mask is not None and mask.dim() > 3:
            mask = _fold_mask(mask, lead)
    return query, key, value, mask, lead


def _expand(tensor: Tensor, lead: list[int]) -> Tensor:
    shape = (*lead, tensor.shape[-2], tensor.shape[-1])
    return tensor if tensor.shape == shape else tensor.expand(shape)


def _fold_mask(mask: Tensor, lead: list[int]) -> Tensor:
    batch = mask.shape[:-3]
    if any(size != 1 for size in batch):
        try:
            mask = mask.expand(*lead[:-1], *mask.shape[-3:])
        except RuntimeError:
            raise ValueError(f"attn_mask must broadcast to the leading axes {lead}, not {list(mask.shape[:-2])}") from None
    return mask.flatten(0, -4)


def _shapes(*tensors: Tensor) -> str:
    return ", ".join(str(list(tensor.shape)) for tensor in tensors)


def check_lengths(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """That the last two axes fit each other."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() < 2:
            raise ValueError(f"{name} must have at least 2 axes, [..., L, d], not {tensor.dim()}")
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(f"key must have query's dim {query.shape[-1]}, not {key.shape[-1]}")
    if value.shape[-2] != key.shape[-2]:
        raise ValueError(f"value must have key's length {key.shape[-2]}, not {value.shape[-2]}")
    if mask is not None:
        _check_mask_lengths(mask.shape, query.shape[-2], key.shape[-2])


def _check_mask_lengths(shape: Size, queries: int, keys: int) -> None:
    for axis, size, name in ((-1, keys, "keys"), (-2, queries, "queries")):
        if len(shape) >= -axis and shape[axis] != 1 and shape[axis] != size:
            raise ValueError(f"attn_mask must have 1 or {size} {name}, not {shape[axis]}")
