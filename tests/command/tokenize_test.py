"""attn tokenize."""
import golden
from tool import fails, file, model, succeeds, tap


def tokenize(*arguments, **settings):
    return succeeds("tokenize", "-m", str(model()), *arguments, **settings)


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
    a_full_disk_is_told,
])
