"""The short way: calls that nobody watches go to libattn without PyTorch's dispatcher.

PyTorch's dispatcher takes 5 to 12 µs for an operator that is written in Python; a tiny attention takes less than that.
So where the tensors are ordinary ones and nothing but their values is asked for, the functions of this package do
without it. Results and gradients are those of the operators, bit for bit.
"""
from torch import Tensor
# These are not public, and nothing public tells it: which kernels the dispatcher would run for a tensor, and which
# modes (FakeTensorMode, FlopCounterMode, vmap, a tracer, …) would see the call.
from torch._C import (
    DispatchKey,
    DispatchKeySet,
    _dispatch_keys,
    _dispatch_tls_local_include_set,
    _len_torch_function_stack,
)
from torch.autograd import forward_ad, profiler
from torch.compiler import is_compiling
from torch.nn import Parameter
from torch.overrides import has_torch_function_variadic


def _key_sets(*alternatives: tuple[DispatchKey, ...]) -> frozenset[int]:
    found = set()
    for keys in alternatives:
        key_set = DispatchKeySet(keys[0])
        for key in keys[1:]:
            key_set = key_set.add(key)
        found.add(key_set.raw_repr())
    return frozenset(found)


# Dense tensors of the CPU: the usual ones, and those that were made in inference mode. Lazily negated ones, quantised,
# sparse and nested ones, subclasses with __torch_dispatch__ and wrappers of torch.func all have other keys.
_DENSE = _key_sets(
    (DispatchKey.CPU, DispatchKey.ADInplaceOrView, DispatchKey.AutogradCPU, DispatchKey.AutocastCPU),
    (DispatchKey.CPU, DispatchKey.AutocastCPU))
# What a thread has where no mode is active, without and with inference mode.
_NO_MODE = _key_sets((DispatchKey.BackendSelect, DispatchKey.ADInplaceOrView), (DispatchKey.BackendSelect,))


_PLAIN = (Tensor, Parameter)


def is_ordinary(tensor: Tensor) -> bool:
    """Whether it is a Tensor or Parameter, no other subclass, and its numbers are those in its memory. What else libattn
    cannot take (sparse, meta, …) it refuses by itself."""
    return type(tensor) in _PLAIN and not tensor.is_neg()


def is_quiet() -> bool:
    """Whether nobody wants to see what is called: no compiler, no tracer, no mode, no transform of torch.func, no
    profiler, no forward-mode derivative."""
    # The last four are not public either: a profile is to name the operator, and dual tensors look like others.
    return (not is_compiling() and _len_torch_function_stack() == 0 and not profiler._is_profiler_enabled
            and forward_ad._current_level < 0 and _dispatch_tls_local_include_set().raw_repr() in _NO_MODE)


def is_plain(*tensors: Tensor) -> bool:
    """Whether it is quiet, and these are dense CPU tensors. False where one is no tensor."""
    if not is_quiet() or has_torch_function_variadic(*tensors):
        return False
    try:
        for tensor in tensors:
            if _dispatch_keys(tensor).raw_repr() not in _DENSE:
                return False
    except TypeError:
        return False
    return True
