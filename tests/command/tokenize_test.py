"""attn tokenize."""
import json

import golden
from tool import FOLDER, ROOT, fails, file, model, succeeds, tap


def tokenize(*arguments, **settings):
    return succeeds("tokenize", "-m", str(model()), *arguments, **settings)


def byte_folder():
    """A folder with nothing but a tokenizer of byte-level BPE."""
    folder = FOLDER / "bytes"
    folder.mkdir(exist_ok=True)
    data = ROOT / "tests/data/golden/tokenizer_bytes.json"
    (folder / "tokenizer.json").write_bytes(data.read_bytes())
    return folder


def tokenize_bytes(*arguments, **settings):
    return succeeds("tokenize", "-m", str(byte_folder()), *arguments, **settings)


def ids_are_those_of_the_reference():
    for text in golden.TEXTS:
        pair = ["--pair", text["pair"]] if text["pair"] else []
        ids = [int(word) for word in tokenize("--ids", *pair, "--", text["text"]).split()]
        if golden.is_cut(text):
            ids[511:] = ids[-1:]
        assert ids == text["ids"], text["text"][:60]


def a_line_a_token():
    assert tokenize("The screwdriver was heavy.").splitlines() == [
        "101\t[CLS]\t-",
        "1996\tthe\t0-3",
        "11224\tscrew\t4-9",
        "23663\t##drive\t9-14",
        "2099\t##r\t14-15",
        "2001\twas\t16-19",
        "3082\theavy\t20-25",
        "1012\t.\t25-26",
        "102\t[SEP]\t-",
    ]


def places_count_bytes():
    lines = [line.split("\t") for line in tokenize("Où? 東 é").splitlines()]
    places = [line[2] for line in lines]
    assert places == ["-", "0-3", "3-4", "5-8", "9-11", "-"], lines


def a_pair_has_places_of_its_own():
    lines = [line.split("\t") for line in tokenize("It rained.", "--pair", "Why wet?").splitlines()]
    pieces = [line[1] for line in lines]
    assert pieces == ["[CLS]", "it", "rained", ".", "[SEP]", "why", "wet", "?", "[SEP]"]
    assert [line[2] for line in lines] == ["-", "0-2", "3-9", "9-10", "-", "0-3", "4-7", "7-8", "-"]


def an_empty_text_has_two_tokens():
    expected = "101\t[CLS]\t-\n102\t[SEP]\t-\n"
    assert tokenize("") == expected == tokenize(" ") == tokenize("-", stdin=b"") == tokenize("-", stdin=b"\n")
    assert tokenize("--ids", "") == "101 102\n"


def every_line_is_a_text():
    path = file("lines.txt", "one\r\n\r\nthree\n")
    assert tokenize("--ids", "-f", path) == "101 2028 102\n101 102\n101 2093 102\n"
    assert tokenize("--ids", "one", "", "three") == tokenize("--ids", "-f", path)
    blocks = tokenize("-f", path).split("\n\n")
    assert len(blocks) == 3 and blocks[2] == "101\t[CLS]\t-\n2093\tthree\t0-5\n102\t[SEP]\t-\n"


def special_spellings_are_tokens_unless_plain():
    assert tokenize("--ids", "a [MASK].") == "101 1037 103 1012 102\n"
    lines = [line.split("\t") for line in tokenize("a [MASK].").splitlines()]
    assert lines[2] == ["103", "[MASK]", "2-8"]
    pieces = [line.split("\t")[1] for line in tokenize("--plain", "a [MASK].").splitlines()]
    assert pieces == ["[CLS]", "a", "[", "mask", "]", ".", "[SEP]"]


def a_long_text_is_no_error():
    assert len(tokenize("--ids", "word " * 3000).split()) == 3002


def needs_the_tokenizer_alone():
    from tool import damaged_model
    folder = damaged_model("tokenizer-alone", config__json=None, model__safetensors=None)
    assert succeeds("tokenize", "--ids", "-m", folder, "one") == "101 2028 102\n"


def ids_of_bytes_are_those_of_the_reference():
    file_of_answers = ROOT / "tests/data/golden/tokenizer_bytes_settings.json"
    texts = json.loads(file_of_answers.read_text())["groups"][0]["texts"]
    for text in [t for t in texts if "\0" not in t["text"]]:
        pair = ["--pair", text["pair"]] if "pair" in text else []
        plain = ["--plain"] if text.get("plain") else []
        ids = tokenize_bytes("--ids", *pair, *plain, "--", text["text"]).split()
        assert [int(i) for i in ids] == [t[0] for t in text["tokens"]], text["text"]


def pieces_of_bytes_are_spelled_as_in_the_vocabulary():
    lines = [line.split("\t") for line in tokenize_bytes(" in é\n<|endoftext|>").splitlines()]
    assert "".join(line[1] for line in lines) == "\u0120in\u0120\u00c3\u00a9\u010a<|endoftext|>", lines
    # A piece that ends inside a character stands at the whole of it.
    assert [line[2] for line in lines] == ["0-1", "1-3", "3-6", "4-6", "6-7", "7-20"], lines
    assert tokenize_bytes("") == "" and tokenize_bytes("--ids", "") == "\n"


def vocabulary_and_merges_will_do():
    description = json.loads((byte_folder() / "tokenizer.json").read_text())
    folder = FOLDER / "merges"
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(description["model"]["vocab"]))
    lines = [" ".join(merge) + "\n" for merge in description["model"]["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(lines))
    text = "It's in the \u00e9tude 123, isn't it?<|endoftext|>"
    assert succeeds("tokenize", "-m", str(folder), text) == tokenize_bytes(text)
    (folder / "merges.txt").unlink()
    fails(1, [str(folder), "merges.txt"], "tokenize", "-m", str(folder), text)


def what_is_not_implemented_is_refused_by_name():
    description = json.loads((byte_folder() / "tokenizer.json").read_text())
    description["pre_tokenizer"] = {"type": "Metaspace"}
    folder = FOLDER / "metaspace"
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(description))
    fails(1, [str(folder), "pre_tokenizer Metaspace is not implemented"], "tokenize", "-m", str(folder), "a")


def a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        fails(1, ["standard output", "No space left"], "tokenize", "-m", str(model()), "a text", stdout=full)


tap.run([
    ids_are_those_of_the_reference,
    a_line_a_token,
    places_count_bytes,
    a_pair_has_places_of_its_own,
    an_empty_text_has_two_tokens,
    every_line_is_a_text,
    special_spellings_are_tokens_unless_plain,
    a_long_text_is_no_error,
    needs_the_tokenizer_alone,
    ids_of_bytes_are_those_of_the_reference,
    pieces_of_bytes_are_spelled_as_in_the_vocabulary,
    vocabulary_and_merges_will_do,
    what_is_not_implemented_is_refused_by_name,
    a_full_disk_is_told,
])
