"""Arrays are read where they stand: whatever their strides, the bits are those of packed copies."""
import ctypes

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import attn

GENERATOR = np.random.default_rng(21)


def normal(*shape, dtype="float32"):
    return GENERATOR.standard_normal(shape).astype(dtype)


def packed(array):
    return np.array(array, order="C", copy=True)


def read_only(array):
    array = packed(array)
    array.flags.writeable = False
    return array


LAYOUTS = {
    "packed": packed,
    "read-only": read_only,
    "length before heads": lambda array: packed(array.swapaxes(1, 2)).swapaxes(1, 2),
    "dim first": lambda array: packed(array.transpose(3, 0, 1, 2)).transpose(1, 2, 3, 0),
    "Fortran": np.asfortranarray,
    "every second": lambda array: packed(np.repeat(array, 2, axis=3))[..., ::2],
    "every third row": lambda array: packed(np.repeat(array, 3, axis=2))[:, :, 1::3],
    "backwards": lambda array: packed(array[:, :, ::-1, ::-1])[:, :, ::-1, ::-1],
    "all backwards": lambda array: packed(array[::-1, ::-1, ::-1, ::-1])[::-1, ::-1, ::-1, ::-1],
    "a part of more": lambda array: np.pad(array, ((1, 2), (0, 1), (3, 1), (2, 5)))[1:-2, :-1, 3:-1, 2:-5],
}


@pytest.mark.parametrize("dtype", ("float32", "float16", "float64"))
@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name, dtype):
    change = LAYOUTS[name]
    q, k, v = normal(2, 4, 7, 8, dtype=dtype), normal(2, 2, 9, 8, dtype=dtype), normal(2, 2, 9, 6, dtype=dtype)
    mask, d_out = normal(2, 4, 7, 9, dtype=dtype), normal(2, 4, 7, 6, dtype=dtype)
    changed = [change(array) for array in (q, k, v)]
    for before, after in zip((q, k, v), changed):
        assert np.array_equal(before, after)
    other = dict(mask=change(mask))
    assert attn.attention(*changed, **other).tobytes() == attn.attention(q, k, v, mask=mask).tobytes()
    assert attn.decode(*changed, **other).tobytes() == attn.decode(q, k, v, mask=mask).tobytes()
    assert attn.weights(*changed[:2], **other).tobytes() == attn.weights(q, k, mask=mask).tobytes()
    assert attn.received(*changed[:2], **other).tobytes() == attn.received(q, k, mask=mask).tobytes()
    assert attn.attention(*changed, mask=change(mask > 0)).tobytes() == attn.attention(q, k, v, mask=mask > 0).tobytes()
    got = attn.gradients(change(d_out), *changed, wanted=("q", "k", "v", "mask"), **other)
    want = attn.gradients(d_out, q, k, v, wanted=("q", "k", "v", "mask"), mask=mask)
    for name in ("q", "k", "v", "mask"):
        assert getattr(got, name).tobytes() == getattr(want, name).tobytes(), name


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "read-only"])
def test_outputs_of_any_layout_are_written_where_they_stand(name):
    q, k, v = normal(2, 4, 7, 8), normal(2, 2, 9, 8), normal(2, 2, 9, 6)
    out = LAYOUTS[name](np.full((2, 4, 7, 6), 7, "float32"))
    around = out.base if out.base is not None else out
    before = packed(around)
    assert attn.attention(q, k, v, out=out) is out
    assert packed(out).tobytes() == attn.attention(q, k, v).tobytes()
    decoded = LAYOUTS[name](np.zeros((2, 4, 7, 6), "float32"))
    assert attn.decode(q, k, v, out=decoded) is decoded
    assert packed(decoded).tobytes() == attn.decode(q, k, v).tobytes()
    assert (around != before).sum() <= out.size, "memory beside the output was written"
    weights = LAYOUTS[name](np.zeros((2, 4, 7, 9), "float32"))
    assert attn.weights(q, k, out=weights) is weights
    assert packed(weights).tobytes() == attn.weights(q, k).tobytes()


@pytest.mark.parametrize("dtype", ("float32", "float16", "float64"))
@pytest.mark.parametrize("step", (1, 2, -1, -3))
def test_one_number_a_head_or_batch(dtype, step):
    q, k, v = normal(2, 4, 7, 8), normal(2, 2, 9, 8), normal(2, 2, 9, 6)
    numbers = normal(12, dtype=dtype)[::step][:4]
    plain = packed(numbers).astype("float32")
    for name in ("sinks", "alibi_slopes"):
        got, want = (attn.attention(q, k, v, **{name: array}) for array in (numbers, plain))
        assert got.tobytes() == want.tobytes()
    lengths = np.arange(9, dtype={"float16": "uint32"}.get(dtype, "int64"))[::step][:2]
    want = attn.attention(q, k, v, key_lengths=lengths.tolist())
    assert attn.attention(q, k, v, key_lengths=lengths).tobytes() == want.tobytes()
    assert attn.attention(q, k, v, key_lengths=tuple(lengths)).tobytes() == want.tobytes()


def test_expanded_axes_are_one_number():
    q, k, v = normal(1, 4, 1, 8), normal(1, 1, 9, 8), normal(1, 1, 9, 1)
    q, k, v = np.broadcast_to(q, (2, 4, 7, 8)), np.broadcast_to(k, (2, 2, 9, 8)), np.broadcast_to(v, (2, 2, 9, 6))
    assert attn.attention(q, k, v).tobytes() == attn.attention(*map(packed, (q, k, v))).tobytes()
    mask = np.broadcast_to(np.array([True] * 5 + [False] * 4), (2, 4, 7, 9))
    assert attn.attention(q, k, v, mask=mask).tobytes() == attn.attention(q, k, v, mask=packed(mask)).tobytes()


def test_overlapping_windows_of_one_buffer():
    series = normal(40)
    windows = as_strided(series, (30, 8), (4, 4))  # row i begins one element behind row i - 1
    assert attn.attention(windows, windows, windows).tobytes() == attn.attention(*[packed(windows)] * 3).tobytes()


def test_q_k_and_v_may_be_one_array():
    x = normal(2, 3, 7, 8)
    assert attn.attention(x, x, x).tobytes() == attn.attention(packed(x), packed(x), packed(x)).tobytes()


@pytest.mark.parametrize("shapes", (
    ((0, 4, 7, 8), (0, 2, 9, 8), (0, 2, 9, 6)), ((2, 0, 7, 8), (2, 0, 9, 8), (2, 0, 9, 6)),
    ((2, 4, 0, 8), (2, 2, 9, 8), (2, 2, 9, 6)), ((2, 4, 7, 8), (2, 2, 0, 8), (2, 2, 0, 6)),
    ((2, 4, 7, 8), (2, 2, 9, 8), (2, 2, 9, 0)), ((2, 4, 0, 8), (2, 2, 0, 8), (2, 2, 0, 0)),
    ((0, 0, 0, 8), (0, 0, 0, 8), (0, 0, 0, 6)), ((0, 8), (0, 8), (0, 6)), ((4, 0, 8), (2, 0, 8), (2, 0, 6)),
), ids=str)
def test_axes_of_length_zero(shapes):
    q, k, v = (normal(*shape) for shape in shapes)
    out, stats = attn.attention(q, k, v, return_stats=True)
    assert out.shape == (*q.shape[:-1], v.shape[-1]) and not out.any()
    assert stats.shape == (*q.shape[:-1], 2)
    assert attn.decode(q, k, v).shape == out.shape
    assert attn.weights(q, k).shape == (*q.shape[:-1], k.shape[-2])
    assert attn.topk(q, k, 3).keys.shape == (*q.shape[:-1], 3)
    assert attn.entropy(q, k).shape == q.shape[:-1]
    assert attn.received(q, k).shape == (*q.shape[:-2], k.shape[-2]) and not (
        0 in q.shape[:-1] and attn.received(q, k).any())
    for gradient, array in zip(attn.gradients(np.ones_like(out), q, k, v), (q, k, v)):
        assert gradient.shape == array.shape and (0 not in (*out.shape, k.shape[-2]) or not gradient.any())


def test_a_dim_of_zero_needs_a_scale():
    q, k, v = normal(3, 0), normal(4, 0), normal(4, 5)
    with pytest.raises(ValueError, match="scale"):
        attn.attention(q, k, v)
    assert np.allclose(attn.attention(q, k, v, scale=1.0), v.mean(axis=0), atol=1e-6)


def test_a_zero_size_array_may_have_any_strides_and_address():
    nothing = as_strided(np.empty(1, "float32"), (0, 8), (2**40, -(2**40)))
    assert attn.attention(nothing, normal(4, 8), normal(4, 6)).shape == (0, 6)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_subclasses_of_arrays_are_arrays(tmp_path):
    q, k, v = normal(7, 8), normal(9, 8), normal(9, 8)
    want = attn.attention(q, k, v).tobytes()
    q.tofile(tmp_path / "q")
    mapped = np.memmap(tmp_path / "q", "float32", "r", shape=(7, 8))
    assert attn.attention(mapped, k, v).tobytes() == want
    assert attn.attention(np.asmatrix(q), k, v).tobytes() == want


def test_memory_of_others():
    """Buffers without NumPy: ctypes, and memoryviews of bytes that are read-only."""
    q, k, v = normal(3, 4), normal(5, 4), normal(5, 2)
    want = attn.attention(q, k, v).tobytes()
    as_ctypes = (ctypes.c_float * 4 * 3).from_buffer_copy(q.tobytes())
    as_view = memoryview(k.tobytes()).cast("f", (5, 4))
    out = (ctypes.c_float * 2 * 3)()
    result = attn.attention(as_ctypes, as_view, memoryview(v))
    assert type(result) is np.ndarray and result.tobytes() == want
    assert attn.attention(as_ctypes, as_view, v, out=out) is out and bytes(out) == want
    with pytest.raises(ValueError, match="out"):
        attn.attention(q, k, v, out=memoryview(bytes(24)).cast("f", (3, 2)))
    out = memoryview(bytearray(24)).cast("f", (3, 2))
    assert attn.attention(q, k, v, out=out) is out and out.tobytes() == want
    for gradient, array in zip(attn.gradients(result, as_ctypes, as_view, v), (q, k, v)):
        assert gradient.shape == array.shape


def test_a_call_holds_no_buffer_afterwards():
    buffer = bytearray(normal(5, 4).tobytes())
    x = memoryview(buffer).cast("f", (5, 4))
    attn.attention(x, x, x)
    with pytest.raises(ValueError):
        attn.attention(x, x, x, scale=-1, soft_cap=-1)
    x.release()
    buffer.extend(b"more")  # BufferError while anyone exports it


def test_the_mask_of_a_masked_array_is_not_seen():
    """docs/python.md says so; whoever means it passes it as `mask`."""
    q = normal(3, 4)
    hidden = np.ma.masked_array(q, mask=q > 0)
    assert attn.attention(hidden, q, q).tobytes() == attn.attention(q, q, q).tobytes()
