"""What the tests of Transformers share. Each file skips itself where PyTorch or Transformers is not installed."""
from collections.abc import Iterator

import pytest

try:
    import torch
except ImportError:
    torch = None


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """Every test begins with the same random numbers, one thread and the implementation registered."""
    if torch is None:
        yield
        return
    import attn.transformers

    attn.transformers.register()
    threads = torch.get_num_threads()
    torch.manual_seed(2017)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
