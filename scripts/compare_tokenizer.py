#!/usr/bin/env python3
"""Compares attn's tokenizer with the reference (Hugging Face's `tokenizers`) on random texts.

    python scripts/compare_tokenizer.py BUILD/tests/text/encode_lines MODEL_DIRECTORY [COUNT [SEED]]

encode_lines is the test program that answers each JSON line {"text", "pair", "plain"} with a JSON line
{"tokens": [[id, type, text, word, begin, end]], "words": [[text, begin, end]]}. Offsets are bytes.
Exits with 1 at the first difference, showing both sides.
"""

import json
import random
import subprocess
import sys

from tokenizers import Tokenizer

CLASSES = [
    "abcdefghijklmnopqrstuvwxyz" * 2,
    "ABCXYZ0123456789",
    " \t\n\r\u00a0\u3000\u2028\u0085\x0b",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u2014\u201c\u2026\u00bf\u3002\u166d\u2e5d",
    "\u00e9\u00c9\u00f1\u0130\u0131\u00df\u1e9e\u01c5\u03a3\u03c2\u0419\u0439\u1ec7\u212b\u0344\u0f73\u1fb3",
    "\u0301\u0327\u0323\u0334\u0345\u05b0\u0f71\u302e\U0001d165\U0001d15e\u1ac1\u0898\u20dd\u0903\ua953",
    "\u4e2d\u3400\U00020000\U0002b820\uf900\u3042\u30a2\uac00\ud7a3\u1100\u1161\uff21",
    "\x00\x01\x7f\u00ad\u200b\u200d\u200f\ufeff\ufffd\ue000\U000e0001\u0378",
    "\U0001f4a9\U0001f469\u200d\U0001f4bb\U0001f1eb\U0001d400\U00016ea0\u1c89\U00010400\ua7dc",
    "\u0627\u0628\u064b\u05d0\u0e01\u0e31\u0915\u093c\u0958",
]
STRETCHES = ["[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]", "[mask]", "[MASK", "MASK]", "[[MASK]]", "##", "##ing",
             "playing", "unbelievable", "tokenization", "a" * 99, "\u00e9" * 101, "\u0416" * 100, "don't"]


def random_text(source):
    parts = []
    for _ in range(source.choice([0, 1, 2, 5, 10, 30])):
        kind = source.random()
        if kind < 0.2:
            parts.append(source.choice(STRETCHES))
        elif kind < 0.25:
            code = source.randrange(0x110000 - 0x800)
            parts.append(chr(code if code < 0xD800 else code + 0x800))
        else:
            letters = source.choice(CLASSES)
            parts.append("".join(source.choice(letters) for _ in range(source.randint(1, 6))))
    return "".join(parts)


def byte_offsets(text):
    offsets = [0]
    for character in text:
        offsets.append(offsets[-1] + len(character.encode()))
    return offsets


def reference_encoding(tokenizer, text, pair):
    encoding = tokenizer.encode(text) if pair is None else tokenizer.encode(text, pair)
    bytes_of = [byte_offsets(text), byte_offsets(pair or "")]
    tokens, words, index = [], [], {}
    for sequence in (0, 1):
        for position, number in enumerate(encoding.word_ids):
            if number is None or encoding.sequence_ids[position] != sequence:
                continue
            begin, end = (bytes_of[sequence][o] for o in encoding.offsets[position])
            if (sequence, number) not in index:
                index[sequence, number] = len(words)
                words.append([sequence, begin, end])
            words[index[sequence, number]][2] = end
    for position, identity in enumerate(encoding.ids):
        sequence, number = encoding.sequence_ids[position], encoding.word_ids[position]
        where = [-1, -1, 0, 0]
        if number is not None:
            where = [sequence, index[sequence, number]]
            where += [bytes_of[sequence][o] for o in encoding.offsets[position]]
        tokens.append([identity, encoding.type_ids[position]] + where)
    return {"tokens": tokens, "words": words}


def random_inputs(source, count):
    inputs = []
    for _ in range(count):
        pair = random_text(source) if source.random() < 0.2 else None
        inputs.append({"text": random_text(source), "pair": pair, "plain": source.random() < 0.1})
    return inputs


def ids_of(encoding):
    return [token[0] for token in encoding["tokens"]]


def compare(program, directory, inputs, model=None, lacking=frozenset()):
    """Exits with 1 where an input has another encoding. The program opens the directory, or another model. Behind
    bytes that the vocabulary lacks the reference's offsets are off, so that only ids are compared then."""
    tokenizer = Tokenizer.from_file(str(directory) + "/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    lines = "".join(json.dumps(i) + "\n" for i in inputs)
    answers = subprocess.run([program, model or directory], input=lines, capture_output=True, text=True, check=True)
    answers = answers.stdout.splitlines()
    assert len(answers) == len(inputs), (len(answers), len(inputs))
    for given, answer in zip(inputs, answers):
        tokenizer.encode_special_tokens = given["plain"]
        expected = reference_encoding(tokenizer, given["text"], given["pair"])
        found = json.loads(answer)
        if not lacking.isdisjoint(given["text"].encode()):
            found, expected = ids_of(found), ids_of(expected)
        if found != expected:
            print(json.dumps(given), json.dumps(expected), answer, sep="\n")
            sys.exit(1)


def main():
    program, directory = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
    source = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    compare(program, directory, random_inputs(source, count))
    print(f"{count} texts agree")


if __name__ == "__main__":
    main()
