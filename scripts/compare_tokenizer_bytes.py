#!/usr/bin/env python3
"""Compares attn's byte-level BPE with the reference (Hugging Face's `tokenizers`) on random texts.

    python scripts/compare_tokenizer_bytes.py BUILD/tests/text/encode_lines [COUNT [SEED]]

The tokenizers are trained on random text, one for each setting that changes what comes out, and compared
as scripts/compare_tokenizer.py does on COUNT texts each.
"""

import json
import pathlib
import random
import sys
import tempfile

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from compare_tokenizer import CLASSES, STRETCHES, compare, random_inputs, random_text

STRETCHES += ["<|endoftext|>", "<|endoftext|", "<x>", "  <x>  ", "\u00e9t\u00e9", "   ", "\n\n", " \n ", "\t\t", "'s", "'ll",
              " 're", "'S", "it's", "we'll've", "''s", "1\u00b2\u2167", " 12 3", "_x_1", "aaaaaaa", "ababab", " '"]  # fmt: skip
CLASSES += ["'stremvld ", "   \n\t\u00a0", "0123\u0663\u00bd\u3007", "aaab ", "\u0378\U0001e5d0\ua7cd\U000323af\U00010d40x1"]


def train(texts, size=1500):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())


def added_token(identity, content, **flags):
    off = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    return {"id": identity, "content": content, **off, **flags}


def added_tokens(vocab, contents):
    """Those that the vocabulary lacks follow it, as the reference numbers them."""
    tokens, free = [], len(vocab)
    for content, flags in contents.items():
        identity = vocab.get(content, free)
        free += identity == free
        tokens.append(added_token(identity, content, **flags))
    return tokens


def byte_level(prefix, pattern=True, trim=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": pattern}


def settings(base):
    """Names and what replaces the base's fields."""
    end = base["model"]["vocab"]["<|endoftext|>"]
    for prefix in (False, True):
        for pattern in (True, False):
            name = f"prefix {prefix}, pattern {pattern}"
            yield name, {"pre_tokenizer": byte_level(prefix, pattern)}
            for inner in (False, True):
                processor = byte_level(inner)
                yield f"{name}, trimmed {inner}", {
                    "pre_tokenizer": byte_level(prefix, pattern), "post_processor": processor}  # fmt: skip
    template = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "E", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "E", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"E": {"id": "E", "ids": [end], "tokens": ["<|endoftext|>"]}},
    }  # fmt: skip
    yield "template", {"post_processor": template}
    contents = {
        "<x>": dict(lstrip=True, rstrip=True),
        "\u00e9t\u00e9": dict(normalized=True),
        "ab": dict(normalized=True, single_word=True),
        "[MASK]": dict(special=True),
    }
    # Not beside <x>, which takes white space: the reference then gives the same bytes to two tokens.
    for name, tokens in ("added tokens", contents), ("spaces added", {"   ": {}, " \n": dict(special=True)}):
        for prefix in (False, True):
            yield f"{name}, prefix {prefix}", {
                "added_tokens": base["added_tokens"] + added_tokens(base["model"]["vocab"], tokens),
                "pre_tokenizer": byte_level(prefix), "post_processor": byte_level(prefix)}  # fmt: skip
    merges = [" ".join(merge) for merge in base["model"]["merges"]]
    yield "merges as lines", {"model": {**base["model"], "merges": merges}}
    twice = base["model"]["merges"][::3] + base["model"]["merges"] + base["model"]["merges"][::7]
    yield "merges that repeat", {"model": {**base["model"], "merges": twice}}
    shuffled = list(base["model"]["merges"])
    random.Random(1).shuffle(shuffled)
    yield "merges in any order", {"model": {**base["model"], "merges": shuffled}}


def lacks_bytes(base, fuse):
    """No piece that holds the byte of '!' or the first ones of Cyrillic; <|endoftext|> stands for them."""
    gone = "!\u00d0\u00d1"
    kept = [p for p in base["model"]["vocab"] if p == "<|endoftext|>" or not set(p) & set(gone)]
    merges = [m for m in base["model"]["merges"] if not set("".join(m)) & set(gone)]
    vocab = {piece: index for index, piece in enumerate(kept)}
    added = [{**base["added_tokens"][0], "id": vocab["<|endoftext|>"]}]
    model = {**base["model"], "vocab": vocab, "merges": merges, "unk_token": "<|endoftext|>", "fuse_unk": fuse}
    return {"model": model, "added_tokens": added}


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    source = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    base = train([random_text(source) for _ in range(4000)])
    changes = [*settings(base), *((f"unknown bytes, fused {f}", lacks_bytes(base, f)) for f in (False, True))]
    for name, change in changes:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tokenizer.json").write_text(json.dumps({**base, **change}))
            print(name, flush=True)
            compare(program, folder, random_inputs(source, count))
    print(f"{len(changes)} settings of {count} texts agree")


if __name__ == "__main__":
    main()
