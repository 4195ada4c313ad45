"""A PyTorch that lacks what attn.torch needs is refused when it is imported, by a line that says which ones will do."""
import importlib
import re
import sys

import pytest

torch = pytest.importorskip("torch")

import attn.torch  # noqa: E402,F401


@pytest.mark.parametrize("place", [
    "torch.Tensor.__dlpack_c_exchange_api__",
    "torch._C._dispatch_keys",
    "torch._C._after_autograd_keyset",
    "torch._functorch.autograd_function.enable_single_level_autograd_function",
    "torch.autograd.forward_ad._current_level",
    "torch.autograd.function._SingleLevelFunction",
    "torch.autograd.profiler._is_profiler_enabled",
])
def test_what_is_missing_is_told(place, monkeypatch):
    for module in [module for module in sys.modules if re.match(r"attn\.torch\b", module)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(place)
    beginning = f"attn.torch needs PyTorch 2.10 or later (tested: 2.13); this is {torch.__version__}: "
    with pytest.raises(ImportError, match=f"^{re.escape(beginning)}.*{place.split('.')[-1]}") as caught:
        importlib.import_module("attn.torch")
    assert "\n" not in str(caught.value)
