"""attn generate, with a tiny GPT-2 of random weights: what does not depend on sense."""
import json
import re

from tiny_gpt2 import LAYERS, POSITIONS, gpt2
from tool import FOLDER, attn, fails, file, succeeds, tap

PROMPT = "the other way"
GREEDY = ["--temp", "0"]


def generate(*arguments, model=None, **settings):
    return succeeds("generate", "-m", model or gpt2(), *arguments, **settings)


def generate_json(*arguments, **settings):
    return json.loads(generate("--json", *arguments, **settings))


def the_likeliest_tokens_are_the_same_every_time():
    text = generate(*GREEDY, "-n", "20", PROMPT)
    assert len(text) > 5 and text.endswith("\n")
    assert text == generate(*GREEDY, "-n", "20", "-p", PROMPT) == generate(*GREEDY, "-n", "20", "-s", "5", PROMPT)
    assert text == generate(*GREEDY, "-n", "20", "-f", file("prompt.txt", PROMPT + "\n"))
    assert text == generate(*GREEDY, "-n", "20", "-", stdin=PROMPT.encode())
    assert text == generate(*GREEDY, "-n", "20", "-t", "2", PROMPT)
    assert text.startswith(generate(*GREEDY, "-n", "10", PROMPT)[:-1])
    assert text == generate("--top-k", "1", "--temp", "1", "-s", "3", "-n", "20", PROMPT)


def a_seed_decides():
    def draw(seed):
        return generate("-s", str(seed), "--temp", "2", "--top-k", "0", "-n", "30", PROMPT)

    assert draw(1) == draw(1) != draw(2)


def a_drawn_seed_is_told_and_can_be_given():
    result = attn("generate", "-m", gpt2(), "--temp", "2", "-n", "30", PROMPT)
    seed = re.fullmatch(r"attn generate: seed (\d+)\n", result.err)
    assert result.status == 0 and seed, result.err
    assert generate("--temp", "2", "-n", "30", "-s", seed[1], PROMPT) == result.out
    other = attn("generate", "-m", gpt2(), "--temp", "2", "-n", "30", "-s", "-1", PROMPT)
    assert other.err.startswith("attn generate: seed ") and other.err != result.err


def json_tells_what_was_written():
    found = generate_json(*GREEDY, "-n", "12", PROMPT)
    assert list(found) == ["prompt", "text", "prompt_tokens", "tokens", "logprobs", "end", "seed"]
    assert found["prompt"] == PROMPT and found["end"] == "limit" and found["seed"] is None
    assert found["text"] == generate(*GREEDY, "-n", "12", PROMPT).removesuffix("\n")
    assert len(found["tokens"]) == len(found["logprobs"]) == 12
    ids = succeeds("tokenize", "-m", gpt2(), "--ids", PROMPT).split()
    assert found["prompt_tokens"] == len(ids)
    assert all(-10 < value < 0 for value in found["logprobs"])
    assert generate_json("-s", "7", "-n", "2", PROMPT)["seed"] == 7


def log_probabilities_are_those_of_the_model_itself():
    """At a high temperature, where other tokens are drawn, they are still softmax(logits)."""
    first = {}
    for seed in range(30):
        one = generate_json("-s", str(seed), "--temp", "9", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-n", "1",
                            PROMPT)
        first.setdefault(one["tokens"][0], set()).add(one["logprobs"][0])
    assert len(first) > 5 and all(len(values) == 1 for values in first.values())
    likeliest = generate_json(*GREEDY, "-n", "1", PROMPT)["logprobs"][0]
    assert likeliest >= max(max(values) for values in first.values())


def prompts_are_written_as_each_alone():
    prompts = ["one", "the other", "x", "two words", "th", "what was it", "a", "way", "<|endoftext|>x", "ten"]
    path = file("prompts.txt", "\n".join(prompts) + "\n")
    for settings in [GREEDY, ["-s", "40", "--temp", "1.5"]]:
        lines = [json.loads(line) for line in
                 generate(*settings, "-n", "12", "--cache-type", "f32", "--prompts", path).splitlines()]
        assert [line["prompt"] for line in lines] == prompts
        for number, line in enumerate(lines):
            seed = [] if settings == GREEDY else ["-s", str(40 + number)]
            alone = generate_json(*settings, *seed, "-n", "12", "--cache-type", "f32", prompts[number])
            errors = [abs(a - b) for a, b in zip(alone.pop("logprobs"), line.pop("logprobs"))]
            assert alone == line and not max(errors) > 1e-4, (number, errors)


def a_stop_string_ends_the_text_before_it():
    text = generate_json(*GREEDY, "-n", "30", PROMPT)["text"]
    stop = text[7:10]
    found = generate_json(*GREEDY, "-n", "30", "--stop", "never to be", "--stop", stop, PROMPT)
    assert found["text"] == text[:text.index(stop)] and found["end"] == "stop", found
    assert generate(*GREEDY, "-n", "30", "--stop", stop, PROMPT) == found["text"].removesuffix("\n") + "\n"


def an_end_token_ends_the_text():
    whole = generate_json(*GREEDY, "-n", "30", PROMPT)
    end = whole["tokens"][9]
    expected = whole["tokens"][:whole["tokens"].index(end)]
    for name, eos in [("ends", end), ("ends-of-several", [300, end])]:
        found = generate_json(*GREEDY, PROMPT, model=gpt2(name, eos_token_id=eos))
        assert found["tokens"] == expected and found["end"] == "end", found


def a_full_context_is_told():
    result = attn("generate", "-m", gpt2(), *GREEDY, "-c", "20", "--json", PROMPT)
    found = json.loads(result.out)
    assert result.status == 0 and found["end"] == "context", found
    assert found["prompt_tokens"] + len(found["tokens"]) == 21 and result.err == ""
    result = attn("generate", "-m", gpt2(), *GREEDY, PROMPT)
    assert result.status == 0 and result.err == f"attn generate: the context of {POSITIONS} tokens is full\n"
    # As many as fit, and one more that is told and never read.
    longest = generate_json(*GREEDY, "-n", "1", "x" * POSITIONS)
    assert len(longest["tokens"]) == 1 and longest["end"] == "limit", longest


def caches_of_fewer_bits_are_near():
    exact = generate_json(*GREEDY, "-n", "1", "--cache-type", "f32", PROMPT * 3)["logprobs"][0]
    for cache, bound in [("f16", 0.005), ("bf16", 0.05), ("int8", 0.05)]:
        found = generate_json(*GREEDY, "-n", "1", "--cache-type", cache, PROMPT * 3)["logprobs"][0]
        assert not abs(found - exact) > bound, (cache, found, exact)
    assert generate(*GREEDY, "-n", "5", PROMPT) == generate(*GREEDY, "-n", "5", "--cache-type", "f16", PROMPT)


def a_picture_has_a_row_for_each_written_word():
    path = FOLDER / "picture.json"
    found = generate_json("-s", "3", "--temp", "2", "-n", "25", "--look", str(path), "first the other way")
    picture = json.loads(path.read_text())
    rows, columns = picture["words"], picture["columns"]
    assert len(rows) > 3 and picture["text"].startswith("first the other way"), picture["text"]
    # Without the word at the first position.
    assert columns == ["the", "other", "way"] + rows, columns
    if re.fullmatch(r"[!-~]*", found["text"]):
        assert "".join(rows) == found["text"], (rows, found["text"])
    heads = picture["heads"]
    assert [head["layer"] for head in heads] == [None, *range(LAYERS)]
    for head in heads:
        assert len(head["weights"]) == len(rows)
        for number, row in enumerate(head["weights"]):
            assert len(row) == len(columns) and abs(sum(row) - 1) < 1e-4
            assert all(weight > 0 for weight in row[:3 + number])
            assert not any(row[3 + number + 1:]), "a word looks ahead"
        # A word of one token is told before it is there to be looked at.
        assert head["weights"][0][3] == 0 or len(rows[0]) > 1


def words_of_a_picture_are_read_across_tokens():
    """Each byte is a token here: letters of several bytes are letters as any other."""
    path = FOLDER / "letters.json"
    generate("-s", "3", "--temp", "2", "-n", "8", "--look", str(path), "the é! aé مرحبا、way")
    columns = json.loads(path.read_text())["columns"]
    assert columns[:6] == ["é", "!", "aé", "مرحبا", "、", "way"], columns


def a_picture_is_written_in_each_form():
    for suffix in ["html", "svg", "png", "npy"]:
        path = FOLDER / f"written.{suffix}"
        generate(*GREEDY, "-n", "8", "--look", str(path), PROMPT)
        assert path.stat().st_size > 200, suffix


def special_spellings_are_read_but_not_from_a_user():
    model = gpt2("chat", chat=True)
    assert generate_json(*GREEDY, "-n", "1", "<|im_end|>", model=model)["prompt_tokens"] == 1
    marked = generate_json(*GREEDY, "-n", "1", "--chat", "<|im_end|>", model=model)["prompt_tokens"]
    plain = generate_json(*GREEDY, "-n", "1", "--chat", "x", model=model)["prompt_tokens"]
    assert marked == plain + len("<|im_end|>") - 1, (marked, plain)


def chat_writes_the_template():
    model = gpt2("chat", chat=True)
    conversation = ("<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
                    "<|im_start|>assistant\n")
    expected = generate_json(*GREEDY, "-n", "9", conversation, model=model)
    found = generate_json(*GREEDY, "-n", "9", "--chat", "--system", "be", "hi", model=model)
    for name in ["text", "tokens", "prompt_tokens"]:
        assert found[name] == expected[name], name


def the_end_of_a_turn_ends_an_answer():
    """Whatever the config says, which names no end token here. All tokens are about as likely."""
    model = gpt2("chat", chat=True)
    path = file("turns.txt", "hi\n" * 60)
    [marker] = succeeds("tokenize", "-m", model, "--ids", "<|im_end|>").split()
    even = ["-s", "1", "--temp", "99", "--top-k", "0", "--top-p", "1", "--min-p", "0"]
    lines = generate(*even, "--chat", "--prompts", path, model=model).splitlines()
    found = [json.loads(line) for line in lines]
    assert not any(int(marker) in line["tokens"] for line in found)
    assert {line["end"] for line in found} == {"end", "context"}, [line["end"] for line in found]


def a_conversation_goes_turn_by_turn():
    model = gpt2("chat", chat=True)
    lines = generate("-i", *GREEDY, "-n", "2", "--cache-type", "f32", model=model, stdin=b"a\n\nb\r\n").split("\n")
    assert lines[-1] == "", lines
    first = generate_json(*GREEDY, "-n", "2", "--cache-type", "f32", "--chat", "a", model=model)
    spelled = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
    # The answer's own tokens, which may be no text that comes back as the same ones.
    if succeeds("tokenize", "-m", model, "--ids", first["text"]).split() == [str(i) for i in first["tokens"]]:
        spelled += first["text"] + "<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"
        second = generate_json(*GREEDY, "-n", "2", "--cache-type", "f32", spelled, model=model)
        assert "\n".join(lines) == first["text"] + "\n" + second["text"] + "\n"
    alone = generate("-i", *GREEDY, "-n", "2", "--cache-type", "f32", "a", model=model)
    assert alone == first["text"] + "\n"
    # A penalty counts tokens of earlier turns; one so small changes none.
    penalty = ["--repeat-penalty", "1.0000001", "--repeat-last-n", "5"]
    again = generate("-i", *GREEDY, *penalty, "-n", "2", "--cache-type", "f32", model=model, stdin=b"a\nb\n")
    assert again == "\n".join(lines)


def a_conversation_ends_with_the_context():
    model = gpt2("chat", chat=True)
    result = attn("generate", "-m", model, "-i", *GREEDY, "-n", "3", stdin=b"a\n" * 9)
    assert result.status == 0
    assert result.err == (f"attn generate: the context of {POSITIONS} tokens is full; "
                          "the conversation ends here\n"), result.err


def what_is_no_text_is_left_out_of_a_conversation():
    model = gpt2("chat", chat=True)
    result = attn("generate", "-m", model, "-i", *GREEDY, "-n", "2", stdin=b"\xff\na\n")
    assert result.status == 0 and "line 1: byte 0 is not valid UTF-8" in result.err, result.err
    assert result.out == generate("-i", *GREEDY, "-n", "2", model=model, stdin=b"a\n")


def a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        fails(1, ["standard output", "No space left"], "generate", "-m", gpt2(), *GREEDY, "-n", "3", PROMPT,
              stdout=full)


def a_picture_that_cannot_be_written_is_told_before_any_word():
    fails(1, ["x.html", "no such folder"], "generate", "-m", gpt2(), *GREEDY, "-n", "3", "--look",
          str(FOLDER / "none" / "x.html"), PROMPT)
    folder = FOLDER / "folder.html"
    folder.mkdir(exist_ok=True)
    fails(1, "folder.html", "generate", "-m", gpt2(), *GREEDY, "-n", "3", "--look", str(folder), PROMPT)


tap.run([
    the_likeliest_tokens_are_the_same_every_time,
    a_seed_decides,
    a_drawn_seed_is_told_and_can_be_given,
    json_tells_what_was_written,
    log_probabilities_are_those_of_the_model_itself,
    prompts_are_written_as_each_alone,
    a_stop_string_ends_the_text_before_it,
    an_end_token_ends_the_text,
    a_full_context_is_told,
    caches_of_fewer_bits_are_near,
    a_picture_has_a_row_for_each_written_word,
    words_of_a_picture_are_read_across_tokens,
    a_picture_is_written_in_each_form,
    special_spellings_are_read_but_not_from_a_user,
    chat_writes_the_template,
    the_end_of_a_turn_ends_an_answer,
    a_conversation_goes_turn_by_turn,
    a_conversation_ends_with_the_context,
    what_is_no_text_is_left_out_of_a_conversation,
    a_full_disk_is_told,
    a_picture_that_cannot_be_written_is_told_before_any_word,
])
