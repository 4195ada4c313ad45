"""attn look --ablate and --cut: what Transformers tells of a changed model (tests/data/golden/what_if.json, made by
scripts/golden_what_if.py), and what is printed and drawn."""
import ast
import json
import math
import re
import struct

from tiny_gpt2 import gpt2
from tool import FOLDER, ROOT, SENTENCE, attn, fails, in_terminal, model, succeeds, tap

MASKED = ROOT / "tests" / "data" / "models" / "masked_words"
OPEN = "The robot [MASK] up the screwdriver."
TOKENS = ["[CLS]", "the", "robot", "[MASK]", "up", "the", "screw", "##driver", ".", "[SEP]"]
ROW = re.compile(r"  (.+?) +(\d\.\d{3}) +(\d\.\d{3})  ([ +−])(\d\.\d{3})")
# Changes of the golden file as they are written on a command line: what is ablated, the first cut, and the options.
CHANGES = [
    ([[0, 1]], None, ["--ablate", "L0H1"]),
    ([[1, -1], [2, 3]], None, ["--ablate", "L1", "--ablate", "l2h3"]),
    ([], [3], ["--cut", "[MASK]:robot"]),
    ([[2, 0]], [3], ["--ablate", "L2H0", "--cut", "[mask]:[CLS]", "--cut", "[MASK]:THE", "--cut", "[MASK]:robot", "--cut",
                     "[MASK]:up#1", "--cut", "[MASK]:screwdriver", "--cut", "[MASK]:."]),
]


def what_if(*arguments):
    return json.loads(succeeds("look", "--json", *arguments))


def golden(ablated, queries):
    for entry in json.loads((ROOT / "tests/data/golden/what_if.json").read_text()):
        cuts = entry["cuts"]
        if entry["model"] == "masked_words" and len(entry["ids"]) == len(TOKENS) and entry["ablated"] == ablated and \
                not entry["where"] and [cut["queries"] for cut in cuts] == ([queries] if queries else []):
            return entry
    raise AssertionError("no such change in the golden file")


def close(actual, expected, tolerance=1e-5):
    assert abs(actual - expected) <= tolerance, (actual, expected)


def changes_are_those_of_transformers():
    for ablated, queries, options in CHANGES:
        expected = golden(ablated, queries)
        found = what_if("-m", str(MASKED), "--special", "--pieces", "--top", "31", *options, OPEN)
        assert list(found) == ["model", "text", "pair", "change", "places", "embedding_distance", "words"]
        [place], [wanted] = found["places"], expected["places"]
        assert (place["place"], place["in_pair"], OPEN[place["begin"]:place["end"]]) == ("mask", False, "[MASK]")
        assert sorted(word["id"] for word in place["words"]) == list(range(31))
        for word in place["words"]:
            close(word["before"], wanted["before"][word["id"]])
            close(word["after"], wanted["after"][word["id"]])
        close(place["divergence"], wanted["divergence"])
        close(found["embedding_distance"], expected["embedding"])
        distances = [word["distance"] for word in found["words"]]
        assert distances == sorted(distances, reverse=True)
        assert sorted(word["word"] for word in found["words"]) == sorted(TOKENS)
        for distance, wanted in zip(distances, sorted(expected["tokens"], reverse=True)):
            close(distance, wanted)


def a_word_moves_as_the_mean_of_its_pieces():
    pieces = what_if("-m", str(MASKED), "--ablate", "L1", "--pieces", "--top", "99", OPEN)["words"]
    words = what_if("-m", str(MASKED), "--ablate", "L1", "--top", "99", OPEN)["words"]
    assert len(pieces) == 8 and len(words) == 7  # [CLS] and [SEP] are left out
    moves = {piece["word"]: piece["distance"] for piece in pieces}
    [screwdriver] = [word["distance"] for word in words if word["word"] == "screwdriver"]
    close(screwdriver, (moves["screw"] + moves["##driver"]) / 2, 1e-6)


def the_change_is_told():
    found = what_if("-m", str(MASKED), "--ablate", "L1H2", "--ablate", "L0", "--cut", "up:the#2", "--layer", "2", OPEN)
    assert found["change"] == {"ablated": ["L1H2", "L0"], "cut": [{"query": "up", "key": "the#2"}], "cut_in": ["L2"]}
    text = succeeds("look", "-m", str(MASKED), "--ablate", "L1H2", "--ablate", "L0", "--cut", "up:the#2", "--cut", "up:.",
                    "--head", "L2H0", "--head", "L2H1", OPEN)
    assert text.splitlines()[0] == ('what if L1H2 and L0 were not there, and "up" did not see "the#2" and "up" did not '
                                    'see "." in L2H0 and L2H1')


def lines_of_a_bert():
    lines = succeeds("look", "-m", str(MASKED), "--ablate", "L0", "--top", "3", OPEN).splitlines()
    found = what_if("-m", str(MASKED), "--ablate", "L0", "--top", "3", OPEN)
    assert lines[:2] == ["what if L0 were not there", ""]
    assert lines[2].split() == ["the", "word", "at", "[MASK]", "before", "after", "change"]
    for line, word in zip(lines[3:6], found["places"][0]["words"]):
        name, before, after, sign, change = ROW.fullmatch(line).groups()
        assert name == word["word"]
        close(float(before), word["before"], 0.00051)
        close(float(after), word["after"], 0.00051)
        difference = word["after"] - word["before"]
        assert sign == ("−" if difference < -0.0005 else "+" if difference >= 0.0005 else " ")
        close(float(change), abs(difference), 0.00051)
    assert lines[6] == f"  divergence {found['places'][0]['divergence']:.4f} nats"
    assert lines[8] == f"the embedding moves by {found['embedding_distance']:.4f} (1 − cos)"
    assert lines[9] == "the words that move most"
    for line, word in zip(lines[10:], found["words"]):
        assert line.split() == [word["word"], f"{word['distance']:.4f}"]
    assert len(lines) == 13
    two = succeeds("look", "-m", str(MASKED), "--ablate", "L0", "--top", "1", "[MASK] [MASK] .")
    assert "the word at [MASK] 1 " in two and "the word at [MASK] 2 " in two
    assert "\x1b[1mwhat if L0" in in_terminal("look", "-m", str(MASKED), "--ablate", "L0", OPEN)
    assert "\x1b" not in in_terminal("look", "-m", str(MASKED), "--ablate", "L0", OPEN, NO_COLOR="1")


def small_changes_are_told_from_nothing():
    options = ["-m", str(model()), "--cut", "it:robot", "--head", "L4H7", SENTENCE]
    found = what_if(*options)
    assert 0 < found["embedding_distance"] < 0.00005
    lines = succeeds("look", *options).splitlines()
    printed = [lines[2].split()[4], *(line.split()[-1] for line in lines[4:])]
    for text, number in zip(printed, [found["embedding_distance"], *(word["distance"] for word in found["words"])]):
        close(float(text), number, max(abs(number) / 15, 1e-12))


def a_causal_model_tells_the_next_word():
    found = what_if("-m", gpt2(), "--ablate", "L0H2", "--top", "262", SENTENCE)
    assert found["embedding_distance"] is None and found["words"] == []
    [place] = found["places"]
    assert list(place) == ["place", "words", "divergence"] and place["place"] == "next"
    for side in ["before", "after"]:
        close(sum(word[side] for word in place["words"]), 1)
    ranked = [max(word["before"], word["after"]) for word in place["words"]]
    assert ranked == sorted(ranked, reverse=True)
    divergence = math.fsum(word["before"] * math.log(word["before"] / word["after"]) for word in place["words"])
    close(place["divergence"], divergence)
    assert divergence > 0.01

    written = json.loads(succeeds("generate", "-m", gpt2(), "--temp", "0", "-n", "1", "--json", SENTENCE))
    best = max(place["words"], key=lambda word: word["before"])
    assert written["tokens"] == [best["id"]]
    close(math.exp(written["logprobs"][0]), best["before"])
    assert {" the", "a", "\n", "<|endoftext|>"} <= {word["word"] for word in place["words"]}


def lines_of_a_causal_model():
    text = succeeds("look", "-m", gpt2(), "--ablate", "L1", "--top", "262", SENTENCE)
    lines = text.splitlines()
    assert lines[0] == "what if L1 were not there" and lines[2].startswith("the next word")
    rows = [ROW.fullmatch(line) for line in lines[3:-1]]
    assert len(rows) == 262 and all(rows)
    names = [row[1] for row in rows]
    assert '" the"' in names and '"␣"' in names and '"↵"' in names and r'"\xFF"' in names
    assert lines[-1].startswith("  divergence ")
    assert len({len(line) for line in lines[2:-1]}) == 1, "columns are not even"


def unchanged_where_nothing_was_there():
    """In a causal model the first word sees itself alone, in a row of its own."""
    found = what_if("-m", gpt2(), "--cut", "The:The", "--head", "L1H0", SENTENCE)
    [place] = found["places"]
    assert place["divergence"] == 0 and all(word["before"] == word["after"] for word in place["words"])


def numbers_of(path):
    """The matrices of a file of NumPy's."""
    content = path.read_bytes()
    size = struct.unpack("<H", content[8:10])[0]
    shape = ast.literal_eval(content[10:10 + size].decode())["shape"]
    numbers = struct.unpack(f"<{math.prod(shape)}f", content[10 + size:])
    rows = [numbers[n:n + shape[-1]] for n in range(0, len(numbers), shape[-1])]
    return [rows[n:n + shape[-2]] for n in range(0, len(rows), shape[-2])]


def pictures_are_of_the_changed_model():
    """Of the first layer, whose input is not changed, all is known; pieces, since rows of words are means."""
    options = ["-m", gpt2(), "--head", "L0H1", "--head", "L1H3", "--pieces"]
    names = json.loads(succeeds("look", *options, "--json", SENTENCE))["words"]
    text = "".join(names)
    begins = [len("".join(names[:n])) for n in range(len(names))]
    [queries, keys] = [{n for n in range(len(names)) if text.index(word) <= begins[n] < text.index(word) + len(word)}
                       for word in [" it", " robot"]]
    path, plain = FOLDER / "cut.npy", FOLDER / "plain.npy"
    succeeds("look", *options, "-o", str(plain), SENTENCE)
    assert succeeds("look", *options, "-o", str(path), "--cut", "it:robot", SENTENCE) == ""
    first, changed = numbers_of(plain), numbers_of(path)
    for n in range(len(names)):
        if n not in queries:
            assert first[0][n] == changed[0][n]
            continue
        left = 1 - sum(first[0][n][key] for key in keys)
        assert left < 1 and all(after[n][key] == 0 for after in changed for key in keys)
        for key in set(range(len(names))) - keys:
            close(changed[0][n][key], first[0][n][key] / left, 1e-6)
    assert first[1] != changed[1] and len(queries) >= 2 and len(keys) >= 4


def pictures_say_what_is_changed():
    """And a page does not show how a weight is made: queries and keys alone no longer tell."""
    told = ' if L1H2 were not there, and "it" did not see "robot"'
    made = {}
    for suffix in ["json", "html", "svg"]:
        path = FOLDER / f"changed.{suffix}"
        succeeds("look", "-m", gpt2(), "--ablate", "L1H2", "--cut", "it:robot", "-o", str(path), SENTENCE)
        made[suffix] = path.read_text()
    assert json.loads(made["json"])["model"].endswith(told)
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', made["html"], re.DOTALL)[1])
    assert data["model"].endswith(told) and data["vectors"] is None and not data["vectorsLeftOut"], data["model"]
    assert re.search(r"<title>Attention in \S+ if L1H2 were not there", made["svg"])


def both_a_picture_and_json():
    path = FOLDER / "both.svg"
    found = what_if("-m", gpt2(), "-o", str(path), "--ablate", "L0", SENTENCE)
    assert found["change"]["ablated"] == ["L0"] and path.stat().st_size > 200


def a_colon_may_be_a_word():
    cuts = what_if("-m", gpt2(), "--cut", ":::", "--cut", "so::", "--cut", "::is", "is : so")["change"]["cut"]
    assert cuts == [{"query": ":", "key": ":"}, {"query": "so", "key": ":"}, {"query": ":", "key": "is"}], cuts


def a_model_without_the_head_says_so():
    text = succeeds("look", "-m", str(model()), "--ablate", "L5H3", "The robot [MASK] it.")
    assert "the model has no masked-word head" in text and "the embedding moves by 0.0" in text
    assert what_if("-m", str(model()), "--ablate", "L5H3", "The robot [MASK] it.")["places"] == []


def an_ablated_head_moves_the_embedding():
    one = what_if("-m", str(model()), "--ablate", "L4H7", SENTENCE)
    layer = what_if("-m", str(model()), "--ablate", "L4", SENTENCE)
    assert 0 < one["embedding_distance"] < layer["embedding_distance"] < 0.5
    assert len(one["words"]) == 5


def what_is_not_there_is_refused():
    masked = ["look", "-m", str(MASKED)]
    fails(1, ["3 layers of 4 heads", "there is no L3H0"], *masked, "--ablate", "L3H0", OPEN)
    fails(1, ["3 layers of 4 heads", "there is no layer 9"], *masked, "--ablate", "L9", OPEN)
    fails(1, ["--cut 'robots'", "not a word of the text", "The, robot, [MASK], up"], *masked, "--cut", "up:robots", OPEN)
    fails(1, ["--cut 'down'", "not a word of the text"], *masked, "--cut", "down:robot", OPEN)
    fails(1, ["--cut the#3", "2 times"], *masked, "--cut", "the#3:robot", OPEN)
    fails(1, ["nothing to cut: in a GPT-2"], "look", "-m", gpt2(), "--cut", "robot:it", SENTENCE)
    for cut in ["it", ":", "it:", ":it", ""]:
        fails(2, [f"--cut is '{cut}'", "it:robot"], *masked, "--cut", cut, OPEN)
    for head in ["H3", "L", "4", "L4H7x", ""]:
        fails(2, [f"--ablate is '{head}'", "L4H7"], *masked, "--ablate", head, OPEN)
    assert attn(*masked, "--ablate", "L0", "--from", "up", OPEN).status == 2


tap.run([
    changes_are_those_of_transformers,
    a_word_moves_as_the_mean_of_its_pieces,
    the_change_is_told,
    lines_of_a_bert,
    small_changes_are_told_from_nothing,
    a_causal_model_tells_the_next_word,
    lines_of_a_causal_model,
    unchanged_where_nothing_was_there,
    pictures_are_of_the_changed_model,
    pictures_say_what_is_changed,
    both_a_picture_and_json,
    a_colon_may_be_a_word,
    a_model_without_the_head_says_so,
    an_ablated_head_moves_the_embedding,
    what_is_not_there_is_refused,
])
