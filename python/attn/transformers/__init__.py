"""Attention of libattn in the models of Hugging Face Transformers.

    import attn.transformers

    attn.transformers.register()
    model = AutoModel.from_pretrained(name, attn_implementation="attn")    # or, of a model that is there:
    model.set_attn_implementation("attn")

Any model that supports Transformers' "sdpa" runs on it, on the CPU, for learning too. It also does what "sdpa" does
not: soft caps (Gemma 2) and sinks (GPT-OSS), and `output_attentions=True` as an argument of the call, which gives the
weights that made the output without another implementation coming in. Transformers refuses the switch in the
configuration (`config.output_attentions = True`) for all implementations but "eager". inspections() gives the largest
weights, entropy and the like in place of whole weights.

Where it differs from "eager":
  - A query all of whose keys are masked (padding on the left, in causal models) has output 0 and weights 0. In eager
    its weights are 1/L each. No real token sees such a query.
  - Weights that are returned are float32 (float64 where the model is) and from before dropout. A loss that is made of
    them is a NotImplementedError when it is differentiated.
  - Models whose attention is more than scores, a bias, a soft cap and a sink (sparse indices, sinks of each query)
    are refused with a ValueError where Transformers tells of it.

Models that do not ask Transformers' AttentionInterface for their attention do not know the name: Falcon and GPT-Neo end
in a KeyError, BLOOM and MPNet go on with attention of their own. attn.torch.use() serves those of them that call
PyTorch's function (Falcon on "sdpa").

Needs Transformers 5.4 or later. Tested with 5.24, and before with 5.12 and 5.4, in which T5 did not ask either.
"""
import transformers

import attn.torch  # says for itself which PyTorch it needs

# Parts of what the files below use are not public, and may go away.
try:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    from attn.transformers.forward import attention
    from attn.transformers.inspections import inspections
    from attn.transformers.masks import attention_mask
except (ImportError, AttributeError) as error:
    raise ImportError("attn.transformers needs Transformers 5.4 or later (tested: 5.24); this is "
                      f"{transformers.__version__}: {error}") from error

__all__ = ["inspections", "register"]


def register() -> None:
    """Adds attn_implementation="attn" to Transformers, for all models of this process. Twice is as good as once."""
    AttentionInterface.register("attn", attention)
    AttentionMaskInterface.register("attn", attention_mask)
