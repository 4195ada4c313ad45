"""What the tests of the notebook share."""
from collections.abc import Iterator

import pytest


@pytest.fixture
def registered() -> Iterator[None]:
    """The implementation, and one thread. For files that have asked for PyTorch and Transformers."""
    import torch

    import attn.transformers

    attn.transformers.register()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
