#!/usr/bin/env python3
"""Runs the fuzz targets of a build folder, side by side on all CPUs.

    fuzz/run.py BUILD [TARGET …]

Each target runs for FUZZ_SECONDS (600). What reaches new code is kept in BUILD/corpus/TARGET, which
begins with files of tests/data and the next run starts from; an input that crashes a target, or takes
it more than 25 seconds or 2 GiB, in BUILD/crashes, with what the target said beside it. Exit status 0
iff none did. One input again: BUILD/fuzz/fuzz_TARGET FILE.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
LARGEST_SEED = 200_000
LONGEST = {"text": 500, "utf8_stream": 200}  # bytes of an input, where longer ones show no more

# The files that each target starts from, as patterns under tests/data.
SEEDS = {
    "bert_config": ["models/**/config.json"],
    "causal_settings": ["models/**/config.json"],
    "checkpoint": ["**/*.index.json"],
    "gguf": ["**/*.gguf"],
    "gguf_model": ["**/*.gguf"],
    "gpt2_config": ["models/**/config.json"],
    "safetensors": ["**/*.safetensors"],
    "tokenizer_json": ["golden/tokenizer_small.json", "golden/tokenizer_bytes.json",
                       "models/**/tokenizer.json"],
    "tokenizer_lines": ["models/**/vocab.txt"],
    "treebank": ["treebank/*.conllu"],
}  # fmt: skip
TEXTS = [
    "größe 😀 \ufffd",
    "It's the naïve robot's 1937th  screwdriver, isn't it?\n\n\tYES\u00a0\u3000 x",
    "今日は今日 Жук aaaaaaaaaaaa <|im_end|> ٣٤٥ ½ e\u0301\u200d\r\n",
]
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Seeds that stand in no file; files of one input are parted by NUL bytes.
MORE = {
    "chat_template": [CHATML, "[INST] {{ messages[0]['content'] }} [/INST]"],
    "embedding_settings": [
        '[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},'
        '{"idx":1,"name":"1","path":".","type":"sentence_transformers.models.Pooling"},'
        '{"idx":2,"name":"2","path":"2","type":"sentence_transformers.models.Normalize"}]\0'
        '{"word_embedding_dimension":8,"pooling_mode_cls_token":false,'
        '"pooling_mode_mean_tokens":true}'
    ],
    "model_manners": [
        '{"model_type":"llama","eos_token_id":2}\0{"eos_token_id":[2,0]}\0{"chat_template":"a"}',
        '{"model_type":"gpt2","eos_token_id":2}\0{}\0'
        '{"chat_template":[{"name":"default","template":"b"}]}\0' + CHATML,
    ],
    "tokenizer_lines": ['[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\nrobot\n\0{"do_lower_case":true}'],
    "text": TEXTS,
    "tokenizer_merges": [
        '{"<|endoftext|>":0,"t":1,"h":2,"e":3,"th":4,"the":5,"Ġ":6,"Ġthe":7}\0'
        '#version: 0.2\nt h\nth e\nĠ the\n\0{"add_prefix_space":true}'
    ],
    "utf8_stream": TEXTS,
}


def gguf_tokenizer():
    """A tokenizer that is sound: the pre-tokenizer that is not known made one that is."""
    data = (DATA / "cases/files/unknown-pre-tokenizer.gguf").read_bytes()
    return data.replace(b"mystery-7", b"starcoder")


def training_state():
    settings = {
        "objective": "gpt", "ctx": 8, "batch": 2, "accumulate": 1, "steps": 9, "schedule": "cosine",
        "lr": 0.001, "final-lr": 0.0, "warmup": 1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8,
        "decay": 0.1, "clip": 1.0, "dropout": 0.0, "held-out": 0.05, "eval-every": 3, "save-every": 3,
        "seed": 1,
    }  # fmt: skip
    metadata = {"form": "attn training 1", "settings": json.dumps(settings), "step": "3", "tokens": "48",
                "corpus": "00000000000000aa", "corpus_size": "100", "checksum": "00000000000000bb"}  # fmt: skip
    header = json.dumps({"__metadata__": metadata}).encode()
    return len(header).to_bytes(8, "little") + header


def model_directories():
    """config.json and model.safetensors, parted by a NUL byte."""
    for config in sorted(DATA.glob("models/**/config.json")):
        weights = config.parent / "model.safetensors"
        if weights.exists() and weights.stat().st_size <= LARGEST_SEED:
            yield config.read_bytes() + b"\0" + weights.read_bytes()


# Seeds that are made of files, or of nothing.
MADE = {
    "gguf_model": lambda: [gguf_tokenizer()],
    "model_directory": model_directories,
    "training_state": lambda: [training_state()],
}


def seeds(target):
    for pattern in SEEDS.get(target, []):
        for path in sorted(DATA.glob(pattern)):
            if path.is_file() and path.stat().st_size <= LARGEST_SEED:
                yield path.read_bytes()
    yield from (text.encode() for text in MORE.get(target, []))
    yield from MADE.get(target, list)()


def prepare(build, target):
    corpus = build / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds(target):
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    return corpus


def run(build, target, seconds):
    """Runs one target to its end; whether it was clean, and a line about that."""
    corpus = prepare(build, target)
    crashes = build / "crashes"
    crashes.mkdir(exist_ok=True)
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        command = [
            build / "fuzz" / f"fuzz_{target}", f"-max_total_time={seconds}", "-timeout=25",
            "-rss_limit_mb=2048", "-use_value_profile=1", "-print_final_stats=1",
            f"-max_len={LONGEST.get(target, 0)}", f"-artifact_prefix={crashes / target}-", corpus,
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env={**os.environ, "TMPDIR": folder}
        )
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    count = f"{int(runs[1]):,} runs" if runs else "no run"
    if done.returncode == 0:
        return True, f"{target}: clean, {count}, {len(list(corpus.iterdir()))} inputs"
    log = crashes / f"{target}.log"
    log.write_text(done.stderr)
    artifacts = re.findall(r"Test unit written to (\S+)", done.stderr)
    return False, f"{target}: FAILED after {count}: {' '.join(artifacts) or 'no input'}; {log}"


def main(build, targets):
    build = build.resolve()
    seconds = int(os.environ.get("FUZZ_SECONDS", "600"))
    built = sorted(path.name[len("fuzz_") :] for path in (build / "fuzz").glob("fuzz_*") if path.is_file())
    targets = targets or built
    if not targets or not set(targets) <= set(built):
        sys.exit(f"{build}/fuzz has the targets {', '.join(built) or '(none)'}")
    shutil.rmtree(build / "crashes", ignore_errors=True)
    clean = True
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for good, line in pool.map(lambda target: run(build, target, seconds), targets):
            print(line, flush=True)
            clean = clean and good
    sys.exit(not clean)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
