"""Small models of random weights that attend to something, and tokenizers for them."""
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

WORDS = "the robot picked up screw ##driver because it was heavy ' . , < > / script ! שלום &".split()
LAYERS, HEADS, POSITIONS = 2, 4, 64


def _settle(model: Any) -> Any:
    """Weights large enough for attention to choose, the same in each run."""
    generator = torch.Generator().manual_seed(2017)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.4
    return model.eval()


def _sizes(vocabulary: int) -> dict[str, Any]:
    return {"vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "max_position_embeddings": POSITIONS, "attn_implementation": "attn"}


def bert(vocabulary: int) -> Any:
    return _settle(transformers.BertModel(transformers.BertConfig(**_sizes(vocabulary))))


def gpt2(vocabulary: int) -> Any:
    config = transformers.GPT2Config(vocab_size=vocabulary, n_embd=32, n_layer=LAYERS, n_head=HEADS,
                                     n_positions=POSITIONS, attn_implementation="attn")
    return _settle(transformers.GPT2LMHeadModel(config))


def llama(vocabulary: int) -> Any:
    config = transformers.LlamaConfig(**_sizes(vocabulary), num_key_value_heads=2)
    return _settle(transformers.LlamaForCausalLM(config))


def gemma2(vocabulary: int) -> Any:
    """Its scores are capped, and every other layer sees four tokens."""
    config = transformers.Gemma2Config(**_sizes(vocabulary), num_key_value_heads=2, head_dim=8, sliding_window=4,
                                       attn_logit_softcapping=1.5, query_pre_attn_scalar=8)
    return _settle(transformers.Gemma2ForCausalLM(config))


def word_piece() -> Any:
    vocabulary = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    made = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    # What a file may ask for and nobody wants here.
    made.enable_truncation(8)
    made.enable_padding(length=16)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
        pad_token="[PAD]", model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def byte_pair() -> Any:
    """Byte-level: each byte is a token, but for those of " robot"."""
    parts, joined = list("Ġrobot"), []
    while len(parts) > 1:
        joined.append((parts[0], parts[1]))
        parts[:2] = [parts[0] + parts[1]]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: place for place, token in enumerate([*alphabet, *(left + right for left, right in joined)])}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, joined))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made)


def sentence_piece() -> Any:
    """Letters and ▁, without a pre-tokenizer, after a <s>."""
    vocabulary = {token: place for place, token in enumerate(["<s>", "<unk>", "▁", "\n", *"abcd"])}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Replace("▁", " ")
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", unk_token="<unk>")


class LetterByLetter(transformers.PreTrainedTokenizer):
    """Written in Python: it tells nothing of places."""

    model_input_names = ["input_ids", "attention_mask"]

    def __init__(self) -> None:
        self.letters = {letter: place for place, letter in enumerate("abcdehilorstuvwy. 😀")}
        super().__init__(bos_token="<s>", unk_token="?")

    @property
    def vocab_size(self) -> int:
        return len(self.letters)

    def get_vocab(self) -> dict[str, int]:
        return self.letters | self.added_tokens_encoder

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return list(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self.letters.get(token, 0)

    def _convert_id_to_token(self, index: int) -> str:
        return list(self.letters)[index]

    def build_inputs_with_special_tokens(self, first: list[int], second: list[int] | None = None) -> list[int]:
        return [self.bos_token_id, *first, *(second or [])]
