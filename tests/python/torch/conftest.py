"""What PyTorch's tests share. Each file skips itself where PyTorch is not installed.

ATTN_TEST_SDPA=pytorch runs the grid of SDPA cases (test_sdpa_*.py) on PyTorch's own function, within the tolerances of
PyTorch's tests: what a case asks for is what PyTorch does. Cases that only libattn promises are skipped there.
"""
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

try:
    import torch
except ImportError:
    torch = None


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """Every test begins with the same random numbers, and one thread: on small tensors threads cost more by waiting for
    one another than they save, ten times so on a busy machine. test_sdpa_threads.py is where several are at work."""
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.manual_seed(4711)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


ON_PYTORCH = os.environ.get("ATTN_TEST_SDPA") == "pytorch"


@pytest.fixture
def promised_here() -> None:
    """For what PyTorch's own function does not promise."""
    if ON_PYTORCH:
        pytest.skip("PyTorch promises no such thing")


@pytest.fixture(scope="session")
def attention() -> Callable[..., Any]:
    """The function under test."""
    if ON_PYTORCH:
        return torch.nn.functional.scaled_dot_product_attention
    import attn.torch

    return attn.torch.scaled_dot_product_attention
