"""Models of Transformers, small and of random weights that are large enough for attention to choose."""
from collections.abc import Callable
from typing import Any

import torch
import transformers

VOCABULARY = 99
PADDING = 0
LAYERS, HEADS = 2, 4

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 160,
    "tie_word_embeddings": False,  # with tied ones a model of random weights repeats its input
    "pad_token_id": PADDING,
    "bos_token_id": 1,
    "eos_token_id": None,
}
_GROUPED = _COMMON | {"num_key_value_heads": 2, "head_dim": 8}
_SLIDING = _GROUPED | {"sliding_window": 6}


def _bert() -> Any:
    return transformers.BertForMaskedLM, transformers.BertConfig(**_COMMON)


def _gpt2() -> Any:
    sizes = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 160}
    tokens = {"pad_token_id": PADDING, "bos_token_id": 1, "eos_token_id": None}
    return transformers.GPT2LMHeadModel, transformers.GPT2Config(**sizes, **tokens)


def _llama() -> Any:
    return transformers.LlamaForCausalLM, transformers.LlamaConfig(**_GROUPED)


def _mistral() -> Any:
    return transformers.MistralForCausalLM, transformers.MistralConfig(**_SLIDING)


def _gemma2() -> Any:
    config = transformers.Gemma2Config(**_SLIDING, attn_logit_softcapping=1.5, query_pre_attn_scalar=8)
    return transformers.Gemma2ForCausalLM, config


def _gemma3() -> Any:
    return transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig(**_SLIDING, query_pre_attn_scalar=8)


def _gemma4() -> Any:
    layers = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    shared = {"num_kv_shared_layers": 2, "vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8}
    sizes = _GROUPED | {"num_hidden_layers": len(layers), "layer_types": layers, "sliding_window": 32}
    config = transformers.Gemma4TextConfig(**sizes, **shared, global_head_dim=8)
    return transformers.Gemma4ForCausalLM, config


def _gpt_oss() -> Any:
    layers = ["sliding_attention", "full_attention"]
    config = transformers.GptOssConfig(**_SLIDING, layer_types=layers, num_local_experts=2, num_experts_per_tok=1)
    return transformers.GptOssForCausalLM, config


def _modernbert() -> Any:
    config = transformers.ModernBertConfig(**_COMMON, local_attention=6, global_attn_every_n_layers=2)
    return transformers.ModernBertForMaskedLM, config


def _bart() -> Any:
    sizes: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": 32, "max_position_embeddings": 160}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": LAYERS, f"{part}_attention_heads": HEADS, f"{part}_ffn_dim": 48}
    tokens = {"pad_token_id": PADDING, "bos_token_id": 1, "eos_token_id": None, "decoder_start_token_id": 1}
    config = transformers.BartConfig(**sizes, **tokens, forced_eos_token_id=None)
    return transformers.BartForConditionalGeneration, config


def _t5() -> Any:
    sizes = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": LAYERS, "num_heads": HEADS}
    tokens = {"pad_token_id": PADDING, "eos_token_id": None, "decoder_start_token_id": PADDING}
    return transformers.T5ForConditionalGeneration, transformers.T5Config(**sizes, **tokens)


def _vit() -> Any:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    return transformers.ViTModel, transformers.ViTConfig(**sizes, image_size=16, patch_size=4)


_KINDS: dict[str, Callable[[], Any]] = {
    "bert": _bert,
    "modernbert": _modernbert,
    "vit": _vit,
    "gpt2": _gpt2,
    "llama": _llama,
    "mistral": _mistral,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "gpt_oss": _gpt_oss,
    "bart": _bart,
    "t5": _t5,
}
ENCODERS = ("bert", "modernbert")
DECODERS = ("gpt2", "llama", "mistral", "gemma2", "gemma3", "gpt_oss")
ENCODER_DECODERS = ("bart", "t5")


def tiny_model(kind: str, implementation: str = "eager") -> Any:
    """A model for evaluation, of one of the kinds above. The same weights each time."""
    generator = torch.Generator().manual_seed(1)
    model_class, config = _KINDS[kind]()
    model = model_class._from_config(config, attn_implementation=implementation).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 or name.endswith("sinks"):
                parameter.normal_(0, 0.25, generator=generator)
    return model


def tokens(batch: int = 3, length: int = 12) -> torch.Tensor:
    """[batch, length] random tokens, none of them padding."""
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(2))


def real_tokens(padding: str, batch: int = 3, length: int = 12) -> torch.Tensor:
    """[batch, length] int64, 1 for tokens and 0 for padding, which is on no side ("none"), "left" or "right"."""
    real = torch.ones(batch, length, dtype=torch.long)
    for row in range(1, batch if padding != "none" else 0):
        count = 3 * row + 1
        if padding == "left":
            real[row, :count] = 0
        else:
            real[row, length - count :] = 0
    return real


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference of two tensors."""
    return float((one.double() - other.double()).abs().max())
