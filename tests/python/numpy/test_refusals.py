"""What a call does not take it refuses by a ValueError or TypeError that names the argument, and writes nothing."""
import gc
import re
import sys
from array import array

import numpy as np
import pytest

import attn


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


INPUTS = {"q": zeros(2, 4, 7, 8), "k": zeros(2, 2, 9, 8), "v": zeros(2, 2, 9, 6)}


def misaligned(base):
    return np.frombuffer(bytearray(base.nbytes + 1), "u1")[1:].view("float32").reshape(base.shape)


def of_a_record(base):
    return np.zeros(base.shape, [("number", "f4"), ("flag", "u1")])["number"]


WRONG_TYPES = {
    "int64": lambda base: base.astype("int64"),
    "int32": lambda base: base.astype("int32"),
    "int8": lambda base: base.astype("int8"),
    "uint8": lambda base: base.astype("uint8"),
    "uint16, as which some keep bfloat16": lambda base: base.astype("uint16"),
    "bool": lambda base: base.astype(bool),
    "complex64": lambda base: base.astype("complex64"),
    "longdouble": lambda base: base.astype(np.longdouble) if np.dtype(np.longdouble).itemsize > 8 else None,
    "big-endian float32": lambda base: base.astype(">f4"),
    "big-endian float64": lambda base: base.astype(">f8"),
    "big-endian float16": lambda base: base.astype(">f2"),
    "object": lambda base: base.astype(object),
    "str": lambda base: base.astype("U3"),
    "datetime64": lambda base: base.astype("M8[s]"),
    "a record": lambda base: np.zeros(base.shape, "f4,f4"),
    "float64 beside float32": lambda base: base.astype("float64"),
    "a list": lambda base: base.tolist(),
    "None": lambda base: None,
    "a number": lambda base: 1.0,
    "a str": lambda base: "q",
}
WRONG_SHAPES = {
    "no axes": lambda base: np.array(1, "float32"),
    "one axis": lambda base: base[0, 0, 0],
    "array.array has one axis": lambda base: array("f", [1, 2]),
    "bytes have one axis": lambda base: bytes(8),
    "one axis less": lambda base: base[0],
    "five axes": lambda base: base[None],
    "five heads": lambda base: zeros(2, 5, *base.shape[2:]),
    "another batch": lambda base: zeros(3, *base.shape[1:]),
    "misaligned": misaligned,
    "strides that are not whole elements": of_a_record,
}


def assert_clear(caught, *names):
    """One line that names one of these arguments, and nothing of C."""
    message = str(caught.value)
    assert any(re.search(rf"\b{name}\b", message) for name in names), message
    assert "\n" not in message and not re.search(r"\battn_|ATTN_|\bparams\b|\bNULL\b", message), message


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("case", WRONG_TYPES)
def test_types_of_inputs(name, case):
    wrong = WRONG_TYPES[case](INPUTS[name])
    if case == "longdouble" and wrong is None:
        pytest.skip("long double is float64 here")
    with pytest.raises(TypeError) as caught:
        attn.attention(**{**INPUTS, name: wrong})
    blamed = "k" if (name, case) == ("q", "float64 beside float32") else name
    assert_clear(caught, blamed)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_shapes_of_inputs(name, case):
    with pytest.raises(ValueError) as caught:
        attn.attention(**{**INPUTS, name: WRONG_SHAPES[case](INPUTS[name])})
    assert_clear(caught, name, "k")


@pytest.mark.parametrize("name, shape", (("k", (2, 2, 11, 8)), ("v", (2, 2, 8, 6)), ("k", (2, 2, 9, 7)),
                                         ("q", (2, 4, 7, 9)), ("k", (2, 0, 9, 8))), ids=str)
def test_shapes_that_do_not_fit_each_other(name, shape):
    with pytest.raises(ValueError) as caught:
        attn.attention(**{**INPUTS, name: zeros(*shape)})
    assert_clear(caught, *"qkv")


READ_ONLY = zeros(2, 4, 7, 6)
READ_ONLY.flags.writeable = False
WRONG_SETTINGS = [
    ("mask", ValueError, zeros(2, 4, 7, 8)), ("mask", ValueError, zeros(3, 7, 9)), ("mask", ValueError, zeros(2, 9)),
    ("mask", ValueError, zeros(1, 2, 4, 7, 9)), ("mask", TypeError, zeros(7, 9, dtype="int32")),
    ("mask", TypeError, zeros(7, 9, dtype="uint8")), ("mask", TypeError, zeros(7, 9, dtype="float64")),
    ("mask", TypeError, zeros(7, 9, dtype=">f4")), ("mask", TypeError, [[True] * 9] * 7), ("mask", TypeError, 1.0),
    ("causal", TypeError, np.zeros(2)),
    ("align", ValueError, "left"), ("align", ValueError, ""), ("align", TypeError, 1.5), ("align", ValueError, 2**62),
    ("align", ValueError, 2**70), ("align", TypeError, (1,)),
    ("window", TypeError, 3), ("window", TypeError, (1,)), ("window", TypeError, (1, 2, 3)),
    ("window", TypeError, "ab"), ("window", TypeError, (1.5, None)), ("window", ValueError, (2**62, 0)),
    ("window", ValueError, (0, 2**80)),
    ("scale", TypeError, "1"), ("scale", TypeError, 1j), ("scale", TypeError, np.zeros(2)),
    ("scale", ValueError, 10**400), ("scale", ValueError, np.nan),
    ("soft_cap", ValueError, -1), ("soft_cap", ValueError, np.nan), ("soft_cap", ValueError, np.inf),
    ("soft_cap", TypeError, "1"), ("scale", ValueError, 1e39), ("soft_cap", ValueError, 1e39),
    ("soft_cap", ValueError, 1e-50), ("sinks", ValueError, np.full(4, 1e39)),
    ("alibi_slopes", ValueError, np.full(4, -1e39)),
    ("sinks", ValueError, zeros(3)), ("sinks", ValueError, zeros(4, 1)), ("sinks", ValueError, np.float32(0)),
    ("sinks", TypeError, zeros(4, dtype="int32")), ("sinks", TypeError, [0.0] * 4), ("sinks", TypeError, 1.0),
    ("sinks", TypeError, zeros(4, dtype=">f4")),
    ("alibi_slopes", ValueError, zeros(2)), ("alibi_slopes", TypeError, zeros(4, dtype="int64")),
    ("alibi_slopes", TypeError, 0.5), ("alibi_slopes", ValueError, zeros(2, 2)),
    ("key_lengths", ValueError, [1]), ("key_lengths", ValueError, [1, 2, 3]), ("key_lengths", ValueError, [1, 10]),
    ("key_lengths", ValueError, (-1, 2)), ("key_lengths", TypeError, [1.5, 2]), ("key_lengths", ValueError, [2**70, 1]),
    ("key_lengths", TypeError, 5), ("key_lengths", TypeError, "ab"), ("key_lengths", TypeError, zeros(2)),
    ("key_lengths", ValueError, np.array([[1, 2]])), ("key_lengths", TypeError, np.array([1, 2], ">i8")),
    ("key_lengths", (TypeError, ValueError), np.array([2**63 + 1, 2], "uint64")),
    ("window", TypeError, np.zeros((3, 2))), ("window", TypeError, ([[1]] * 40)),
    ("precision", TypeError, np.zeros((2, 2))), ("precision", ValueError, "long" * 10**6),
    ("align", ValueError, "long" * 10**6),
    ("precision", ValueError, "fast"), ("precision", TypeError, 16),
    ("dropout", ValueError, -0.1), ("dropout", ValueError, 1.5), ("dropout", ValueError, np.nan),
    ("dropout", TypeError, "x"),
    ("dropout_seed", ValueError, -1), ("dropout_seed", ValueError, 2**64),
    ("dropout_seed", TypeError, 1.5),
    ("threads", ValueError, -1), ("threads", ValueError, 10**6), ("threads", TypeError, 1.5),
    ("threads", ValueError, 2**70),
    ("out", ValueError, zeros(2, 4, 7, 5)), ("out", ValueError, zeros(4, 7, 6)), ("out", ValueError, READ_ONLY),
    ("out", TypeError, zeros(2, 4, 7, 6, dtype="float64")), ("out", TypeError, zeros(2, 4, 7, 6, dtype="float16")),
    ("out", TypeError, zeros(2, 4, 7, 6, dtype="int32")), ("out", TypeError, zeros(2, 4, 7, 6, dtype=">f4")),
    ("out", TypeError, True), ("out", (TypeError, ValueError), b"out"), ("out", ValueError, INPUTS["q"][..., :6]),
    ("out", ValueError, np.lib.stride_tricks.as_strided(zeros(8), (2, 4, 7, 6), (0, 0, 0, 4))),
    ("stats", TypeError, zeros(2, 4, 7, 2)), ("strict", TypeError, True),
]


@pytest.mark.parametrize("name, kind, value", WRONG_SETTINGS, ids=[
    f"{name}-{type(value).__name__}-{number}" for number, (name, _, value) in enumerate(WRONG_SETTINGS)])
def test_settings(name, kind, value):
    with pytest.raises(kind) as caught:
        attn.attention(**INPUTS, **{name: value})
    assert_clear(caught, name)


class Raises:
    """A number, until it is looked at."""

    def __index__(self):
        raise self.error

    __bool__ = __float__ = __index__

    def __init__(self, error):
        self.error = error


@pytest.mark.parametrize("error", (KeyboardInterrupt, MemoryError, ZeroDivisionError))
@pytest.mark.parametrize("name", ("causal", "align", "window", "scale", "soft_cap", "key_lengths", "dropout",
                                  "dropout_seed", "threads"))
def test_errors_of_others_come_through(name, error):
    value = (Raises(error), 1) if name in ("window", "key_lengths") else Raises(error)
    with pytest.raises(error):
        attn.attention(**INPUTS, **{name: value})


def test_an_output_in_the_mask():
    mask = zeros(2, 4, 7, 9)
    with pytest.raises(ValueError) as caught:
        attn.attention(**INPUTS, mask=mask, out=mask[..., :6])
    assert_clear(caught, "mask")


def test_nothing_is_written_where_a_call_fails():
    out = np.full((2, 4, 7, 6), 3, "float32")
    for settings in (dict(soft_cap=-1), dict(key_lengths=[1, 10]), dict(mask=zeros(2, 2)), dict(align="left")):
        with pytest.raises(ValueError):
            attn.attention(**INPUTS, out=out, **settings)
    assert (out == 3).all()


@pytest.mark.parametrize("name, kind, value", WRONG_SETTINGS, ids=[
    f"{name}-{number}" for number, (name, _, _) in enumerate(WRONG_SETTINGS)])
def test_nothing_is_kept_where_a_call_fails(name, kind, value):
    held = [one for one in (*INPUTS.values(), value) if isinstance(one, np.ndarray)]

    def references():
        gc.collect()  # tracebacks of this test and of earlier ones hold arrays in circles
        return [sys.getrefcount(one) for one in held]

    before = references()
    for _ in range(3):
        with pytest.raises(kind):
            attn.attention(**INPUTS, **{name: value})
    assert references() == before


def test_decode_refuses_what_it_does_not_do():
    x = zeros(17, 8)
    with pytest.raises(ValueError, match="16") as caught:
        attn.decode(x, x, x)
    assert_clear(caught, "q")
    with pytest.raises(ValueError) as caught:
        attn.decode(**INPUTS, dropout=0.5)
    assert_clear(caught, "dropout")


@pytest.mark.parametrize("kind, n", ((ValueError, 0), (ValueError, -1), (ValueError, 65), (ValueError, 2**70),
                                     (ValueError, np.int32(65)), (TypeError, 1.5), (TypeError, "8"), (TypeError, None),
                                     (TypeError, True), (TypeError, np.float32(2)), (ValueError, 10**5000)),
                         ids=lambda value: str(value)[:9] if not isinstance(value, int) or value < 2**80 else "10**5000")
def test_topk_of_a_wrong_number(kind, n):
    with pytest.raises(kind, match=r"^n\b"):
        attn.topk(INPUTS["q"], INPUTS["k"], n)


@pytest.mark.parametrize("integer", (np.int64, np.uint8))
def test_integers_of_numpy_are_integers(integer):
    top = attn.topk(INPUTS["q"], INPUTS["k"], integer(3))
    assert top.keys.shape == (*INPUTS["q"].shape[:-1], 3)


@pytest.mark.parametrize("function", (attn.weights, attn.topk, attn.entropy, attn.received))
@pytest.mark.parametrize("kind, stats", ((ValueError, zeros(2, 4, 7, 1)), (ValueError, zeros(2, 4, 6, 2)),
                                         (ValueError, zeros(4, 7, 2)), (TypeError, zeros(2, 4, 7, 2, dtype="float64")),
                                         (TypeError, True)),
                         ids=("shape", "queries", "axes", "type", "bool"))
def test_wrong_statistics(function, kind, stats):
    with pytest.raises(kind, match="stats"):
        function(INPUTS["q"], INPUTS["k"], stats=stats)


@pytest.mark.parametrize("kind, out", (
    (ValueError, zeros(2, 4, 7, 8)), (ValueError, zeros(2, 4, 7, 10)), (ValueError, zeros(2, 4, 6, 9)),
    (ValueError, zeros(7, 9)), (TypeError, zeros(2, 4, 7, 9, dtype="float16")),
    (TypeError, zeros(2, 4, 7, 9, dtype="float64"))), ids=lambda value: str(getattr(value, "shape", "")))
def test_weights_into_a_wrong_output(kind, out):
    with pytest.raises(kind, match=r"\bout\b"):
        attn.weights(INPUTS["q"], INPUTS["k"], out=out)


@pytest.mark.parametrize("name, kind, settings", (
    ("wanted", ValueError, dict(wanted=["q", "x"])), ("wanted", ValueError, dict(wanted="q")),
    ("wanted", ValueError, dict(wanted=None)), ("wanted", ValueError, dict(wanted=[["q"]])),
    ("wanted", ValueError, dict(wanted=np.zeros((3, 3)))), ("mask", ValueError, dict(wanted=["mask"])),
    ("sinks", ValueError, dict(wanted=["sinks"])),
    ("mask", ValueError, dict(wanted=["mask"], mask=np.ones((7, 9), bool))),
    ("mask", TypeError, dict(wanted=["mask"], mask=zeros(7, 9, dtype="int32"))),
    ("stats", ValueError, dict(out=zeros(2, 4, 7, 6))), ("out", ValueError, dict(stats=zeros(2, 4, 7, 2))),
    ("stats", ValueError, dict(out=zeros(2, 4, 7, 6), stats=zeros(2, 4, 7, 3))),
    ("out", ValueError, dict(out=zeros(2, 4, 7, 5), stats=zeros(2, 4, 7, 2))),
    ("out", TypeError, dict(out=zeros(2, 4, 7, 6, dtype="float64"), stats=zeros(2, 4, 7, 2))),
    ("d_out", ValueError, dict(d_out=zeros(2, 4, 7, 5))), ("d_out", ValueError, dict(d_out=zeros(7, 6))),
    ("d_out", TypeError, dict(d_out=zeros(2, 4, 7, 6, dtype="float64"))), ("d_out", TypeError, dict(d_out=None)),
    ("d_out", TypeError, dict(d_out=zeros(2, 4, 7, 6, dtype="int32"))),
    ("q", TypeError, dict(q=zeros(2, 4, 7, 8, dtype="int32"))), ("q", TypeError, dict(q=[[1.0]])),
    ("v", ValueError, dict(v=np.array(1, "float32"))), ("k", TypeError, dict(k=zeros(2, 2, 9, 8, dtype=">f4"))),
), ids=lambda value: "-".join(value) if isinstance(value, dict) else None)
def test_gradients(name, kind, settings):
    with pytest.raises(kind) as caught:
        attn.gradients(**{**INPUTS, "d_out": zeros(2, 4, 7, 6), **settings})
    assert_clear(caught, name)


@pytest.mark.parametrize("name, kind, value", (
    ("top", TypeError, "3"), ("top", TypeError, 1.5), ("top", ValueError, 65), ("top", ValueError, 2**70),
    ("entropy", TypeError, np.zeros(2)), ("maximum", TypeError, np.zeros(2)), ("received", TypeError, np.zeros(2)),
), ids=lambda value: str(value)[:8])
def test_what_an_inspection_does_not_tell(name, kind, value):
    with pytest.raises(kind) as caught:
        attn._native.inspect(INPUTS["q"], INPUTS["k"], **{name: value})
    assert_clear(caught, name)


@pytest.mark.parametrize("name, settings", (("mask", {}), ("mask", dict(mask=np.ones((7, 9), bool))), ("sinks", {})))
def test_gradients_of_what_is_not_there(name, settings):
    out, stats = attn.attention(**INPUTS, return_stats=True)
    place = {"mask": zeros(7, 9), "sinks": zeros(4)}[name]
    with pytest.raises(ValueError) as caught:
        attn._native.backward(*INPUTS.values(), out, stats, out, **{f"d_{name}": place}, **settings)
    assert_clear(caught, f"d_{name}")


@pytest.mark.parametrize("threads", (-1, 10**6, 2**70, 1.5, "2", None), ids=repr)
def test_a_wrong_number_of_threads(threads):
    before = attn.get_threads()
    with pytest.raises((TypeError, ValueError), match="threads"):
        attn.set_threads(threads)
    assert attn.get_threads() == before
