"""Models on the "attn" implementation give what they give on Transformers' own eager one: logits and attentions."""
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import (  # noqa: E402
    DECODERS,
    ENCODER_DECODERS,
    ENCODERS,
    HEADS,
    LAYERS,
    distance,
    real_tokens,
    tiny_model,
    tokens,
)

LOGITS = 1e-4
ATTENTIONS = 1e-5
PADDINGS = ("none", "left", "right")


def both(model: Any, **inputs: Any) -> tuple[Any, Any]:
    """What the model gives on eager and on attn."""
    outputs = []
    for implementation in ("eager", "attn"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            outputs.append(model(**inputs, output_attentions=True))
    return outputs[0], outputs[1]


def check_attentions(eager: Any, attn: Any, real_queries: torch.Tensor) -> None:
    assert len(attn) == len(eager) == LAYERS
    for layer, expected in zip(attn, eager, strict=True):
        assert layer.shape == expected.shape
        assert layer.dtype == torch.float32
        assert float(expected.max()) > 0.5, "a test whose weights are all alike shows nothing"
        rows = real_queries[:, None, :].bool().expand(layer.shape[:3])
        assert distance(layer[rows], expected[rows]) <= ATTENTIONS


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("kind", ENCODERS + DECODERS)
def test_logits_and_attentions(kind: str, padding: str) -> None:
    real = real_tokens(padding)
    eager, attn = both(tiny_model(kind), input_ids=tokens(), attention_mask=real)
    assert distance(attn.logits[real.bool()], eager.logits[real.bool()]) <= LOGITS
    check_attentions(eager.attentions, attn.attentions, real)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("kind", ENCODER_DECODERS)
def test_encoder_and_decoder(kind: str, padding: str) -> None:
    real, real_target = real_tokens(padding), real_tokens("none" if padding == "none" else "right", length=11)
    inputs = {"decoder_input_ids": tokens(length=11), "decoder_attention_mask": real_target}
    eager, attn = both(tiny_model(kind), input_ids=tokens(), attention_mask=real, **inputs)
    assert distance(attn.logits[real_target.bool()], eager.logits[real_target.bool()]) <= LOGITS
    check_attentions(eager.encoder_attentions, attn.encoder_attentions, real)
    check_attentions(eager.decoder_attentions, attn.decoder_attentions, real_target)
    check_attentions(eager.cross_attentions, attn.cross_attentions, real_target)


def test_pictures() -> None:
    eager, attn = both(tiny_model("vit"), pixel_values=torch.randn(2, 3, 16, 16))
    assert distance(attn.last_hidden_state, eager.last_hidden_state) <= LOGITS
    check_attentions(eager.attentions, attn.attentions, torch.ones(2, 17))


def test_a_mask_of_four_axes_is_used_as_it_is() -> None:
    bias = torch.zeros(3, 1, 12, 12).masked_fill_(torch.rand(3, 1, 12, 12) < 0.3, torch.finfo(torch.float32).min)
    bias[..., 0] = 1.5
    eager, attn = both(tiny_model("llama"), input_ids=tokens(), attention_mask=bias)
    assert distance(attn.logits, eager.logits) <= LOGITS
    check_attentions(eager.attentions, attn.attentions, torch.ones(3, 12))


def test_packed_sequences() -> None:
    positions = torch.cat([torch.arange(5), torch.arange(7)])[None]
    eager, attn = both(tiny_model("mistral"), input_ids=tokens(1), position_ids=positions)
    assert distance(attn.logits, eager.logits) <= LOGITS
    check_attentions(eager.attentions, attn.attentions, torch.ones(1, 12))


@pytest.mark.parametrize("static", [False, True])
def test_models_that_leave_out_the_first_queries(static: bool) -> None:
    """Gemma 4 does so in its last layers, where only the logits of the last tokens are asked for."""
    if not hasattr(transformers, "Gemma4TextConfig"):
        pytest.skip("this version of Transformers has no Gemma 4")
    model = tiny_model("gemma4")
    logits = []
    for implementation in ("eager", "attn"):
        model.set_attn_implementation(implementation)
        settings = {"cache": transformers.StaticCache(model.config, max_cache_len=20)} if static else {}
        with torch.no_grad():
            logits.append(model(tokens(), logits_to_keep=3, **settings).logits)
    assert logits[1].shape[1] == 3
    assert distance(logits[1], logits[0]) <= LOGITS


def test_padding_sees_nothing() -> None:
    """Where eager spreads such rows evenly: the documented difference."""
    real = real_tokens("left")
    _, attn = both(tiny_model("llama"), input_ids=tokens(), attention_mask=real)
    for layer in attn.attentions:
        rows = layer.transpose(1, 2)
        assert float(rows[~real.bool()].abs().max()) == 0.0
        assert distance(rows[real.bool()].sum(-1), torch.ones(int(real.sum()), HEADS)) <= 1e-6


def test_weights_are_made_for_those_who_ask_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transformers' hooks wait for hidden states as they wait for attentions."""
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("weights were made")

    monkeypatch.setattr("attn.torch.weights", refuse)
    model = tiny_model("gpt2", "attn")
    with torch.no_grad():
        assert len(model(tokens(), output_hidden_states=True).hidden_states) == LAYERS + 1
        with pytest.raises(AssertionError, match="weights were made"):
            model(tokens(), output_attentions=True)


def test_bfloat16() -> None:
    model = tiny_model("llama")
    real = real_tokens("left")
    inputs = {"input_ids": tokens(), "attention_mask": real}
    exact, _ = both(model, **inputs)
    eager, attn = both(model.bfloat16(), **inputs)
    assert attn.logits.dtype == torch.bfloat16
    spread = distance(eager.logits[real.bool()], exact.logits[real.bool()])
    assert distance(attn.logits[real.bool()], exact.logits[real.bool()]) <= 1.5 * spread
    for layer, expected in zip(attn.attentions, exact.attentions, strict=True):
        assert layer.dtype == torch.float32
        assert distance(layer.transpose(1, 2)[real.bool()], expected.transpose(1, 2)[real.bool()]) <= 0.1


def test_float64() -> None:
    model = tiny_model("bert").double()
    eager, attn = both(model, input_ids=tokens(), attention_mask=real_tokens("right"))
    real = real_tokens("right").bool()
    assert distance(attn.logits[real], eager.logits[real]) <= 1e-12
    assert attn.attentions[0].dtype == torch.float64
