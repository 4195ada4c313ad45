"""The attention function of the "attn" implementation, as Transformers' models call it."""
from typing import Any

import torch

import attn.torch
from attn.transformers.capture import collects_attentions
from attn.transformers.inspections import requested
from attn.transformers.masks import key_range

# Arguments by which single models change what attention is, and which their own eager functions alone know.
_REFUSED = ("indices", "block_indices", "sinks")


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    output_attentions: bool | None = False,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor | attn.torch.Inspection | None]:
    """The layer's output [B, Lq, H, d_v], and with `output_attentions` its weights [B, H, Lq, Lk], float32 (float64
    where the model is), or within inspections() what they tell.

    The weights are those that made the output, before dropout. To differentiate them is a NotImplementedError.

    ValueError: the model is not on the CPU, or its attention is more than scores, a bias, a soft cap and a sink.
    """
    for name in _REFUSED:
        if others.get(name) is not None:
            raise ValueError(
                f'{type(module).__name__} passes {name} to its attention, which "attn" does not know;'
                ' model.set_attn_implementation("eager") does'
            )
    if query.device.type not in ("cpu", "meta"):
        raise ValueError(f'the model must be on the CPU for the "attn" implementation, not on {query.device}')

    settings = _positions(module, query, key, attention_mask, is_causal)
    if position_bias is not None:
        settings["mask"] = _biased(position_bias, settings["mask"])
    settings |= {"scale": scaling, "soft_cap": softcap or 0.0, "sinks": s_aux}
    if query.shape[0] == 1 and key.shape[0] != 1:
        # Queries that a model has learned come as one batch.
        query = query.expand(key.shape[0], -1, -1, -1)

    if not (output_attentions or collects_attentions()):
        output = attn.torch.attention(query, key, value, dropout=dropout, **settings)
        return output.transpose(1, 2).contiguous(), None
    output, stats = attn.torch.attention(query, key, value, dropout=dropout, return_stats=True, **settings)
    wanted = requested()
    told: torch.Tensor | attn.torch.Inspection
    if wanted is None:
        told = attn.torch.weights(query, key, stats=stats, **settings)
    else:
        told = attn.torch.inspect(query, key, stats=stats, **wanted._asdict(), **settings)
    return output.transpose(1, 2).contiguous(), told


def _positions(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool | None,
) -> dict[str, Any]:
    """Which keys are kept: a range and a mask, either of which may say nothing."""
    queries = query.shape[2]
    if mask is None:
        # Without a mask the last query stands at the last key.
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if queries == 1 or not causal:
            return {"mask": None}
        return {"mask": None, "causal": True, "align": max(0, key.shape[2] - queries)}
    known = key_range(mask)
    if known is not None and mask.shape[2:] == (queries, key.shape[2]):
        return {"mask": known.padding, "causal": known.causal, "align": known.offset, "window": known.window}
    if mask.dim() == 4 and mask.shape[2] > 1 and mask.stride(2) == 0:
        mask = mask[:, :, :1]
    return {"mask": mask, "causal": False}


def _biased(bias: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """One mask that says both."""
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, float("-inf"))
    return bias + mask
