"""attn heads: scores of heads over texts, and heads beside the dependencies of a treebank."""
import csv
import io
import json
import math
import os

from tiny_gpt2 import HEADS, LAYERS, POSITIONS, gpt2
from tool import FOLDER, ROOT, SENTENCE, fails, file, generator, in_terminal, model, succeeds, tap

COLUMNS = ["entropy", "distance", "self", "previous", "next", "first", "separators", "sink", "duplicate", "induction"]
TEXT = "the other way the other"
TREEBANK = ROOT / "tests/data/treebank/small.conllu"
RELATIONS = [("all", 11, 1, 6), ("nsubj", 3, 1, 2), ("aux", 2, 2, 2), ("det", 2, 1, 1), ("advmod", 1, 1, 1),
             ("amod", 1, 1, 1), ("obj", 1, -3, 1), ("punct", 1, -1, 1)]  # words, best offset, what it finds


def tiny(*arguments, **settings):
    return succeeds("heads", "-m", gpt2(), *arguments, **settings)


def scores(*arguments, **settings):
    return json.loads(tiny("--json", *arguments, **settings))


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def row_in_json_of_each_head():
    content = scores(TEXT)
    assert content["model"] == "gpt2" and content["texts"] == 1, content
    assert [(head["layer"], head["head"]) for head in content["heads"]] == [
        (layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    for head in content["heads"]:
        assert list(head) == ["layer", "head", *COLUMNS]
        assert head["separators"] is None and head["next"] == 0, head
        assert 0 < head["entropy"] < math.log(content["tokens"]), head
        assert head["sink"] >= head["first"] > 0, head


def mean_of_what_look_shows():
    """Self and first, of the whole matrix of pieces."""
    names = [f"L{layer}H{head}" for layer in range(LAYERS) for head in range(HEADS)]
    look = json.loads(succeeds("look", "-m", gpt2(), "--pieces", "--special", "--json",
                               *(part for name in names for part in ["--head", name]), TEXT))
    for head, shown in zip(scores(TEXT)["heads"], look["heads"]):
        weights = shown["weights"]
        count = len(weights)
        assert abs(head["self"] - sum(weights[i][i] for i in range(count)) / count) < 1e-5
        assert abs(head["first"] - sum(row[0] for row in weights) / count) < 1e-5


def table_csv_and_json_agree():
    content = scores(TEXT)["heads"]
    table = [line.split() for line in tiny(TEXT).splitlines()]
    listed = rows(tiny("--csv", TEXT))
    assert table[0] == ["head", *COLUMNS] and len(table) == len(listed) + 1 == len(content) + 1
    for line, row, head in zip(table[1:], listed, content):
        assert line[0] == f"L{head['layer']}H{head['head']}" == f"L{row['layer']}H{row['head']}"
        for cell, name in zip(line[1:], COLUMNS):
            if head[name] is None:
                assert cell == "–" and row[name] == ""
            else:
                assert float(row[name]) == head[name] and abs(float(cell) - head[name]) <= 0.00051


def table_is_aligned():
    lines = tiny(TEXT).splitlines()
    assert len({len(line) for line in lines}) == 1, lines
    assert in_terminal("heads", "-m", gpt2(), TEXT).replace("\r\n", "\n") == "\n".join(lines) + "\n"


def sorted_by_a_column():
    for column in ["entropy", "induction"]:
        values = [head[column] for head in scores(TEXT, "--sort", column)["heads"]]
        assert values == sorted(values, reverse=True), values
        values = [head[column] for head in scores(TEXT, "--sort", f"-{column}")["heads"]]
        assert values == sorted(values), values
    # None is a number here: they stay as they are.
    assert scores(TEXT, "--sort", "separators") == scores(TEXT)


def one_layer_only():
    heads = scores(TEXT, "--layer", "1")["heads"]
    assert heads == scores(TEXT)["heads"][HEADS:], heads


def folder_of_texts():
    texts = {"b.txt": "way", "a.txt": TEXT + "\n", "c.md": "left out", "d.txt/e.txt": "left out too"}
    for name, text in texts.items():
        file(f"texts/{name}", text)
    folder = str(FOLDER / "texts")
    content = scores("-f", folder)
    alone = [scores(TEXT), scores("way")]
    assert content["texts"] == 2 and content["tokens"] == sum(one["tokens"] for one in alone)
    for n, head in enumerate(content["heads"]):
        mean = sum(one["heads"][n]["entropy"] * one["tokens"] for one in alone) / content["tokens"]
        assert abs(head["entropy"] - mean) < 1e-5
        sink = sum(one["heads"][n]["sink"] for one in alone) / 2
        assert abs(head["sink"] - sink) < 1e-5
    os.symlink("../texts/a.txt", FOLDER / "texts/z.txt")
    assert scores("-f", folder)["texts"] == 3


def file_and_standard_input():
    expected = tiny(TEXT)
    assert tiny("-f", file("text.txt", TEXT + "\n")) == expected
    assert tiny("-", stdin=TEXT.encode()) == expected
    assert tiny("-f", "-", stdin=TEXT.encode()) == expected


def long_texts():
    long = file("long/long.txt", "way " * POSITIONS)
    fails(1, ["long.txt", f"{POSITIONS} positions", "--truncate"], "heads", "-m", gpt2(), "-f", long)
    fails(1, ["long/long.txt", "--truncate"], "heads", "-m", gpt2(), "-f", str(FOLDER / "long"))
    assert scores("--truncate", "-f", long)["tokens"] == POSITIONS


def files_by_suffix():
    for suffix, option in [("csv", "--csv"), ("json", "--json"), ("txt", None)]:
        path = FOLDER / f"heads.{suffix}"
        assert tiny("-o", str(path), TEXT) == ""
        assert path.read_text() == tiny(*([option] if option else []), TEXT)
    path = FOLDER / "both.csv"
    assert json.loads(tiny("--json", "-o", str(path), TEXT)) == scores(TEXT)
    assert path.read_text() == tiny("--csv", TEXT)


def random_tokens_twice():
    content = scores("--repeat", "20")
    assert content["repeat"] == 20 and content["seed"] == 0 and content["tokens"] == 40, content
    assert content == scores("--repeat", "20", "--seed", "0") != scores("--repeat", "20", "-s", "1")
    assert tiny("--repeat", "32")
    fails(1, ["--repeat 33", "66 tokens", "64 positions"], "heads", "-m", gpt2(), "--repeat", "33")
    # 256 bytes and five merges, without <|endoftext|>.
    fails(1, ["--repeat is 300", "261 tokens"], "heads", "-m", gpt2(), "--repeat", "300")
    chat = json.loads(succeeds("heads", "-m", gpt2("chat", chat=True), "--json", "--repeat", "8"))
    assert chat["tokens"] == 16
    fails(1, ["--repeat is 263", "262 tokens"], "heads", "-m", gpt2("chat", chat=True), "--repeat", "263")


def relations_of_a_treebank():
    table = [line.split() for line in tiny("--eval", str(TREEBANK)).splitlines()]
    assert table[0] == ["relation", "words", "head", "direction", "found", "baseline", "offset"]
    content = scores("--eval", str(TREEBANK))
    assert (content["sentences"], content["words"]) == (5, 16)
    listed = rows(tiny("--eval", "-", "--csv", stdin=TREEBANK.read_bytes()))
    for line, relation, (name, words, offset, found) in zip(table[1:], content["relations"], RELATIONS, strict=True):
        assert line[:2] == [name, str(words)] and line[5:] == [f"{100 * found / words:.1f}%", f"{offset:+d}"], line
        assert (relation["relation"], relation["words"]) == (name, words)
        baseline = relation["baseline"]
        assert (baseline["offset"], baseline["correct"]) == (offset, found)
        assert abs(baseline["accuracy"] - found / words) < 1e-6
        heads, best = relation["heads"], relation["best"]
        assert len(heads) == LAYERS * HEADS * 2 and best in heads
        assert best["correct"] == max(head["correct"] for head in heads)
        assert line[2] == f"L{best['layer']}H{best['head']}" and line[4] == f"{100 * best['correct'] / words:.1f}%"
        own = [row for row in listed if row["relation"] == name]
        assert [int(row["correct"]) for row in own] == [head["correct"] for head in heads]
        assert [row["direction"] for row in own] == [head["direction"] for head in heads]
        assert {row["baseline_offset"] for row in own} == {str(offset)}
    layer = scores("--eval", str(TREEBANK), "--layer", "1")["relations"]
    assert all(one["heads"] == whole["heads"][2 * HEADS:] for one, whole in zip(layer, content["relations"]))


def causal_model_finds_words_before_only():
    """In "Do n't run", whose words hang on the last one."""
    lines = TREEBANK.read_text().split("\n\n")[1]
    content = scores("--eval", file("one.conllu", lines))
    for head in content["relations"][0]["heads"]:
        assert head["direction"] == "head-to-dependent" or head["correct"] == 0, head


def relations_of_the_default_model():
    """L0H2 looks at the word before, as the test below has it: it finds heads right before, and its transpose those
    right behind. What it makes of first and last words, which have none there, is its own affair."""
    content = json.loads(succeeds("heads", "-m", str(model()), "--json", "--eval", str(TREEBANK)))
    found = {relation["relation"]: {(head["layer"], head["head"], head["direction"]): head["correct"]
                                    for head in relation["heads"]} for relation in content["relations"]}
    for name, expected in {"nsubj": 2, "aux": 1, "det": 1, "advmod": 1, "amod": 1}.items():
        assert found[name][0, 2, "head-to-dependent"] == expected, name
    for name, expected in {"advmod": 0, "amod": 0, "obj": 0, "punct": 1}.items():
        assert found[name][0, 2, "dependent-to-head"] == expected, name


def previous_token_head_of_the_default_model():
    heads = json.loads(succeeds("heads", "-m", str(model()), "--json", "--sort", "previous", SENTENCE))["heads"]
    assert (heads[0]["layer"], heads[0]["head"]) == (0, 2) and heads[0]["previous"] > 0.99, heads[0]
    assert all(head["separators"] > 0 or head["head"] == 2 for head in heads)


def induction_head_of_the_generator():
    heads = json.loads(succeeds("heads", "-m", generator(), "--json", "--repeat", "50", "--sort", "induction"))["heads"]
    assert heads[0]["induction"] > 0.8 and heads[0]["layer"] > 10, heads[0]
    assert heads[-1]["induction"] < 0.01


def wrong_command_lines():
    text = ["-m", gpt2(), TEXT]
    for parts, *arguments in [
        ("a text is missing", "-m", gpt2()),
        ("one text is expected", *text, "another"),
        (["--sort is 'sinks'", "sink"], *text, "--sort", "sinks"),
        ("--sort is '-'", *text, "--sort", "-"),
        ("--layer is '-1'", *text, "--layer", "-1"),
        ("--csv and --json", *text, "--csv", "--json"),
        ([".csv, .json or .txt", "heads.svg"], *text, "-o", "heads.svg"),
        ("--repeat is '0'", "--repeat", "0"),
        ("--repeat and a text", *text, "--repeat", "3"),
        ("--eval and a text", *text, "--eval", str(TREEBANK)),
        ("--eval and a text", "--eval", str(TREEBANK), "-f", "a.txt"),
        ("--eval and --repeat", "--eval", str(TREEBANK), "--repeat", "3"),
        ("--eval is empty", "--eval", ""),
        ("--sort is for scores", "--eval", str(TREEBANK), "--sort", "sink"),
        ("--truncate cuts texts", "--eval", str(TREEBANK), "--truncate"),
        ("--truncate cuts texts", "--repeat", "3", "--truncate"),
        ("-s is the seed of --repeat", *text, "-s", "3"),
    ]:
        fails(2, parts, "heads", *arguments)


def what_cannot_be_used_is_refused():
    (FOLDER / "empty").mkdir()
    fails(1, ["empty", ".txt"], "heads", "-m", gpt2(), "-f", str(FOLDER / "empty"))
    fails(1, ["nothing.txt", "no such file"], "heads", "-m", gpt2(), "-f", str(FOLDER / "nothing.txt"))
    fails(1, ["blank/blank.txt", "empty"], "heads", "-m", gpt2(), "-f", str(file("blank/blank.txt", "")))
    fails(1, ["bytes.txt", "byte 1", "UTF-8"], "heads", "-m", gpt2(), "-f", file("bytes.txt", b"a\xff"))
    fails(1, ["2 layers", "layer 2"], "heads", "-m", gpt2(), "--layer", "2", TEXT)
    fails(1, "nowhere", "heads", "-m", gpt2(), "-o", str(FOLDER / "nowhere/heads.csv"), TEXT)
    line = "1\t{}\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n"
    long = line.format("a") + "\n" + line.format("y" * POSITIONS)
    fails(1, ["long.conllu: line 4", "66 tokens", "64 positions"], "heads", "-m", gpt2(), "--eval",
          file("long.conllu", long))
    fails(1, ["bytes.conllu: line 1", "UTF-8"], "heads", "-m", gpt2(), "--eval",
          file("bytes.conllu", line.encode().replace(b"{}", b"\xff")))
    fails(1, ["bad.conllu: line 2", "expected 2"], "heads", "-m", gpt2(), "--eval",
          file("bad.conllu", line.format("a").replace("\n2", "\n3")))
    fails(1, ["roots.conllu", "depends on another"], "heads", "-m", gpt2(), "--eval",
          file("roots.conllu", line.format("a").split("\n")[0]))
    fails(1, ["standard input: line 1"], "heads", "-m", gpt2(), "--eval", "-", stdin=b"x\n")


tap.run([
    row_in_json_of_each_head,
    mean_of_what_look_shows,
    table_csv_and_json_agree,
    table_is_aligned,
    sorted_by_a_column,
    one_layer_only,
    folder_of_texts,
    file_and_standard_input,
    long_texts,
    files_by_suffix,
    random_tokens_twice,
    relations_of_a_treebank,
    causal_model_finds_words_before_only,
    relations_of_the_default_model,
    previous_token_head_of_the_default_model,
    induction_head_of_the_generator,
    wrong_command_lines,
    what_cannot_be_used_is_refused,
])
