"""attn generate: what is refused, before any work and with the right status. Needs no model."""
import json

from tiny_gpt2 import POSITIONS, gpt2, write_weights
from tool import FOLDER, attn, fails, file, succeeds, tap


def refuses_values_that_cannot_be_read():
    for option, value, expected in [
            ("-n", "0", "1 to 2147483647, or -1"), ("-n", "-2", "or -1"), ("-n", "many", "whole number"), ("-c", "-1", "0 to"),
            ("-s", "x", "whole number"), ("-s", "-2", "from 0 on, or -1"), ("--top-k", "-1", "0 to"),
            ("--top-k", "1.5", "whole number"), ("--repeat-last-n", "-2", "0 to 2147483647, or -1")]:
        fails(2, ["attn generate: ", option, f"'{value}'", expected], "generate", "a", option, value)
    for option in ["--temp", "--top-p", "--min-p", "--repeat-penalty"]:
        for value in ["", "x", "nan", "inf", "0x1", "-1", "1e999", " 1", "1 "]:
            fails(2, [option, f"'{value}'", "must be a number"], "generate", "a", option, value)
    for option in ["--top-p", "--min-p"]:
        fails(2, [option, "0 to 1"], "generate", "a", option, "1.5")
    fails(2, ["--repeat-penalty", "more than 0"], "generate", "a", "--repeat-penalty", "0")
    fails(2, ["--cache-type", "'f64'", "f32, f16, bf16 or int8"], "generate", "a", "--cache-type", "f64")
    fails(2, ["--precision", "'half'", "exact or bf16"], "generate", "a", "--precision", "half")
    fails(2, ["--look", "'x.pdf'", ".html"], "generate", "a", "--look", "x.pdf")
    fails(2, ["--stop", "empty"], "generate", "a", "--stop", "")
    fails(2, ["--stop", "UTF-8"], "generate", "a", "--stop", b"\xff")
    fails(2, ["--prompts", "empty"], "generate", "--prompts", "")
    fails(2, ["--stop", "more than"], "generate", "a", *["--stop", "x"] * 33)


def refuses_options_that_exclude_each_other():
    fails(2, ["-p", "-f"], "generate", "-p", "a", "-f", "x")
    fails(2, ["-p", "'b'"], "generate", "-p", "a", "b")
    fails(2, ["-f", "'b'"], "generate", "-f", "a", "b")
    for other in [["--prompts", "x"], ["--json"], ["--look", "x.html"]]:
        fails(2, ["-i", other[0]], "generate", "-i", *other)
    fails(2, ["-i", "'-'"], "generate", "-i", "-")
    fails(2, ["-i", "'-'"], "generate", "-i", "-f", "-")
    fails(2, "--prompts", "generate", "--prompts", "x", "a")
    fails(2, ["--prompts", "--look"], "generate", "--prompts", "x", "--look", "x.html")
    fails(2, ["--system", "--chat"], "generate", "a", "--system", "b")
    fails(2, "text is missing", "generate")
    fails(2, ["one text", "2 are given"], "generate", "a", "b")


def a_missing_model_is_told_with_the_command_that_fetches_it():
    fails(1, ["attn generate: ", "SmolLM2-135M-Instruct", "attn-fetch-model generator"], "generate", "a text")
    fails(1, "no-such-model", "generate", "a", env={"ATTN_GENERATOR": "no-such-model"})
    fails(1, ["SmolLM2-135M-Instruct", "attn-fetch-model generator"], "generate", "a", env={"ATTN_MODEL": gpt2()})
    fails(1, "./none.gguf", "generate", "-m", "./none.gguf", "a")


def texts_that_do_not_fit_are_refused():
    model = gpt2()
    fails(1, ["no token"], "generate", "-m", model, "")
    fails(1, [f"{POSITIONS + 1} tokens", f"the model has {POSITIONS} positions"], "generate", "-m", model,
          "x" * (POSITIONS + 1))
    fails(1, ["9 tokens", "-c gives 8 positions"], "generate", "-m", model, "-c", "8", "x" * 9)
    fails(1, [f"-c is {POSITIONS + 1}", f"{POSITIONS} positions"], "generate", "-m", model, "-c",
          str(POSITIONS + 1), "x")
    fails(1, ["byte 1", "UTF-8"], "generate", "-m", model, b"a\xff")
    fails(1, "no-such-file", "generate", "-m", model, "-f", "no-such-file")


def prompts_that_cannot_be_used_are_named_by_their_line():
    path = file("prompts-empty.txt", "one\n\nthree\n")
    fails(1, [f"{path}: line 2", "empty"], "generate", "-m", gpt2(), "--prompts", path)
    path = file("prompts-long.txt", "one\n" + "x" * 70 + "\n")
    fails(1, [f"{path}: line 2", "70 tokens"], "generate", "-m", gpt2(), "--prompts", path)


def a_model_without_a_chat_template_does_not_answer():
    for arguments in [["--chat", "a"], ["-i"]]:
        fails(1, [gpt2(), "no chat template"], "generate", "-m", gpt2(), *arguments)
    model = gpt2("llama-chat", chat=True)
    (FOLDER / "llama-chat" / "tokenizer_config.json").write_text(
        '{"chat_template": "{% for m in messages %}[INST] {{ m[\'content\'] }} [/INST]{% endfor %}"}')
    fails(1, [model, "chat template"], "generate", "-m", model, "--chat", "a")


def tokens_that_the_model_lacks_are_refused_before_any_work():
    """A tokenizer with a token more than the table of words has rows."""
    model, folder = gpt2("fewer-words", chat=True), FOLDER / "fewer-words"
    config = json.loads((folder / "config.json").read_text())
    config["vocab_size"] -= 1
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, config["vocab_size"])
    succeeds("generate", "-m", model, "-n", "1", "-s", "1", "abc")
    expected = f"token {config['vocab_size']}, but the model's vocabulary ends at {config['vocab_size'] - 1}"
    fails(1, ["the text has", expected], "generate", "-m", model, "<|im_end|>")
    fails(1, ["the text has", expected], "generate", "-m", model, "--chat", "a")
    path = file("prompts-lacking.txt", "one\n" * 9 + "<|im_end|>\n")
    fails(1, [f"{path}: line 10 has", expected], "generate", "-m", model, "--prompts", path)


def a_picture_that_cannot_be_written_is_told_before_any_word():
    path = str(FOLDER / "missing" / "x.html")
    fails(1, [path, "no such folder"], "generate", "-m", gpt2(), "--look", path, "a")
    assert attn("generate", "-m", gpt2(), "--look", path, "a").out == ""


def a_manual_names_each_option():
    text = succeeds("help", "generate")
    for option in ("--model --prompt --file --n-predict --ctx-size --threads --seed --temp --top-k --top-p --min-p "
                   "--repeat-penalty --repeat-last-n --stop --chat --system --interactive --prompts --json --look "
                   "--cache-type --precision -m -p -f -n -c -t -s -i").split():
        assert option in text, option


tap.run([
    refuses_values_that_cannot_be_read,
    refuses_options_that_exclude_each_other,
    a_missing_model_is_told_with_the_command_that_fetches_it,
    texts_that_do_not_fit_are_refused,
    prompts_that_cannot_be_used_are_named_by_their_line,
    a_model_without_a_chat_template_does_not_answer,
    tokens_that_the_model_lacks_are_refused_before_any_work,
    a_picture_that_cannot_be_written_is_told_before_any_word,
    a_manual_names_each_option,
])
