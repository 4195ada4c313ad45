"""What the functions take: checks, with messages that name the argument, and PyTorch's autocast."""
import numbers
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

TYPES = frozenset((torch.float32, torch.float64, torch.float16, torch.bfloat16))
_NAMES = "float32, float64, float16 or bfloat16"


def type_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_tensor(name: str, tensor: object, also: str = "") -> Tensor:
    """A strided floating tensor on the CPU, or on the meta device, where only shapes are asked for."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
    if tensor.device.type not in ("cpu", "meta"):
        raise ValueError(f"{name} must be on the CPU, not on {tensor.device}")
    if tensor.is_nested or tensor.layout is not torch.strided:
        raise ValueError(f"{name} must be a dense tensor; call to_dense() or to_padded_tensor() first")
    if tensor.dtype not in TYPES and not (also and tensor.dtype is torch.bool):
        raise TypeError(f"{name} must be {also}{_NAMES}, not {type_name(tensor.dtype)}")
    return tensor


def check_tensors(**tensors: Tensor | None) -> None:
    """check_tensor for each that is not None, where a mask may be bool too; and all are on one device. The first is
    `query`."""
    device = None
    for name, tensor in tensors.items():
        if tensor is None and device is not None and name not in ("key", "value"):
            continue
        device = check_tensor(name, tensor, "bool (True keeps), " if name.endswith("mask") else "").device
        query = tensors["query"]
        if query is not None and device != query.device:
            raise ValueError(f"{name} must be on {query.device} as query is, not on {device}")


def check_types(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """That the types are those which PyTorch takes together."""
    dtype = query.dtype
    for name, tensor in (("key", key), ("value", value)):
        if tensor.dtype is not dtype:
            raise TypeError(f"{name} must be {type_name(dtype)} as query is, not {type_name(tensor.dtype)}")
    if mask is not None and mask.dtype not in (torch.bool, torch.float32, dtype):
        taken = "bool or" if dtype is torch.float32 else "bool, float32 or"
        raise TypeError(f"attn_mask must be {taken} {type_name(dtype)} as query is, not {type_name(mask.dtype)}")


def check_integer(name: str, value: Any) -> Any:
    """An integer: Python's, NumPy's, or one that torch.compile does not know yet."""
    if not isinstance(value, (numbers.Integral, torch.SymInt)):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    return value


def check_number(name: str, value: Any) -> None:
    """A number, or a tensor of one."""
    if not isinstance(value, (numbers.Real, torch.SymInt, torch.SymFloat)) and not (
            isinstance(value, Tensor) and value.dim() == 0):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")


def check_window(window: Any) -> tuple[Any, Any]:
    """(left, right), each an integer or None."""
    if not isinstance(window, (tuple, list)):
        raise TypeError(f"window must be (left, right) or None, not {type(window).__name__}")
    if len(window) != 2:
        raise ValueError(f"window must be (left, right), not {window!r}")
    for side in window:
        if side is not None:
            check_integer("each side of window", side)
    return window[0], window[1]


def check_statistics(stats: Any) -> None:
    """A tensor, whose shape and type libattn looks at, or None."""
    if stats is not None and not isinstance(stats, Tensor):
        raise TypeError(f"stats must be a torch.Tensor or None, not {type(stats).__name__}")


def lengths_tensor(key_lengths: Sequence[int]) -> Tensor:
    """key_lengths, given otherwise than as a tensor. What are no integers stay none, and are refused as such."""
    try:
        if len(key_lengths) == 0:
            return torch.zeros(0, dtype=torch.int64)
        return torch.tensor(key_lengths)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError("key_lengths must be a tensor or a sequence of integers, one for each batch") from None


def check_scale(query: Tensor, scale: float | None) -> tuple[Tensor, float | None]:
    """The query and the scale that libattn is to take. Its scale is a float32: for float64 the query is multiplied."""
    if scale is None:
        return query, None
    check_number("scale", scale)
    if scale != scale:
        raise ValueError("scale must be a number or None, not NaN")
    if query.dtype is torch.float64:
        return query * scale, 1.0
    return query, scale


def autocast(*tensors: Any) -> Any:
    """The tensors, or None, in the type of torch.autocast("cpu") where that is on: all floating ones but float64, as
    PyTorch does it for scaled_dot_product_attention."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    lower = torch.get_autocast_dtype("cpu")
    return tuple(tensor.to(lower) if tensor is not None and tensor.is_floating_point()
                 and tensor.dtype is not torch.float64 else tensor for tensor in tensors)


def renamed(error: Exception, **names: str) -> Exception:
    """libattn's error with the names that these arguments have in Python, which are longer than its own."""
    names = {"q": "query", "k": "key", "v": "value", **names}
    text = re.sub(r"\b[a-z_]+\b", lambda word: names.get(word[0], word[0]), str(error))
    return type(error)(text)
