"""attn look --measure, and what its options exclude."""
import json

from tool import FOLDER, SENTENCE, fails, generator, model, succeeds, tap

WORDS = SENTENCE[:-1].split() + ["."]
MEASURES = {"norm": "norm of what the key adds", "rollout": "attention rollout", "grad": "gradient × attention"}


def look(*arguments):
    return succeeds("look", "-m", str(model()), SENTENCE, *arguments)


def ranking(text):
    """The line that says what the numbers are, and the words with them."""
    said, *lines = text.splitlines()
    return said, [(line.split()[0], float(line.split()[1])) for line in lines]


def matrices(*arguments):
    return [head["weights"] for head in json.loads(look("--json", *arguments))["heads"]]


def what_screwdriver_adds_to_it():
    """The numbers of the norm's authors' definition, computed elsewhere."""
    said, words = ranking(look("--measure", "norm", "--layer", "5", "--from", "it", "--top", "3"))
    assert said == "norm of what the key adds, as a share of the row", said
    assert words == [("screwdriver", 0.399), ("robot", 0.242), ("heavy", 0.121)], words


def all_measures_say_what_they_are():
    for name, title in MEASURES.items():
        said, words = ranking(look("--measure", name, "--from", "it"))
        assert said == f"{title}, as a share of the row" and len(words) == 5, said
        said, words = ranking(look("--measure", name, "--from", "it", "--renormalize", "--top", "99"))
        assert said.startswith(f"{title}, as a share of the row; renormalized: "), said
        assert abs(sum(weight for _, weight in words) - 1) < 0.01
        content = json.loads(look("--measure", name, "--json"))
        assert content["measure"] == title and content["renormalized"] is False
    assert json.loads(look("--json"))["measure"] is None
    assert look("--measure", "weights") == look()


def shares_of_rows_sum_to_one():
    for name in MEASURES:
        for unit in [], ["--pieces"]:
            for weights in matrices("--measure", name, "--special", "--layer", "2", *unit):
                for row in weights:
                    assert abs(sum(row) - 1) <= 1e-5, (name, sum(row))
        [weights] = matrices("--measure", name, "--layer", "2")
        assert all(0 < sum(row) < 1 for row in weights)


def rollout_of_all_is_that_of_the_last_layer():
    assert matrices("--measure", "rollout") == matrices("--measure", "rollout", "--layer", "5")
    [first] = matrices("--measure", "rollout", "--layer", "0", "--special")
    [mean] = matrices("--layer", "0", "--special")
    for i, (rolled, weights) in enumerate(zip(first, mean, strict=True)):
        for j, (a, b) in enumerate(zip(rolled, weights, strict=True)):
            assert abs(a - (b + (i == j)) / 2) <= 1e-5, (i, j, a, b)


def one_head_adds_its_weight_times_its_vector():
    """Rows of one head differ in weights alone, so that ratios of norms to weights are the keys'."""
    arguments = ["--head", "L3H2", "--pieces", "--special"]
    [norms], [weights] = matrices("--measure", "norm", *arguments), matrices(*arguments)
    lengths = [[a / b for a, b in zip(x, y)] for x, y in zip(norms, weights)]
    for row in lengths[1:]:
        scale = row[0] / lengths[0][0]
        for a, b in zip(row, lengths[0]):
            assert abs(a / (b * scale) - 1) <= 1e-3


def a_causal_model_has_them_too():
    text = "The robot fell because it was heavy."
    for name in MEASURES:
        content = json.loads(succeeds("look", "-m", generator(), "--json", "--measure", name, text))
        for i, row in enumerate(content["heads"][0]["weights"]):
            assert all(weight == 0 for weight in row[i + 1:]), (name, row)
            # A row whose gradients are all negative is empty.
            assert abs(sum(row) - 1) <= 1e-5 or (name == "grad" and sum(row) == 0), (name, row)


def pictures_say_the_measure():
    for name, title in MEASURES.items():
        path = FOLDER / f"{name}.svg"
        look("--measure", name, "-o", str(path))
        assert title in path.read_text(), name


def what_excludes_what():
    text = ["look", "-m", str(model()), SENTENCE]
    fails(2, ["measure is 'size'", "weights, norm, rollout or grad"], *text, "--measure", "size")
    fails(2, ["--head", "rollout", "--layer"], *text, "--measure", "rollout", "--head", "L0H0")
    for change in ["--ablate", "L4H7"], ["--ablate", "L4"], ["--cut", "it:robot"]:
        fails(2, [change[0], "grad"], *text, "--measure", "grad", *change, "-o", "x.svg")
        for other in ["--from", "it"], ["--self"], ["--renormalize"], ["--measure", "norm"]:
            fails(2, [change[0], other[0], "-o"], *text, *change, *other)
    for wrong in "4", "L", "H7", "L4H", "L4H7H", "L4,L5", "":
        fails(2, ["--ablate", "L4H7 or L4"], *text, "--ablate", wrong)
    for wrong in "it", "it:", ":robot", ":", "":
        fails(2, ["--cut", "it:robot"], *text, "--cut", wrong)


def a_change_is_in_the_picture():
    plain, cut = FOLDER / "plain.json", FOLDER / "cut.json"
    look("-o", str(plain))
    assert look("--cut", "it:robot", "-o", str(cut)) == ""
    before, after = (json.loads(path.read_text())["heads"][0]["weights"] for path in (plain, cut))
    it, robot = WORDS.index("it"), WORDS.index("robot")
    assert before[it][robot] > 0.05 and after[it][robot] == 0
    assert sum(abs(a - b) for x, y in zip(before, after) for a, b in zip(x, y)) > 0.05


def a_written_text_is_looked_at():
    """The model's own tokens, which the tokenizer would not split alike out of the whole text."""
    text = "The capital of France is"
    look = ["look", "-m", generator(), text]
    content = json.loads(succeeds(*look, "--generate", "6", "--json", "--pieces"))
    plain = json.loads(succeeds(*look, "--json", "--pieces"))
    written = succeeds("generate", "-m", generator(), "-n", "6", "--temp", "0", text)
    assert content["text"].startswith(text) and content["text"][len(text):].strip() in written
    assert len(content["words"]) == len(plain["words"]) + 6
    assert content["words"][:len(plain["words"])] == plain["words"]
    for a, b in zip(content["heads"][0]["weights"], plain["heads"][0]["weights"]):
        assert all(abs(x - y) <= 1e-5 for x, y in zip(a, b))
    assert "Paris" in succeeds(*look, "--generate", "6", "--from", "Paris", "--self")
    fails(1, ["BERT", "--generate"], "look", "-m", str(model()), "--generate", "3", text)
    fails(2, ["--generate", "--pair"], *look, "--generate", "3", "--pair", "It is.")
    fails(2, "--generate", *look, "--generate", "0")


tap.run([
    what_screwdriver_adds_to_it,
    all_measures_say_what_they_are,
    shares_of_rows_sum_to_one,
    rollout_of_all_is_that_of_the_last_layer,
    one_head_adds_its_weight_times_its_vector,
    a_causal_model_has_them_too,
    pictures_say_the_measure,
    what_excludes_what,
    a_change_is_in_the_picture,
    a_written_text_is_looked_at,
])
