#!/usr/bin/env python3
"""Compares the tokenizers that attn learns with those of the reference trainers (Hugging Face's `tokenizers`).

    python scripts/compare_tokenizer_training.py BUILD/tests/text/train_tokenizer TEXT_FILE [SIZE …]

Byte-level BPE must have the same merges in the same order and WordPiece the same vocabulary, ids included;
then Transformers opens what attn wrote, and its ids are those of encode_lines, which stands beside
train_tokenizer. Exits with 1 at the first difference.

The reference's WordPiece trainer numbers the letters within words by a hash that changes from run to run,
and with it pairs of equal counts. Here the letters are given to it as special tokens, in attn's order.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FEWEST = 2  # a pair that stands once is not merged


def learn(tokenizer, trainer, text):
    start = time.monotonic()
    tokenizer.train_from_iterator([text], trainer)
    return json.loads(tokenizer.to_str())["model"], time.monotonic() - start


def reference_bytes(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=FEWEST, show_progress=False, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    return learn(tokenizer, trainer, text)


def reference_words(text, size, letters):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=FEWEST, show_progress=False, special_tokens=SPECIALS + letters)  # fmt: skip
    return learn(tokenizer, trainer, text)


def same(kind, size, ours, theirs):
    for index, (one, other) in enumerate(zip(ours, theirs)):
        if one != other:
            sys.exit(f"{kind}, size {size}: number {index} is {one}, {other} in the reference")
    if len(ours) != len(theirs):
        sys.exit(f"{kind}, size {size}: {len(ours)} entries, {len(theirs)} in the reference")


def compare_bytes(description, text, size):
    model, seconds = reference_bytes(text, size)
    same("bytes", size, [m.split(" ") for m in description["model"]["merges"]], model["merges"])
    ours = [p for p in description["model"]["vocab"] if p != "<|endoftext|>"]
    same("bytes", size, ours, [p for p in model["vocab"] if p != "<|endoftext|>"])
    return len(description["model"]["merges"]), seconds


def compare_words(description, text, size):
    vocab = description["model"]["vocab"]
    letters = [p for p in vocab if len(p) == 1] + [p for p in vocab if len(p) == 3 and p.startswith("##")]
    model, seconds = reference_words(text, size, letters)
    same("words", size, sorted(vocab.items(), key=lambda e: e[1]), sorted(model["vocab"].items(), key=lambda e: e[1]))
    return len(vocab), seconds


def compare_ids(program, folder, text):
    """Transformers' ids of each line, and attn's."""
    from transformers import PreTrainedTokenizerFast  # not needed by who imports this module

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
    lines = text.split("\n")[:3000]
    requests = "".join(json.dumps({"text": line}) + "\n" for line in lines)
    encode_lines = pathlib.Path(program).with_name("encode_lines")
    answers = subprocess.run([encode_lines, folder], input=requests, capture_output=True, text=True, check=True)
    for line, answer in zip(lines, answers.stdout.splitlines(), strict=True):
        ours, theirs = [t[0] for t in json.loads(answer)["tokens"]], tokenizer(line)["input_ids"]
        if ours != theirs:
            sys.exit(f"ids differ for {line!r}: {ours}, in Transformers {theirs}")
        if tokenizer.backend_tokenizer.decoder.__class__.__name__ == "ByteLevel":
            assert tokenizer.decode(ours, clean_up_tokenization_spaces=False) == line, line


def main():
    program, path = sys.argv[1:3]
    text = pathlib.Path(path).read_bytes().decode()
    for size in [int(s) for s in sys.argv[3:]] or [8000]:
        for kind, compare in ("bytes", compare_bytes), ("words", compare_words):
            start = time.monotonic()
            done = subprocess.run([program, kind, str(size), path], capture_output=True, check=True)
            seconds = time.monotonic() - start
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "tokenizer.json").write_bytes(done.stdout)
                count, theirs = compare(json.loads(done.stdout), text, size)
                compare_ids(program, folder, text)
            print(f"{kind}, size {size}: {count} agree; {seconds:.2f} s, reference {theirs:.2f} s", flush=True)


if __name__ == "__main__":
    main()
