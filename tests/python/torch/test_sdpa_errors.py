"""PyTorch's cases of invalid inputs. PyTorch raises RuntimeError for most of them, libattn's function ValueError or
TypeError (the first row of the table in test_sdpa_differences.py), and its message names the argument."""
import os
import re

import pytest

torch = pytest.importorskip("torch")

ERRORS = (ValueError, TypeError)
if os.environ.get("ATTN_TEST_SDPA") == "pytorch":
    ERRORS = (RuntimeError, IndexError, NotImplementedError, TypeError, AttributeError)


def normal(*shape, dtype=torch.float32, **settings):
    return torch.randn(shape, **settings).to(dtype)


# A whole call that is right, as far as its arguments are not replaced.
USUAL = {
    "query": normal(2, 8, 4, 16),
    "key": normal(2, 8, 6, 16),
    "value": normal(2, 8, 6, 16),
}

# Name: what is replaced, and which argument the message must name.
INVALID = {
    "one-axis-query": ({"query": normal(16)}, "query"),
    "one-axis-key": ({"key": normal(16)}, "key"),
    "one-axis-value": ({"value": normal(16)}, "value"),
    "no-axis": ({"query": torch.tensor(1.0)}, "query"),
    "other-types": ({"key": normal(2, 8, 6, 16, dtype=torch.float16), "value": normal(2, 8, 6, 16)}, "key|query"),
    "other-type-of-values": ({"value": normal(2, 8, 6, 16, dtype=torch.float64)}, "value|query"),
    "two-other-types": (
        {"key": normal(2, 8, 6, 16, dtype=torch.float16), "value": normal(2, 8, 6, 16, dtype=torch.float16)},
        "query|key",
    ),
    "integers": ({name: torch.ones(2, 8, 4, 16, dtype=torch.int64) for name in USUAL}, "query"),
    "bytes": ({name: torch.ones(2, 8, 4, 16, dtype=torch.uint8) for name in USUAL}, "query"),
    "complex": ({name: normal(2, 8, 4, 16, dtype=torch.complex64) for name in USUAL}, "query"),
    "head-sizes": ({"key": normal(2, 8, 6, 15)}, "key|query"),
    "batches": ({"key": normal(3, 8, 6, 16), "value": normal(3, 8, 6, 16)}, "key|query"),
    "batch-of-values": ({"value": normal(3, 8, 6, 16)}, "value"),
    "heads": ({"key": normal(2, 2, 6, 16), "value": normal(2, 2, 6, 16)}, "key|query|enable_gqa"),
    "groups-of-heads": (
        {"key": normal(2, 3, 6, 16), "value": normal(2, 3, 6, 16), "enable_gqa": True},
        "key|query|enable_gqa",
    ),
    "fewer-query-heads": ({"query": normal(2, 4, 4, 16), "enable_gqa": True}, "key|query|enable_gqa"),
    "mask-keys": ({"attn_mask": normal(4, 5)}, "attn_mask"),
    "mask-queries": ({"attn_mask": normal(3, 6)}, "attn_mask"),
    "mask-heads": ({"attn_mask": normal(7, 4, 6)}, "attn_mask"),
    "mask-batch": ({"attn_mask": normal(3, 1, 4, 6)}, "attn_mask"),
    "mask-of-five-axes": ({"attn_mask": normal(2, 2, 8, 4, 6)}, "attn_mask"),
    "mask-of-integers": ({"attn_mask": torch.ones(4, 6, dtype=torch.int64)}, "attn_mask"),
    "mask-of-bytes": ({"attn_mask": torch.ones(4, 6, dtype=torch.uint8)}, "attn_mask"),
    "complex-mask": ({"attn_mask": normal(4, 6, dtype=torch.complex64)}, "attn_mask"),
    "wider-mask": (
        {"attn_mask": normal(4, 6, dtype=torch.float64)},
        "attn_mask must be bool or float32 as query is, not float64",
    ),
    "wider-mask-of-halves": (
        {name: normal(2, 8, 4, 16, dtype=torch.float16) for name in USUAL} | {"attn_mask": normal(4, 4).double()},
        "attn_mask must be bool, float32 or float16 as query is, not float64",
    ),
    "list-as-mask": ({"attn_mask": [[True] * 6] * 4}, "attn_mask"),
    "dropout-below-0": ({"dropout_p": -0.1}, "dropout_p"),
    "dropout-above-1": ({"dropout_p": 1.5}, "dropout_p"),
    "dropout-is-no-number": ({"dropout_p": "half"}, "dropout_p"),
    "scale-is-no-number": ({"scale": "large"}, "scale"),
    "no-query": ({"query": None}, "query"),
    "list-as-query": ({"query": [[1.0]]}, "query"),
    "array-as-key": ({"key": normal(2, 8, 6, 16).numpy()}, "key"),
    "no-value": ({"value": None}, "value"),
    "devices": ({"key": normal(2, 8, 6, 16, device="meta")}, "key|query"),
    "sparse": ({"key": normal(2, 8, 6, 16).to_sparse()}, "key"),
    "unknown-argument": ({"softcap": 1.0}, "softcap"),
}


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", INVALID)
def test_invalid_inputs(attention, name, train):
    replaced, named = INVALID[name]
    arguments = USUAL | replaced
    if train and isinstance(arguments["value"], torch.Tensor) and arguments["value"].dtype.is_floating_point:
        arguments["value"] = arguments["value"].clone().requires_grad_()
    with pytest.raises(ERRORS) as error:
        attention(**arguments)
    message = str(error.value)
    if ERRORS == (ValueError, TypeError):
        # The whole name, as the caller wrote it: attn_mask, and not mask.
        assert re.search(rf"\b({named})\b", message), message
        assert "\n" not in message.strip(), message


def test_scale_is_a_keyword(attention):
    with pytest.raises(TypeError):
        attention(*USUAL.values(), None, 0.0, False, 1.0)


def test_a_failed_call_leaves_nothing(attention):
    """After errors the next call is as good as ever."""
    expected = attention(**USUAL)
    for replaced, _ in INVALID.values():
        with pytest.raises(Exception):  # noqa: B017
            attention(**(USUAL | replaced))
    assert torch.equal(attention(**USUAL), expected)
