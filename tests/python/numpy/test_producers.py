"""Arrays of others, by DLPack alone: both capsules, with and without versions, and what a producer may get wrong."""
import os

import numpy as np
import pytest
from attention_reference import assert_within, forward
from dlpack_producer import CUDA, READ_ONLY, Producer

import attn

needs_pytorch = pytest.mark.skipif(os.environ.get("ATTN_TEST_SANITIZED") == "1",
                                   reason="PyTorch cannot be imported under a sanitizer's runtime")
GENERATOR = np.random.default_rng(2)
Q, K, V = (GENERATOR.standard_normal(shape).astype("float32") for shape in ((2, 4, 7, 8), (2, 2, 9, 8), (2, 2, 9, 6)))


@pytest.mark.parametrize("versioned", (False, True))
@pytest.mark.parametrize("dtype", ("float32", "float16", "float64"))
def test_inputs(versioned, dtype):
    arrays = [array.astype(dtype) for array in (Q, K, V)]
    producers = [Producer(array, versioned) for array in arrays]
    out = attn.attention(*producers)
    assert type(out) is np.ndarray and out.dtype == dtype
    assert out.tobytes() == attn.attention(*arrays).tobytes()
    assert [producer.released for producer in producers] == [1, 1, 1]
    if versioned:
        assert producers[0].settings["max_version"][0] == 1


@pytest.mark.parametrize("versioned", (False, True))
def test_strides_offsets_and_masks(versioned):
    turned = np.ascontiguousarray(Q.swapaxes(1, 2)).swapaxes(1, 2)
    mask = GENERATOR.random((7, 9)) < 0.5
    want = attn.attention(Q, K, V, mask=mask).tobytes()
    assert attn.attention(Producer(turned, versioned), Producer(K, versioned, without_strides=True), V,
                          mask=Producer(mask, versioned)).tobytes() == want
    moved = Producer(np.ascontiguousarray(V), versioned, data=V.ctypes.data - 64, byte_offset=64)
    assert attn.attention(Q, K, moved, mask=mask).tobytes() == want


def test_bfloat16_comes_by_dlpack():
    """The upper halves of float32; what is not told is float32 then, for NumPy has no bfloat16."""
    halves = [(array.view("uint32") >> 16).astype("uint16") for array in (Q, K, V)]
    full = [(half.astype("uint32") << 16).view("float32") for half in halves]
    out, stats = attn.attention(*[Producer(half, True, code=4) for half in halves], return_stats=True)
    wanted, wanted_stats = attn.attention(*full, return_stats=True)
    assert out.dtype == np.float32 and out.tobytes() == wanted.tobytes() and stats.tobytes() == wanted_stats.tobytes()
    assert attn.topk(Producer(halves[0], code=4), Producer(halves[1], code=4), 3).keys.tobytes() == attn.topk(
        *full[:2], 3).keys.tobytes()
    with pytest.raises(TypeError, match=r"^q\b"):
        attn.gradients(Q[..., :6], *[Producer(half, True, code=4) for half in halves])


def test_precision_bf16_is_within_its_bound():
    """2^-8 · Σ weight·|value| more than the exact bound, where the CPU has such products (docs/accuracy.md)."""
    shapes = ((1, 2, 40, 64), (1, 2, 90, 64), (1, 2, 90, 32))
    halves = [(GENERATOR.standard_normal(shape).astype("float32").view("uint32") >> 16).astype("uint16")
              for shape in shapes]
    full = [(half.astype("uint32") << 16).view("float32") for half in halves]
    want = forward(*full)
    out = attn.attention(*[Producer(half, code=4) for half in halves], precision="bf16")
    assert_within(out, want.out, want.out_bound + 2.0**-8 * (want.weights @ abs(full[2])))
    out = attn.attention(*[Producer(half, code=4) for half in halves])
    assert_within(out, want.out, want.out_bound)


@pytest.mark.parametrize("versioned", (False, True))
def test_outputs(versioned):
    want = attn.attention(Q, K, V)
    out = Producer(np.zeros_like(want), versioned)
    assert attn.attention(Q, K, V, out=out) is out
    assert out.array.tobytes() == want.tobytes() and out.released == 1


def test_a_read_only_output():
    out = Producer(np.zeros((2, 4, 7, 6), "float32"), True, flags=READ_ONLY)
    with pytest.raises(ValueError, match=r"^out\b.*read-only"):
        attn.attention(Q, K, V, out=out)
    assert not out.array.any() and out.released == 1
    assert attn.attention(Producer(Q, True, flags=READ_ONLY), K, V).shape == (2, 4, 7, 6)


@pytest.mark.parametrize("kind, settings", (
    ((BufferError, ValueError), dict(device_type=CUDA)), (TypeError, dict(code=0)), (TypeError, dict(code=1)),
    (TypeError, dict(code=5, bits=64)), (TypeError, dict(bits=8)), (TypeError, dict(lanes=2)),
    (TypeError, dict(code=77)),
    (ValueError, dict(axes=5)), (ValueError, dict(axes=1)), (ValueError, dict(axes=0)), (ValueError, dict(axes=-1)),
    (BufferError, dict(versioned=True, major=2)), (TypeError, dict(name=b"another")), (ValueError, dict(byte_offset=2)),
), ids=lambda value: "-".join(value) if isinstance(value, dict) else None)
@pytest.mark.parametrize("place", "qkv")
def test_what_is_refused(kind, settings, place):
    arrays = dict(q=Q, k=K, v=V)
    producer = arrays[place] = Producer(arrays[place], **settings)
    with pytest.raises(kind, match=rf"\b{place}\b"):
        attn.attention(**arrays)
    assert producer.released == (0 if "name" in settings else 1)


@pytest.mark.parametrize("answer", (None, 3, np.zeros(3)))
def test_a_producer_without_a_capsule(answer):
    class Wrong:
        def __dlpack__(self, **_):
            return answer

    with pytest.raises(TypeError, match=r"\bk\b"):
        attn.attention(Q, Wrong(), V)


def test_what_a_producer_raises_comes_through():
    class Refuses:
        def __dlpack__(self, **_):
            raise BufferError("not today")

    with pytest.raises(BufferError, match="not today"):
        attn.attention(Q, K, Refuses())


def test_only_numpy_sees_what_gradients_need():
    want = attn.gradients(Q[..., :6], Q, K, V)
    got = attn.gradients(Producer(Q[..., :6]), Producer(Q, True), Producer(K, True), memoryview(V))
    for one, other in zip(want[:3], got[:3]):
        assert one.tobytes() == other.tobytes()


@needs_pytorch
def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(array) for array in (Q, K, V))
    out, stats = attn.attention(q, k, v, causal=True, return_stats=True)
    assert type(out) is torch.Tensor and out.numpy().tobytes() == attn.attention(Q, K, V, causal=True).tobytes()
    assert type(stats) is torch.Tensor and stats.shape == (2, 4, 7, 2)
    assert type(attn.topk(q, k, 2).keys) is torch.Tensor and type(attn.entropy(q, k)) is torch.Tensor
    assert attn.attention(q.bfloat16(), k.bfloat16(), v.bfloat16()).dtype == torch.bfloat16
    assert type(attn.attention(Q, k, v)) is np.ndarray
    given = np.zeros((2, 4, 7, 6), "float32")
    assert attn.attention(q, k, v, out=given) is given and given.any()
    expanded = k[:, :1].expand(2, 2, 9, 8)
    assert attn.attention(Q, expanded, V).tobytes() == attn.attention(Q, expanded.contiguous(), V).tobytes()
    assert attn.attention(q, k, v, mask=torch.ones(7, 9).tril().bool()).numpy().tobytes() == attn.attention(
        Q, K, V, mask=np.tri(7, 9, dtype=bool)).tobytes()


@needs_pytorch
def test_gradients_of_bfloat16_are_float32():
    torch = pytest.importorskip("torch")
    arrays = [torch.from_numpy(array).bfloat16() for array in (Q[..., :6], Q, K, V)]
    mask = torch.zeros(7, 9, dtype=torch.bfloat16)
    got = attn.gradients(*arrays, wanted=("q", "k", "v", "mask"), mask=mask)
    want = attn.gradients(*[array.float() for array in arrays], wanted=("q", "k", "v", "mask"), mask=mask.float())
    for one, other in zip(got[:4], want):
        assert one.dtype == np.float32 and one.tobytes() == other.tobytes()
    with pytest.raises(ValueError, match="^q requires a gradient"):
        attn.gradients(arrays[0], arrays[1].clone().requires_grad_(), *arrays[2:])


@needs_pytorch
def test_what_pytorch_has_and_attn_does_not_take():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(array) for array in (Q, K, V))
    for kind, wrong in ((ValueError, q.clone().requires_grad_()), (TypeError, q.long()),
                        (TypeError, q.to(torch.complex64)), (TypeError, q.to(torch.float8_e4m3fn))):
        with pytest.raises(kind, match=r"\bq\b"):
            attn.attention(wrong, k, v)
    out, stats = attn.attention(q, k, v, return_stats=True)
    learning = dict(sinks=torch.zeros(4), alibi_slopes=torch.zeros(4), mask=torch.zeros(7, 9), out=out.clone())
    for name, tensor in learning.items():
        attn.attention(q, k, v, **{name: tensor})
        with pytest.raises(ValueError, match=rf"^{name} requires a gradient"):
            attn.attention(q, k, v, **{name: tensor.requires_grad_()})
    with pytest.raises(ValueError, match="^out requires a gradient"):
        attn.weights(q, k, out=torch.zeros(2, 4, 7, 9, requires_grad=True))
    with pytest.raises(ValueError, match="^d_q requires a gradient"):
        attn._native.backward(q, k, v, out, stats, out, d_q=q.clone().requires_grad_())
    for wrong in (q.to("meta"), q.to_sparse()):
        with pytest.raises((BufferError, RuntimeError, TypeError, ValueError)):
            attn.attention(wrong, k, v)
