"""attn for PyTorch: attention on the CPU by libattn, with gradients, and the weights that it used.

    scaled_dot_product_attention   signature and meaning of torch.nn.functional's
    use()                          puts it in that one's place for a while
    attention                      with all that libattn can: windows, soft cap, sinks, ALiBi, lengths
    weights, inspect               the weights; the largest of them, entropy, what each key received
    torch.ops.attn.*               the operators below them (attn.torch.operators)

They work under torch.compile, torch.export, vmap, torch.func.grad and autocast, in inference mode, from many threads at
once, and use as many threads as PyTorch does (torch.set_num_threads).

Where results differ from those of PyTorch's own function on the CPU:

- NaN and infinities in a key or value that a mask excludes reach nothing; PyTorch's give NaN.
- A query without a key gets 0, and gradients of 0, whatever excluded its keys: bool masks, -inf, is_causal with fewer
  keys than queries, no keys at all. A mask value of -inf is an exclusion; large finite ones are scores like others.
- Sums are in float32 for float16 and bfloat16 (in float64 for float64), and results are rounded once. Products of
  bfloat16 tensors may be made by the CPU's bfloat16 instructions, as PyTorch makes them; precision="exact" of
  attention() forbids it. For tensors of 16 bits backward reads the result as rounded.
- Dropout leaves out other weights than PyTorch's with the same seed, with the same statistics; torch.manual_seed rules
  over both. backward leaves out the same ones as forward.
- Second derivatives and forward-mode derivatives are refused with a NotImplementedError (in use(), forward-mode goes to
  PyTorch's). gradcheck is clean; gradgradcheck is not there.
- Errors are ValueError and TypeError that name the argument; PyTorch's are RuntimeErrors. A negative dropout_p is an
  error, and so is a `scale` of NaN.
- Bits of a row depend on nothing but its own problem: not on the batch, the other rows or the number of threads.
- Few queries (up to 4, up to 8 with 16 keys or more, up to 16 with 1024 or more) without a gradient and without dropout
  go to another kernel (attn::decode), which is faster there; its bits may differ from those of longer calls.
- is_causal together with a mask is refused, as PyTorch documents it; its kernel for the CPU takes some such calls.
- In float64 sinks, ALiBi's slopes and the soft cap are numbers of float32, and so is the bound of what they make.
- In a child after fork attn works on one thread; PyTorch's own may hang there where torch.set_num_threads is not 1.

A result lies in memory as the query does, as with PyTorch's own: where models view [B, L, H, d] as [B, H, L, d],
out.transpose(1, 2) is contiguous.
"""
import torch

from attn import _native

# The C exchange API comes first: no other way to a tensor's memory is as short. The package also uses names of PyTorch
# that are not public, each with its reason where it is used, and is_plain asks for those that a call would miss first.
try:
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        raise ImportError("its tensors have no __dlpack_c_exchange_api__ (DLPack's)")
    from attn.torch import operators, vmap
    from attn.torch.attention import Inspection, attention, inspect, weights
    from attn.torch.eager import is_plain
    from attn.torch.scaled_dot_product import scaled_dot_product_attention
    from attn.torch.swap import use

    is_plain(torch.empty(0))
    operators.register()
    vmap.register()
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"attn.torch needs PyTorch 2.10 or later (tested: 2.13); this is {torch.__version__}: {error}") from error

__all__ = ["Inspection", "attention", "inspect", "scaled_dot_product_attention", "use", "weights"]

_native.know_tensors(torch.Tensor, torch.nn.Parameter, torch.empty_like)
# PyTorch's own threads do the work, rather than as many again beside them.
_native.share_threads()
