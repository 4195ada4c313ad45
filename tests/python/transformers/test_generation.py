"""Generation on the "attn" implementation gives the tokens of eager: with caches, padding and sliding windows."""
import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import DECODERS, ENCODER_DECODERS, distance, real_tokens, tiny_model, tokens  # noqa: E402

NEW = 64


def generated(model: Any, implementation: str, **settings: Any) -> Any:
    model.set_attn_implementation(implementation)
    settings = {"max_new_tokens": NEW, "do_sample": False} | settings
    return model.generate(**settings)


def greedy_cases() -> list[Any]:
    """Padding for all, which no padding is a case of; that one too for the two most common kinds."""
    slow = [kind for kind in DECODERS if kind not in ("gpt2", "llama")]
    return [(kind, "left") for kind in DECODERS] + [(kind, "none") for kind in ("gpt2", "llama")] + [
        pytest.param(kind, "none", marks=pytest.mark.slow) for kind in slow
    ]


@pytest.mark.parametrize(("kind", "padding"), greedy_cases())
def test_greedy_tokens(kind: str, padding: str) -> None:
    model = tiny_model(kind)
    inputs = {"input_ids": tokens(), "attention_mask": real_tokens(padding)}
    eager, attn = (generated(model, implementation, **inputs) for implementation in ("eager", "attn"))
    assert eager.shape == (3, 12 + NEW)
    assert len(eager[:, 12:].unique()) > 8, "a model that repeats itself shows nothing"
    assert torch.equal(attn, eager)


@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_static_cache(kind: str) -> None:
    model = tiny_model(kind)
    inputs = {"input_ids": tokens(), "attention_mask": real_tokens("left"), "cache_implementation": "static"}
    eager, attn = (generated(model, implementation, **inputs) for implementation in ("eager", "attn"))
    assert torch.equal(attn, eager)


@pytest.mark.parametrize("kind", ENCODER_DECODERS)
def test_encoder_and_decoder(kind: str) -> None:
    model = tiny_model(kind)
    inputs = {"input_ids": tokens(), "attention_mask": real_tokens("right")}
    eager, attn = (generated(model, implementation, **inputs) for implementation in ("eager", "attn"))
    assert torch.equal(attn, eager)


def test_beams() -> None:
    model = tiny_model("llama")
    inputs = {"input_ids": tokens(), "attention_mask": real_tokens("left"), "num_beams": 3, "max_new_tokens": 12}
    eager, attn = (generated(model, implementation, **inputs) for implementation in ("eager", "attn"))
    assert torch.equal(attn, eager)


@pytest.mark.parametrize("kind", ["gpt2", "mistral"])
def test_attentions_of_each_step(kind: str) -> None:
    model = tiny_model(kind)
    settings = {"max_new_tokens": 10, "output_attentions": True, "return_dict_in_generate": True}
    eager, attn = (
        generated(model, implementation, input_ids=tokens(), **settings) for implementation in ("eager", "attn")
    )
    assert len(attn.attentions) == 10
    for step, expected_step in zip(attn.attentions, eager.attentions, strict=True):
        for layer, expected in zip(step, expected_step, strict=True):
            assert layer.shape == expected.shape
            assert distance(layer, expected) <= 1e-5


@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_text_that_comes_in_parts(kind: str) -> None:
    """Several queries with a cache before them, where the first query does not stand at the first key."""
    model = tiny_model(kind)
    real = real_tokens("left", length=20)
    logits = []
    for implementation in ("eager", "attn"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            first = model(tokens(length=20)[:, :11], attention_mask=real[:, :11])
            # Transformers gives the argument another name in time.
            name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
            second = model(tokens(length=20)[:, 11:], attention_mask=real, **{name: first.past_key_values})
        logits.append(second.logits)
    assert distance(logits[1], logits[0]) <= 1e-4
