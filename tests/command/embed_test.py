"""attn embed."""
import json
import math

import golden
from tool import damaged_model, fails, file, in_terminal, model, succeeds, tap


def embed(*arguments, **settings):
    lines = succeeds("embed", "-m", str(model()), *arguments, **settings).splitlines()
    return [json.loads(line) for line in lines]


def vectors(*arguments, **settings):
    return [line["embedding"] for line in embed(*arguments, **settings)]


def norm(vector):
    return math.sqrt(sum(x * x for x in vector))


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm(a) / norm(b)


def same(a, b):
    return all(abs(x - y) <= 1e-5 for x, y in zip(a, b, strict=True))


def vectors_are_those_of_pytorch():
    texts = [text for text in golden.TEXTS if text["text"].strip() and not text["pair"]]
    lines = embed("--truncate", "--", *[text["text"] for text in texts])
    assert len(texts) > 10
    for text, line in zip(texts, lines, strict=True):
        assert list(line) == ["text", "embedding"] and line["text"] == text["text"]
        wanted = golden.floats(text["embedding"], golden.CONTENT["hidden_size"])
        assert cosine(line["embedding"], wanted) >= 0.999999, text["text"][:40]
        assert same(line["embedding"], wanted) and abs(norm(line["embedding"]) - 1) <= 1e-5


def lines_keep_their_order():
    texts = [f"Text {i} has {'many ' * (i * 7 % 23)}words." for i in range(50)]
    alone = vectors(texts[17])[0]
    for content in ["\n".join(texts), "\n".join(texts) + "\n", "\r\n".join(texts) + "\r\n"]:
        lines = embed("-f", file("texts.txt", content))
        assert [line["text"] for line in lines] == texts
        assert same(lines[17]["embedding"], alone)
    assert embed("-", stdin="\n".join(texts).encode()) == embed("-f", "-", stdin="\n".join(texts).encode())


def more_texts_than_a_window():
    texts = [f"number {i}" for i in range(1100)]
    lines = embed("-", stdin="\n".join(texts).encode())
    assert [line["text"] for line in lines] == texts
    for i in [0, 1023, 1024, 1099]:
        assert same(lines[i]["embedding"], vectors(texts[i])[0]), i


def pooling_and_length_can_be_chosen():
    text = "A robot picks up a screwdriver."
    [default], [mean] = vectors(text), vectors("--pooling", "mean", text)
    [cls], [raw] = vectors("--pooling", "cls", text), vectors("--no-normalize", text)
    assert default == mean and abs(norm(cls) - 1) <= 1e-5
    assert cosine(cls, mean) < 0.99 and abs(norm(raw) - 1) > 0.1 and cosine(raw, mean) > 0.999999


def a_folder_without_modules_means_mean_and_length_one():
    folder = damaged_model("no-modules", modules__json=None)
    text = "A robot picks up a screwdriver."
    assert json.loads(succeeds("embed", "-m", folder, text)) == embed(text)[0]


def progress_is_for_terminals():
    text = in_terminal("embed", "-m", str(model()), "one", "two")
    assert "0 of 2 texts" in text and text.index("of 2 texts") < text.index('{"text"'), text[:200]


def threads_do_not_change_the_meaning():
    texts = [f"Sentence number {i}" for i in range(20)]
    for one, two in zip(vectors("-t", "1", *texts), vectors("-t", "2", *texts), strict=True):
        assert same(one, two)


def refuses_empty_texts_before_any_output():
    run = ["embed", "-m", str(model())]
    fails(1, ["gap.txt: line 3 is empty"], *run, "-f", file("gap.txt", "one\ntwo\n\nfour\n"))
    fails(1, ["line 2 is empty"], *run, "-", stdin=b"one\n \t\n")
    fails(1, ["line 3 is empty"], *run, "-", stdin=b"one\r\ntwo\r\n\r\n")
    fails(1, ["standard input", "empty"], *run, "-", stdin=b"")
    fails(1, ["none.txt", "empty"], *run, "-f", file("none.txt", ""))
    fails(1, ["the text is empty"], *run, "")
    fails(1, ["text 2 is empty"], *run, "one", "", "three")


def refuses_long_texts_unless_they_may_be_cut():
    run = ["embed", "-m", str(model())]
    long = "word " * 600
    fails(1, ["long.txt: line 2", "602 tokens", "512 positions", "--truncate"], *run,
          "-f", file("long.txt", f"short\n{long}\n"))
    fails(1, ["the text", "513 tokens"], *run, "word " * 511)
    [short, cut] = vectors("--truncate", "short", long)
    assert same(short, vectors("short")[0]) and same(cut, vectors("word " * 510)[0])


def text_may_hold_any_character():
    text = 'quotes " and \\ and </script> and \u2028 and 東京 and \x01'
    [line] = embed(text)
    assert line["text"] == text
    [line] = embed("-", stdin=b"a\0b\n")
    assert line["text"] == "a\0b"


def a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        fails(1, ["standard output", "No space left"], "embed", "-m", str(model()), "a text", stdout=full)


tap.run([
    vectors_are_those_of_pytorch,
    lines_keep_their_order,
    more_texts_than_a_window,
    pooling_and_length_can_be_chosen,
    a_folder_without_modules_means_mean_and_length_one,
    progress_is_for_terminals,
    threads_do_not_change_the_meaning,
    refuses_empty_texts_before_any_output,
    refuses_long_texts_unless_they_may_be_cut,
    text_may_hold_any_character,
    a_full_disk_is_told,
])
