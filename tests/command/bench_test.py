"""attn bench: its names, its forms of output, its command line. No speed is asked for."""
import json
import math
import platform
import re

from tool import ROOT, fails, in_terminal, succeeds, tap

FIELDS = ["name", "ms", "gflops", "of_peak", "gbps", "of_bandwidth", "of_forward", "workspace", "isa", "threads"]
STANDARD = """
f32-dense-L128-h12-d64 f32-dense-L2048-d64 f32-dense-L2048-d128 f32-dense-L16384-h1-d128
f32-causal-L2048-d64 f32-causal-L2048-d128 f32-window256-L16384-d64
bf16-dense-L2048-d64 bf16-dense-L2048-d128 bf16-causal-L2048-d128 f16-dense-L2048-d64 f16-dense-L2048-d128
f32-decode-Lk8192-h32-8-d128 bf16-decode-Lk8192-h32-8-d128 f16-decode-Lk8192-h32-8-d128
i8-decode-Lk8192-h32-8-d128 f32-dense-L1024-d1 f32-dense-L1024-d192-v128 f32-dense-L128-Lk2048-d64
f32-backward-dense-L2048-d64 f32-backward-dense-L2048-d128 f32-backward-causal-L2048-d64
bf16-backward-dense-L2048-d64 bf16-backward-causal-L2048-d128
f32-inspect-dense-L4096-d64 f32-inspect-sums-dense-L4096-d64
""".split()
NAME = re.compile(
    r"(f32|bf16|f16|i8)-(backward-|inspect-(?:sums-)?)?(dense|causal|window256|varlen8|alibi|softcap|bias|decode)"
    r"-(L\d+(-Lk\d+)?|Lk\d+(-Lq\d+)?)(-h\d+(-\d+)?)?-d\d+(-v\d+)?")


def bench(*arguments, **settings):
    return succeeds("bench", "attention", *arguments, **settings)


def objects(*arguments, **settings):
    return [json.loads(line) for line in bench("--json", *arguments, **settings).splitlines()]


def is_positive(number):
    return isinstance(number, float | int) and math.isfinite(number) and number > 0


def explains_every_case():
    lines = [line.split(": ", 1) for line in bench("--explain").splitlines()]
    names = [name for name, _ in lines]
    assert len(set(names)) == len(names)
    for name, text in lines:
        assert NAME.fullmatch(name), name
        assert len(text) > 10, (name, text)
    assert set(STANDARD) <= set(names), set(STANDARD) - set(names)


def a_case_that_computes():
    [case] = objects("--filter", "f32-dense-L7-d64")
    assert list(case) == FIELDS
    assert case["name"] == "f32-dense-L7-d64" and case["threads"] == 1
    assert is_positive(case["ms"]) and is_positive(case["gflops"]) and is_positive(case["of_peak"])
    assert case["gbps"] is None and case["of_bandwidth"] is None and case["of_forward"] is None
    assert isinstance(case["workspace"], int) and case["workspace"] > 0
    # 4·L²·d operations a head.
    assert math.isclose(case["gflops"] * case["ms"] * 1e6, 4 * 7 * 7 * 64 * 8, rel_tol=1e-3)


def a_case_that_reads():
    [case] = objects("--filter", "f32-decode-Lk512-h32-8-d128")
    assert list(case) == FIELDS and case["of_peak"] is None
    for field in ["ms", "gflops", "gbps", "of_bandwidth"]:
        assert is_positive(case[field]), field
    assert math.isclose(case["gbps"] * case["ms"] * 1e6, 2 * 8 * 512 * 128 * 4, rel_tol=1e-3)


def a_case_that_inspects():
    [case] = objects("--filter", "f32-inspect-sums-dense-L512-d64")
    assert list(case) == FIELDS and is_positive(case["of_peak"]) and is_positive(case["of_forward"])
    assert math.isclose(case["gflops"] * case["ms"] * 1e6, 4 * 512 * 512 * 64 * 8, rel_tol=1e-3)
    assert "times the forward pass" in bench("--filter", "f32-inspect-sums-dense-L512-d64")


def a_case_that_goes_back():
    [case] = objects("--filter", "f32-backward-dense-L128-h12-d64")
    assert list(case) == FIELDS and is_positive(case["of_peak"]) and case["workspace"] > 0
    # 10·L²·d operations a head.
    assert math.isclose(case["gflops"] * case["ms"] * 1e6, 10 * 128 * 128 * 64 * 12, rel_tol=1e-3)


def steps_of_training():
    tiny = ["--layers", "1", "--heads", "2", "--dim", "16", "--ctx", "8", "--vocab", "50", "--batch", "2", "--steps", "2"]
    result = json.loads(succeeds("bench", "training", "--json", *tiny))
    shares = ["attention", "linear", "optimizer", "rest"]
    assert list(result) == ["tokens_per_second", "of_peak", *shares, "peak_mib", "threads"]
    assert is_positive(result["tokens_per_second"]) and is_positive(result["peak_mib"])
    assert math.isclose(sum(result[name] for name in shares), 1, abs_tol=0.01), result
    text = succeeds("bench", "training", *tiny)
    assert "tokens/s" in text and all(name in text for name in shares)
    fails(2, ["--dim", "multiple of --heads"], "bench", "training", "--dim", "10", "--heads", "3")
    fails(2, ["--layers", "'0'"], "bench", "training", "--layers", "0")
    fails(2, "'attention' is not expected", "bench", "training", "attention")


def a_model_that_writes():
    gpt2 = ["bench", "generate", "-m", str(ROOT / "tests" / "data" / "models" / "gpt2"), "-r", "1"]
    sizes = ["-p", "5", "-n", "3", "--depth", "4"]
    result = json.loads(succeeds(*gpt2, *sizes, "--json", "--isa", "scalar", "--cache-type", "f32"))
    assert list(result) == ["model", "kind", "isa", "threads", "precision", "cache", "depth", "prefill", "decode", "peak_mib"]
    told = [result[name] for name in ("model", "kind", "isa", "threads", "precision", "cache", "depth")]
    assert told == ["gpt2", "gpt2", "scalar", 1, "exact", "f32", 4], told
    assert is_positive(result["peak_mib"])
    prefill, decode = result["prefill"], result["decode"]
    assert list(prefill) == ["tokens", "tokens_per_second", "gflops", "of_peak"] and prefill["tokens"] == 5
    assert list(decode) == ["tokens", "tokens_per_second", "gbps", "of_bandwidth"] and decode["tokens"] == 3
    assert all(is_positive(number) for number in [*prefill.values(), *decode.values()])
    # Two layers of width 16, 23 words: 12·16² weights a layer in matrices, 9·16 biases, 4·16 of norms; 2·16 of the
    # last norm. Scores: 5·4 + 15 of 4·16 operations a layer.
    layers, head = 2 * (12 * 256 + 13 * 16) + 2 * 16, 23 * 16
    operations = 2 * layers * 5 + 2 * head + 4 * 16 * 2 * (5 * 4 + 15)
    assert math.isclose(prefill["gflops"] / prefill["tokens_per_second"] * 5e9, operations, rel_tol=0.01)
    # Keys and values of 2 layers and 16 numbers, of 5, 6 and 7 tokens.
    bytes_ = 3 * 4 * (layers + head) + 2 * 2 * 16 * 4 * (5 + 6 + 7)
    assert math.isclose(decode["gbps"] / decode["tokens_per_second"] * 3e9, bytes_, rel_tol=0.02)

    lines = succeeds(*gpt2, *sizes).splitlines()
    assert [line.split(":")[0] for line in lines] == ["model", "isa", "threads", "prefill", "decode", "memory"]
    rate = r"    5 tokens behind 4: [\d.]+ tokens/s, [\d.]+ GFLOP/s, \d+% of the peak of [\d.]+ GFLOP/s"
    assert re.fullmatch("prefill:" + rate, lines[3]), lines
    rate = r"     3 tokens behind 4: [\d.]+ tokens/s, [\d.]+ GB/s, \d+% of the read bandwidth of [\d.]+ GB/s"
    assert re.fullmatch("decode:" + rate, lines[4]), lines
    one = json.loads(succeeds(*gpt2, "-p", "0", "-n", "2", "--json"))
    assert one["prefill"] is None and one["decode"]["tokens"] == 2
    one = json.loads(succeeds(*gpt2, "-p", "2", "-n", "0", "--json"))
    assert one["decode"] is None and one["prefill"]["tokens"] == 2
    fails(1, ["13 tokens", "12 positions"], *gpt2, "-p", "1", "-n", "9", "--depth", "4")
    fails(2, "nothing to time", *gpt2, "-p", "0", "-n", "0")
    fails(2, ["--cache-type", "'f8'", "f32, f16, bf16 or int8"], *gpt2, "--cache-type", "f8")
    fails(2, ["--depth", "'-1'"], *gpt2, "--depth", "-1")
    fails(2, "'twice' is not expected", *gpt2, "twice")
    bert = str(ROOT / "tests" / "data" / "models" / "bert")
    fails(1, "bert", "bench", "generate", "-m", bert)


def the_table_says_what_it_measured():
    text = bench("--filter", "L16-d64")
    head, table = text.split("\n\n")
    fields = dict(line.split(":", 1) for line in head.splitlines())
    assert list(fields) == ["cpu", "isa", "threads", "peak", "bandwidth"]
    assert "GFLOP/s" in fields["peak"] and "GB/s" in fields["bandwidth"]
    titles, row = table.splitlines()
    assert titles.startswith("case") and len(titles) == len(row)
    name, ms, gflops, of_peak, gbps, of_bandwidth, workspace = row.split()
    assert name == "f32-dense-L16-d64" and of_peak.endswith("%") and (gbps, of_bandwidth) == ("-", "-")
    assert float(ms) > 0 and float(gflops) > 0 and float(workspace) > 0


def filters_add_up():
    names = [line.split(":")[0] for line in
             bench("--explain", "--filter", "L7-", "--filter", "f32-window256", "--filter", "L7").splitlines()]
    assert names == ["f32-window256-L16384-d64", "f32-dense-L7-d64"], names


def the_isa_and_threads_are_those_asked_for():
    [case] = objects("--filter", "f32-dense-L7-d64", "--isa", "scalar", "-t", "2")
    assert case["isa"] == "scalar" and case["threads"] in (1, 2)
    [case] = objects("--filter", "f32-dense-L7-d64", env={"ATTN_ISA": "scalar"})
    assert case["isa"] == "scalar"


def bf16_is_a_wish():
    [case] = objects("--filter", "bf16-dense-L128", "--precision", "bf16")
    assert case["name"] == "bf16-dense-L128-h12-d64" and is_positive(case["ms"])
    assert bench("--explain", "--filter", "bf16-dense-L128", "--precision", "exact")


def progress_is_for_terminals():
    text = in_terminal("bench", "attention", "--filter", "f32-dense-L7-d64", "--json")
    assert "\rattn bench: f32-dense-L7-d64 (1 of 1)" in text
    assert json.loads(text.rsplit("\x1b[K", 1)[1])["name"] == "f32-dense-L7-d64"


def refuses_what_it_cannot_have():
    # No machine has both.
    lacks = "neon" if platform.machine() == "x86_64" else "avx2"
    fails(1, [f"--isa {lacks}", "scalar"], "bench", "attention", "--isa", lacks)
    fails(1, "ATTN_ISA is 'fast', but must be scalar", "bench", "attention", env={"ATTN_ISA": "fast"})


def refuses_wrong_command_lines():
    fails(2, ["attn bench: ", "attention"], "bench")
    fails(2, ["'train'", "attention, training and generate"], "bench", "train")
    fails(2, ["'L2048'", "--filter"], "bench", "attention", "L2048")
    fails(2, ["'no-such'", "--explain"], "bench", "attention", "--filter", "dense", "--filter", "no-such")
    fails(2, ["--filter", "empty"], "bench", "attention", "--filter", "")
    fails(2, "32 times", "bench", "attention", *["--filter", "dense"] * 33)
    fails(2, ["--isa", "'sse'", "scalar, avx2, avx512 or neon"], "bench", "attention", "--isa", "sse")
    fails(2, ["--precision", "'fp8'", "exact or bf16"], "bench", "attention", "--precision", "fp8")
    fails(2, ["-t", "'0'"], "bench", "attention", "-t", "0")
    fails(2, ["--json", "--explain"], "bench", "attention", "--json", "--explain")
    fails(2, "'-m'", "bench", "attention", "-m", "model")


def a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        fails(1, ["standard output", "No space left"], "bench", "attention", "--explain", stdout=full)


tap.run([
    explains_every_case,
    a_case_that_computes,
    a_case_that_reads,
    a_case_that_goes_back,
    a_case_that_inspects,
    steps_of_training,
    a_model_that_writes,
    the_table_says_what_it_measured,
    filters_add_up,
    the_isa_and_threads_are_those_asked_for,
    bf16_is_a_wish,
    progress_is_for_terminals,
    refuses_what_it_cannot_have,
    refuses_wrong_command_lines,
    a_full_disk_is_told,
])
