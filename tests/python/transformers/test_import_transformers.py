"""A Transformers that lacks what attn.transformers needs is refused when it is imported, by a line that says which ones will do."""
import importlib
import re
import sys

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attn.transformers  # noqa: E402,F401


@pytest.mark.parametrize("place", [
    "transformers.masking_utils.AttentionMaskInterface",
    "transformers.masking_utils.sdpa_mask",
    "transformers.utils.import_utils.is_tracing",
    "transformers.utils.output_capturing._active_collector",
])
def test_what_is_missing_is_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if re.match(r"attn\.transformers\b", module)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(place)
    beginning = f"attn.transformers needs Transformers 5.4 or later (tested: 5.24); this is {transformers.__version__}: "
    with pytest.raises(ImportError, match=f"^{re.escape(beginning)}.*{place.split('.')[-1]}") as caught:
        importlib.import_module("attn.transformers")
    assert "\n" not in str(caught.value)
