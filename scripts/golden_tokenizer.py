#!/usr/bin/env python3
"""Makes tests/data/golden/tokenizer_*.json: what the reference tokenizer answers.

    golden_tokenizer.py MODEL_DIRECTORY OUTPUT_DIRECTORY

Needs the package tokenizers.

    tokenizer_small.json     a tokenizer.json of some 150 pieces, ids with holes
    tokenizer_settings.json  what it answers with other components: [{"name", "change" (top-level
                             fields that are replaced), "texts": [answer]}]
    tokenizer_model.json     what the tokenizer of MODEL_DIRECTORY answers: [answer]
    tokenizer_unicode.json   its classes of all code points as ranges, and for each stretch of 4,096 code
                             points the FNV-1a hash of all results of lower-casing and of stripping

An answer is {"text", "pair", "plain", "tokens": [[id, type, text, word, begin, end]], "words": [[text,
begin, end]]}, offsets in bytes, words counted through text and pair; a text that repeats is
{"repeat": [text, times]}.
"""

import copy
import json
import pathlib
import sys

from tokenizers import Tokenizer, normalizers

from compare_tokenizer import reference_encoding
from unicode_classes import class_ranges

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """the robot play ##ing ##ed re ##play rain a ##b ab abc don hello world cafe café naive naïve
    istanbul и й ж ##ж λ σ ς ##σ ##ς é ##é ss ß fi i̇ 中 ##中 日 本 は ##は 한 ##국 एक के € ° ا ب ##ب""".split()
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~") + ["—", "“", "…", "。", "¿"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

PARAGRAPH = (
    "When the archive moved, three clerks numbered the boxes; two of them quarrelled about the rest, "
    "and nobody (it was 1937) re-counted what the river had taken. "
)
TEXTS = [
    "",
    " ",
    "The robot picked up the screwdriver because it was heavy.",
    "Hello, WORLD!  Hello,world",
    "don't (a+b)=c^2 — “x”… ¿qué?",
    "naïve café nai\u0308ve CAFE\u0301 Å Å ﬁ ß ẞ Straße",
    "İSTANBUL ısparta ΣΑΣ Σ Ǆ ǅ Й й Ё Ω ᾼ Ⅷ Ⓐ",
    "a\u0327\u0301 a\u0301\u0327 e\u0323\u0302 q\u0307\u0323\u0334 \u0301\u0301 \u0344x \U0001d15e\U0001d165 \u302e\u0301\u302f",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
    "note\nbook\ta\rb\x0bc\x0cd\x1ce\x85f\u2028g\u00a0h\u3000i\u200bj",
    "Te\u00adst \u00ad \ufeffx\u200dy a\x00b\ufffdc \x7f\x01 \ue000 \u0378 \U000e0041",
    "今日は東京へ行きます。漢字かな混じり文",
    "\u3400\u4dbf\u4e00\u9fff\uf900\U00020000\U0002a6df\U0002b820\U0002b91f\U0002b920\U0002ceaf\U0002f800\U00030000",
    "한국어 문장 ㄱㄴㄷ ﾊﾝｶｸ ＦＵＬＬ ｗｉｄｔｈ",
    "Great 😂😂 weekend 👨‍👩‍👧 at the 🏖️! 🇫🇷🇩🇪 ☕ ok",
    "مرحبا بالعالم، שָׁלוֹם עולם हिन्दी में ไทยภาษา ကမ္ဘာ",
    "क़ ড় ਲ਼ གྷ ཱི \u0f73\u0f75\u0f81 \u0958",
    "\u1ac1\u0898\u08d4\u1dfb\u1e94a \U0001e944\U0001e94a \U00011938 \U000105c9 \U00016ea0 \ua7dc \u1c89 \u2e5d\u2e43",
    "i am going to [MASK] to study math",
    "[CLS][MASK] go[MASK]ing [mask] [Mask] [[MASK]] [MASK [SEP]",
    "[MASK]",
    "[UNK][PAD] [UNK]",
    "a" * 99 + " " + "b" * 100 + " " + "c" * 101 + " " + "ж" * 100 + " " + "É" * 100 + " " + "e\u0301" * 101,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis xqzjk",
    "1 22 333 4444 3.14159 2026-01-31 12:30 1e-12 ½ ² ٣٤",
    "https://example.org/a?b=c&d=%20#e user@example.org C:\\x\\y",
    "Ein Satz über Größe, Füße & Äpfel; GROẞ.",
    "Une phrase en français : « garçon », œuf, l’été, NOËL.",
    "Żółta łódź płynie, ČESKÝ KRÁĽ, Đặng Thị Thu Hiền",
    "Быстрая лиса прыгает, ЁЖИК и ЙОД — Київ, Ґанок",
    "Ὀδυσσεύς, ἄνδρα μοι ἔννεπε, ΠΟΛΎΤΡΟΠΟΝ",
    "اَلْعَرَبِيَّةُ فارسی اردو ؟ ، ۱۲۳",
    "বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ລາວ བོད་སྐད། ქართული ᲥᲐᲠᲗᲣᲚᲘ Հայերեն አማርኛ",
    "Ꭰꭰ Ɐ Ⴀⴀ 𐐀𐐨 𞤀𞤢 𝐀𝒜 ℌ K Å ſ",
    "if (x < 10 && y >= 3) { printf(\"%d\\n\", a[i]); } // #42",
    "$5.99 €10 £3 ¥100 10% ±2 × ÷ ≠ ≤ ∞ → ← ™ © ® § ¶ †",
    "“smart” ‘quotes’ „low“ ‹a› «b» — – ‐ ‑ … ‰ ′ ″",
    "...---...!!!???,,,;;;:::~~~___*** (((nested [brackets {and <angles>}])))",
    "\u200eabc\u200f \u202aembedded\u202c \u2066isolated\u2069 a\u2060b",
    "👍🏽 👩🏽‍💻 ❤️ 1️⃣ #️⃣ ©️ ☎︎ 🏴\U000e0067\U000e0062\U000e007f",
    "supercalifragilisticexpialidocious hippopotomonstrosesquippedaliophobia",
    "##ing ## # ##a re##play",
    " leading and trailing \t\n",
    "a\u0300\u0301\u0302\u0303\u0304\u0305" * 4,
    "x\u20ddy \u0903\u093f \ua953 \u1734 \u166d \U000111c9 \u0f3a\u0f3b",
]
PAIRS = [
    ("How are you?", "Fine, thanks."),
    ("Who wrote it?", ""),
    ("", "Nobody."),
    ("", ""),
    ("é [MASK]", "[SEP] 日本 [MASK]"),
]
REPEATED = [(PARAGRAPH, 15), ("Hello", 26), ("ab ", 40)]

SMALL_TEXTS = [
    "Hello, naïve CAFE\u0301",
    "İ ΣΑΣ Й a\u0327\u0301 \u302e\u0301\u302f",
    "a\tb\x0bc\x85d Te\u00adst\ufffd\x00 中日",
    "replayQ raining played 12345 123456",
    "the ab abc aab  abc É é 中ab ab-abc x[MASK]  y [SEP]  z [[MASK]]",
    "[CLS] \t[MASK]",
]


def small_tokenizer():
    pieces = SPECIALS + [*LETTERS, *("##" + c for c in LETTERS), *SIGNS]
    pieces = list(dict.fromkeys(pieces + WORDS))
    vocab = {piece: index + index // 10 for index, piece in enumerate(pieces)}
    added = [added_token(s, vocab[s], special=True) for s in SPECIALS]
    parts = {s: {"SpecialToken": {"id": s, "type_id": 0}} for s in ("[CLS]", "[SEP]")}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    pair = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    single = [parts["[CLS]"], text, parts["[SEP]"]]
    return {
        "version": "1.0",
        "truncation": {"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": None,
        "added_tokens": added,
        "normalizer": bert_normalizer(),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": single + pair,
            "special_tokens": {
                s: {"id": s, "ids": [vocab[s]], "tokens": [s]} for s in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }


def added_token(content, identity, **flags):
    off = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    return {"id": identity, "content": content, **off, **flags}


def bert_normalizer(clean=True, ideographs=True, strip=None, lower=True):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": ideographs,
            "strip_accents": strip, "lowercase": lower}  # fmt: skip


def settings(small):
    """Names and the top-level fields that change."""
    for lower in (True, False):
        for strip in (None, True, False):
            yield f"lower {lower}, strip {strip}", {"normalizer": bert_normalizer(strip=strip, lower=lower)}
    yield "not cleaned", {"normalizer": bert_normalizer(clean=False)}
    yield "ideographs in words", {"normalizer": bert_normalizer(ideographs=False)}
    yield "no normalizer", {"normalizer": None}
    yield "normalizer in a sequence", {
        "normalizer": {"type": "Sequence", "normalizers": [bert_normalizer(lower=False)]}
    }
    yield "no post_processor", {"post_processor": None}
    vocab = small["model"]["vocab"]
    cls, sep = (["[CLS]", vocab["[CLS]"]], ["[SEP]", vocab["[SEP]"]])
    yield "BertProcessing", {"post_processor": {"type": "BertProcessing", "sep": sep, "cls": cls}}
    template = copy.deepcopy(small["post_processor"])
    template["single"] = [template["single"][1], template["single"][0]]
    template["single"][0]["Sequence"]["type_id"] = 3
    template["special_tokens"]["[CLS]"].update(ids=[vocab["[CLS]"], vocab["[MASK]"]], tokens=["[CLS]", "[MASK]"])
    yield "another template", {"post_processor": template}
    model = {**small["model"], "max_input_chars_per_word": 5, "continuing_subword_prefix": ""}
    yield "short words, no prefix", {"model": model}
    free = max(vocab.values()) + 1
    added = [{**token} for token in small["added_tokens"]]
    added[4]["lstrip"] = True
    added[3]["rstrip"] = True
    added += [
        added_token("ab", vocab["ab"], single_word=True, normalized=True),
        added_token("É", free, normalized=True),
        added_token("abc", vocab["abc"], lstrip=True, rstrip=True),
        added_token("[MASK]]", free + 1),
        added_token("中", vocab["中"], normalized=True, special=True),
    ]
    # The reference numbers tokens that are new to it by the size of the vocabulary, holes or not.
    dense = {piece: index for index, piece in enumerate(vocab)}
    for token in added:
        token["id"] = dense.get(token["content"], token["id"] - free + len(dense))
    yield "added tokens", {
        "added_tokens": added,
        "model": {**small["model"], "vocab": dense},
        "post_processor": None,
    }


def answer(tokenizer, text, pair=None, plain=False):
    tokenizer.encode_special_tokens = plain
    result = {"text": text, **reference_encoding(tokenizer, text, pair)}
    if pair is not None:
        result["pair"] = pair
    if plain:
        result["plain"] = True
    return result


def open_tokenizer(description):
    tokenizer = Tokenizer.from_str(json.dumps(description))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def model_answers(directory):
    description = json.loads((directory / "tokenizer.json").read_text())
    tokenizer = open_tokenizer(description)
    answers = [answer(tokenizer, text) for text in TEXTS]
    answers += [answer(tokenizer, *pair) for pair in PAIRS]
    answers += [answer(tokenizer, text, plain=True) for text in TEXTS if "[MASK]" in text]
    for text, times in REPEATED:
        answers.append({**answer(tokenizer, text * times), "text": {"repeat": [text, times]}})
    return answers


def settings_answers(small):
    groups = []
    for name, change in settings(small):
        tokenizer = open_tokenizer({**small, **change})
        answers = [answer(tokenizer, text) for text in SMALL_TEXTS]
        answers += [answer(tokenizer, *PAIRS[4]), answer(tokenizer, *PAIRS[4], plain=True)]
        groups.append({"name": name, "change": change, "texts": answers})
    return groups


def fnv(texts):
    state = 0xCBF29CE484222325
    for text in texts:
        for byte in text.encode() + b"\n":
            state = (state ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % state


def unicode_answers():
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    hashes = {}
    for name in ("handle_chinese_chars", "strip_accents", "lowercase"):
        normalize = normalizers.BertNormalizer(**{**off, name: True}).normalize_str
        hashes[name] = [
            fnv(normalize(chr(c)) for c in range(first, first + 4096) if not 0xD800 <= c < 0xE000)
            for first in range(0, 0x110000, 4096)
        ]
    return {"classes": class_ranges(), "hashes": hashes}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    directory, output = (pathlib.Path(argument) for argument in sys.argv[1:3])
    small = small_tokenizer()
    write(output / "tokenizer_small.json", small)
    write(output / "tokenizer_settings.json", settings_answers(small))
    write(output / "tokenizer_model.json", model_answers(directory))
    write(output / "tokenizer_unicode.json", unicode_answers())


if __name__ == "__main__":
    main()
