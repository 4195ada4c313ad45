"""inspections(): the largest weights, entropy and sums in place of whole weights."""
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import attn.torch  # noqa: E402
import attn.transformers  # noqa: E402
from tiny_models import HEADS, LAYERS, distance, real_tokens, tiny_model, tokens  # noqa: E402

EVERYTHING: dict[str, Any] = {"top": 4, "entropy": True, "maximum": True, "received": True}


def run(model: Any, **settings: Any) -> Any:
    with torch.no_grad():
        return model(tokens(), attention_mask=real_tokens("left"), output_attentions=True, **settings)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "mistral", "gemma2"])
def test_they_tell_of_the_weights_of_eager(kind: str) -> None:
    model = tiny_model(kind)
    whole = run(model).attentions
    model.set_attn_implementation("attn")
    with attn.transformers.inspections(**EVERYTHING):
        told = run(model).attentions
    # Where eager spreads a row that sees nothing. BERT's padding sees the tokens.
    real = real_tokens("left").bool() if kind != "bert" else torch.ones(3, 12, dtype=torch.bool)
    assert len(told) == LAYERS
    for layer, weights in zip(told, whole, strict=True):
        assert isinstance(layer, attn.torch.Inspection)
        assert layer.top_keys.shape == (3, HEADS, 12, 4) and layer.top_keys.dtype == torch.int32
        weights = weights.masked_fill(~real[:, None, :, None], 0)
        largest = weights.topk(4).values
        assert distance(layer.top_weights, largest) <= 1e-5
        named = weights.gather(-1, layer.top_keys.clamp(min=0).long()).masked_fill(layer.top_keys < 0, 0)
        assert distance(named, largest) <= 1e-5
        assert distance(layer.entropy, torch.special.entr(weights).sum(-1)) <= 1e-4
        assert distance(layer.maximum, largest[..., 0]) <= 1e-5
        assert distance(layer.received, weights.sum(-2)) <= 1e-4


def test_only_what_is_asked_for() -> None:
    model = tiny_model("llama", "attn")
    with attn.transformers.inspections(top=2):
        layer = run(model).attentions[0]
    assert layer.top_weights.shape == (3, HEADS, 12, 2)
    assert layer.entropy is None and layer.maximum is None and layer.received is None
    with attn.transformers.inspections(entropy=True):
        layer = run(model, return_dict=False)[-1][0]
    assert layer.top_weights is None and layer.top_keys is None and layer.entropy.shape == (3, HEADS, 12)


def test_no_whole_weights_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("whole weights were made")

    monkeypatch.setattr("attn.torch.weights", refuse)
    model = tiny_model("llama", "attn")
    with attn.transformers.inspections(top=2):
        run(model)
    with pytest.raises(AssertionError, match="whole weights"):
        run(model)


def test_encoder_and_decoder() -> None:
    model = tiny_model("bart", "attn")
    with attn.transformers.inspections(top=3):
        output = run(model, decoder_input_ids=tokens(length=7))
    assert output.encoder_attentions[0].top_keys.shape == (3, HEADS, 12, 3)
    assert output.decoder_attentions[0].top_keys.shape == (3, HEADS, 7, 3)
    assert output.cross_attentions[1].top_keys.shape == (3, HEADS, 7, 3)


def test_generation() -> None:
    model = tiny_model("llama", "attn")
    settings = {"max_new_tokens": 3, "output_attentions": True, "return_dict_in_generate": True}
    with attn.transformers.inspections(top=5):
        steps = model.generate(tokens(), **settings).attentions
    assert [step[0].top_keys.shape[2] for step in steps] == [12, 1, 1]


def test_they_hold_for_their_thread_and_end() -> None:
    model = tiny_model("llama", "attn")
    elsewhere = []
    with attn.transformers.inspections(top=2):
        with attn.transformers.inspections(top=3):
            assert run(model).attentions[0].top_keys.shape[-1] == 3
        assert run(model).attentions[0].top_keys.shape[-1] == 2
        thread = threading.Thread(target=lambda: elsewhere.append(run(model).attentions[0]))
        thread.start()
        thread.join()
    assert isinstance(elsewhere[0], torch.Tensor)
    assert isinstance(run(model).attentions[0], torch.Tensor)


@pytest.mark.parametrize(("kind", "settings", "message"), [
    (ValueError, {"top": 65}, "top must be 0 to 64, not 65"), (ValueError, {}, "asked for"),
    (TypeError, {"top": 2.5}, "^top must be an integer"), (TypeError, {"top": "a"}, "^top must be an integer"),
])
def test_refusals(kind: type[Exception], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kind, match=message), attn.transformers.inspections(**settings):
        pass
