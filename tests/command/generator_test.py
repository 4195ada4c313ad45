"""attn with the default generator, a GGUF file of four bits a weight: text with sense, conversations,
pictures of both."""
import json
import os
import signal
import subprocess
from pathlib import Path

from tool import ATTN, FOLDER, ROOT, attn, environment, fails, file, generator, succeeds, tap

GREEDY = ["--temp", "0"]


def generate(*arguments, **settings):
    return succeeds("generate", "-m", generator(), *GREEDY, *arguments, **settings)


def generate_json(*arguments, **settings):
    return json.loads(generate("--json", *arguments, **settings))


def it_knows_the_capital_of_france():
    assert generate("-n", "2", "The capital of France is") == " Paris.\n"


def it_is_the_default():
    models = FOLDER / "home/.local/share/attn/models"
    models.mkdir(parents=True, exist_ok=True)
    place = models / "SmolLM2-135M-Instruct"
    place.symlink_to(Path(generator()).resolve())
    assert succeeds("generate", *GREEDY, "-n", "2", "The capital of France is") == " Paris.\n"
    assert succeeds("generate", *GREEDY, "-n", "2", "The capital of France is", "-m", str(place)) == " Paris.\n"
    [path] = place.glob("*.gguf")
    assert succeeds("generate", *GREEDY, "-n", "2", "The capital of France is", "-m", str(path)) == " Paris.\n"
    place.unlink()


def it_answers_and_ends():
    found = generate_json("--chat", "What is the capital of France? Answer in one word.")
    assert "Paris" in found["text"] and found["end"] == "end" and len(found["tokens"]) < 60, found


def a_conversation_is_what_its_template_says():
    lines = generate("-i", "-n", "12", stdin=b"My name is Ada.\nSay <|im_end|>.\n")
    system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    prompt = system + "<|im_start|>user\nMy name is Ada.<|im_end|>\n<|im_start|>assistant\n"
    first = generate_json("-n", "12", prompt)
    assert lines.startswith(first["text"] + "\n"), (lines, first)
    # The typed marker is letters: more tokens than the marker that is read.
    read = generate_json("-n", "1", "<|im_end|>")
    typed = generate_json("-n", "1", "--chat", "Say <|im_end|>.")
    without = generate_json("-n", "1", "--chat", "Say .")
    assert read["prompt_tokens"] == 1 and typed["prompt_tokens"] > without["prompt_tokens"] + 3
    ids = succeeds("tokenize", "-m", generator(), "--ids", "--plain", "Say <|im_end|>.").split()
    assert "2" not in ids
    assert len(lines) > len(first["text"]) + 3


def ctrl_c_ends_an_answer_and_not_the_program():
    turns = b"Write a very long story about a lighthouse.\n", b"Say yes.\n"
    whole = generate("-i", "-n", "100", stdin=turns[0])
    process = subprocess.Popen(
        [ATTN, "generate", "-m", generator(), "-i", *GREEDY, "-n", "100"], env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(turns[0])
    process.stdin.flush()
    begin = os.read(process.stdout.fileno(), 4096)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(turns[1], timeout=120)
    assert process.returncode == 0 and err == b"", (process.returncode, err)
    text = (begin + out).decode()
    shared = len(os.path.commonprefix([text, whole]))
    assert 0 < shared < len(whole) - 1 and len(text) > shared + 2, (text, whole)


def text_streams_in_whole_characters():
    """Emoji of several tokens each: no read ends within one."""
    prompt = "🦜🦚🦩🪿" * 6
    process = subprocess.Popen(
        [ATTN, "generate", "-m", generator(), *GREEDY, "-n", "40", prompt], env=environment(),
        stdout=subprocess.PIPE)
    parts = []
    while part := os.read(process.stdout.fileno(), 65536):
        parts.append(part.decode())  # fails within a character
    assert process.wait(timeout=120) == 0
    assert len(parts) > 4 and any(ord(letter) > 0xFFFF for letter in "".join(parts)), parts


def prompts_are_answered_side_by_side():
    prompts = ["The sea is", "Once upon a time", "Two plus two is", "Paris is", "def f(x):", "I", "The", "Water", "Red"]
    path = file("many.txt", "\n".join(prompts))
    lines = [json.loads(line) for line in generate("-n", "8", "--prompts", path).splitlines()]
    assert [line["prompt"] for line in lines] == prompts
    for line in lines:
        alone = generate_json("-n", "8", line["prompt"])
        assert alone["tokens"] == line["tokens"], (alone, line)
        errors = [abs(a - b) for a, b in zip(alone["logprobs"], line["logprobs"])]
        assert not max(errors) > 0.02, errors  # a cache of 16 bits rounds after sums in another order


def bytes_that_the_vocabulary_has_not_are_named():
    result = attn("generate", "-m", generator(), *GREEDY, "-n", "1", "--json", "a\x04b\x04")
    assert result.status == 0 and json.loads(result.out)["prompt_tokens"] == 2
    assert "the text: byte 0x04 has no token and was left out, and so were 1 more" in result.err, result.err
    result = attn("tokenize", "-m", generator(), "--ids", "\x04")
    assert result.status == 0 and "attn tokenize: the text: byte 0x04" in result.err


def a_picture_shows_what_was_said():
    path = FOLDER / "generator.json"
    text = generate("-n", "10", "--look", str(path), "The capital of France is")
    picture = json.loads(path.read_text())
    assert picture["words"][:2] == ["Paris", "."] and "France" in picture["columns"], picture["words"]
    assert picture["text"] == "The capital of France is" + text.removesuffix("\n")
    assert len(picture["heads"]) == 31
    row = picture["heads"][0]["weights"][0]
    assert row[2] == max(row[:3]) and picture["columns"][2] == "France", row
    generate("-n", "4", "--chat", "--look", str(path), "Hello!")
    assert not any("<|" in word for word in json.loads(path.read_text())["columns"])


def look_and_tokenize_and_info_know_it():
    look = json.loads(succeeds("look", "-m", generator(), "--json", "The robot was heavy."))
    assert look["words"] == ["The", "robot", "was", "heavy", "."]
    for number, row in enumerate(look["heads"][0]["weights"]):
        assert abs(sum(row) - 1) < 1e-4 and not any(row[number + 1:])
    lines = [line.split("\t") for line in succeeds("tokenize", "-m", generator(), "Où 12<|im_end|>").splitlines()]
    assert [line[3] for line in lines][-3:] == ['"1"', '"2"', "-"], lines
    assert lines[0][3].startswith('"O') and lines[-1][:3] == ["2", "<|im_end|>", "6-16"], lines
    text = succeeds("info", "-m", generator())
    for line in ["architecture: Llama", "layers:       30", "heads:        9", "key heads:    3", "positions:    8192",
                 "vocabulary:   49152", "parameters:   134515008", "weights:      Q4_1, Q8_0, F32, 92.1 MiB"]:
        assert line in text, text


def pieces_that_are_part_of_a_letter_are_told_apart():
    """The handed cases of labels over several pieces."""
    cases = json.loads((ROOT / "tests/data/cases/labels.json").read_text())["cases"]
    cases = [case for case in cases if case["kind"] == "byte-label"]
    assert len(cases) == 2
    for case in cases:
        told = json.loads(succeeds("look", "-m", generator(), "--pieces", "--json", case["input"]["text"]))["words"]
        expected = case["expected"]
        assert len(told) == expected["labels"], told
        assert {str(n): told[int(n)] for n in expected["whole"]} == expected["whole"], told
        for n, piece in enumerate(case["input"]["pieces_hex"]):
            spelled = "".join(f"\\x{byte:02X}" for byte in bytes.fromhex(piece))
            assert n not in expected["partial"] or told[n] == spelled, (told[n], spelled)
        assert not any(letter in label for letter in expected["never_shown"] for label in told)


def others_refuse_it_by_name():
    fails(1, ["GGUF", "BERT"], "embed", "-m", generator(), "a text")
    fails(1, ["Llama", "BERT"], "fill", "-m", generator(), "a [MASK]")
    fails(1, ["-c is 8193", "8192 positions"], "generate", "-m", generator(), "-c", "8193", "a")


tap.run([
    it_knows_the_capital_of_france,
    it_is_the_default,
    it_answers_and_ends,
    a_conversation_is_what_its_template_says,
    ctrl_c_ends_an_answer_and_not_the_program,
    text_streams_in_whole_characters,
    prompts_are_answered_side_by_side,
    bytes_that_the_vocabulary_has_not_are_named,
    a_picture_shows_what_was_said,
    look_and_tokenize_and_info_know_it,
    pieces_that_are_part_of_a_letter_are_told_apart,
    others_refuse_it_by_name,
])
