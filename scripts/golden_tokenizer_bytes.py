#!/usr/bin/env python3
"""Makes tests/data/golden/tokenizer_bytes*.json and tokenizer_training.json: byte-level BPE as the reference
tokenizer has it, and what its trainers learn.

    golden_tokenizer_bytes.py OUTPUT_DIRECTORY [GGUF_FILE]

Needs the package tokenizers, for the last file gguf too.

    tokenizer_bytes.json           a tokenizer.json of 420 entries
    tokenizer_bytes_settings.json  what it answers with other settings, as in tokenizer_settings.json, the
                                   first group without a change; and under "kinds" for each stretch of 4,096
                                   code points the FNV-1a hash of their kinds (L, N, O or S, a line each)
    tokenizer_training.json        {"text", "bytes": [{"size", "merges"}], "words": [{"size", "pieces"}]}
    tokenizer_generator.json       300 lines with the vocabulary of GGUF_FILE, the default generator: [{"text",
                                   "plain", "ids", "dropped"}], the bytes that no id stands for
"""

import json
import pathlib
import random
import sys

from tokenizers import normalizers, pre_tokenizers

from compare_tokenizer_bytes import (characters_by_category, lacking_bytes, lacks_bytes, open_lists, random_line,
                                     settings, train)
from compare_tokenizer_training import reference_bytes, reference_words
from golden_tokenizer import PARAGRAPH, TEXTS, answer, fnv, open_tokenizer, write
from unicode_classes import kind_of

SIZE = 420
LINES = 300
PAIR = ("\u00e9 [MASK]", "<|endoftext|> \u65e5\u672c x")
SHORT_TEXTS = [
    "", " ", "   ", "\n\n", "a", " a", "it's IT'S we'll've ''s 're",
    "a  b\n\nc \t d\u00a0e\u3000 f   ",
    "x_1 12 \u00b2\u00bd \u0663\u2167 3.14!?",
    "a <|endoftext|> b<|endoftext|><|endoftext|", " <x>  ab cab \u00e9t\u00e9ab [MASK]   z",
    "\u4eca\u65e5 e\u0301 \U0001f469\u200d\U0001f4bb!!! \u0416\u0416", "!\n!!",
]  # fmt: skip
TRAINING_TEXT = (
    PARAGRAPH * 2
    + "Low lower lowest, newer newest wider: low low low newest newest. Na\u00efve na\u00efve caf\u00e9s, "
    + "\u0416\u0443\u043a \u0436\u0443\u043a\u0438 \u4eca\u65e5\u306f\u4eca\u65e5 aaaa aaaaa aaaaaaa 1937 1938.\n\n  It's what it's.\n"
)


def kinds():
    letter = {"letters": "L", "numbers": "N", "others": "O", "spaces": "S"}
    return [
        fnv(letter[kind_of(chr(c))] for c in range(first, first + 4096) if not 0xD800 <= c < 0xE000)
        for first in range(0, 0x110000, 4096)
    ]


def answers(description, texts):
    tokenizer = open_tokenizer(description)
    found = [answer(tokenizer, text) for text in texts]
    return found + [answer(tokenizer, *PAIR), answer(tokenizer, *PAIR, plain=True)]


def groups(base):
    yield {"name": "many texts", "change": {}, "texts": answers(base, TEXTS[::2])}
    changes = [*settings(base), *((f"unknown bytes, fused {f}", lacks_bytes(base, f)) for f in (False, True))]
    for name, change in changes:
        yield {"name": name, "change": change, "texts": answers({**base, **change}, SHORT_TEXTS)}


def training():
    text = TRAINING_TEXT
    found = {"text": text, "bytes": [], "words": []}
    for size in (257, 258, 300, 1000):
        model = reference_bytes(text, size)[0]
        found["bytes"].append({"size": size, "merges": [" ".join(merge) for merge in model["merges"]]})
    words = words_of(text)
    letters = sorted(set("".join(words)))
    letters += ["##" + c for c in letters if any(c in word[1:] for word in words)]
    for size in (100, 150, 1000):
        vocab = reference_words(text, size, letters)[0]["vocab"]
        found["words"].append({"size": size, "pieces": sorted(vocab, key=vocab.get)})
    return found


def words_of(text):
    normal = normalizers.BertNormalizer().normalize_str(text)
    return [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normal)]


def generator_lines():
    """Random lines of all Unicode categories, texts in many languages, and the project's licence."""
    licence = pathlib.Path(__file__).resolve().parent.parent / "LICENSE"
    lines = TEXTS + SHORT_TEXTS + [line for line in licence.read_text().splitlines(keepends=True) if line.strip()][:60]
    source, categories = random.Random(1), characters_by_category()
    return lines + [random_line(source, categories)[:120] for _ in range(LINES - len(lines))]


def generator(path):
    tokenizer = open_lists(path)
    lacking = lacking_bytes(tokenizer)
    answers = []
    for number, text in enumerate(generator_lines()):
        tokenizer.encode_special_tokens = plain = number % 7 == 6
        dropped = [byte for byte in text.encode() if byte in lacking]
        answers.append({"text": text, "plain": plain, "ids": tokenizer.encode(text).ids, "dropped": dropped})
    return answers


def main():
    output = pathlib.Path(sys.argv[1])
    base = train(TEXTS, size=SIZE)
    write(output / "tokenizer_bytes.json", base)
    write(output / "tokenizer_bytes_settings.json", {"groups": list(groups(base)), "kinds": kinds()})
    write(output / "tokenizer_training.json", training())
    if len(sys.argv) > 2:
        write(output / "tokenizer_generator.json", generator(sys.argv[2]))


if __name__ == "__main__":
    main()
