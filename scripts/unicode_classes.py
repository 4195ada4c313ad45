#!/usr/bin/env python3
"""Writes src/text/unicode_class_table.c, the character classes that BERT's pre-processing asks for, and
src/text/unicode_letter_table.c, the letters and numbers of the pattern that splits a text for GPT-2.

The ids of a text must not change with the Unicode version of the machine's libraries, so the classes are
those of the reference tokenizer (Hugging Face's `tokenizers`, whose own tables have long been frozen),
asked for one code point at a time.

    python scripts/unicode_classes.py          needs the package tokenizers; then run clang-format
"""

import pathlib

from tokenizers import normalizers, pre_tokenizers

ROOM = pathlib.Path(__file__).resolve().parent.parent / "src/text"
COMMENT = """\
/* Classes of code points as the reference tokenizer knows them; what is not here is UNICODE_PLAIN.
 * Written by scripts/unicode_classes.py. */
#include "text/unicode.h"

"""
LETTER_COMMENT = """\
/* The letters and numbers of the reference tokenizer's regular expressions.
 * Written by scripts/unicode_classes.py. */
#include "text/unicode.h"

"""


def bert(**settings):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **settings}).normalize_str


clean, strip = bert(clean_text=True), bert(strip_accents=True)
decompose = normalizers.NFD().normalize_str
split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str

LOWEST, HIGHEST = "\u0334", "\u0345"  # marks of the combining classes 1 and 240


def is_reordered(character):
    """Whether canonical ordering moves it, so that its combining class is not 0."""
    texts = ["a" + character + LOWEST, "a" + HIGHEST + character]
    return decompose(character) == character and any(decompose(t) != t for t in texts)


def class_of(character):
    classes = []
    if clean(character) == "":
        classes.append("CONTROL")
    if len(split("a" + character + "b")) == 3:
        classes.append("PUNCTUATION")
    if strip(character) == "":
        classes.append("MARK")
    elif is_reordered(character):
        classes.append("COMBINING")
    assert len(classes) <= 1, (hex(ord(character)), classes)
    return classes[0] if classes else None


def class_ranges():
    ranges = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        name = class_of(chr(code))
        if name and ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == name:
            ranges[-1][1] = code
        elif name:
            ranges.append([code, code, name])
    return ranges


split_by_pattern = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str


def is_one_word(text):
    return len(split_by_pattern(text)) == 1


def kind_of(character):
    """"letters", "numbers", "others" or "spaces" of GPT-2's pattern."""
    for beside, kind in (("a", "letters"), ("1", "numbers"), ("!", "others")):
        if is_one_word(beside + character + beside):
            return kind
    return "spaces"


def kind_runs(kinds=("letters", "numbers")):
    runs = {kind: [] for kind in kinds}
    for code in range(0x110000):
        kind = None if 0xD800 <= code < 0xE000 else kind_of(chr(code))
        if kind not in runs:
            continue
        if runs[kind] and runs[kind][-1][1] == code - 1:
            runs[kind][-1][1] = code
        else:
            runs[kind].append([code, code])
    return runs


def write_letters():
    text = LETTER_COMMENT
    for kind, runs in kind_runs().items():
        name = kind[:-1]
        text += "const struct unicode_run unicode_%s[] = {\n" % kind
        text += "\n".join("{0x%04X, 0x%04X}," % tuple(run) for run in runs)
        text += "\n};\n\nconst int unicode_%s_count = %d;\n\n" % (name, len(runs))
    (ROOM / "unicode_letter_table.c").write_text(text.rstrip("\n") + "\n")


def main():
    write_letters()
    ranges = class_ranges()
    lines = ["{0x%04X, 0x%04X, UNICODE_%s}," % tuple(r) for r in ranges]
    (ROOM / "unicode_class_table.c").write_text(
        COMMENT
        + "const struct unicode_range unicode_ranges[] = {\n"
        + "\n".join(lines)
        + "\n};\n\nconst int unicode_range_count = %d;\n" % len(ranges)
    )


if __name__ == "__main__":
    main()
