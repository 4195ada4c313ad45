"""Masks of the "attn" implementation: those of Transformers, and the ranges that they stand for."""
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import masking_utils  # noqa: E402

import attn.torch  # noqa: E402
from attn.transformers.masks import KeyRange, attention_mask, key_range  # noqa: E402
from tiny_models import real_tokens, tiny_model, tokens  # noqa: E402

WINDOW = 4


def made(function: Any = masking_utils.causal_mask_function, **settings: Any) -> tuple[Any, Any]:
    """The mask of attn and that of sdpa."""
    sizes = {"batch_size": 3, "q_length": 12, "kv_length": 12, "q_offset": 0, "kv_offset": 0}
    settings = sizes | {"mask_function": function} | settings
    return attention_mask(**settings), masking_utils.sdpa_mask(**settings)


def kept(known: KeyRange, queries: int, keys: int) -> torch.Tensor:
    """[B or 1, 1, Lq, Lk]: what a range says, entry by entry."""
    left, right = known.window or (None, None)
    batch = 1 if known.padding is None else known.padding.shape[0]
    result = torch.zeros(batch, 1, queries, keys, dtype=torch.bool)
    for row in range(batch):
        for query in range(queries):
            for key in range(keys):
                distance = key - query - known.offset
                keep = not (known.causal and distance > 0)
                keep = keep and (left is None or distance >= -left) and (right is None or distance <= right)
                keep = keep and (known.padding is None or bool(known.padding[row, 0, 0, key]))
                result[row, 0, query, key] = keep
    return result


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize(
    ("queries", "keys", "before", "dropped"),
    [(12, 12, 0, 0), (4, 12, 8, 0), (1, 12, 11, 0), (5, 12, 3, 0), (1, 12, 4, 0), (4, 7, 8, 5)],
    ids=["prefill", "part", "one", "static", "static-one", "sliding"],
)
@pytest.mark.parametrize("window", [None, WINDOW])
def test_ranges_say_what_masks_say(window: int | None, queries: int, keys: int, before: int, dropped: int,
                                   padding: str) -> None:
    function = masking_utils.causal_mask_function
    if window is not None:
        function = masking_utils.sliding_window_causal_mask_function(window)
    places = {"q_length": queries, "kv_length": keys, "q_offset": before, "kv_offset": dropped}
    mask, expected = made(function, attention_mask=real_tokens(padding).bool(), local_size=window, **places)
    assert torch.equal(mask, expected)
    known = key_range(mask)
    assert known is not None and known.causal and known.offset == before - dropped
    assert torch.equal(kept(known, queries, keys).expand(mask.shape), mask)


def test_windows_on_both_sides() -> None:
    function = masking_utils.sliding_window_bidirectional_mask_function(WINDOW)
    settings = {"local_size": WINDOW, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": True}
    mask, expected = made(function, attention_mask=real_tokens("right").bool(), **settings)
    assert torch.equal(mask, expected)
    known = key_range(mask)
    assert known is not None and not known.causal and known.window == (WINDOW, WINDOW)
    assert torch.equal(kept(known, 12, 12), mask)


def test_padding_alone_is_seen_without_queries() -> None:
    settings = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": True}
    function = masking_utils.bidirectional_mask_function
    mask, expected = made(function, attention_mask=real_tokens("right").bool(), **settings)
    assert torch.equal(mask, expected)
    assert mask.stride(2) == 0
    assert made(function, attention_mask=real_tokens("none").bool(), **settings)[0] is None


def test_no_padding_makes_no_mask() -> None:
    assert made(attention_mask=real_tokens("none").bool())[0] is None
    assert made()[0] is None


def test_an_empty_static_cache_has_a_range() -> None:
    """Without a mask, queries stand at the end of the keys; here they stand at the begin."""
    mask, _ = made(attention_mask=real_tokens("none")[:, :5].bool(), q_length=5)
    assert key_range(mask) == KeyRange(None, True, 0, None)
    assert torch.equal(mask, torch.ones(5, 12, dtype=torch.bool).tril().expand(3, 1, 5, 12))


def test_chunks_have_no_range() -> None:
    function = masking_utils.chunked_causal_mask_function(WINDOW, torch.zeros(3, dtype=torch.long))
    mask, expected = made(function, local_size=WINDOW)
    assert torch.equal(mask, expected)
    assert key_range(mask) is None


def test_a_changed_mask_is_what_it_is() -> None:
    padding = real_tokens("left").bool()
    for inference in (False, True):
        with torch.inference_mode(inference):
            mask, _ = made(attention_mask=padding)
            assert key_range(mask) is not None
            assert key_range(mask & True) is None
            assert key_range(mask[:, :, 1:]) is None
            mask[:, :, 0, 1] = True
            assert key_range(mask) is None


@pytest.mark.parametrize("kind", ["bert", "llama", "mistral", "gemma3"])
def test_models_run_on_ranges(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mask with an axis for queries reaches libattn, and every window does."""
    seen = []
    attend = attn.torch.attention

    def watched(*arguments: Any, **settings: Any) -> Any:
        seen.append(settings)
        return attend(*arguments, **settings)

    monkeypatch.setattr(attn.torch, "attention", watched)
    model = tiny_model(kind, "attn")
    with torch.no_grad():
        model(tokens(), attention_mask=real_tokens("left"))
    assert len(seen) == 2
    for settings in seen:
        assert settings["causal"] == (kind != "bert")
        assert settings["mask"].shape == (3, 1, 1, 12)
    windows = [settings.get("window") for settings in seen]
    assert windows == ([(5, None)] * 2 if kind in ("mistral", "gemma3") else [None] * 2)
