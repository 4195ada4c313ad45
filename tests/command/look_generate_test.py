"""attn look --generate: a text, and what the model writes behind it, looked at together."""
import json

from tiny_gpt2 import PIECES, POSITIONS, gpt2, shown
from tool import FOLDER, ROOT, SENTENCE, fails, generator, succeeds, tap


def written(model, count, text):
    """What attn generate writes: the ids, and the text."""
    found = json.loads(succeeds("generate", "-m", model, "--temp", "0", "-n", str(count), "--json", text))
    return found["tokens"], found["text"]


def look_json(model, *arguments):
    return json.loads(succeeds("look", "-m", model, "--json", *arguments))


def the_tokens_are_those_of_generate():
    prompt = look_json(gpt2(), "--pieces", SENTENCE)["words"]
    for count in [1, 7]:
        ids, _ = written(gpt2(), count, SENTENCE)
        found = look_json(gpt2(), "--pieces", "--generate", str(count), SENTENCE)
        assert found["words"] == prompt + [shown(PIECES[number]) for number in ids] and len(ids) == count
        [head] = found["heads"]
        assert all((weight > 0) == (column <= row)
                   for row, weights in enumerate(head["weights"]) for column, weight in enumerate(weights))
        assert all(abs(sum(weights) - 1) < 1e-5 for weights in head["weights"])


def the_prompt_looks_as_it_did():
    plain = look_json(gpt2(), "--head", "L1H2", SENTENCE)
    longer = look_json(gpt2(), "--head", "L1H2", "--generate", "5", SENTENCE)
    count = len(plain["words"])
    assert longer["words"][:count] == plain["words"] and len(longer["words"]) > count
    assert longer["text"].startswith(SENTENCE) and len(longer["text"]) > len(SENTENCE)
    for before, after in zip(plain["heads"][0]["weights"], longer["heads"][0]["weights"]):
        assert all(abs(a - b) < 1e-6 for a, b in zip(before, after))


def a_real_model_writes_words():
    prompt = "The capital of France is"
    _, text = written(generator(), 8, prompt)
    found = look_json(generator(), "--generate", "8", prompt)
    assert found["text"] == prompt + text
    assert found["words"][:5] == prompt.split() and "Paris" in found["words"]
    assert succeeds("look", "-m", generator(), "--generate", "8", "--from", "Paris", "--top", "1", prompt).startswith("The ")


def the_positions_are_the_end():
    assert len(look_json(gpt2(), "--pieces", "--generate", "99", "x" * (POSITIONS - 3))["words"]) == POSITIONS
    fails(1, ["64 tokens", "64 positions", "no room to write"], "look", "-m", gpt2(), "--generate", "1", "x" * POSITIONS)


def pictures_and_changes_are_of_both():
    path = FOLDER / "written.svg"
    succeeds("look", "-m", gpt2(), "--generate", "3", "-o", str(path), SENTENCE)
    assert path.stat().st_size > 200
    plain = look_json(gpt2(), "--ablate", "L0H1", SENTENCE)
    longer = look_json(gpt2(), "--ablate", "L0H1", "--generate", "3", SENTENCE)
    assert longer["text"].startswith(SENTENCE) and longer["places"] != plain["places"]


def what_cannot_write_is_refused():
    masked = str(ROOT / "tests" / "data" / "models" / "masked_words")
    fails(1, ["a BERT, which writes no text", "--generate"], "look", "-m", masked, "--generate", "2", "The robot")
    fails(2, ["--generate and --pair exclude each other"], "look", "-m", gpt2(), "--generate", "2", "--pair", "a", "b")
    for number in ["0", "-1", "x"]:
        fails(2, ["--generate", number], "look", "-m", gpt2(), "--generate", number, "The robot")


tap.run([
    the_tokens_are_those_of_generate,
    the_prompt_looks_as_it_did,
    a_real_model_writes_words,
    the_positions_are_the_end,
    pictures_and_changes_are_of_both,
    what_cannot_write_is_refused,
])
