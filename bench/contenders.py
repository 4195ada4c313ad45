"""One attention problem as calls without arguments: of libattn, PyTorch and ONNX Runtime, on the same numbers.
Each has its inputs in its own usual layout, and what can be prepared is prepared."""
import math
from dataclasses import dataclass
from functools import partial
from typing import Callable

import libattn
import numpy
import onnxruntime
import torch
from inputs import TORCH_TYPES, Inputs, make_inputs, make_output_gradient
from onnx import TensorProto, helper
from torch.nn.functional import scaled_dot_product_attention


@dataclass
class Contender:
    name: str
    call: Callable
    result: Callable  # what the last call computed, as f32 [B, H, Lq, d_v]
    memory: tuple  # what the call points to


def of_libattn(attention, shape, inputs, precision):
    output = torch.full((shape.batch, shape.heads, shape.queries, shape.value_dim), math.nan,
                        dtype=TORCH_TYPES[shape.type])  # fmt: skip

    def view(tensor, kind=shape.type):
        return libattn.view(tensor.data_ptr(), kind, tensor.shape, tensor.stride())

    keep = None if inputs.keep is None else view(inputs.keep, "bool")
    bias = None if inputs.bias is None else view(inputs.bias)
    params = attention.params(shape.kind == "causal", keep, bias, precision)
    function = "attn_decode" if shape.kind == "decode" else "attn_forward"
    call = attention.call(function, params, view(inputs.q), view(inputs.k), view(inputs.v), view(output))
    return Contender("attn", call, output.float, (inputs, output, params))


def sdpa_of(shape, inputs, convert=lambda tensor: tensor):
    mask = inputs.keep if inputs.keep is not None else inputs.bias
    return partial(
        scaled_dot_product_attention,
        *(convert(tensor) for tensor in (inputs.q, inputs.k, inputs.v)),
        attn_mask=mask if mask is None or mask.dtype == torch.bool else convert(mask),
        is_causal=shape.kind == "causal",
        enable_gqa=shape.heads != shape.key_heads,
    )


def of_torch(shape, inputs):
    call = sdpa_of(shape, inputs)
    return Contender("torch", call, lambda: call().float(), (inputs,))


def of_onnxruntime(shape, inputs):
    """MultiHeadAttention of the domain com.microsoft on [B, L, H·d], f32; or None where it does not do the
    problem: grouped heads, 16-bit types. Boolean masks are its key_padding_mask, [B, Lk] or [B, Lq, Lk] of
    int32: what is 0 gets −10000 added, whose weight is 0 in f32."""
    if shape.type != "f32" or shape.heads != shape.key_heads:
        return None
    arrays = {
        name: tensor.transpose(1, 2).flatten(2).contiguous().numpy()
        for name, tensor in (("query", inputs.q), ("key", inputs.k), ("value", inputs.v))
    }
    if shape.kind == "padding":
        arrays["key_padding_mask"] = inputs.keep[:, 0, 0].numpy().astype(numpy.int32)
    elif shape.kind == "keep":
        arrays["key_padding_mask"] = inputs.keep[:, 0].numpy().astype(numpy.int32)
    elif shape.kind == "bias":
        arrays["attention_bias"] = inputs.bias.numpy()
    output = numpy.full((shape.batch, shape.queries, shape.heads * shape.value_dim), math.nan, numpy.float32)

    order = ("query", "key", "value", "bias", "key_padding_mask", "attention_bias")
    node = helper.make_node("MultiHeadAttention", [name if name in arrays else "" for name in order], ["output"],
                            domain="com.microsoft", num_heads=shape.heads,
                            unidirectional=int(shape.kind == "causal"))  # fmt: skip
    graph = helper.make_graph([node], "attention", [value_info(name, array) for name, array in arrays.items()],
                              [value_info("output", output)])  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    written = onnxruntime.OrtValue.ortvalue_from_numpy(output)
    binding.bind_ortvalue_output("output", written)

    def result():
        rows = torch.from_numpy(written.numpy())
        return rows.unflatten(2, (shape.heads, shape.value_dim)).transpose(1, 2)

    call = partial(session.run_with_iobinding, binding)
    return Contender("onnxruntime", call, result, (arrays, values, written))


def gradients_of(output, inputs, d_output):
    """The gradients of q, k and v, one behind the other, in f32."""
    found = torch.autograd.grad(output, inputs, d_output, retain_graph=True)
    return torch.cat([gradient.float().flatten() for gradient in found])


def backward_contenders(attention, shape, inputs, precision):
    """Of the backward pass alone: the forward passes are done before. ONNX Runtime has none."""
    d_output = make_output_gradient(shape)

    def learnable(convert):
        copies = [convert(tensor.clone()).requires_grad_() for tensor in (inputs.q, inputs.k, inputs.v)]
        bias = None if inputs.bias is None else inputs.bias.clone()
        return copies, sdpa_of(shape, Inputs(*copies, inputs.keep, bias), convert)()

    with torch.inference_mode(False), torch.enable_grad():
        own, output = learnable(lambda tensor: tensor)
        exact, exact_output = learnable(torch.Tensor.float)
        expected = gradients_of(exact_output, exact, d_output.float())

    def torch_call():
        return torch.autograd.grad(output, own, d_output, retain_graph=True)

    of_torch = Contender("torch", torch_call, lambda: gradients_of(output, own, d_output), (own, output, d_output))
    return [of_libattn_backward(attention, shape, inputs, d_output, precision), of_torch], expected


def of_libattn_backward(attention, shape, inputs, d_output, precision):
    def view(tensor, kind=shape.type):
        return libattn.view(tensor.data_ptr(), kind, tensor.shape, tensor.stride())

    output = torch.empty_like(d_output)
    stats = torch.empty(*d_output.shape[:3], 2)
    gradients = [torch.full_like(tensor, math.nan) for tensor in (inputs.q, inputs.k, inputs.v)]
    keep = None if inputs.keep is None else view(inputs.keep, "bool")
    bias = None if inputs.bias is None else view(inputs.bias)
    params = attention.params(shape.kind == "causal", keep, bias, precision)
    q, k, v = (view(tensor) for tensor in (inputs.q, inputs.k, inputs.v))
    attention.call("attn_forward", params, q, k, v, view(output), view(stats, "f32"))
    call = attention.backward(params, (q, k, v), view(output), view(stats, "f32"), view(d_output),
                              [view(gradient) for gradient in gradients])  # fmt: skip

    def result():
        return torch.cat([gradient.float().flatten() for gradient in gradients])

    return Contender("attn", call, result, (inputs, d_output, output, stats, gradients, params))


def value_info(name, array):
    kind = TensorProto.INT32 if array.dtype == numpy.int32 else TensorProto.FLOAT
    return helper.make_tensor_value_info(name, kind, array.shape)


def contenders(attention, shape, precision):
    """(those that do this problem, libattn first; the result that they should have)"""
    inputs = make_inputs(shape)
    if shape.backward:
        return backward_contenders(attention, shape, inputs, precision)
    found = [of_libattn(attention, shape, inputs, precision), of_torch(shape, inputs), of_onnxruntime(shape, inputs)]
    return [one for one in found if one], sdpa_of(shape, inputs, torch.Tensor.float)()
