"""The command line by itself: verbs, options, help, exit statuses. Needs no model."""
import os
import subprocess

from tool import FOLDER, attn, environment, fails, file, succeeds, tap

VERBS = ["look", "heads", "serve", "embed", "tokenize", "generate", "fill", "train", "info", "bench", "help"]


def prints_its_version():
    assert succeeds("--version") == "attn 0.6.0\n"


def alone_it_shows_the_usage():
    result = attn()
    assert result.status == 2 and result.bytes == b""
    for verb in VERBS:
        assert f"attn {verb}" in result.err, result.err


def help_lists_the_verbs():
    text = succeeds("--help")
    assert text == succeeds("help") == succeeds("-h")
    for verb in VERBS:
        assert f"attn {verb}" in text


def all_measurements_are_named():
    for what in ["attention", "training", "generate"]:
        assert f"attn bench {what}" in succeeds("help")
        assert f"attn bench {what}" in attn().err


def each_verb_has_a_manual():
    for verb in VERBS:
        text = succeeds("help", verb)
        assert text.startswith(f"attn {verb}:") and "usage: attn" in text and "Example" in text
        assert succeeds(verb, "--help") == text == succeeds(verb, "-h")
        assert max(map(len, text.splitlines())) <= 100


def manuals_name_each_option():
    options = {
        "look": "--layer --head --from --pair --pieces --special --self --renormalize --top --json "
                "--output --model --threads -f",
        "embed": "--pooling --no-normalize --truncate --file --model --threads",
        "generate": "--prompt --prompts --interactive --chat --system --n-predict --ctx-size --stop --seed --temp --top-k "
                    "--top-p --min-p --repeat-penalty --repeat-last-n --look --cache-type --precision --json --model "
                    "--threads --file",
        "fill": "--top --pair --json --file --model --threads",
        "tokenize": "--ids --plain --pair --file --model",
        "train": "--file --output --layers --heads --dim --ctx --vocab --batch --steps --lr --seed --stop-after "
                 "--objective --model --warmup --schedule --final-lr --decay --clip --accumulate --dropout "
                 "--beta1 --beta2 --held-out --eval-every --save-every --resume --sample --threads",
        "info": "--model --threads",
        "bench": "--filter --threads --isa --precision --json --explain --model --n-prompt --n-gen --depth "
                 "--repetitions --cache-type",
    }
    for verb, names in options.items():
        text = succeeds("help", verb)
        for name in names.split():
            assert name in text, f"{verb}: {name}"


def refuses_unknown_verbs():
    fails(2, ["attn: ", "'stare'", ", ".join(VERBS)], "stare")
    fails(2, ["attn: ", "''"], "")
    fails(2, ["attn help: ", "'stare'", "look"], "help", "stare")
    fails(2, "one verb", "help", "look", "embed")


def refuses_unknown_options():
    fails(2, "'--colour'", "--colour")
    fails(2, ["attn look: ", "'--colour'", "attn help look"], "look", "--colour", "a text")
    fails(2, "'--colour'", "look", "a text", "--colour=red")
    fails(2, ["attn embed: ", "'-z'", "'--'"], "embed", "-z")
    fails(2, "'--json'", "tokenize", "--json", "a text")
    fails(2, "could be --", "look", "--p", "a text")
    fails(2, "takes no value", "look", "--json=yes", "a text")
    fails(2, "takes no value", "look", "--help=yes")
    fails(2, "'--'", "look", "-\u00e9")


def refuses_missing_values():
    for option in ["--from", "--layer", "--head", "--pair", "--top", "-o", "-m", "-t", "-f"]:
        fails(2, [f"'{option}'", "needs a value"], "look", "a text", option)
    fails(2, "'--pooling'", "embed", "a text", "--pooling")
    for option in ["-m", "-f", "-o", "--from"]:
        fails(2, [option, "empty"], "look", "a text", option, "")


def refuses_values_that_cannot_be_read():
    for value in ["", "0", "-1", "x", "2x", " 2", "1.5", "99999999999999999999", "100000"]:
        fails(2, ["-t", f"'{value}'", "1 to"], "look", "a text", "-t", value)
        fails(2, "-t", "info", "-t", value)
    for value in ["", "L4", "H7", "L4H", "LxH1", "L1H2x", "L-1H2", "4,7", "L99999999999H0"]:
        fails(2, ["--head", f"'{value}'", "L4H7"], "look", "a text", "--head", value)
    for value in ["", "-1", "two", "1e1"]:
        fails(2, ["--layer", f"'{value}'"], "look", "a text", "--layer", value)
    for value in ["", "0", "-3", "all"]:
        fails(2, ["--top", f"'{value}'"], "look", "a text", "--top", value)
    fails(2, ["--pooling", "'max'", "mean or cls"], "embed", "a text", "--pooling", "max")
    for value in ["map", "map.pdf", "map.json.gz", ".", "json", "-"]:
        fails(2, [f"'{value}'", ".json, .npy, .svg, .png or .html"], "look", "a text", "-o", value)
    fails(2, ["--from", "byte 1", "UTF-8"], "look", "a text", "--from", b"a\xff")


def refuses_a_wrong_attn_threads():
    for value in ["0", "many", "-1"]:
        fails(2, ["ATTN_THREADS", f"'{value}'"], "look", "a text", env={"ATTN_THREADS": value})
        fails(2, "ATTN_THREADS", "info", env={"ATTN_THREADS": value})


def the_option_goes_before_attn_threads():
    assert "threads:      2\n" in succeeds("info", "-t", "2", env={"ATTN_THREADS": "many"})
    assert "threads:      2\n" in succeeds("info", env={"ATTN_THREADS": "2"})
    cpus = len(os.sched_getaffinity(0))
    text = succeeds("info", env={"ATTN_THREADS": ""})
    threads = int(text.split("threads:")[1].split()[0])
    assert 1 <= threads <= cpus


def refuses_options_that_exclude_each_other():
    fails(2, "--layer and --head", "look", "a text", "--layer", "1", "--head", "L1H1")
    fails(2, ["-f", "'a text'"], "look", "a text", "-f", "file.txt")
    fails(2, "'-'", "embed", "a text", "-")
    fails(2, ["one text", "2 are given"], "look", "a", "text")
    fails(2, "'word'", "info", "word")


def refuses_a_missing_text():
    for verb in ["look", "embed", "tokenize"]:
        fails(2, [f"attn {verb}: ", "text is missing", "-f FILE"], verb)


def no_message_steers_the_terminal():
    message = fails(2, "?[31m", "look", "a text", "--head", "\x1b[31m")
    assert "\x1b" not in message


def info_tells_the_machine_without_a_model():
    text = succeeds("info", env={"ATTN_ISA": "scalar"})
    fields = dict(line.split(":", 1) for line in text.splitlines())
    assert fields["version"].strip() == "0.6.0" and fields["isa"].strip() == "scalar"
    assert fields["cpu"].strip() and fields["blas"].strip() and fields["threads"].strip() == "1"
    assert "attn-fetch-model" in fields["model"]


def matrix_products_are_not_left_to_the_oldest_kernels():
    """As an OpenBLAS does on a CPU that is newer than itself."""
    fields = dict(line.split(":", 1) for line in succeeds("info").splitlines())
    if fields["isa"].strip() in ("scalar", "neon"):
        raise tap.Skip("this CPU has neither AVX2 nor AVX-512")
    assert "Prescott" not in fields["blas"], fields["blas"]
    chosen = dict(line.split(":", 1) for line in succeeds("info", env={"OPENBLAS_CORETYPE": "Prescott"}).splitlines())
    assert "kernels" not in chosen["blas"] or "Prescott" in chosen["blas"], chosen["blas"]


def a_missing_model_is_told():
    for verb in ["look", "embed", "tokenize"]:
        fails(1, [f"attn {verb}: ", "all-MiniLM-L6-v2", "attn-fetch-model"], verb, "a text")
    fails(1, "no-such-model", "look", "-m", "no-such-model", "a text")
    fails(1, "no-such-model", "look", "a text", env={"ATTN_MODEL": "no-such-model"})
    fails(1, "./no-such-folder", "look", "-m", "./no-such-folder", "a text")
    fails(1, "org/no-such-model", "look", "-m", "org/no-such-model", "a text")
    fails(1, "no-such-model", "info", "-m", "no-such-model")
    fails(1, "no-such-model", "info", env={"ATTN_MODEL": "no-such-model"})


def text_files_that_cannot_be_read_are_told():
    missing = str(FOLDER / "missing.txt")
    for verb in ["look", "embed", "tokenize"]:
        fails(1, missing, verb, "-f", missing)
        fails(1, str(FOLDER), verb, "-f", str(FOLDER))
        path = file("latin1.txt", b"gr\xfc\xdfe\n")
        fails(1, ["latin1.txt", "byte 2", "UTF-8"], verb, "-f", path)
        fails(1, ["standard input", "byte 0", "UTF-8"], verb, "-", stdin=b"\xed\xa0\x80")
        fails(1, ["text", "byte 3", "UTF-8"], verb, b"abc\xc3")
    fails(1, ["text 2", "byte 1"], "embed", "fine", b"a\xff")
    path = file("third.txt", b"one\r\ntwo\ngr\xfc\xdfe\n")
    for verb in ["embed", "tokenize"]:
        fails(1, ["third.txt: line 3: byte 2 ", "UTF-8"], verb, "-f", path)
    fails(1, ["--pair", "byte 0"], "look", "fine", "--pair", b"\xff")
    fails(1, ["--pair", "byte 0"], "tokenize", "fine", "--pair", b"\xff")
    path = FOLDER / "large.txt"
    with open(path, "wb") as large:
        large.truncate((64 << 20) + 1)
    fails(1, "large.txt", "look", "-f", str(path))


def a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        for command in [["--version"], ["help"], ["help", "look"], ["look", "--help"], ["info"]]:
            fails(1, ["standard output", "No space left"], *command, stdout=full)


def closed_streams_do_no_harm():
    for command in ['"$0" --version >&-', '"$0" help >&- 2>&-']:
        from tool import ATTN
        done = subprocess.run(["sh", "-c", command, ATTN], env=environment(), capture_output=True)
        assert done.returncode == 1, done


def a_closed_pipe_is_no_message():
    reader, writer = os.pipe()
    os.close(reader)
    result = attn("help", stdout=writer, restore_signals=False)
    os.close(writer)
    assert result.status != 0 and result.err == "", result.err


tap.run([
    prints_its_version,
    alone_it_shows_the_usage,
    help_lists_the_verbs,
    all_measurements_are_named,
    each_verb_has_a_manual,
    manuals_name_each_option,
    refuses_unknown_verbs,
    refuses_unknown_options,
    refuses_missing_values,
    refuses_values_that_cannot_be_read,
    refuses_a_wrong_attn_threads,
    the_option_goes_before_attn_threads,
    refuses_options_that_exclude_each_other,
    refuses_a_missing_text,
    no_message_steers_the_terminal,
    info_tells_the_machine_without_a_model,
    matrix_products_are_not_left_to_the_oldest_kernels,
    a_missing_model_is_told,
    text_files_that_cannot_be_read_are_told,
    a_full_disk_is_told,
    closed_streams_do_no_harm,
    a_closed_pipe_is_no_message,
])
