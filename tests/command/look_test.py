"""attn look on standard output: lines and JSON."""
import json
import re

import golden
from tool import SENTENCE, fails, file, in_terminal, model, succeeds, tap

WORDS = SENTENCE[:-1].split() + ["."]


def look(*arguments, **settings):
    return succeeds("look", "-m", str(model()), *arguments, **settings)


def look_json(*arguments, **settings):
    return json.loads(look("--json", *arguments, **settings))


def parse(text):
    """Lines as (indent, word, weight, bar), headers as strings."""
    lines = []
    for line in text.splitlines():
        found = re.fullmatch(r"( *)(\S.*?) +([01]\.\d{3})(?:  (▇+))?", line)
        lines.append((len(found[1]), found[2], float(found[3]), len(found[4] or "")) if found else line)
    return lines


def ranking(text):
    return [(word, weight) for _, word, weight, _ in parse(text)]


def close(a, b, tolerance=1e-6):
    return abs(a - b) <= tolerance


def the_robot_picked_up_the_screwdriver():
    best = [("screwdriver", 0.119), ("heavy", 0.090), ("because", 0.081), ("robot", 0.073), ("was", 0.069)]
    text = look("--from", "it", SENTENCE)
    assert ranking(text) == best, text
    assert re.match(r"screwdriver  0\.119  ▇+\nheavy        0\.090  ▇+\n", text), text
    assert ranking(look("--from", "IT", SENTENCE)) == best


def bars_are_as_long_as_weights():
    lines = parse(look("--from", "it", SENTENCE))
    longest = lines[0][3]
    assert longest >= 10
    for _, _, weight, bar in lines:
        assert abs(bar - longest * weight / lines[0][2]) <= 1, lines


def each_word_has_its_block():
    lines = parse(look(SENTENCE))
    assert [line for line in lines if isinstance(line, str)] == WORDS
    assert len(lines) == len(WORDS) * 6 and all(line[0] == 2 for line in lines if not isinstance(line, str))


def lines_rank_what_json_holds():
    content = look_json(SENTENCE)
    assert content["words"] == WORDS and content["text"] == SENTENCE and content["pair"] is None
    assert content["model"] == model().name
    [head] = content["heads"]
    assert head["layer"] is None and head["head"] is None
    expected = []
    for row, (word, weights) in enumerate(zip(WORDS, head["weights"])):
        order = sorted((-weight, column) for column, weight in enumerate(weights) if column != row)
        expected += [word] + [(WORDS[column], -weight) for weight, column in order[:5]]
    for line, wanted in zip(parse(look(SENTENCE)), expected, strict=True):
        if isinstance(wanted, str):
            assert line == wanted
        else:
            assert line[1] == wanted[0] and close(line[2], wanted[1], 0.00051), (line, wanted)


def rows_sum_to_one_with_special_tokens():
    content = look_json("--special", SENTENCE)
    assert content["words"] == ["[CLS]", *WORDS, "[SEP]"]
    for row in content["heads"][0]["weights"]:
        assert close(sum(row), 1, 1e-5), sum(row)
    without = look_json(SENTENCE)["heads"][0]["weights"]
    assert all(sum(row) < 0.95 for row in without)
    for row, whole in zip(without, content["heads"][0]["weights"][1:-1], strict=True):
        assert all(close(a, b) for a, b in zip(row, whole[1:-1], strict=True))


def weights_are_those_of_pytorch():
    checked = 0
    for text in golden.TEXTS:
        rows = text["attention"]
        if not text["text"] or golden.is_cut(text):
            continue
        heads = [part for row in rows for part in ("--head", f"L{row['layer']}H{row['head']}")]
        pair = ["--pair", text["pair"]] if text["pair"] else []
        content = look_json("--pieces", "--special", *heads, *pair, "--", text["text"])
        assert len(content["words"]) == len(text["ids"]) and content["pair"] == text["pair"]
        for row, head in zip(rows, content["heads"], strict=True):
            assert (head["layer"], head["head"]) == (row["layer"], row["head"])
            wanted = golden.floats(row["begin"], len(text["ids"]))
            for a, b in zip(head["weights"][row["query"]], wanted, strict=True):
                assert close(a, b, 1e-5), (text["text"][:40], row)
                checked += 1
    assert checked > 1000


def mean_is_the_mean_of_heads():
    layers, heads = golden.CONTENT["layers"], golden.CONTENT["heads"]
    every = [part for layer in range(layers) for head in range(heads)
             for part in ("--head", f"L{layer}H{head}")]
    parts = [head["weights"] for head in look_json(*every, SENTENCE)["heads"]]
    size = range(len(WORDS))
    for arguments, chosen in [([], parts), (["--layer", "0"], parts[:heads]), (["--layer", "5"], parts[-heads:])]:
        [mean] = look_json(*arguments, SENTENCE)["heads"]
        assert mean["head"] is None and mean["layer"] == (int(arguments[1]) if arguments else None)
        for i in size:
            for j in size:
                assert close(mean["weights"][i][j], sum(part[i][j] for part in chosen) / len(chosen), 1e-6)


def words_merge_their_pieces():
    pieces = look_json("--pieces", SENTENCE)
    assert pieces["words"] == ["the", "robot", "picked", "up", "the", "screw", "##drive", "##r", "because",
                               "it", "was", "heavy", "."]
    groups = [[i] for i in range(5)] + [[5, 6, 7]] + [[i] for i in range(8, 13)]
    parts, words = pieces["heads"][0]["weights"], look_json(SENTENCE)["heads"][0]["weights"]
    for query, row in zip(groups, words, strict=True):
        for key, weight in zip(groups, row, strict=True):
            assert close(weight, sum(parts[i][j] for i in query for j in key) / len(query), 1e-6)


def several_heads_are_blocks_in_order():
    lines = parse(look("--from", "it", "--head", "L4H7", "--head", "l0h11", "--top", "2", SENTENCE))
    titles = [line for line in lines if isinstance(line, str) and line]
    assert titles == ["L4H7", "L0H11"], lines
    assert len(lines) == 7 and lines[3] == ""
    alone = ranking(look("--from", "it", "--head", "L0H11", "--top", "2", SENTENCE))
    assert [line[1:3] for line in lines[5:]] == alone


def layers_can_be_repeated():
    heads = look_json("--layer", "2", "--layer", "0", SENTENCE)["heads"]
    assert [(head["layer"], head["head"]) for head in heads] == [(2, None), (0, None)]


def top_limits_the_ranking():
    assert len(ranking(look("--from", "it", "--top", "1", SENTENCE))) == 1
    assert len(ranking(look("--from", "it", "--top", "1000", SENTENCE))) == len(WORDS) - 1


def self_keeps_the_word():
    row = dict(ranking(look("--from", "it", "--top", "99", "--self", SENTENCE)))
    assert len(ranking(look("--from", "it", "--top", "99", "--self", SENTENCE))) == len(WORDS)
    assert close(row["it"], look_json(SENTENCE)["heads"][0]["weights"][WORDS.index("it")][WORDS.index("it")],
                 0.00051)
    assert "it" not in dict(ranking(look("--from", "it", "--top", "99", SENTENCE)))


def special_tokens_can_be_ranked():
    words = [word for word, _ in ranking(look("--from", "it", "--special", "--top", "99", SENTENCE))]
    assert "[CLS]" in words and "[SEP]" in words
    assert len(ranking(look("--from", "[cls]", "--special", SENTENCE))) == 5


def one_word_has_nothing_to_rank():
    assert look("Hello") == "Hello\n" == look("Hello", "--from", "hello")


def renormalize_makes_rows_one_and_says_so():
    said, rows = look("--from", "it", "--top", "99", "--renormalize", SENTENCE).split("\n", 1)
    assert said == "renormalized: each row sums to 1 over the words that may stand in it", said
    total = sum(weight for _, weight in ranking(rows))
    assert close(total, 1, 0.006), total
    content = look_json("--renormalize", SENTENCE)
    assert content["renormalized"] is True and look_json(SENTENCE)["renormalized"] is False
    for row in content["heads"][0]["weights"]:
        assert close(sum(row), 1, 1e-5), sum(row)


def from_finds_words_in_any_case_and_place():
    text = "The cat saw the dog; THE end."
    rows = [line for line in parse(look("--from", "tHe", text)) if isinstance(line, str)]
    assert rows == ["The", "the", "THE"]
    weights = look_json(text)["heads"][0]["weights"]
    words = look_json(text)["words"]
    for number, row in [(1, 0), (2, 3), (3, 6)]:
        found = dict(ranking(look("--from", f"the#{number}", "--top", "99", text)))
        assert close(found["dog"], weights[row][words.index("dog")], 0.00051), number
    assert ranking(look("--from", "ÉTÉ", "L'été")) == ranking(look("--from", "e\u0301te\u0301", "L'été"))
    assert ranking(look("--from", "STRASSE", "Die Straße ist leer."))


def occurrences_count_through_text_and_pair():
    arguments = ["--pair", "Is it? It is.", "It rains."]
    rows = [line for line in parse(look("--from", "it", *arguments)) if isinstance(line, str)]
    assert rows == ["It", "it", "It"]
    assert look("--from", "it#3", *arguments) != look("--from", "it#2", *arguments)
    fails(1, ["it#4", "3 times", "1 to 3"], "look", "-m", str(model()), "--from", "it#4", *arguments)
    fails(1, ["it#0", "1 to 3"], "look", "-m", str(model()), "--from", "it#0", *arguments)


def from_finds_pieces():
    whole = parse(look("--pieces", "--from", "screwdriver", SENTENCE))
    assert [line for line in whole if isinstance(line, str)] == ["screw", "##drive", "##r"]
    assert len(ranking(look("--pieces", "--from", "##drive", SENTENCE))) == 5
    assert look("--from", "#", "a # sign") == look("--from", "##1", "a # sign")


def from_does_not_shorten_json():
    assert look("--json", "--from", "it", "--top", "1", SENTENCE) == look("--json", SENTENCE)


def words_are_as_the_text_writes_them():
    text = "Crème brûlée, naïve CAFÉ 東京 [MASK] 😂"
    assert look_json(text)["words"] == ["Crème", "brûlée", ",", "naïve", "CAFÉ", "東", "京", "[MASK]", "😂"]


def text_comes_from_a_file_or_standard_input():
    expected = look(SENTENCE)
    assert look("-", stdin=SENTENCE.encode()) == expected
    assert look("-", stdin=SENTENCE.encode() + b"\n") == expected
    assert look("-f", "-", stdin=SENTENCE.encode() + b"\r\n") == expected
    assert look("-f", file("sentence.txt", SENTENCE + "\n")) == expected
    content = look_json("-f", file("lines.txt", "One line.\nAnother one.\n"))
    assert content["text"] == "One line.\nAnother one." and len(content["words"]) == 6
    content = look_json("-", stdin=b"a\0b c")
    assert content["text"] == "a\0b c" and len(content["words"]) == 2


def options_stand_anywhere():
    expected = look("--from", "it", SENTENCE)
    assert look(SENTENCE, "--from", "it") == expected == look(SENTENCE, "--from=it", "-t", "1")
    assert look_json("--", "--json is an option")["words"][:2] == ["-", "-"]


def refuses_words_that_are_not_there():
    text = ["look", "-m", str(model()), SENTENCE]
    fails(1, ["--from", "'hammer'", "The, robot, picked", "heavy, ."], *text, "--from", "hammer")
    fails(1, ["'hammer#2'", "screwdriver"], *text, "--from", "hammer#2")
    fails(1, "'[CLS]'", *text, "--from", "[CLS]")
    fails(1, ["'##driver'", "pieces are: the, robot", "screw, ##drive, ##r"], *text, "--pieces",
          "--from", "##driver")
    fails(1, ["'absent'", "…"], *text[:3], " ".join(f"word{i}" for i in range(100)), "--from", "absent")


def refuses_heads_that_are_not_there():
    text = ["look", "-m", str(model()), SENTENCE]
    there = "6 layers of 12 heads, counted from 0"
    fails(1, [there, "no layer 6"], *text, "--layer", "6")
    fails(1, [there, "L6H0"], *text, "--head", "L6H0")
    fails(1, [there, "L0H12"], *text, "--head", "L0H12")
    fails(1, [there, "L0H12"], *text, "--head", "L0H0", "--head", "L0H12")


def refuses_texts_without_words():
    for text in ["", " ", "\t\n", "\u200b"]:
        fails(1, ["attn look: the text is empty", "word"], "look", "-m", str(model()), text)
    fails(1, "standard input is empty", "look", "-m", str(model()), "-")
    fails(1, "blank.txt is empty", "look", "-m", str(model()), "-f", file("blank.txt", "\n"))
    fails(1, "the pair is empty", "look", "-m", str(model()), "a", "--pair", "")


def refuses_texts_that_are_too_long():
    assert len(look_json("word " * 510)["words"]) == 510
    fails(1, ["600 tokens", "512 positions"], "look", "-m", str(model()), "word " * 598)
    fails(1, ["513 tokens", "512 positions"], "look", "-m", str(model()), "word " * 500, "--pair", "word " * 10)


def threads_do_not_change_results():
    assert look("-t", "2", SENTENCE) == look("-t", "1", SENTENCE)


def a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        for more in [[], ["--json"]]:
            fails(1, ["standard output", "No space left"], "look", "-m", str(model()), SENTENCE, *more,
                  stdout=full)


def colour_is_for_terminals():
    assert "\x1b[" in in_terminal("look", "-m", str(model()), SENTENCE)
    assert "\x1b[" in in_terminal("look", "-m", str(model()), SENTENCE, NO_COLOR="")
    for changes in [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}]:
        text = in_terminal("look", "-m", str(model()), SENTENCE, **changes)
        assert "\x1b" not in text and "screwdriver" in text, changes
    assert "\x1b" not in look(SENTENCE)


def a_text_does_not_steer_the_terminal():
    text = in_terminal("look", "-m", str(model()), "a \u202e b \x9b31m c", NO_COLOR="1")
    assert "\x9b" not in text and "\x1b" not in text


tap.run([
    the_robot_picked_up_the_screwdriver,
    bars_are_as_long_as_weights,
    each_word_has_its_block,
    lines_rank_what_json_holds,
    rows_sum_to_one_with_special_tokens,
    weights_are_those_of_pytorch,
    mean_is_the_mean_of_heads,
    words_merge_their_pieces,
    several_heads_are_blocks_in_order,
    layers_can_be_repeated,
    top_limits_the_ranking,
    self_keeps_the_word,
    special_tokens_can_be_ranked,
    one_word_has_nothing_to_rank,
    renormalize_makes_rows_one_and_says_so,
    from_finds_words_in_any_case_and_place,
    occurrences_count_through_text_and_pair,
    from_finds_pieces,
    from_does_not_shorten_json,
    words_are_as_the_text_writes_them,
    text_comes_from_a_file_or_standard_input,
    options_stand_anywhere,
    refuses_words_that_are_not_there,
    refuses_heads_that_are_not_there,
    refuses_texts_without_words,
    refuses_texts_that_are_too_long,
    threads_do_not_change_results,
    a_full_disk_is_told,
    colour_is_for_terminals,
    a_text_does_not_steer_the_terminal,
])
