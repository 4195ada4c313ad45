"""scaled_dot_product_attention, as torch.nn.functional has it."""
import torch
from torch import Tensor
from torch.nn.attention.bias import CausalBias, CausalVariant
from torch.overrides import handle_torch_function, has_torch_function_variadic

from attn import _native
from attn.torch import broadcast, dispatch, gradient, kernels
from attn.torch.arguments import autocast, check_number, check_scale, check_tensors, check_types, renamed
from attn.torch.eager import is_ordinary, is_plain, is_quiet


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(scale · query · keyᵀ + attn_mask) · value, with the signature and meaning of
    torch.nn.functional.scaled_dot_product_attention, for tensors on the CPU.

    query [..., H, Lq, d], key [..., H, Lk, d], value [..., H, Lk, d_v], all float32, float64, float16 or bfloat16;
    leading axes broadcast. attn_mask: bool, where True keeps, or floating (of query's type or float32), which is added;
    broadcasts to [..., H, Lq, Lk]. dropout_p: 0..1, acts whenever it is above 0. is_causal: query i keeps keys 0..i;
    not with a mask. scale: None is 1/sqrt(d). enable_gqa: key and value may have fewer heads, which divide query's.

    Returns [..., H, Lq, d_v] of query's type, in query's order in memory. Without a gradient and
    dropout few queries go to attn::decode: up to 4, up to 8 with 16 keys or more, up to 16 with 1024 or more. What
    differs from PyTorch's own is told in attn.torch. Errors: ValueError, TypeError.
    """
    out = run_simple(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if out is not None:
        return out
    if isinstance(attn_mask, CausalBias):
        return _with_bias(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if has_torch_function_variadic(query, key, value, attn_mask):
        result: Tensor = handle_torch_function(
            scaled_dot_product_attention, (query, key, value, attn_mask), query, key, value, attn_mask=attn_mask,
            dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
        return result
    return _run_any(query, key, value, attn_mask, dropout_p, is_causal, False, scale, enable_gqa)


def run_simple(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, is_causal: bool,
               scale: float | None, grouped: bool) -> Tensor | None:
    """The usual case in little time, or None. Looked for is only what libattn would do otherwise than PyTorch; what it
    refuses by itself (tensors without plain memory, shapes that do not fit) it refuses before it writes."""
    try:
        if not is_quiet() or dropout != 0 or torch.is_autocast_enabled("cpu"):
            return None
        if not torch.is_grad_enabled() or not dispatch.learns(query, key, value, mask, None):
            out: Tensor | None = _native.attend(query, key, value, mask, is_causal, scale, grouped,
                                                torch.get_num_threads(), False)
            return out
        if mask is None:
            return gradient.simple_attention(query, key, value, is_causal, scale, grouped)
        return _learn_with_mask(query, key, value, mask, is_causal, scale, grouped)
    except (AttributeError, ValueError, TypeError, RuntimeError, BufferError, IndexError):
        return None


def _learn_with_mask(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, is_causal: bool, scale: float | None,
                     grouped: bool) -> Tensor | None:
    if not all(is_ordinary(tensor) for tensor in (query, key, value, mask)):
        return None
    dtype = query.dtype
    if key.dtype is not dtype or value.dtype is not dtype or mask.dtype not in (torch.bool, torch.float32, dtype):
        return None
    if is_causal or (query.size(-3) != key.size(-3) and not grouped):
        return None
    settings: kernels.Settings = {"mask": mask, "precision": "bf16"}
    if scale is not None:
        if scale != scale or dtype is torch.float64:
            return None
        settings["scale"] = scale
    return dispatch.run_plain(query, key, value, mask, None, settings)


def _run_any(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
             align_end: bool, scale: float | None, enable_gqa: bool) -> Tensor:
    """What scaled_dot_product_attention does with tensors of any shape. `align_end`: the last query stands at the last
    key."""
    check_tensors(query=query, key=key, value=value, attn_mask=attn_mask)
    check_number("dropout_p", dropout_p)
    if isinstance(is_causal, (str, Tensor)):
        raise TypeError(f"is_causal must be True or False, not {type(is_causal).__name__}")
    if attn_mask is not None and is_causal:
        raise ValueError("attn_mask must be None with is_causal: put the causal part into the mask")
    query, key, value, attn_mask = autocast(query, key, value, attn_mask)
    check_types(query, key, value, attn_mask)
    dispatch.refuse_tangents(query, key, value, attn_mask)
    broadcast.check_lengths(query, key, value, attn_mask)
    if scale is None and query.shape[-1] == 0:
        scale = 1.0  # PyTorch's scores are 0 then, whatever the scale
    query, scale = check_scale(query, scale)
    q, k, v, mask, lead = broadcast.fit(query, key, value, attn_mask, enable_gqa)
    offset = k.shape[-2] - q.shape[-2] if align_end else 0
    plain = is_plain(q, k, v) if mask is None else is_plain(q, k, v, mask)
    seed = dispatch.draw_seed() if dropout_p else None
    try:
        out = dispatch.run(plain, q, k, v, mask, None, None, None, is_causal, offset, None, None, scale, 0.0, "bf16",
                           dropout_p, seed)
    except (ValueError, TypeError) as error:
        raise renamed(error, mask="attn_mask", dropout="dropout_p") from None
    return out.reshape(*lead, *out.shape[-2:]) if len(lead) > 2 else out


def _with_bias(query: Tensor, key: Tensor, value: Tensor, bias: CausalBias, dropout_p: float, is_causal: bool,
               scale: float | None, enable_gqa: bool) -> Tensor:
    """torch.nn.attention.bias: a causal mask that is never made."""
    if is_causal:
        raise ValueError("is_causal must be False with a CausalBias")
    lengths = (query.shape[-2], key.shape[-2])
    if (bias.seq_len_q, bias.seq_len_kv) != lengths:
        raise ValueError(f"attn_mask must be for {lengths[0]} queries and {lengths[1]} keys, not for "
                         f"{bias.seq_len_q} and {bias.seq_len_kv}")
    return _run_any(query, key, value, None, dropout_p, True, bias.variant == CausalVariant.LOWER_RIGHT, scale,
                    enable_gqa)
