"""attn train: tiny runs of a second. Needs no model."""
import csv
import json
import os
import resource
import signal
import subprocess
import time
from xml.etree import ElementTree

from tool import ATTN, FOLDER, attn, environment, fails, file, in_terminal, succeeds, tap

SENTENCES = [f"{subject} {verb} {thing}.\n" for verb in ["sees", "picks up", "wants", "paints"]
             for subject in ["The cat", "A dog", "The robot", "My friend"]
             for thing in ["the box", "a red ball", "the house", "it"]]  # fmt: skip
CORPUS = file("corpus.txt", "".join(SENTENCES[i * 37 % 64] for i in range(300)))
SIZES = ["--layers", "2", "--heads", "2", "--dim", "16", "--ctx", "12"]
TINY = ["train", "-f", CORPUS, *SIZES, "--vocab", "bytes", "--batch", "6", "--steps", "10"]
MASKED = ["train", "-f", CORPUS, *SIZES, "--objective", "mlm", "--vocab", "120", "--batch", "6", "--steps", "10"]
FILES = ["config.json", "loss.svg", "model.safetensors", "tokenizer.json", "training.csv",
         "training.safetensors"]  # fmt: skip


def folder(name):
    return str(FOLDER / name)


def content(name, file_name):
    return (FOLDER / name / file_name).read_bytes()


def log(name):
    with open(FOLDER / name / "training.csv") as rows:
        return list(csv.DictReader(rows))


def losses(name):
    return [(row["step"], row["loss"], row["held_out"], row["rate"], row["norm"]) for row in log(name)]


def summary(text):
    return dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines())


def a_run_leaves_a_model_and_prints_a_summary():
    text = succeeds(*TINY, "-o", folder("plain"))
    fields = summary(text)
    assert fields["steps"].strip() == "10 of 10" and fields["tokens"].strip() == "720"
    assert fields["model"].strip() == folder("plain")
    assert int(fields["parameters"]) > int(fields["vocabulary"]) > 0
    assert float(fields["loss"]) > 0 and float(fields["held out"]) > 0 and float(fields["tokens/s"]) > 0
    assert sum(int(share.split()[1][:-1]) for share in fields["time"].split(",")) in range(98, 103)
    assert sorted(os.listdir(folder("plain"))) == FILES
    assert json.loads(content("plain", "config.json"))["model_type"] == "gpt2"
    rows = log("plain")
    assert [int(row["step"]) for row in rows] == list(range(1, 11))
    assert list(rows[0]) == ["step", "loss", "held_out", "rate", "norm", "tokens_per_second"]
    assert float(rows[-1]["loss"]) == float(f"{float(rows[-1]['loss']):.9g}")
    assert abs(float(rows[-1]["loss"]) - float(fields["loss"])) < 1e-4
    assert ElementTree.fromstring(content("plain", "loss.svg")).tag.endswith("svg")


def the_tool_opens_what_it_learned():
    succeeds(*TINY, "-o", folder("opened"))
    assert "dog" in succeeds("look", "-m", folder("opened"), "A dog.")
    lines = succeeds("tokenize", "-m", folder("opened"), "it.").splitlines()
    assert [line.split("\t")[1] for line in lines] == ["i", "t", "."]
    succeeds(*MASKED, "-o", folder("opened-bert"))
    assert json.loads(content("opened-bert", "config.json"))["model_type"] == "bert"
    assert "cat" in succeeds("look", "-m", folder("opened-bert"), "The cat sees it.")


def the_loss_falls():
    for name, options in [("falls", TINY), ("falls-bert", MASKED)]:
        succeeds(*options, "-o", folder(name), "--steps", "120", "--lr", "0.01")
        rows = log(name)
        assert float(rows[-1]["loss"]) < 0.92 * float(rows[0]["loss"]), rows[-1]
        held_out = [float(row["held_out"]) for row in rows if row["held_out"]]
        assert len(held_out) == 10 and held_out[-1] < held_out[0]


def the_seed_is_all_that_chance_knows():
    for name, seed in [("seed-a", "7"), ("seed-b", "7"), ("seed-c", "8")]:
        succeeds(*TINY, "-o", folder(name), "--seed", seed, "--dropout", "0.1")
    assert losses("seed-a") == losses("seed-b") != losses("seed-c")
    assert content("seed-a", "model.safetensors") == content("seed-b", "model.safetensors")


def a_resume_gives_the_same_bytes():
    for options, kind in [(TINY, "gpt"), (MASKED, "mlm")]:
        more = [*options, "--dropout", "0.2", "--accumulate", "2"]
        succeeds(*more, "-o", folder(f"whole-{kind}"))
        text = succeeds(*more, "-o", folder(f"parts-{kind}"), "--stop-after", "5")
        assert summary(text)["steps"].strip() == "5 of 10"
        assert len(log(f"parts-{kind}")) == 5
        text = succeeds("train", "-f", CORPUS, "--resume", folder(f"parts-{kind}"))
        assert summary(text)["steps"].strip() == "10 of 10"
        assert losses(f"whole-{kind}") == losses(f"parts-{kind}")
        for name in ["model.safetensors", "training.safetensors", "tokenizer.json", "config.json"]:
            assert content(f"whole-{kind}", name) == content(f"parts-{kind}", name), name


def a_finished_training_goes_on_with_more_steps():
    succeeds(*TINY, "-o", folder("grown"))
    text = succeeds("train", "-f", CORPUS, "--resume", folder("grown"))
    assert summary(text)["steps"].strip() == "10 of 10"
    text = succeeds("train", "-f", CORPUS, "--resume", folder("grown"), "--steps", "14", "--stop-after", "3")
    assert summary(text)["steps"].strip() == "13 of 14"
    fails(1, ["--steps is 12", "14"], "train", "-f", CORPUS, "--resume", folder("grown"), "--steps", "12")


def fine_tuning_keeps_tokenizer_and_sizes():
    for options, kind in [(TINY, "gpt"), (MASKED, "mlm")]:
        succeeds(*options, "-o", folder(f"base-{kind}"), "--steps", "60", "--lr", "0.01")
        text = succeeds("train", "-f", CORPUS, "-m", folder(f"base-{kind}"), "-o", folder(f"tuned-{kind}"),
                        "--steps", "3", "--batch", "4", "--lr", "0.0001")  # fmt: skip
        assert summary(text)["steps"].strip() == "3 of 3"
        assert content(f"base-{kind}", "tokenizer.json") == content(f"tuned-{kind}", "tokenizer.json")
        before, after = float(log(f"base-{kind}")[-1]["loss"]), float(log(f"tuned-{kind}")[0]["loss"])
        assert after < 0.3 + before < 0.3 + float(log(f"base-{kind}")[0]["loss"]) - 1


def a_sample_is_text_and_the_same_again():
    more = [*TINY, "--steps", "40", "--lr", "0.01", "--sample", "30"]
    one = succeeds(*more, "-o", folder("sample-a"))
    other = succeeds(*more, "-o", folder("sample-b"))
    sample = one.split("\n\n", 1)[1]
    assert 5 < len(sample) <= 40 and sample == other.split("\n\n", 1)[1]
    fails(2, ["--sample", "mlm"], *MASKED, "-o", folder("sample-c"), "--sample", "5")
    assert not os.path.exists(folder("sample-c"))


def a_terminal_shows_progress():
    text = in_terminal(*TINY, "-o", folder("terminal"), "--steps", "30")
    shown = text.replace("\x1b[K", "\r").split("\r")
    bars = [part for part in shown if part.startswith("attn train: [")]
    assert bars and "30 of 30" in bars[-1] and "tokens/s" in bars[-1] and "0:00 left" in bars[-1]
    assert "loss " in bars[-1] and "held out " in bars[-1] and "steps:        30 of 30" in text


def wait_for_steps(name, process):
    """Until the log has a few rows."""
    path = FOLDER / name / "training.csv"
    for _ in range(600):
        if path.exists() and path.read_text().count("\n") > 3:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("no step in 30 seconds")


def a_signal_saves_and_ends():
    for number in [signal.SIGINT, signal.SIGTERM]:
        name = f"signal-{number}"
        process = subprocess.Popen([ATTN, *TINY, "-o", folder(name), "--steps", "1000000"], env=environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        wait_for_steps(name, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, (process.returncode, err)
        assert "attn train: interrupted; --resume" in err and err.count("\n") == 1
        steps = int(summary(out)["steps"].split()[0])
        assert steps >= 3 and len(log(name)) == steps and f"step {steps}\n" in err
        text = succeeds("train", "-f", CORPUS, "--resume", folder(name), "--stop-after", "2")
        assert summary(text)["steps"].split()[0] == str(steps + 2)


def a_killed_run_resumes_from_its_checkpoint():
    more = ["--save-every", "5", "--steps", "1000000", "-o", folder("killed")]
    process = subprocess.Popen([ATTN, *TINY, *more], env=environment(), stdout=subprocess.DEVNULL)
    wait_for_steps("killed", process)
    process.kill()
    process.wait()
    text = succeeds("train", "-f", CORPUS, "--resume", folder("killed"), "--stop-after", "1")
    step = int(summary(text)["steps"].split()[0])
    assert step % 5 == 1 and [int(row["step"]) for row in log("killed")] == list(range(1, step + 1))


def a_loss_that_is_not_finite_ends_the_run():
    message = fails(1, ["step ", "finite", folder("ruined")], *TINY, "-o", folder("ruined"), "--lr", "1e9",
                    "--warmup", "0", "--steps", "500", "--save-every", "1")  # fmt: skip
    kept = int(message.rsplit("step ", 1)[1])
    assert 0 <= kept < 500 and set(os.listdir(folder("ruined"))) >= set(FILES) - {"loss.svg"}
    again = attn("train", "-f", CORPUS, "--resume", folder("ruined"), "--stop-after", "1")
    assert again.status == 0 or f"step {kept + 1}: " in again.err, again.err


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


def a_full_disk_keeps_the_checkpoint():
    fails(1, ["File too large"], *TINY, "-o", folder("full"), preexec_fn=limit_files)
    assert not os.path.exists(folder("full"))
    succeeds(*TINY, "-o", folder("full"), "--stop-after", "5")
    before = {name: content("full", name) for name in FILES}
    fails(1, ["model.safetensors", "File too large"], "train", "-f", CORPUS, "--resume", folder("full"),
          preexec_fn=limit_files)  # fmt: skip
    assert sorted(os.listdir(folder("full"))) == FILES
    for name in ["model.safetensors", "training.safetensors", "config.json"]:
        assert content("full", name) == before[name]
    succeeds("train", "-f", CORPUS, "--resume", folder("full"))


def refuses_texts_before_any_work():
    out = folder("refused")
    fails(1, "is empty", *TINY, "-f", file("empty.txt", ""), "-o", out)
    fails(1, ["8 tokens", "--ctx 12", "needs 13"], *TINY, "-f", file("short.txt", "too shor"), "-o", out)
    fails(1, ["latin1.txt", "byte 2", "UTF-8"], *TINY, "-f", file("latin1.txt", b"gr\xfc\xdfe" * 20), "-o", out)
    fails(1, "no such file", *TINY, "-f", folder("missing.txt"), "-o", out)
    fails(1, "cannot be made", *TINY, "-o", folder("no/such/folder"))
    fails(1, "is a file", *TINY, "-o", CORPUS)
    fails(1, "no-such-model", "train", "-f", CORPUS, "-m", "no-such-model", "-o", out)
    assert not os.path.exists(out)


def refuses_a_folder_with_a_model():
    succeeds(*TINY, "-o", folder("taken"), "--stop-after", "1")
    before = content("taken", "training.safetensors")
    fails(1, ["taken", "holds a training already", "--resume"], *TINY, "-o", folder("taken"))
    assert content("taken", "training.safetensors") == before
    file("other/config.json", "{}")
    fails(1, ["holds config.json already"], *TINY, "-o", folder("other"))


def refuses_resumes_of_something_else():
    succeeds(*TINY, "-o", folder("resumed"), "--stop-after", "2")
    other = file("other.txt", "".join(SENTENCES))
    fails(1, ["other.txt: is not the text"], "train", "-f", other, "--resume", folder("resumed"))
    fails(1, ["training.safetensors: no such file"], "train", "-f", CORPUS, "--resume", folder("nothing"))
    state = bytearray(content("resumed", "training.safetensors"))
    state[-5] ^= 1
    file("resumed/training.safetensors", bytes(state))
    fails(1, ["is damaged", "checksum"], "train", "-f", CORPUS, "--resume", folder("resumed"))
    file("resumed/training.safetensors", content("resumed", "model.safetensors"))
    fails(1, ["training.safetensors"], "train", "-f", CORPUS, "--resume", folder("resumed"))


def refuses_command_lines_that_are_wrong():
    fails(2, "-f FILE", "train")
    fails(2, "-o FOLDER", "train", "-f", CORPUS)
    fails(2, "'word' is not expected", *TINY, "word", "-o", folder("usage"))
    fails(2, ["-m", "--vocab"], *TINY, "-o", folder("usage"), "-m", "x")
    for option in ["--lr", "--seed", "--batch", "--ctx", "--layers"]:
        fails(2, ["--resume", option], "train", "-f", CORPUS, "--resume", folder("usage"), option, "1")
    fails(2, ["--resume", "--output"], "train", "-f", CORPUS, "--resume", folder("usage"), "-o", "x")
    fails(2, ["--resume", "--model"], "train", "-f", CORPUS, "--resume", folder("usage"), "-m", "x")
    fails(2, ["--dim is 10", "--heads, 3"], "train", "-f", CORPUS, "-o", "x", "--dim", "10", "--heads", "3")
    fails(2, ["--batch is 6", "--accumulate"], *TINY, "-o", "x", "--accumulate", "4")
    fails(2, ["--vocab", "257"], *TINY, "-o", "x", "--vocab", "100")
    fails(2, ["--vocab", "'bytes'"], *MASKED, "-o", "x", "--vocab", "bytes")
    fails(2, ["--warmup is 10"], *TINY, "-o", "x", "--warmup", "10")
    fails(2, ["--final-lr"], *TINY, "-o", "x", "--final-lr", "1")
    for option, value in [("--lr", "nan"), ("--lr", "-1"), ("--dropout", "1"), ("--steps", "0"),
                          ("--objective", "bert"), ("--schedule", "step"), ("--stop-after", "0"),
                          ("--heads", "0"), ("--vocab", "many"), ("--held-out", "1")]:  # fmt: skip
        fails(2, [option, f"'{value}'"], *TINY, "-o", "x", option, value)
    fails(2, "--resume is empty", "train", "-f", CORPUS, "--resume", "")


tap.run([
    a_run_leaves_a_model_and_prints_a_summary,
    the_tool_opens_what_it_learned,
    the_loss_falls,
    the_seed_is_all_that_chance_knows,
    a_resume_gives_the_same_bytes,
    a_finished_training_goes_on_with_more_steps,
    fine_tuning_keeps_tokenizer_and_sizes,
    a_sample_is_text_and_the_same_again,
    a_terminal_shows_progress,
    a_signal_saves_and_ends,
    a_killed_run_resumes_from_its_checkpoint,
    a_loss_that_is_not_finite_ends_the_run,
    a_full_disk_keeps_the_checkpoint,
    refuses_texts_before_any_work,
    refuses_a_folder_with_a_model,
    refuses_resumes_of_something_else,
    refuses_command_lines_that_are_wrong,
])
