"""register(), the ways to choose the implementation, and what is refused."""
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attn.transformers  # noqa: E402
from attn.transformers.forward import attention  # noqa: E402
from tiny_models import distance, real_tokens, tiny_model, tokens  # noqa: E402


def test_twice_is_harmless() -> None:
    attn.transformers.register()
    attn.transformers.register()
    model = tiny_model("bert", "attn")
    assert model.config._attn_implementation == "attn"
    assert "attn" in transformers.AttentionInterface().valid_keys()


def test_without_it_the_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(transformers.AttentionInterface._global_mapping, "attn")
    with pytest.raises(ValueError, match="attn"):
        tiny_model("bert", "attn")


def test_models_can_change_over() -> None:
    model = tiny_model("llama")
    for implementation in ("attn", "sdpa", "attn"):
        model.set_attn_implementation(implementation)
        assert model.config._attn_implementation == implementation
        with torch.no_grad():
            model(tokens())


def test_saved_models_load_with_it(tmp_path: Any) -> None:
    model = tiny_model("bert")
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, attn_implementation="attn")
    with torch.no_grad():
        assert distance(loaded(tokens()).logits, model(tokens()).logits) <= 1e-4


def test_the_switch_in_the_configuration_is_refused_by_transformers() -> None:
    model = tiny_model("bert", "attn")
    with pytest.raises(ValueError, match="output_attentions"):
        model.config.output_attentions = True
    with torch.no_grad():
        assert len(model(tokens(), output_attentions=True).attentions) == 2


def test_models_that_pass_what_is_unknown_are_refused() -> None:
    q = torch.randn(1, 1, 3, 8)
    for name in ("indices", "block_indices", "sinks"):
        with pytest.raises(ValueError, match=f"Linear passes {name}"):
            attention(torch.nn.Linear(1, 1), q, q, q, None, **{name: torch.zeros(1)})


def test_queries_of_one_batch_meet_many() -> None:
    module = torch.nn.Linear(1, 1)
    q, k = torch.randn(1, 2, 3, 8), torch.randn(4, 2, 5, 8)
    output, weights = attention(module, q, k, k, None, is_causal=False, output_attentions=True)
    expected = torch.nn.functional.scaled_dot_product_attention(q.expand(4, -1, -1, -1), k, k)
    assert distance(output, expected.transpose(1, 2)) <= 1e-6
    assert weights is not None and weights.shape == (4, 2, 3, 5)


@pytest.mark.parametrize("kind", ["llama", pytest.param("bert", marks=pytest.mark.slow)])
def test_compiled_models(kind: str) -> None:
    """Traced whole, with sizes that change, with and without attentions."""
    model = tiny_model(kind, "attn")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    for batch, length in ((3, 12), (2, 9)):
        real = real_tokens("right", batch, length)
        inputs = {"input_ids": tokens(batch, length), "attention_mask": real, "use_cache": False}
        with torch.no_grad():
            expected, found = model(**inputs), compiled(**inputs)
        assert distance(found.logits[real.bool()], expected.logits[real.bool()]) <= 1e-4


def test_inference_mode() -> None:
    model = tiny_model("llama", "attn")
    inputs = {"input_ids": tokens(), "attention_mask": real_tokens("left"), "output_attentions": True}
    with torch.no_grad():
        expected = model(**inputs)
    with torch.inference_mode():
        found = model(**inputs)
    assert distance(found.logits, expected.logits) == 0.0
    assert distance(found.attentions[1], expected.attentions[1]) == 0.0
