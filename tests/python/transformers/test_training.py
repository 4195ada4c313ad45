"""Learning on the "attn" implementation: gradients of eager, dropout, gradient checkpoints."""
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import PADDING, distance, real_tokens, tiny_model, tokens  # noqa: E402


def step(model: Any, implementation: str, **settings: Any) -> tuple[float, dict[str, torch.Tensor]]:
    """The loss of one step and the gradients that it leaves."""
    model.set_attn_implementation(implementation)
    model.zero_grad()
    real = real_tokens("right")
    output = model(tokens(), attention_mask=real, labels=tokens().masked_fill(real == PADDING, -100), **settings)
    output.loss.backward()
    return output.loss.item(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "gemma2", "gpt_oss", "t5", "bart"])
def test_gradients(kind: str) -> None:
    model = tiny_model(kind)
    loss, expected = step(model, "eager")
    attn_loss, gradients = step(model, "attn")
    assert abs(attn_loss - loss) <= 1e-5
    assert gradients.keys() == expected.keys()
    # Scores and position biases learn too, or the backward pass were that of V alone.
    assert any(float(gradient.abs().max()) > 1e-3 for name, gradient in gradients.items() if "k_proj" in name
               or ".key." in name or "c_attn" in name or "relative_attention_bias" in name)
    for name, gradient in gradients.items():
        assert distance(gradient, expected[name]) <= 1e-4 * max(1.0, float(expected[name].abs().max())), name


def test_attentions_do_not_disturb_gradients() -> None:
    model = tiny_model("llama")
    _, expected = step(model, "attn")
    _, gradients = step(model, "attn", output_attentions=True)
    for name, gradient in gradients.items():
        assert distance(gradient, expected[name]) <= 1e-6, name


def test_gradient_checkpoints() -> None:
    model = tiny_model("llama").train()
    model.config.attention_dropout = 0.0
    _, expected = step(model, "attn")
    # Transformers gives it another name in time.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable()
    _, gradients = step(model, "attn")
    for name, gradient in gradients.items():
        assert distance(gradient, expected[name]) <= 1e-6, name


def test_dropout() -> None:
    """Drawn anew each call, ruled by PyTorch's generator, off in evaluation."""
    model = tiny_model("llama", "attn")
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.4
    still, _ = step(model, "attn")
    assert step(model, "attn")[0] == still
    model.train()
    torch.manual_seed(1)
    first, second = step(model, "attn")[0], step(model, "attn")[0]
    assert len({still, first, second}) == 3
    torch.manual_seed(1)
    assert step(model, "attn")[0] == first
