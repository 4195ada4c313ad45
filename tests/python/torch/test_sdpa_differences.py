"""Where libattn's function is not PyTorch's: the exceptions of the grid, with reasons. Each row says what is asked of
both functions, and what each makes of it; a difference that goes away, on either side, fails its test.

Of PyTorch's tests (test/test_transformers.py of PyTorch 2.13) these were not taken over, because they ask for something
else than a result:
- test_fused_sdp_choice*, sdpa_kernel as a chooser of kernels: which of PyTorch's kernels runs. Under libattn's function
  there is one, whatever sdpa_kernel() says (row "kernel choice").
- all of TestSDPACudaOnly, TestSDPAXpuOnly, TestSDPAPrivateUse1Only and what is marked onlyCUDA: other devices. Shapes
  and masks that only these have (1-axis masks, packed projections in 16 bits, strides of a mask) are in the grid.
- torch.jit.script of modules: TorchScript compiles PyTorch's source, not a function that has been put in its place.
- nested tensors (row "nested tensors").
- *_compile: test_compile.py.
- test_mask_check_fastpath, test_disable_fastpath, *_bias_is_none, test_script_*: modules' own branches.
"""
import math
from collections.abc import Callable
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch")

import attn.torch  # noqa: E402
from sdpa_reference import formula  # noqa: E402

PYTORCH = torch.nn.functional.scaled_dot_product_attention


class Difference(NamedTuple):
    """A row: why the two differ, what is asked of each, and what PyTorch's and libattn's outcome is known by."""

    reason: str
    ask: Callable[[Callable[..., torch.Tensor]], object]
    pytorch: Callable[[object], bool]
    ours: Callable[[object], bool]


def tensors(*shape, dtype=torch.float32):
    return torch.randn(3, *shape, dtype=dtype).unbind(0)


def raises(*kinds: type[BaseException]) -> Callable[[object], bool]:
    return lambda outcome: isinstance(outcome, kinds)


def is_near(outcome: object, expected: torch.Tensor, bound: float = 1e-5) -> bool:
    return isinstance(outcome, torch.Tensor) and bool(((outcome.double() - expected).abs() <= bound).all())


Q, K, V = tensors(2, 3, 20, 8)
MASK = torch.randn(20, 20)
KEEP = torch.ones(20, 20, dtype=torch.bool)
KEEP[:, 7] = False
NAN_K, NAN_V = K.clone(), V.clone()
NAN_K[:, :, 7] = math.nan
NAN_V[:, :, 7] = math.inf
CAUSAL_MASK = MASK.masked_fill(~torch.ones(20, 20, dtype=torch.bool).tril(), -math.inf)


def seeded(function):
    torch.manual_seed(1)
    return function(Q, K, V, dropout_p=0.5)


def pytorch_dropout():
    torch.manual_seed(1)
    return torch.nn.functional.dropout((Q @ K.transpose(-2, -1) / math.sqrt(8)).softmax(-1), 0.5) @ V


def second_derivative(function):
    q = Q[0].double().requires_grad_()
    (gradient,) = torch.autograd.grad(function(q, K[0].double(), V[0].double()).square().sum(), q, create_graph=True)
    return torch.autograd.grad(gradient.sum(), q)[0]


def forward_derivative(function):
    import torch.autograd.forward_ad as forward_ad

    with forward_ad.dual_level():
        q = forward_ad.make_dual(Q[0].double(), torch.ones_like(Q[0]).double())
        return forward_ad.unpack_dual(function(q, K[0].double(), V[0].double())).tangent


def nested(function):
    parts = [torch.randn(length, 2, 8) for length in (3, 5)]
    sequences = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    return function(sequences, sequences, sequences)


def without_kernels(function):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION]):
        return function(Q, K, V)


DIFFERENCES = {
    "error types": Difference(
        "Errors of this package are ValueError or TypeError and name the argument; PyTorch's are RuntimeError.",
        lambda function: function(Q, K, V, MASK[:, :5]),
        raises(RuntimeError),
        raises(ValueError, TypeError),
    ),
    "NaN under a mask": Difference(
        "K and V of an excluded key are never read into a result; PyTorch multiplies them by 0.",
        lambda function: function(Q, NAN_K, NAN_V, KEEP),
        lambda outcome: bool(outcome.isnan().any()),
        lambda outcome: is_near(outcome, formula(Q, K, V, KEEP)),
    ),
    "dropout's pattern": Difference(
        "The seed comes from PyTorch's generator, the pattern from Philox4x32-10 by place, so that the backward pass "
        "draws it again without having kept it.",
        seeded,
        lambda outcome: is_near(outcome, pytorch_dropout()),
        lambda outcome: not is_near(outcome, pytorch_dropout()),
    ),
    "float32 mask over float64": Difference(
        "PyTorch takes it, and its kernel reads the mask's numbers as float64 (2.13); here each is converted.",
        lambda function: function(Q.double(), K.double(), V.double(), MASK),
        lambda outcome: not is_near(outcome, formula(Q, K, V, MASK)),
        lambda outcome: is_near(outcome, formula(Q, K, V, MASK), 1e-12),
    ),
    "more values than keys": Difference(
        "PyTorch's kernel does not look and leaves the rest of the values out.",
        lambda function: function(Q, K[:, :, :15], V),
        lambda outcome: isinstance(outcome, torch.Tensor),
        raises(ValueError),
    ),
    "mask of one axis": Difference(
        "Masks broadcast whatever their number of axes; PyTorch's kernel counts two of them at least.",
        lambda function: function(Q, K, V, MASK[0]),
        raises(IndexError),
        lambda outcome: is_near(outcome, formula(Q, K, V, MASK[0])),
    ),
    "mask and is_causal": Difference(
        "PyTorch's documentation and tests say that it is an error, and so it is here; its kernel for four axes "
        "applies both (2.13).",
        lambda function: function(Q, K, V, MASK, is_causal=True),
        lambda outcome: is_near(outcome, formula(Q, K, V, CAUSAL_MASK)),
        raises(ValueError),
    ),
    "mask without memory": Difference(
        "PyTorch's kernel does not look where the mask is.",
        lambda function: function(Q, K, V, MASK.to("meta")),
        lambda outcome: isinstance(outcome, torch.Tensor),
        raises(ValueError),
    ),
    "scale that is not a number": Difference(
        "NaN stands for the usual scale in the C library, so it is refused here rather than taken for that.",
        lambda function: function(Q, K, V, scale=math.nan),
        lambda outcome: bool(outcome.isnan().all()),
        raises(ValueError),
    ),
    "nested tensors": Difference(
        "Tensors are dense; use() gives nested ones to PyTorch's own function.",
        nested,
        lambda outcome: isinstance(outcome, torch.Tensor) and outcome.is_nested,
        raises(ValueError),
    ),
    "kernel choice": Difference(
        "There is one implementation, and it takes all inputs.",
        without_kernels,
        raises(RuntimeError),
        lambda outcome: is_near(outcome, formula(Q, K, V)),
    ),
    "second derivatives": Difference(
        "The gradients are those of a fused kernel and have none of their own; PyTorch too has them only where it "
        "computes the whole matrix.",
        second_derivative,
        lambda outcome: isinstance(outcome, torch.Tensor),
        raises(NotImplementedError),
    ),
    "forward-mode derivatives": Difference(
        "There is no kernel for them; PyTorch too has them only where it computes the whole matrix.",
        forward_derivative,
        lambda outcome: isinstance(outcome, torch.Tensor),
        raises(NotImplementedError),
    ),
}


def outcome_of(function: Callable[..., torch.Tensor], ask: Callable[..., object]) -> object:
    try:
        return ask(function)
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DIFFERENCES)
def test_difference(name):
    difference = DIFFERENCES[name]
    theirs = outcome_of(PYTORCH, difference.ask)
    assert difference.pytorch(theirs), f"PyTorch now does something else: {theirs!r}"
    ours = outcome_of(attn.torch.scaled_dot_product_attention, difference.ask)
    assert difference.ours(ours), f"not what is documented: {ours!r}"
