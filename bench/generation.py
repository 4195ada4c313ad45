#!/usr/bin/env python3
"""attn beside llama.cpp, writing with the same GGUF file on one core, in turn.

    scripts/bench-peers BUILD generation [--model FILE] [--llama-bench PATH] [--rounds N] [--json] …

Each round runs a process of each for a prompt of 512 tokens, 64 tokens written, and 64 tokens written behind 2,048,
with `attn bench generate` and `llama-bench`; and, where llama-completion is there, whole processes that open the
model, read 9 tokens and write 32. A ratio is the median over the rounds of attn's speed over llama.cpp's: below 1
attn is slower. The programs of llama.cpp are those in PATH, or llama-bench's neighbour.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct"
PROMPT = "The quick brown fox jumps over the lazy dog"
SUBJECTS = {  # tokens of the prompt, tokens written, tokens before them
    "prefill 512": (512, 0, 0),
    "decode 64": (0, 64, 0),
    "decode 64 behind 2048": (0, 64, 2048),
}
PROCESS = "open, 9 tokens, write 32"


def result_of(command):
    try:
        finished = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"bench-peers: {command[0]}: {error.strerror}")
    if finished.returncode:
        sys.exit(f"bench-peers: {command[0]}: {finished.stderr.strip()[-500:]}")
    return json.loads(finished.stdout)


def rate_of_attn(given, prompt, write, depth):
    """Tokens a second, and what share of the machine's measure that takes."""
    result = result_of([
        given.tool, "bench", "generate", "--json", "-m", given.model, "-t", "1", "-r", str(given.runs), "-p", str(prompt),
        "-n", str(write), "--depth", str(depth), "--precision", given.precision, "--cache-type", given.cache_type])  # fmt: skip
    part = result["prefill"] or result["decode"]
    return part["tokens_per_second"], part.get("of_peak") or part.get("of_bandwidth")


def rate_of_llama(given, prompt, write, depth):
    [result] = result_of([
        given.llama_bench, "-m", given.model, "-t", "1", "-r", str(given.runs), "-o", "json", "-p", str(prompt),
        "-n", str(write), "-d", str(depth)])  # fmt: skip
    return result["avg_ts"]


def process(command):
    """(seconds, most memory in MiB) of a whole process."""
    with open(os.devnull, "r+b") as null, tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdin=null, stdout=null, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            sys.exit(f"bench-peers: {command[0]}: {said.read()[-500:].decode(errors='replace')}")
    return seconds, usage.ru_maxrss / 1024


def processes(given):
    """Those of attn and of llama.cpp: the same words, the same number of tokens."""
    greedy = ["-m", given.model, "-t", "1", "-p", PROMPT, "-n", "32", "-c", "512", "--temp", "0"]
    attn = process([given.tool, "generate", *greedy, "--precision", given.precision, "--cache-type", given.cache_type])
    return attn, process([given.llama_completion, *greedy, "-no-cnv", "--no-warmup"])


def run_round(given, found):
    for name, sizes in SUBJECTS.items():
        if given.filter in name:
            attn, share = rate_of_attn(given, *sizes)
            found.setdefault(name, []).append({"attn": attn, "llama.cpp": rate_of_llama(given, *sizes), "share": share})
    if given.llama_completion and given.filter in PROCESS:
        attn, llama = processes(given)
        found.setdefault(PROCESS, []).append(
            {"attn": 1 / attn[0], "llama.cpp": 1 / llama[0], "mib": {"attn": attn[1], "llama.cpp": llama[1]}})


def summary(name, rounds):
    """Medians, and the ratio of the rounds' two halves that stand side by side."""
    result = {"name": name, "ratio": statistics.median(one["attn"] / one["llama.cpp"] for one in rounds)}
    unit = "processes_per_second" if name == PROCESS else "tokens_per_second"
    result[unit] = {who: statistics.median(one[who] for one in rounds) for who in ("attn", "llama.cpp")}
    if name == PROCESS:
        result["mib"] = {who: max(one["mib"][who] for one in rounds) for who in ("attn", "llama.cpp")}
    else:
        result["share"] = statistics.median(one["share"] for one in rounds)
    return result


def line(result):
    if result["name"] == PROCESS:
        cells = [f"{1 / rate:.3f} s" for rate in result["processes_per_second"].values()]
        note = " and ".join(f"{mib:.0f}" for mib in result["mib"].values()) + " MiB"
    else:
        cells = [f"{rate:.1f}" for rate in result["tokens_per_second"].values()]
        note = f"{result['share']:.0%} of the {'peak' if result['name'].startswith('prefill') else 'bandwidth'}"
    return f"{result['name']:<26}" + "".join(f"{cell:>11}" for cell in cells) + f"{result['ratio']:>8.2f}   {note}"


def default_model():
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    files = sorted((Path(data) / "attn" / "models" / MODEL).glob("*.gguf"))
    return str(files[0]) if files else None


def beside(path, name):
    """The neighbour of a program, or what PATH has."""
    neighbour = Path(path).with_name(name)
    return str(neighbour) if neighbour.is_file() else shutil.which(name)


def arguments():
    parser = argparse.ArgumentParser(prog="bench-peers generation", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tool", default=Path(__file__).parent.parent / "build" / "attn", help=argparse.SUPPRESS)
    parser.add_argument("--model", default=default_model(), metavar="FILE", help=f"a GGUF file; without it {MODEL}")
    parser.add_argument("--llama-bench", default=shutil.which("llama-bench"), metavar="PATH")
    parser.add_argument("--llama-completion", metavar="PATH")
    parser.add_argument("--filter", default="", metavar="TEXT", help="subjects whose names contain it")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="in each process")
    parser.add_argument("--precision", choices=("exact", "bf16"), default="exact", help="attn's")
    parser.add_argument("--cache-type", choices=("f32", "f16", "bf16", "int8"), default="f16", help="attn's")
    parser.add_argument("--json", action="store_true", help="one object a line")
    given = parser.parse_args()
    if given.rounds < 1 or given.runs < 1:
        parser.error("--rounds and --runs take a number from 1 on")
    if not any(given.filter in name for name in (*SUBJECTS, PROCESS)):
        parser.error(f"no subject is named like {given.filter!r}")
    return given


def main():
    given = arguments()
    if not given.model:
        sys.exit(f"bench-peers: {MODEL} is not there; attn-fetch-model fetches it, or --model names a GGUF file")
    if not given.llama_bench:
        sys.exit("bench-peers: llama-bench of llama.cpp is not in PATH; --llama-bench names it")
    given.llama_completion = given.llama_completion or beside(given.llama_bench, "llama-completion")
    if hasattr(os, "sched_setaffinity"):  # children stay on the same core
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = {}
    for number in range(given.rounds):
        run_round(given, found)
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
    if not given.json:
        print(f"{'':<26}{'attn':>11}{'llama.cpp':>11}{'ratio':>8}   attn takes")
    for name, rounds in found.items():
        result = summary(name, rounds)
        print(json.dumps(result) if given.json else line(result))


if __name__ == "__main__":
    main()
