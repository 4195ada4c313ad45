"""The cases of tests/data/cases, which say what each is for."""
import json
import mmap
from pathlib import Path

import numpy as np
import pytest
from attention_reference import assert_within

import attn

FOLDER = Path(__file__).parents[2] / "data" / "cases"
MAP_NORESERVE = 0x4000  # Linux's; Python's mmap has no name for it before 3.13
TYPES = {None: "float32", "f32": "float32", "f16": "float16"}


def load(file, operation):
    cases = json.loads((FOLDER / file).read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["name"]) for case in cases if case["op"] == operation]


def tensor(description, dtype="float32"):
    """An array of the description's strides, which count elements, over its own buffer."""
    buffer = np.array([float(number) for number in description["data"]], dtype)
    shape = tuple(description["shape"])
    if "strides" not in description:
        return buffer.reshape(shape)
    strides, start = description["strides"], description["start"]
    places = start + sum(np.arange(size).reshape([-1 if axis == other else 1 for other in range(4)]) * stride
                         for axis, (size, stride) in enumerate(zip(shape, strides)))
    memory = np.frombuffer(sparse_memory((int(places.max()) + 1) * buffer.itemsize), dtype)
    memory[places] = buffer.reshape(shape)
    return np.lib.stride_tricks.as_strided(memory[start:], shape, [stride * memory.itemsize for stride in strides])


def sparse_memory(size):
    """Zeros, of which only the pages that are touched cost memory: one case has 8 GiB between two batches."""
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)


def settings_of(given):
    settings = {}
    for name in ("causal", "window", "alibi"):
        place = given.get(name, {})
        if "offset" in place or "align" in place:
            settings["align"] = place.get("offset", place.get("align"))
    if "causal" in given:
        settings["causal"] = True
    if "window" in given:
        settings["window"] = (given["window"].get("left"), given["window"].get("right"))
    if "alibi" in given:
        settings["alibi_slopes"] = np.array(given["alibi"]["slopes"], "float32")
    for theirs, ours in (("scale", "scale"), ("softcap", "soft_cap"), ("dropout", "dropout"),
                         ("key_lengths", "key_lengths")):
        if theirs in given:
            settings[ours] = given[theirs]
    if "sink" in given:
        settings["sinks"] = np.array(given["sink"], "float32").reshape(-1)
    keep = tensor(given["keep"], "bool") if "keep" in given else None
    bias = tensor(given["bias"]) if "bias" in given else None
    if keep is not None and bias is not None:
        settings["mask"] = np.where(keep, bias, -np.inf).astype("float32")
    elif keep is not None or bias is not None:
        settings["mask"] = bias if keep is None else keep
    return settings


def compare(case, name, got):
    want = tensor(case["expected"][name], "float64")
    tolerance = case.get("tolerance", 0)
    tolerance = tolerance[name] if isinstance(tolerance, dict) else tolerance
    assert_within(got, want, tolerance, name)
    for place in case.get("exact_zeros", {}).get(name, ()):
        assert np.asarray(got).reshape(-1)[place] == 0, f"{name}, element {place}, is not exactly 0"


@pytest.mark.parametrize("case", load("attention.json", "forward"))
def test_forward(case):
    given, expected = case["input"], case["expected"]
    dtype = TYPES[given.get("dtype")]
    q, k, v = (tensor(given[name], dtype) for name in "qkv")
    settings = settings_of(given)
    if "refused" in expected:
        with pytest.raises(ValueError):
            attn.attention(q, k, v, **settings)
        return
    if "o_is_one_of" in expected:
        seen = set()
        for seed in given["seeds"]:
            out = attn.attention(q, k, v, **settings, dropout_seed=seed).reshape(-1)
            for element in out:
                fits = [number for number in expected["o_is_one_of"] if abs(element - number) <= 1e-5 * max(1, number)]
                assert fits, f"{element} is none of {expected['o_is_one_of']}"
                seen.add(fits[0])
        assert not expected["both_occur"] or len(seen) == len(expected["o_is_one_of"])
        return
    for seed in given.get("seeds", (0,)):
        out, stats = attn.attention(q, k, v, return_stats=True, **settings, dropout_seed=seed,
                                    out=np.empty((*q.shape[:3], v.shape[3]), "float32"))
        compare(case, "o", out)
        if "lse" in expected:
            with np.errstate(divide="ignore"):
                compare(case, "lse", stats[..., 0] + np.log(stats[..., 1]))
    settings.pop("dropout", None)
    if "weights" in expected:
        compare(case, "weights", attn.weights(q, k, **settings))
    if q.shape[2] <= 16:
        compare(case, "o", attn.decode(q, k, v, **settings, out=np.empty_like(out)))


@pytest.mark.parametrize("case", load("backward.json", "backward"))
def test_backward(case):
    given, expected = case["input"], case["expected"]
    q, k, v, d_out = (tensor(given[name]) for name in ("q", "k", "v", "do"))
    settings = settings_of(given)
    if "dv_equals" in expected:
        for seed in given["seeds"]:
            out = attn.attention(q, k, v, **settings, dropout_seed=seed)
            got = attn.gradients(d_out, q, k, v, **settings, dropout_seed=seed)
            assert abs(got.v.sum() - out.sum()) <= case["tolerance"]
            assert abs(got.q).max() <= case["tolerance"] and abs(got.k).max() <= case["tolerance"]
        return
    wanted = [name for name, theirs in (("q", "dq"), ("k", "dk"), ("v", "dv"), ("mask", "dbias"), ("sinks", "dsink"))
              if theirs in expected]
    got = attn.gradients(d_out, q, k, v, wanted=wanted, **settings)
    for name in wanted:
        theirs = {"mask": "dbias", "sinks": "dsink"}.get(name, "d" + name)
        compare(case, theirs, getattr(got, name).reshape(expected[theirs]["shape"]))
