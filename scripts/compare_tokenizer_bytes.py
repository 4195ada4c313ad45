#!/usr/bin/env python3
"""Compares attn's byte-level BPE with the reference (Hugging Face's `tokenizers`) on random texts.

    python scripts/compare_tokenizer_bytes.py BUILD/tests/text/encode_lines [COUNT [SEED]]
    python scripts/compare_tokenizer_bytes.py BUILD/tests/text/encode_lines --gguf FILE [COUNT [SEED]]

The tokenizers are trained on random text, one for each setting that changes what comes out, and compared
as scripts/compare_tokenizer.py does on COUNT texts each. With --gguf it is the one tokenizer that the lists of
FILE make, on COUNT lines (10,000 unless said otherwise) of random and of real text, opened from the file
itself and from a tokenizer.json of the reference's; needs the package gguf too.
"""

import json
import pathlib
import random
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

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


def digits(single):
    return {"type": "Digits", "individual_digits": single}


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
    for single in (False, True):
        for prefix in (False, True):
            for pattern in (True, False):
                pre_tokenizer = {"type": "Sequence", "pretokenizers": [digits(single), byte_level(prefix, pattern)]}
                yield f"digits {single}, prefix {prefix}, pattern {pattern}", {"pre_tokenizer": pre_tokenizer}
                yield f"digits {single}, prefix {prefix}, pattern {pattern}, trimmed", {
                    "pre_tokenizer": pre_tokenizer, "post_processor": byte_level(prefix)}  # fmt: skip
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
    model = {**base["model"], "merges": shuffled, "ignore_merges": True}
    yield "whole words", {"model": model}
    yield "whole words without a pattern", {"model": model, "pre_tokenizer": byte_level(True, False)}


def lacks_bytes(base, fuse):
    """No piece that holds the byte of '!' or the first ones of Cyrillic; <|endoftext|> stands for them."""
    gone = "!\u00d0\u00d1"
    kept = [p for p in base["model"]["vocab"] if p == "<|endoftext|>" or not set(p) & set(gone)]
    merges = [m for m in base["model"]["merges"] if not set("".join(m)) & set(gone)]
    vocab = {piece: index for index, piece in enumerate(kept)}
    added = [{**base["added_tokens"][0], "id": vocab["<|endoftext|>"]}]
    model = {**base["model"], "vocab": vocab, "merges": merges, "unk_token": "<|endoftext|>", "fuse_unk": fuse}
    return {"model": model, "added_tokens": added}


def open_lists(path):
    """The reference's tokenizer of a GGUF file whose pre-tokenizer is SmolLM's."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    tokens, kinds, merges, name = (
        fields["tokenizer.ggml." + key].contents() for key in ("tokens", "token_type", "merges", "pre")
    )
    assert name == "smollm", name
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, kind in zip(tokens, kinds) if kind == 3]
    )
    return tokenizer


def lacking_bytes(tokenizer):
    """Those that alone are no piece. ByteLevel spells a byte in text as it does in the alphabet."""
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    spelled = {}
    for code in [*range(0x80), *range(0x80, 0x800), *range(0x800, 0x110000, 0x40)]:
        if not 0xD800 <= code < 0xE000:
            spelled.update(zip(chr(code).encode(), spell(chr(code))[0][0]))
    return frozenset(byte for byte, letter in spelled.items() if tokenizer.token_to_id(letter) is None)


def characters_by_category():
    """Every Unicode category but surrogates, unassigned characters too."""
    categories = {}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            categories.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    return [categories[name] for name in sorted(categories)]


def random_line(source, categories):
    """Runs of characters of one category, words, and what random_text makes."""
    parts = []
    for _ in range(source.randint(1, 8)):
        if source.random() < 0.25:
            parts.append(random_text(source))
        else:
            letters = source.choice(categories)
            parts.append("".join(source.choice(letters) for _ in range(source.randint(1, 5))))
        parts.append(source.choice(["", " ", "  ", "\n", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "The quick"]))
    return "".join(parts)


def real_lines(source, count):
    """Lines of this project's texts and of Python's library, in their languages and with their indents."""
    root = pathlib.Path(__file__).resolve().parent.parent
    library = pathlib.Path(random.__file__).parent
    paths = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("src/*/*.c"), *root.glob("tests/data/golden/*.json"),
             *library.glob("*.py"), *library.glob("test/*.txt")]  # fmt: skip
    lines = []
    for path in sorted(paths):
        lines += (line[:2000] for line in path.read_text(errors="replace").splitlines(keepends=True))
    return [source.choice(lines) for _ in range(count)]


def compare_lists(program, path, count, source):
    tokenizer = open_lists(path)
    categories = characters_by_category()
    texts = [random_line(source, categories) for _ in range(count - count // 2)] + real_lines(source, count // 2)
    inputs = [{"text": text, "pair": None, "plain": source.random() < 0.1} for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(str(pathlib.Path(folder, "tokenizer.json")))
        lacking = lacking_bytes(tokenizer)
        compare(program, folder, inputs, lacking=lacking)
        compare(program, folder, inputs, model=path, lacking=lacking)
    print(f"{count} lines agree, opened from the lists and from a tokenizer.json")


def main():
    program, *arguments = sys.argv[1:]
    path = None
    if arguments and arguments[0] == "--gguf":
        path, arguments = arguments[1], arguments[2:]
    count = int(arguments[0]) if arguments else 10000 if path else 2000
    source = random.Random(int(arguments[1]) if len(arguments) > 1 else 1)
    if path:
        compare_lists(program, path, count, source)
        return
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
