"""libattn by ctypes, for the programs of bench/ alone: the structs of include/attn.h, one context, and calls
whose arguments are built beforehand."""
import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import partial

TYPES = {"f32": 0, "bool": 1, "f64": 2, "f16": 3, "bf16": 4, "i8": 5, "i32": 6}
PRECISIONS = {"exact": 0, "bf16": 1}
SUCCESS = 0


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("shape", c_int64 * 4), ("stride", c_int64 * 4)]


class Params(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("scale", c_float),
        ("soft_cap", c_float),
        ("alignment", c_int),
        ("offset", c_int64),
        ("causal", c_int),
        ("window_left", c_int64),
        ("window_right", c_int64),
        ("key_lengths", POINTER(c_int64)),
        ("keep", POINTER(Tensor)),
        ("bias", POINTER(Tensor)),
        ("alibi_slopes", POINTER(c_float)),
        ("sinks", POINTER(c_float)),
        ("precision", c_int),
        ("sequences", c_int64),
        ("query_starts", POINTER(c_int64)),
        ("key_starts", POINTER(c_int64)),
        ("prefix_lengths", POINTER(c_int64)),
        ("query_documents", POINTER(c_int64)),
        ("key_documents", POINTER(c_int64)),
        ("change_scores", c_void_p),
        ("key_range", c_void_p),
        ("callback_user", c_void_p),
        ("key_scales", POINTER(Tensor)),
        ("value_scales", POINTER(Tensor)),
        ("block_table", POINTER(c_int32)),
        ("block_table_width", c_int64),
        ("dropout", c_float),
        ("dropout_seed", c_uint64),
        ("dropout_batch", c_int64),
        ("dropout_query", c_int64),
        ("change_gradients", c_void_p),
    ]


class Gradients(Structure):
    _fields_ = [("size", c_size_t), *((name, POINTER(Tensor)) for name in ("q", "k", "v", "bias", "sinks"))]


class Inspection(Structure):
    _fields_ = [
        ("size", c_size_t),
        *((name, POINTER(Tensor)) for name in ("top_weights", "top_keys", "entropy", "maximum", "key_sums")),
        ("query_begin", c_int64),
        ("query_end", c_int64),
    ]


class Options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("threads", c_int),
        ("isa", c_int),
        ("allocate", c_void_p),
        ("release", c_void_p),
        ("user", c_void_p),
        ("parallel_for", c_void_p),
        ("parallel_user", c_void_p),
    ]


class Attention:
    """A context of one thread in the library at `path`. Raises OSError where that cannot be loaded, and
    RuntimeError where a call fails."""

    def __init__(self, path):
        attn = self.attn = ctypes.CDLL(str(path))
        for name in ("attn_version", "attn_message", "attn_isa_name"):
            getattr(attn, name).restype = c_char_p
        options = Options()
        for struct, initialise in ((options, attn.attn_options_init), (Params(), attn.attn_params_init),
                                   (Gradients(), attn.attn_gradients_init),
                                   (Inspection(), attn.attn_inspection_init)):  # fmt: skip
            initialise(byref(struct))
            if struct.size != ctypes.sizeof(struct):
                raise RuntimeError(f"{path} is of another version than bench/libattn.py: a struct of "
                                   f"{struct.size} bytes, expected {ctypes.sizeof(struct)}")  # fmt: skip
        options.threads = 1
        self.context = c_void_p()
        if attn.attn_context_create(byref(self.context), byref(options)) != SUCCESS:
            raise RuntimeError("libattn gives no context (is ATTN_ISA a name that attn.h knows?)")

    @property
    def version(self):
        return self.attn.attn_version().decode()

    @property
    def isa(self):
        return self.attn.attn_isa_name(self.attn.attn_context_isa(self.context)).decode()

    def params(self, causal=False, keep=None, bias=None, precision="exact"):
        """The defaults, with these changes; keep and bias are tensors of view()."""
        params = Params()
        self.attn.attn_params_init(byref(params))
        params.causal = causal
        params.precision = PRECISIONS[precision]
        params.keep = ctypes.pointer(keep) if keep else None
        params.bias = ctypes.pointer(bias) if bias else None
        return params

    def call(self, function, params, q, k, v, o, stats=None):
        """attn_forward or attn_decode as a function without arguments; done once, to be sure that it
        succeeds. It keeps the structs that it is given, but not the memory that they point to."""
        return self.prepare(function, byref(params), byref(q), byref(k), byref(v), byref(o),
                            byref(stats) if stats else None)  # fmt: skip

    def backward(self, params, inputs, o, stats, d_o, gradients):
        """attn_backward in the same way; `inputs` and `gradients` are those of q, k and v."""
        wanted = Gradients()
        self.attn.attn_gradients_init(byref(wanted))
        wanted.q, wanted.k, wanted.v = (ctypes.pointer(gradient) for gradient in gradients)
        return self.prepare("attn_backward", byref(params), *(byref(tensor) for tensor in (*inputs, o, stats, d_o)),
                            byref(wanted))  # fmt: skip

    def prepare(self, function, *arguments):
        prepared = partial(getattr(self.attn, function), self.context, *arguments)
        if prepared() != SUCCESS:
            raise RuntimeError(f"{function}: {self.attn.attn_message(self.context).decode()}")
        return prepared


def view(address, kind, shape, strides):
    """A view of four axes; strides in elements."""
    return Tensor(address, TYPES[kind], (c_int64 * 4)(*shape), (c_int64 * 4)(*strides))
