"""Whether the model around a call collects attentions.

Models say so by an argument of the attention function, output_attentions, but some (GPT-2) let it end on its way there.
Where Transformers itself looks for what its hooks shall collect is private.
"""
from typing import Any

import torch
from transformers.utils.output_capturing import _active_collector


def collects_attentions() -> bool:
    """Whether Transformers' hooks wait for attentions in this thread."""
    # The variable is readable in a graph where it was set in the same one.
    if torch.compiler.is_compiling() and not _active_collector.compiling:
        return False
    collected: dict[str, Any] | None = _active_collector.get()  # type: ignore[no-untyped-call]
    return bool(collected) and any(name.endswith("attentions") for name in collected or ())
