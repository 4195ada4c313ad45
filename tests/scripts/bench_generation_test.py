"""bench/generation.py with stand-ins for attn and the programs of llama.cpp, whose speeds are known.

    bench_generation_test.py ROOT
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.append(str(ROOT / "tests"))

import tap  # noqa: E402

SUBJECTS = ["prefill 512", "decode 64", "decode 64 behind 2048", "open, 9 tokens, write 32"]

# Each run is slower than the one before, both of a round by the same factor.
ATTN = r"""#!/bin/sh
echo "attn $*" >>"$LOG"
[ "$1" = bench ] || exec sleep 0.1
runs=$(grep -c '^attn bench' "$LOG")
case "$*" in
*"-p 512"*) echo "{\"prefill\": {\"tokens_per_second\": $((600 / runs)), \"of_peak\": 0.5}, \"decode\": null}" ;;
*) echo "{\"prefill\": null, \"decode\": {\"tokens_per_second\": $((600 / runs)), \"of_bandwidth\": 0.25}}" ;;
esac
"""
LLAMA_BENCH = r"""#!/bin/sh
echo "llama-bench $*" >>"$LOG"
[ ! -e "$BROKEN" ] || { echo 'no such model' >&2; exit 1; }
echo "[{\"avg_ts\": $((300 / $(grep -c '^llama-bench' "$LOG")))}]"
"""
LLAMA_COMPLETION = r"""#!/bin/sh
echo "llama-completion $*" >>"$LOG"
exec sleep 0.4
"""


class Machine:
    def __init__(self, folder, *programs):
        self.folder = Path(folder)
        content = {"attn": ATTN, "llama-bench": LLAMA_BENCH, "llama-completion": LLAMA_COMPLETION}
        for name in ("attn", *programs):
            (self.folder / name).write_text(content[name])
            (self.folder / name).chmod(0o755)

    def run(self, *arguments):
        environment = {**os.environ, "PATH": "/usr/bin:/bin", "LOG": f"{self.folder}/log", "BROKEN": f"{self.folder}/broken",
                       "XDG_DATA_HOME": str(self.folder)}  # fmt: skip
        return subprocess.run([sys.executable, ROOT / "bench" / "generation.py", "--tool", self.folder / "attn", *arguments],
                              env=environment, capture_output=True, text=True)  # fmt: skip

    def measure(self, *arguments):
        """With the folder's llama-bench and a model, as a user would."""
        return self.run("--model", "model.gguf", "--llama-bench", str(self.folder / "llama-bench"), *arguments)

    def log(self):
        return (self.folder / "log").read_text().splitlines()


def on_machine(*programs):
    """Runs a test with a machine that has these programs of llama.cpp."""

    def decorate(test):
        def run():
            with tempfile.TemporaryDirectory() as folder:
                test(Machine(folder, *programs))

        run.__name__ = test.__name__
        return run

    return decorate


@on_machine("llama-bench", "llama-completion")
def ratios_are_medians_of_neighbours(machine):
    done = machine.measure("--json", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["name"] for result in results] == SUBJECTS
    for result in results[:3]:
        assert abs(result["ratio"] - 2) < 0.05, result
    assert [result["share"] for result in results[:3]] == [0.5, 0.25, 0.25]
    assert results[0]["tokens_per_second"] == {"attn": (600 + 150) / 2, "llama.cpp": (300 + 75) / 2}
    assert results[3]["ratio"] > 1 and results[3]["mib"]["attn"] > 0, results[3]


@on_machine("llama-bench", "llama-completion")
def both_are_asked_for_the_same(machine):
    assert machine.measure("--rounds", "1", "--precision", "bf16", "--cache-type", "int8").returncode == 0
    log = machine.log()
    assert [line.split()[0] for line in log] == ["attn", "llama-bench"] * 3 + ["attn", "llama-completion"]
    for line in log:
        assert "-m model.gguf -t 1" in line, line
    assert "-p 0 -n 64 --depth 2048 --precision bf16 --cache-type int8" in log[4]
    assert "-p 0 -n 64 -d 2048" in log[5]
    greedy = "-n 32 -c 512 --temp 0"
    assert greedy in log[6] and greedy in log[7]


@on_machine("llama-bench")
def the_table_leaves_out_what_is_not_there(machine):
    done = machine.measure("--rounds", "1")
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["attn", "llama.cpp", "ratio", "attn", "takes"]
    assert len(lines) == 3 and lines[0].startswith("prefill 512") and "50% of the peak" in lines[0], lines
    assert "25% of the bandwidth" in lines[2]
    done = machine.measure("--rounds", "1", "--filter", "2048")
    assert len(done.stdout.splitlines()) == 2


@on_machine("llama-bench")
def what_is_missing_is_named(machine):
    done = machine.run("--llama-bench", "llama-bench")
    assert done.returncode == 1 and "attn-fetch-model" in done.stderr, done
    done = machine.run("--model", "model.gguf")
    assert done.returncode == 1 and "llama-bench of llama.cpp is not in PATH" in done.stderr, done
    (machine.folder / "broken").touch()
    done = machine.measure("--rounds", "1")
    assert done.returncode == 1 and "no such model" in done.stderr, done
    done = machine.measure("--filter", "train")
    assert done.returncode == 2 and "'train'" in done.stderr, done


tap.run([
    ratios_are_medians_of_neighbours,
    both_are_asked_for_the_same,
    the_table_leaves_out_what_is_not_there,
    what_is_missing_is_named,
])
