"""python -m attn.bench: the shapes, the method, and what is printed."""
import json
import re
import runpy
import sys
from itertools import chain, repeat

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from attn.bench import __main__ as command  # noqa: E402
from attn.bench import calls, inputs, shapes, tables, timing  # noqa: E402
from attn.bench.comparison import Comparison  # noqa: E402

SMALL = ["--quick", "--threads", "1", "--rounds", "1"]


def shape_named(name):
    return next(shape for shape in shapes.standard() if shape.name == name)


def test_the_command_prints_a_table_and_the_overheads(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["attn.bench", *SMALL, "--filter", "dense-L2-h12"])
    with pytest.warns(RuntimeWarning, match="found in sys.modules"), pytest.raises(SystemExit) as ended:
        runpy.run_module("attn.bench", run_name="__main__")  # as python -m does, in a process that has PyTorch
    assert ended.value.code == 0
    told, machine = capsys.readouterr()
    assert re.fullmatch(r"attn [\d.]+ \(\w+\), \d+ CPUs, torch [\d.]+\S*; GFLOP/s of PyTorch's f32 products: "
                        r"\d+ on 1 thread\n", machine)  # fmt: skip
    lines = told.splitlines()
    assert lines[0].split() == ["1", "thread,", "ms"]
    assert lines[1].split() == ["shape", "attn", "torch", "ratio"]
    assert re.fullmatch(r"f32-dense-L2-h12-d64( +\d\S*){3}", lines[2])
    assert re.fullmatch(r"slower than PyTorch: (none|f32-dense-L2-h12-d64 \(1 thread, [\d.]+ µs\))", lines[3])
    assert lines[5].startswith("a tiny call, 1 thread, µs ")
    assert re.fullmatch(r"NumPy: attention +\d+\.\d\d +– +\d+\.\d\d +5", lines[6])
    assert re.fullmatch(r"PyTorch: wrapper, with backward +\d+\.\d\d +\d+\.\d\d +-?\d+\.\d\d +20", lines[10])


def test_a_table_has_columns_for_each_number_of_threads():
    seconds = {1: {"attn": 0.002, "torch": 0.003}, 2: {"attn": 0.0012345, "torch": 0.0011}}
    lines = [*tables.comparison_header([1, 2]).splitlines(), tables.comparison_line(Comparison("name", seconds, []))]
    assert [line.split() for line in lines] == [
        ["1", "thread,", "ms", "2", "threads,", "ms"],
        ["shape", *["attn", "torch", "ratio"] * 2],
        ["name", "2", "3", "1.50", "1.234", "1.1", "0.89"],
    ]
    assert len({len(line) for line in lines}) == 1
    assert tables.slower_texts(Comparison("name", seconds, [])) == ["name (2 threads, 134.5 µs)"]


def test_json_is_an_object_a_line(capsys):
    assert command.main([*SMALL, "--filter", "backward-dense-L128", "--json"]) == 0
    first, *rest = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["name"], first["threads"]) == ("f32-backward-dense-L128-b8-h12-d64", 1)
    assert first["ratio"] == first["ms"]["torch"] / first["ms"]["attn"]
    names = [one["name"] for one in rest]
    assert names[:2] == ["overhead: NumPy: attention", "overhead: PyTorch: wrapper, inference mode"]
    assert rest[1]["above"] == rest[1]["us"]["attn"] - rest[1]["us"]["torch"]


def test_a_slower_shape_is_named(capsys, monkeypatch):
    def slow(*tensors, **settings):
        for _ in range(20):
            result = scaled_dot_product_attention(*tensors, **settings)
        return result

    monkeypatch.setitem(calls.CONTENDERS, "attn", slow)
    assert command.main([*SMALL, "--filter", "dense-L33-h12"]) == 0
    assert "\nslower than PyTorch: f32-dense-L33-h12-d64 (1 thread, " in capsys.readouterr().out


@pytest.mark.parametrize("error", [3e-4, float("nan")])
def test_a_wrong_result_is_status_1(error, capsys, monkeypatch):
    def wrong(*tensors, **settings):
        result = scaled_dot_product_attention(*tensors, **settings)
        result[0, -1, -1, -1] += error
        return result

    monkeypatch.setitem(calls.CONTENDERS, "attn", wrong)
    assert command.main([*SMALL, "--filter", "keep-L128"]) == 1
    assert re.search(r"^attn.bench: f32-keep-L128-d64: attn differs by (0\.000\d+|nan), at most 0.0001 is allowed "
                     r"\(threads: 1\)$", capsys.readouterr().err, re.MULTILINE)  # fmt: skip


def test_overheads_alone_do_without_pytorch(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert command.main(["--overhead", *SMALL]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["a", "NumPy:"]
    with pytest.raises(SystemExit, match="^attn.bench: there is no PyTorch to compare with; --overhead"):
        command.main([])


@pytest.mark.parametrize(("words", "message"), [
    (["--threads", "1,0"], "argument --threads: whole numbers from 1 on, as 1,2, and not '1,0'"),
    (["--threads", ""], "argument --threads: whole numbers from 1 on, as 1,2, and not ''"),
    (["--rounds", "1,2"], "argument --rounds: one number, and not '1,2'"),
])  # fmt: skip
def test_numbers_are_checked(words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_filter_that_names_nothing_is_an_error():
    with pytest.raises(SystemExit, match="^attn.bench: no small shape is named like 'bf16'$"):
        command.main(["--quick", "--filter", "bf16"])


def test_shapes_come_once():
    names = [shape.name for shape in shapes.standard()]
    assert len(set(names)) == len(names)
    found = [shape.name for shape in calls.distinct_shapes()]
    assert set(names) - set(found) == {name for name in names if re.search(r"dense-L1-Lk|dense-L16-Lk", name)}


def test_products_are_counted():
    assert shape_named("f32-dense-L512-d64-v128").products == 8 * 512 * 512 * (64 + 128)
    assert shape_named("f32-backward-dense-L128-b8-h12-d64").products == 8 * 12 * 128 * 128 * 5 * 64


@pytest.mark.parametrize("name", [
    "f32-causal-L64-h12-d64", "f32-decode-Lk128-h32-8-d64", "f32-padding-L128-b8-h12-d64", "f32-keep-L128-d64",
    "f32-bias-L128-d64", "f32-backward-causal-L256-b4-h12-d64",
])  # fmt: skip
def test_the_formula_is_pytorchs(name):
    shape = shape_named(name)
    problem = inputs.make_inputs(shape)
    call = (calls.backward_call if shape.backward else calls.forward_call)(scaled_dot_product_attention, shape, problem)
    assert calls.largest_error(call(), inputs.expected(shape, problem)) <= 1e-5


def test_errors_grow_with_the_numbers():
    right = (torch.tensor([4.0, 1.0]), torch.tensor([0.5]))
    assert calls.largest_error((torch.tensor([4.0, 1.5]), torch.tensor([0.5])), right) == 0.125
    assert calls.largest_error((torch.tensor([4.0, 1.0]), torch.tensor([0.75])), right) == 0.25


def test_calls_take_turns_and_the_median_counts():
    """A clock that goes by a thousandth at each look but where it is told to jump."""
    order = []
    steps = chain(repeat(0.001, 8), [0.001, 0.011, 0.001, 0.004, 0.001, 0.004], repeat(0.001, 100))
    now = 0.0

    def clock():
        nonlocal now
        now += next(steps)
        return now

    found = timing.medians({"one": lambda: order.append(1), "other": lambda: order.append(2)}, 3, clock)
    warm = 5 * [1] + 5 * [2]
    assert order == [*warm, *([1] * 9), *([2] * 9), *([2] * 9), *([1] * 9), *([1] * 9), *([2] * 9)]
    assert found == pytest.approx({"one": 0.001 / 9, "other": 0.004 / 9})


def test_a_shape_that_takes_long_gets_fewer_rounds():
    rounds = []
    timing.medians({"one": lambda: rounds.append(1)}, 50, lambda: 0.1 * len(rounds), enough=0.0)
    assert len(rounds) == 2 + timing.FEWEST_ROUNDS


@pytest.mark.parametrize(("busy", "looks"), [([0.004, 0.002, 0.0], 3), ([0.0005], 1), ([0.005] * 1000, 200)])
def test_threads_come_to_rest_before_a_measurement(busy, looks, monkeypatch):
    """`busy` is what the process works in each time that is waited for, in seconds."""
    worked = [0.0]
    monkeypatch.setattr(timing.time, "process_time", lambda: sum(worked))
    monkeypatch.setattr(timing.time, "sleep", lambda seconds: worked.append(busy[len(worked) - 1]))
    timing.settle()
    assert len(worked) == 1 + looks
