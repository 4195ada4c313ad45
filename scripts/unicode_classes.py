#!/usr/bin/env python3
"""Writes src/text/unicode_class_table.c: the character classes that BERT's pre-processing asks for.

The ids of a text must not change with the Unicode version of the machine's libraries, so the classes are
those of the reference tokenizer (Hugging Face's `tokenizers`, whose own tables have long been frozen),
asked for one code point at a time.

    python scripts/unicode_classes.py          needs the package tokenizers; then run clang-format
"""

import pathlib

from tokenizers import normalizers, pre_tokenizers

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src/text/unicode_class_table.c"
COMMENT = """\
/* Classes of code points as the reference tokenizer knows them; what is not here is UNICODE_PLAIN.
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


def main():
    ranges = class_ranges()
    lines = ["{0x%04X, 0x%04X, UNICODE_%s}," % tuple(r) for r in ranges]
    OUTPUT.write_text(
        COMMENT
        + "const struct unicode_range unicode_ranges[] = {\n"
        + "\n".join(lines)
        + "\n};\n\nconst int unicode_range_count = %d;\n" % len(ranges)
    )


if __name__ == "__main__":
    main()
