"""Random calls of every function of attn. Call number i of a seed is always the same.

A call is right, and then it must be accepted and give what the formulas give; or something in it is wrong, and then it
must be refused by an error that says so in one line; or it is wild: objects that nobody would pass, where any error of
Python will do. None may crash. random_results.py makes the calls and judges.
"""
import math
from typing import Any, NamedTuple

import numpy as np
from dlpack_producer import Producer

import attn

SENTINEL = 7.0
INSPECTIONS = ("weights", "topk", "entropy", "received")
FUNCTIONS = ("attention", "attention", "decode", "gradients", *INSPECTIONS)


class Call(NamedTuple):
    function: str
    arrays: dict[str, np.ndarray]  # q, k, v, d_out as they are
    settings: dict[str, Any]  # as they are, for the formulas too
    given: dict[str, Any]  # what is passed: the same numbers in other layouts and guises
    outputs: dict[str, np.ndarray]  # which memory the outputs in `given` are parts of
    kind: str  # "right", or what is wrong


def chance(generator, probability):
    return generator.random() < probability


def pick(generator, choices):
    return choices[int(generator.integers(len(choices)))]


# Layouts


def stretched(generator, shape, dtype):
    """A view of this shape that walks through a larger buffer of sentinels in some order of its axes, by steps of any
    sign, and the buffer."""
    order = generator.permutation(len(shape))
    steps = [pick(generator, (1, 1, 1, 2, -1, -1, -3)) for _ in shape]
    margins = [int(generator.integers(3)) for _ in shape]
    sizes = [size * abs(step) + margin for size, step, margin in zip(shape, steps, margins)]
    buffer = np.full([sizes[axis] for axis in order], SENTINEL, dtype)
    view = buffer.transpose(np.argsort(order))
    for axis, (size, step) in enumerate(zip(shape, steps)):
        begin = sizes[axis] - 1 if step < 0 else 0
        index = begin + step * np.arange(size)
        first, last = (int(index[0]), int(index[-1])) if size else (0, -1)
        cut = slice(first, last + (1 if step > 0 else -1), step) if size else slice(0, 0)
        if cut.stop is not None and cut.stop < 0 and size:
            cut = slice(first, None, step)
        view = view[(slice(None),) * axis + (cut,)]
    assert view.shape == tuple(shape)
    return view, buffer


def laid_out(generator, array):
    """The same numbers elsewhere; read-only, too, for that changes nothing."""
    if chance(generator, 0.3):
        return array
    view, _ = stretched(generator, array.shape, array.dtype)
    view[...] = array
    if chance(generator, 0.2):
        view.flags.writeable = False
    return view


def in_disguise(generator, array):
    """The same memory as an object of another type."""
    if chance(generator, 0.1):
        return memoryview(array)
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    if chance(generator, 0.1) and whole:
        return Producer(array, versioned=chance(generator, 0.5))
    return array


def broadcasted(generator, array):
    """Sometimes one element is repeated along an axis; the array says what is there then."""
    if array.ndim and chance(generator, 0.1):
        axis = int(generator.integers(array.ndim))
        if array.shape[axis]:
            return np.broadcast_to(array.take([0], axis), array.shape)
    return array


# Problems


def draw_shapes(generator, function):
    size = lambda *choices: pick(generator, choices)  # noqa: E731
    batch, group, key_heads = size(1, 2, 3), size(1, 1, 2, 3), size(1, 2)
    if chance(generator, 0.04):
        batch, key_heads = pick(generator, ((0, 1), (1, 0), (0, 0)))
    queries = size(1, 2, 3, 7, 16, 16) if function == "decode" else size(1, 2, 3, 5, 8, 17, 33)
    keys = size(1, 2, 3, 5, 9, 16, 31, 70)
    dim, value_dim = size(1, 2, 3, 8, 16, 17), size(1, 2, 3, 8, 9)
    zero = generator.random(4) < 0.02
    queries, keys, dim, value_dim = np.where(zero, 0, (queries, keys, dim, value_dim)).tolist()
    axes = size(4, 4, 3, 2)
    cut = 4 - axes
    if axes < 4:
        batch = 1
    if axes < 3:
        group = key_heads = 1
    return ((batch, group * key_heads, queries, dim)[cut:], (batch, key_heads, keys, dim)[cut:],
            (batch, key_heads, keys, value_dim)[cut:])


def draw_types(generator):
    if chance(generator, 0.2):
        return ("float64",) * 3
    return tuple(pick(generator, ("float32", "float32", "float16")) for _ in range(3))


def draw_mask(generator, shape, double):
    axes = int(generator.integers(5))
    size = [pick(generator, (length, length, 1)) for length in shape[4 - axes:]]
    keep = generator.random(size) < pick(generator, (0.2, 0.7, 0.95))
    if chance(generator, 0.5):
        return np.asarray(keep)
    dtype = pick(generator, ("float32", "float16") + (("float64",) * 2 if double else ()))
    return np.asarray(np.where(keep, generator.standard_normal(size), -np.inf).astype(dtype))


def draw_settings(generator, q, k, function):
    shape = (*((1,) * (4 - q.ndim) + q.shape)[:3], k.shape[-2])
    batch, heads, _, keys = shape
    settings = {}
    if q.shape[-1] == 0 or chance(generator, 0.2):
        settings["scale"] = pick(generator, (0.0, 1, -0.5, 0.125, 2.0))
    if chance(generator, 0.3):
        settings["mask"] = draw_mask(generator, shape, q.dtype == np.float64)
    if chance(generator, 0.3):
        settings["causal"] = pick(generator, (True, False))
    if chance(generator, 0.3):
        settings["align"] = pick(generator, ("top-left", "bottom-right", 0, 3, -4, 1000, -(2**60)))
    if chance(generator, 0.2):
        settings["window"] = tuple(pick(generator, (None, 0, 1, 4, -2, 2**60)) for _ in range(2))
    if chance(generator, 0.15):
        settings["soft_cap"] = pick(generator, (0, 0.5, 3.0, 50))
    if chance(generator, 0.15):
        settings["sinks"] = np.where(generator.random(heads) < 0.3, -np.inf, generator.standard_normal(heads)).astype(
            pick(generator, ("float32", "float64", "float16")))
    if chance(generator, 0.15) and abs(settings.get("align", 0) if settings.get("align") not in (
            "top-left", "bottom-right") else 0) < 2**20:
        settings["alibi_slopes"] = generator.random(heads).astype("float32")
    if chance(generator, 0.2):
        settings["key_lengths"] = generator.integers(0, keys + 1, batch).astype(pick(generator, ("int32", "int64")))
    if chance(generator, 0.15) and function != "decode":
        settings["dropout"] = pick(generator, (0.0, 0.1, 0.6, 1))
        settings["dropout_seed"] = int(generator.integers(2**63)) * 2 + 1
    if chance(generator, 0.2):
        settings["threads"] = pick(generator, (0, 1, 2, 3))
    if chance(generator, 0.1):
        settings["precision"] = pick(generator, ("exact", "bf16"))
    return settings


def poison(generator, arrays, settings):
    """NaN and infinities in keys behind the lengths: nothing of them may be seen."""
    lengths = settings.get("key_lengths")
    if lengths is None or not chance(generator, 0.5):
        return
    for name in "kv":
        array = arrays[name].reshape((1,) * (4 - arrays[name].ndim) + arrays[name].shape)
        for batch, length in enumerate(lengths):
            array[batch, :, length:] = pick(generator, (np.nan, np.inf, -np.inf))


def draw_outputs(generator, function, arrays, settings, given):
    """Sometimes an output to be written into, of any layout, in a buffer of sentinels."""
    q, k, v = (arrays[name] for name in "qkv")
    sums = np.float64 if q.dtype == np.float64 else np.float32
    wanted = {}
    if function in ("attention", "decode") and chance(generator, 0.3):
        wanted["out"] = ((*q.shape[:-1], v.shape[-1]), pick(generator, (q.dtype, sums)))
    if function == "weights" and chance(generator, 0.4):
        wanted["out"] = ((*q.shape[:-1], k.shape[-2]), sums)
    buffers = {}
    for name, (shape, dtype) in wanted.items():
        given[name], buffers[name] = stretched(generator, shape, dtype)
    if function in ("attention", "decode") and chance(generator, 0.3):
        given["return_stats"] = True
    if function == "topk":
        given["n"] = int(generator.integers(1, 65))
    if function == "gradients":
        choices = ["q", "k", "v"] + ["mask"] * ("mask" in settings and settings["mask"].dtype != bool) + [
            "sinks"] * ("sinks" in settings)
        given["wanted"] = [name for name in choices if chance(generator, 0.7)]
        if chance(generator, 0.3):
            given["out"], given["stats"] = attn.attention(
                q, k, v, return_stats=True, out=np.empty((*q.shape[:-1], v.shape[-1]), sums), **settings)
    return buffers


def draw(seed, number):
    generator = np.random.default_rng((seed, number))
    function = pick(generator, FUNCTIONS)
    spread = pick(generator, (0.1, 1, 1, 4))
    arrays = {}
    for name, shape, dtype in zip("qkv", draw_shapes(generator, function), draw_types(generator)):
        array = broadcasted(generator, (spread * generator.standard_normal(shape)).astype(dtype))
        arrays[name] = np.array(array)
    settings = draw_settings(generator, arrays["q"], arrays["k"], function)
    poison(generator, arrays, settings)
    if function == "gradients":
        shape = (*arrays["q"].shape[:-1], arrays["v"].shape[-1])
        arrays["d_out"] = generator.standard_normal(shape).astype(
            pick(generator, (arrays["q"].dtype, "float64" if arrays["q"].dtype == np.float64 else "float32")))
    given = {}
    outputs = draw_outputs(generator, function, arrays, settings, given)
    takes = ("q", "k") if function in INSPECTIONS else ("q", "k", "v", "d_out")
    for name, array in arrays.items():
        if name in takes:
            given[name] = in_disguise(generator, laid_out(generator, array))
    for name, value in settings.items():
        is_array = isinstance(value, np.ndarray)
        given[name] = in_disguise(generator, laid_out(generator, value)) if is_array else value
    call = Call(function, arrays, settings, given, outputs, "right")
    if chance(generator, 0.35):
        return spoiled(generator, call)
    return call


# Wrong calls


def misaligned(array):
    memory = np.zeros(array.nbytes + 1, "u1")[1:]
    return memory.view(array.dtype).reshape(array.shape)


WRONG_ARRAYS = (
    lambda array: array.astype("int32"), lambda array: array.astype("int8"), lambda array: array.astype("complex64"),
    lambda array: array.astype(bool), lambda array: array.astype(array.dtype.newbyteorder(">")),
    lambda array: array.astype(object), lambda array: array.tolist(), lambda array: array[None, None, None],
    lambda array: array.reshape(-1), lambda array: array[..., 0], lambda array: None, lambda array: "q",
    misaligned,
    lambda array: np.zeros(array.shape, [("number", "f4"), ("flag", "u1")])["flag"],
    lambda array: Producer(np.array(array), device_type=2), lambda array: Producer(np.array(array), bits=8),
    lambda array: Producer(np.array(array), True, major=9), lambda array: Producer(np.array(array), axes=7),
)
WRONG_SETTINGS = (
    ("mask", np.zeros((1, 1, 1, 1, 1), "float32")), ("mask", np.zeros(2, "int64")), ("mask", 3.0), ("mask", [True]),
    ("align", "centre"), ("align", 1.25), ("align", 2**61), ("align", -(2**90)), ("window", 4), ("window", (1, 2, 3)),
    ("window", ("a", None)), ("window", (2**62, 1)), ("scale", "1"), ("scale", 1j), ("soft_cap", -0.5),
    ("soft_cap", math.nan), ("sinks", np.zeros(97, "float32")), ("sinks", [0.5]), ("alibi_slopes", np.zeros((1, 1, 1))),
    ("alibi_slopes", 0.5), ("key_lengths", [-1] * 97), ("key_lengths", 3), ("key_lengths", np.zeros(2, "float32")),
    ("precision", "double"), ("dropout", -1e-3), ("dropout", 1.01), ("dropout", math.nan), ("dropout_seed", -1),
    ("dropout_seed", 2**64), ("threads", -1), ("threads", 10**9), ("threads", 0.5), ("unknown", 1),
)


class Raises:
    """Every question about it is answered by an exception."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    def __bool__(self):
        raise RuntimeError("no bool")

    def __index__(self):
        raise RuntimeError("no index")

    def __float__(self):
        raise RuntimeError("no float")


class Changes(list):
    """Says to be longer than it is."""

    def __len__(self):
        return 1


WILD = (Raises(), Changes(), Changes([1, 2]), b"bytes", bytearray(8), memoryview(b""), object(), type, print, {}, set(),
        range(3), 2**100, -(2**63), math.inf, "", np.float32(1), np.zeros((), "float32"), np.zeros((0,), "float64"),
        np.zeros((3, 0, 2)), np.zeros((2, 2), "V3"), np.array(["a"]), np.zeros(2, "M8[s]"), ..., (1,), (None,),
        np.ma.masked_array([1.0]), np.lib.stride_tricks.as_strided(np.zeros(1, "float32"), (2**40, 0), (2**50, 4)))


def spoiled(generator, call):
    given, names = dict(call.given), [name for name in ("q", "k", "v", "d_out") if name in call.given]
    choice = int(generator.integers(10))
    if choice < 3:
        name = pick(generator, names)
        change = pick(generator, WRONG_ARRAYS)
        array = call.arrays[name]
        if 0 in array.shape:  # then some of these are right
            change = WRONG_ARRAYS[0]
        given[name] = change(np.nan_to_num(array, posinf=0, neginf=0))
        what = f"{name} changed by number {WRONG_ARRAYS.index(change)}"
    elif choice < 6:
        name, value = pick(generator, WRONG_SETTINGS)
        given[name] = value
        what = f"{name} is {value!r}"
    elif choice < 8:
        name = pick(generator, [name for name in names if name != "q"])
        array, axis = call.arrays[name], int(generator.integers(call.arrays["q"].ndim))
        axes = array.ndim
        if (name, axis) in (("v", axes - 1), ("k", axes - 2)):  # a length of its own, but for v's
            axis = axes - 1 if name == "k" else axes - 2
        if call.function in INSPECTIONS and axis == axes - 2:
            axis = axes - 1
        heads = call.arrays["q"].shape[axes - 3] if axes > 2 else 0
        if name == "k" and axis == axes - 3 and axes > 2:
            shape = [*array.shape[:axis], 2 * heads + 1, *array.shape[axis + 1:]]
            if heads == 0:
                return call
        else:
            shape = [size + (place == axis) for place, size in enumerate(array.shape)]
        given[name] = np.zeros(shape, array.dtype)
        what = f"{name} of shape {shape}"
    else:
        for _ in range(int(generator.integers(1, 4))):
            given[pick(generator, [*names, *names, *(setting for setting, _ in WRONG_SETTINGS), "out", "stats", "n",
                                   "causal", "wanted"])] = pick(generator, WILD)
        what = "wild"
    return call._replace(given=given, kind=what)
