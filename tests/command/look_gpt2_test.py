"""A GPT-2 with byte-level BPE, made on the spot: what look, info and embed make of it."""
import json

from tiny_gpt2 import HEADS, LAYERS, gpt2
from tool import FOLDER, fails, succeeds, tap

TEXT = "The robot picked up the screwdriver because it was heavy."
WORDS = TEXT[:-1].split() + ["."]


def look_json(*arguments):
    return json.loads(succeeds("look", "-m", gpt2(), "--json", *arguments))


def words_look_back():
    content = look_json(TEXT)
    assert content["words"] == WORDS, content["words"]
    [head] = content["heads"]
    for row, weights in enumerate(head["weights"]):
        assert all((weight > 0) == (column <= row) for column, weight in enumerate(weights)), weights
        assert abs(sum(weights) - 1) < 1e-5
    assert head["weights"][0][0] == 1


def mean_is_the_mean_of_heads():
    names = [f"L{layer}H{head}" for layer in range(LAYERS) for head in range(HEADS)]
    heads = look_json(TEXT, *(part for name in names for part in ["--head", name]))["heads"]
    [mean] = look_json(TEXT)["heads"]
    for row in range(len(WORDS)):
        for column in range(len(WORDS)):
            average = sum(head["weights"][row][column] for head in heads) / len(heads)
            assert abs(average - mean["weights"][row][column]) < 1e-6


def pieces_are_the_bytes_that_they_stand_for():
    words = look_json("--pieces", "the other way")["words"]
    assert words == ["th", "e", " ", "o", "th", "e", "r", " w", "a", "y"], words


def a_word_is_found_without_its_space():
    lines = succeeds("look", "-m", gpt2(), "--from", "robot", TEXT).splitlines()
    assert len(lines) >= 1 and lines[0].startswith("The "), lines


def words_behind_are_in_no_ranking():
    lines = succeeds("look", "-m", gpt2(), "--top", "99", TEXT).splitlines()
    ranked, row = {}, -1
    for line in lines:
        if line.startswith(" "):
            ranked[row].append(line.split()[0])
        else:
            row += 1
            ranked[row] = []
    assert len(ranked) == len(WORDS), lines
    for row, words in ranked.items():
        assert sorted(words) == sorted(WORDS[:row]), (row, words)


def pictures_are_written():
    for suffix in ["svg", "png", "html", "npy"]:
        path = FOLDER / f"look.{suffix}"
        succeeds("look", "-m", gpt2(), "-o", str(path), TEXT)
        assert path.stat().st_size > 200, suffix


def info_describes_it():
    text = succeeds("info", "-m", gpt2())
    for line in ["architecture: GPT-2", "layers:       2", "heads:        4", "hidden:       16",
                 "positions:    64", "vocabulary:   262"]:
        assert line in text, text


def embed_refuses_it_by_name():
    fails(1, ["config.json", "gpt2", "bert"], "embed", "-m", gpt2(), TEXT)


def what_it_cannot_read_is_refused():
    fails(1, ["tokens", "64 positions"], "look", "-m", gpt2(), "x " * 41)
    fails(1, ["2 layers of 4 heads", "L2H0"], "look", "-m", gpt2(), "--head", "L2H0", TEXT)
    fails(1, "scale_attn_weights", "look", "-m", gpt2("unscaled", scale_attn_weights=False), TEXT)
    fails(1, ["wpe.weight has shape [64, 16]", "expected [65, 16]"], "look", "-m",
          gpt2("longer", n_positions=65), TEXT)


tap.run([
    words_look_back,
    mean_is_the_mean_of_heads,
    pieces_are_the_bytes_that_they_stand_for,
    a_word_is_found_without_its_space,
    words_behind_are_in_no_ranking,
    pictures_are_written,
    info_describes_it,
    embed_refuses_it_by_name,
    what_it_cannot_read_is_refused,
])
