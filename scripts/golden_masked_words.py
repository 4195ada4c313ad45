#!/usr/bin/env python3
"""Makes tests/data/models/masked_words and masked_words_tanh: small random BertForMaskedLM of Transformers', and what
they say about the open places of some texts.

    golden_masked_words.py OUTPUT_DIRECTORY

Needs torch, transformers, tokenizers and safetensors. The logits are computed in float64 from weights that are exact
in float32. Each directory holds

    config.json, model.safetensors   as save_pretrained writes them
    vocab.txt                        a WordPiece vocabulary of a few words
    golden.json                      for each text: the text, its pair or null, token ids and types, the places of
                                     [MASK], and for each place the logits of the whole vocabulary
"""

import json
import pathlib
import sys

import tokenizers
import torch
import transformers

WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] . , ? the robot picked up screw ##driver because it was heavy a cat saw dog
##s who lifted box in of and""".split()

TEXTS = [
    ("The robot [MASK] up the screwdriver.", None),
    ("[MASK]", None),
    ("[MASK] [MASK] saw a [MASK] , and the dog was [MASK] .", None),
    ("Who lifted the [MASK]?", "The robot [MASK] it."),
    ("It was heavy.", "[MASK] was a screwdriver, because [MASK] was in the box and the cats saw it."),
]


def configuration(**settings):
    return transformers.BertConfig(vocab_size=len(WORDS) + 2, attn_implementation="eager", **settings)


MODELS = {
    "masked_words": configuration(
        hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48, max_position_embeddings=32),
    "masked_words_tanh": configuration(
        hidden_size=20, num_hidden_layers=1, num_attention_heads=2, intermediate_size=36, max_position_embeddings=40,
        hidden_act="gelu_new", layer_norm_eps=1e-5, type_vocab_size=3),
}


def randomize(model):
    """Larger numbers than training starts from, biases and norms too, so that every path counts."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape) * 0.25
            norm = "norm" in name.lower()
            parameter.copy_(values + 1 if norm and name.endswith("weight") else values)


def encode(tokenizer, text, pair):
    encoding = tokenizer.encode(text, pair)
    mask = tokenizer.token_to_id("[MASK]")
    return encoding.ids, encoding.type_ids, [n for n, token in enumerate(encoding.ids) if token == mask]


def write(name, config, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model = transformers.BertForMaskedLM(config)
    randomize(model)
    model.eval()
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")

    model.double()
    tokenizer = tokenizers.BertWordPieceTokenizer(str(folder / "vocab.txt"))
    lines = []
    for text, pair in TEXTS:
        ids, types, places = encode(tokenizer, text, pair)
        with torch.no_grad():
            logits = model(torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[0]
        lines.append(json.dumps({"text": text, "pair": pair, "ids": ids, "types": types, "places": places,
                                 "logits": [round(x, 9) for x in logits[places].flatten().tolist()]}))
    (folder / "golden.json").write_text("[" + ",\n".join(lines) + "]\n")
    print(f"{name}: {len(lines)} texts")


def main(output):
    torch.manual_seed(20240611)
    for name, config in MODELS.items():
        write(name, config, pathlib.Path(output) / name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
