"""attn fill: what Transformers says about open places (tests/data/models/masked_words*, made by
scripts/golden_masked_words.py), and a model that the tool itself taught."""
import json
import math
import re
from pathlib import Path

from tool import FOLDER, ROOT, attn, fails, file, in_terminal, model, succeeds, tap

MODELS = ROOT / "tests" / "data" / "models"
GOLDEN = MODELS / "masked_words"
OPEN = "The robot [MASK] up the screwdriver."
LINE = re.compile(r"( *)(\S+) +(\d\.\d{3})(?:  (▇+))?")


def fill(*arguments, **settings):
    return succeeds("fill", "-m", str(GOLDEN), *arguments, **settings)


def objects(*arguments, **settings):
    return [json.loads(line) for line in succeeds("fill", "--json", *arguments, **settings).splitlines()]


def likeliest(logits, top):
    """[(id, probability)]"""
    total = math.fsum(math.exp(x) for x in logits)
    ranked = sorted(range(len(logits)), key=lambda n: (-logits[n], n))
    return [(n, math.exp(logits[n]) / total) for n in ranked[:top]]


def the_words_are_those_of_transformers():
    for name in ["masked_words", "masked_words_tanh"]:
        words = (MODELS / name / "vocab.txt").read_text().split()
        for text in json.loads((MODELS / name / "golden.json").read_text()):
            pair = ["--pair", text["pair"]] if text["pair"] else []
            [found] = objects("-m", str(MODELS / name), "--top", "31", *pair, text["text"])
            assert list(found) == ["model", "text", "pair", "masks"]
            assert (found["model"], found["text"], found["pair"]) == (name, text["text"], text["pair"])
            assert len(found["masks"]) == len(text["places"])
            for n, mask in enumerate(found["masks"]):
                assert mask["in_pair"] == bool(text["types"][text["places"][n]])
                inside = (text["pair"] if mask["in_pair"] else text["text"]).encode()
                assert inside[mask["begin"]:mask["end"]] == b"[MASK]"
                expected = likeliest(text["logits"][31 * n:31 * n + 31], 31)
                assert [word["id"] for word in mask["words"]] == [word for word, _ in expected]
                for word, (number, probability) in zip(mask["words"], expected):
                    assert word["word"] == (words[number] if number < len(words) else f"#{number}")
                    assert abs(word["probability"] - probability) < 1e-5, (text, word)
                assert abs(sum(word["probability"] for word in mask["words"]) - 1) < 1e-5


def lines_rank_words_with_bars():
    lines = [LINE.fullmatch(line) for line in fill(OPEN).splitlines()]
    assert len(lines) == 5 and all(lines), lines
    [found] = objects("-m", str(GOLDEN), OPEN)
    for line, word in zip(lines, found["masks"][0]["words"]):
        assert line[1] == "" and line[2] == word["word"]
        assert abs(float(line[3]) - word["probability"]) <= 0.0006
    assert len(lines[0][4]) == 24 and len(fill("--top", "1", OPEN).splitlines()) == 1
    assert len(fill("--top", "1000", OPEN).splitlines()) == 31


def several_places_and_texts_have_headings():
    two = "The [MASK] saw a [MASK]."
    text = fill("--top", "2", two).splitlines()
    assert text[0] == "[MASK] 1" and text[3] == "[MASK] 2" and len(text) == 6
    assert all(LINE.fullmatch(line)[1] == "  " for line in text[1:3] + text[4:6])
    blocks = fill("--top", "1", OPEN, two).split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [OPEN, two]
    assert len(blocks[0].splitlines()) == 2 and len(blocks[1].splitlines()) == 5
    assert "\x1b[1m[MASK] 1\x1b[0m" in in_terminal("fill", "-m", str(GOLDEN), two)
    assert "\x1b" not in in_terminal("fill", "-m", str(GOLDEN), two, NO_COLOR="1")


def files_have_a_text_a_line():
    path = file("open.txt", f"{OPEN}\r\nA [MASK].\n")
    found = objects("-m", str(GOLDEN), "-f", path)
    assert [one["text"] for one in found] == [OPEN, "A [MASK]."]
    assert found == objects("-m", str(GOLDEN), "-", stdin=Path(path).read_bytes())
    fails(1, ["open.txt: line 2", "[MASK]"], "fill", "-m", str(GOLDEN), "-f",
          file("open.txt", f"{OPEN}\nno place\n"))  # fmt: skip
    fails(1, ["line 2", "empty"], "fill", "-m", str(GOLDEN), "-f", file("open.txt", f"{OPEN}\n\n{OPEN}\n"))


def what_attn_train_made_fills():
    sentences = ["The robot picked up the screwdriver .", "The cat sat on the mat .", "A dog ran after the ball ."]
    corpus = file("corpus.txt", "\n".join(sentences * 150))
    taught = str(FOLDER / "taught")
    succeeds("train", "-f", corpus, "-o", taught, "--objective", "mlm", "--layers", "2", "--heads", "4", "--dim", "32",
             "--ctx", "10", "--vocab", "100", "--batch", "16", "--steps", "1600", "--lr", "0.004", "--decay", "0")  # fmt: skip
    for text, word in [("The robot picked [MASK] the screwdriver .", "up"), ("A dog [MASK] after the ball .", "ran")]:
        [found] = objects("-m", taught, text)
        best = found["masks"][0]["words"][0]
        assert best["word"] == word and best["probability"] > 0.4, found


def a_model_without_the_head_is_refused():
    fails(1, ["model.safetensors", "no masked-word head", "attn train --objective mlm"], "fill", OPEN, "-m", str(model()))


def other_models_are_refused_by_name():
    fails(1, ["gpt2", "GPT-2", "attn generate"], "fill", "-m", str(MODELS / "gpt2"), OPEN)
    fails(1, "nowhere", "fill", "-m", "./nowhere", OPEN)


def texts_that_cannot_be_filled_are_refused():
    fails(1, ["the text has no [MASK]"], "fill", "-m", str(GOLDEN), "The robot.")
    fails(1, ["34 tokens", "32 positions"], "fill", "-m", str(GOLDEN), "robot " * 31 + "[MASK]")
    fails(1, "the pair is empty", "fill", "-m", str(GOLDEN), "--pair", "", OPEN)
    fails(1, "text 2 is empty", "fill", "-m", str(GOLDEN), OPEN, "")
    fails(1, "--pair: byte 0", "fill", "-m", str(GOLDEN), "--pair", b"\xff", OPEN)
    without = FOLDER / "without-mask"
    without.mkdir()
    for path in GOLDEN.iterdir():
        (without / path.name).write_bytes(path.read_bytes().replace(b"[MASK]", b"[OPEN]"))
    fails(1, "tokenizer has no token [MASK]", "fill", "-m", str(without), OPEN)


def refuses_wrong_command_lines():
    fails(2, "a text is missing", "fill")
    fails(2, ["--top", "'0'"], "fill", "--top", "0", OPEN)
    fails(2, ["-f", "exclude"], "fill", "-f", "file", OPEN)
    assert attn("fill", "-h").out.startswith("attn fill: ")
    with open("/dev/full", "wb") as full:
        fails(1, "No space left", "fill", "-m", str(GOLDEN), OPEN, stdout=full)


tap.run([
    the_words_are_those_of_transformers,
    lines_rank_words_with_bars,
    several_places_and_texts_have_headings,
    files_have_a_text_a_line,
    what_attn_train_made_fills,
    a_model_without_the_head_is_refused,
    other_models_are_refused_by_name,
    texts_that_cannot_be_filled_are_refused,
    refuses_wrong_command_lines,
])
