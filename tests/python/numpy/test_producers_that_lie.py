"""What a producer of DLPack says of its memory may be wrong: a call then ends in an error, and never in a crash."""
import ctypes

import numpy as np
import pytest
from dlpack_producer import Producer

import attn

ARRAY = np.ones((1, 2, 4, 8), "float32")
SETTINGS = {"sinks": np.ones(2, "float32"), "alibi_slopes": np.ones(2, "float32"), "key_lengths": np.full(1, 4)}
TOO_MANY = 2**62  # times 4 bytes is 0 in 64 bits, as 2**61 times 8 is


def shaped(array, shape, strides):
    producer = Producer(array)
    for axis, (size, stride) in enumerate(zip(shape, strides)):
        producer.shape[axis], producer.strides[axis] = size, stride
    return producer


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("offset", (0, 64))
def test_settings_without_memory(name, offset):
    producer = Producer(SETTINGS[name], data=None, byte_offset=offset)
    with pytest.raises(ValueError, match=rf"^{name} has no data"):
        attn.attention(ARRAY, ARRAY, ARRAY, **{name: producer})
    assert producer.released == 1


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("stride", (2**60, 2**62, -2**62, 2**63 - 1, -2**63))
def test_settings_beyond_the_address_space(name, stride):
    producer = shaped(SETTINGS[name], SETTINGS[name].shape, (stride,))
    batches = 2 if name == "key_lengths" else 1
    producer.shape[0] = 2
    array = np.repeat(ARRAY, batches, 0)
    with pytest.raises(ValueError, match=rf"^{name} has a shape and strides"):
        attn.attention(array, array, array, **{name: producer})
    assert producer.released == 1


@pytest.mark.parametrize("name", SETTINGS)
def test_more_numbers_than_addresses(name):
    one, count = np.zeros((1, 1, 1, 1), "float32"), TOO_MANY // (2 if name == "key_lengths" else 1)
    shape = (count, 1, 1, 1) if name == "key_lengths" else (1, count, 1, 1)
    number = np.zeros(1, "int64" if name == "key_lengths" else "float16")
    q, setting = shaped(one, shape, (0, 0, 0, 0)), shaped(number, (count,), (0,))
    with pytest.raises(MemoryError):
        attn.attention(q, one, one, **{name: setting})
    assert q.released == 1


def test_a_view_that_is_negated_when_it_is_read():
    """As PyTorch's are: DLPack hands out the numbers before that."""
    class Negated(Producer):
        def is_neg(self):
            return True

    with pytest.raises(ValueError, match="^v is a negated view"):
        attn.attention(ARRAY, ARRAY, Negated(ARRAY))


def test_shapes_that_are_none():
    """No shape at all, a negative size, and more elements than memory has bytes."""
    nowhere = Producer(ARRAY, shape=ctypes.POINTER(ctypes.c_int64)())
    negative, large = Producer(ARRAY), Producer(ARRAY, without_strides=True)
    negative.shape[2] = -4
    large.shape[0] = large.shape[1] = large.shape[2] = TOO_MANY
    for producer in (nowhere, negative, large):
        with pytest.raises(ValueError, match="^q .*shape"):
            attn.attention(producer, ARRAY, ARRAY)
