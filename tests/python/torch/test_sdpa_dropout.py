"""Dropout of the weights. PyTorch's tests compare with its own dropout under the same seed, bit by bit; libattn draws
from a generator of its own (Philox4x32-10, docs/semantics.md), so here the factors are read out of the function by
values that are unit vectors, their statistics are checked, and outputs and gradients must be the formula's with them.
"""
import math

import pytest

torch = pytest.importorskip("torch")

from sdpa_reference import TOLERANCE, TYPES, assert_close, formula, type_name  # noqa: E402

SEED = 20260

# libattn takes the probability as a float32: for float64 tensors too, 1/(1 - p) is off by up to 2^-24 / (1 - p).
ROUNDED_PROBABILITY = 1e-6


def read_factors(attention, batch, heads, queries, keys, dropout, seed=SEED, dtype=torch.float32):
    """What the weights of [batch, heads, queries, keys] are multiplied by: uniform weights meet unit vectors."""
    torch.manual_seed(seed)
    q, k = torch.zeros(batch, heads, queries, 8, dtype=dtype), torch.zeros(batch, heads, keys, 8, dtype=dtype)
    v = torch.eye(keys, dtype=dtype).expand(batch, heads, keys, keys)
    return attention(q, k, v, dropout_p=dropout).double() * keys


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("dropout", [0.1, 0.2, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("queries", [16, 64])
def test_shares(attention, dtype, dropout, queries):
    """A weight is 0 with the probability that is asked for, and 1/(1 - p) times itself otherwise; and so it is in each
    head, each row and each column, and for neighbours independently."""
    factors = read_factors(attention, 2, 4, queries, 128, dropout, dtype=dtype)
    dropped = factors == 0
    kept_factor = torch.full_like(factors, 1 / (1 - dropout))[~dropped]
    assert_close(factors[~dropped], kept_factor, max(TOLERANCE[dtype].output, ROUNDED_PROBABILITY), "factor")

    def share_is(values, expected):
        # Five deviations of a binomial: 1 in 1.7 million for each of the numbers below.
        deviation = math.sqrt(expected * (1 - expected) / values.numel())
        assert abs(values.double().mean().item() - expected) <= 5 * deviation + 1e-9

    share_is(dropped, dropout)
    for head in dropped.flatten(0, 1):
        share_is(head, dropout)
    for axis in range(4):
        for part in dropped.unbind(axis):
            share_is(part, dropout)
    for first, second in (
        (dropped[..., 1:], dropped[..., :-1]),
        (dropped[..., 4:], dropped[..., :-4]),
        (dropped[:, :, 1:], dropped[:, :, :-1]),
        (dropped[:, 1:], dropped[:, :-1]),
        (dropped[1:], dropped[:-1]),
    ):
        share_is(first & second, dropout**2)


def test_mean_is_the_output_without_it(attention):
    q, k, v = torch.randn(3, 1, 2, 9, 8)
    outputs = torch.stack([attention(q, k, v, dropout_p=0.3) for _ in range(2000)]).double()
    error = (outputs.mean(0) - formula(q, k, v)).abs()
    assert (error <= 5 * outputs.std(0) / math.sqrt(2000)).all()


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "float"])
@pytest.mark.parametrize("leading", [(5,), (5, 2)], ids=str)
@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_outputs_and_gradients(attention, dtype, kind, leading, dropout):
    """The backward pass leaves out what the forward pass left out."""
    q = torch.randn(*leading, 20, 6, dtype=dtype)
    k, v = torch.randn(2, *leading, 23, 6, dtype=dtype)
    mask = {"bool": torch.rand(20, 23) < 0.7, "float": torch.randn(20, 23, dtype=dtype)}.get(kind)
    causal = kind == "causal"
    batch, heads = leading if len(leading) == 2 else (1, leading[0])
    kept = read_factors(attention, batch, heads, 20, 23, dropout).view(*leading, 20, 23) != 0
    d_output = torch.randn(*leading, 20, 6, dtype=dtype)

    leaves = [tensor.requires_grad_() for tensor in (q, k, v)]
    torch.manual_seed(SEED)
    output = attention(*leaves, mask, dropout, causal)
    expected_leaves = [tensor.detach().double().requires_grad_() for tensor in leaves]
    expected = formula(*expected_leaves, mask, causal, factors=kept / (1 - dropout))
    bound = max(TOLERANCE[dtype].gradient, ROUNDED_PROBABILITY)
    assert_close(output.detach(), expected.detach(), bound, "output")
    gradients = torch.autograd.grad(output, leaves, d_output)
    expected_gradients = torch.autograd.grad(expected, expected_leaves, d_output.double())
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients, strict=True):
        assert_close(gradient, expected_gradient, bound, f"gradient of {name}")


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("queries", [3, 20])
def test_manual_seed_rules(attention, train, queries):
    """The same seed gives the same bits, the next call gives others, and nothing but the generator tells."""
    q = torch.randn(1, 2, queries, 8, requires_grad=train)
    k, v = torch.randn(2, 1, 2, 50, 8)
    torch.manual_seed(7)
    first, second = attention(q, k, v, dropout_p=0.5), attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(7)
    again = attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(8)
    other = attention(q, k, v, dropout_p=0.5)
    assert torch.equal(first, again)
    assert not torch.equal(first, second) and not torch.equal(first, other)


@pytest.mark.parametrize("train", [True, False])
def test_none(attention, train):
    """p = 0 changes no bit and draws no number."""
    q, k, v = torch.randn(3, 1, 2, 30, 8, requires_grad=train).unbind(0)
    state = torch.get_rng_state()
    assert torch.equal(attention(q, k, v, dropout_p=0.0), attention(q, k, v))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("queries", [3, 20])
def test_all(attention, queries):
    q, k, v = (torch.randn(1, 2, length, 8, requires_grad=True) for length in (queries, 9, 9))
    output = attention(q, k, v, dropout_p=1.0)
    assert (output == 0).all()
    for gradient in torch.autograd.grad(output.sum(), (q, k, v)):
        assert (gradient == 0).all()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(attention, reentrant):
    """A forward pass that is run again for its gradients draws the same numbers."""
    tensors = torch.randn(3, 1, 2, 20, 8)
    gradients = []
    for wrap in (False, True):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        torch.manual_seed(SEED)

        def attend(q, k, v):
            return attention(q, k, v, dropout_p=0.4, is_causal=True)

        if wrap:
            output = torch.utils.checkpoint.checkpoint(attend, *leaves, use_reentrant=reentrant)
        else:
            output = attend(*leaves)
        output.square().sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    assert all(torch.equal(first, second) for first, second in zip(*gradients, strict=True))


def test_gradients_by_differences(attention):
    q, k, v = (torch.randn(1, 2, length, 3, dtype=torch.float64, requires_grad=True) for length in (4, 5, 5))

    def attend(*inputs):
        torch.manual_seed(SEED)
        return attention(*inputs, dropout_p=0.4)

    assert torch.autograd.gradcheck(attend, (q, k, v))
