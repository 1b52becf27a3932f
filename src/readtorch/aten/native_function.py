"""How a family file declares an operator.

    mul = native_function("mul.Tensor(Tensor self, Tensor other) -> Tensor", "function, method", inplace=True, out=True)

    @mul.kernel                      # what it computes, on the CPU
    def mul_cpu(self, other): ...

    @mul.backward                    # and its derivative, right below
    class MulBackward0:
        def self(grad, other): return grad * other.conj()
        def other(grad, self): return grad * self.conj()

From the one declaration follow `mul_` and the `out=` form, the Python bindings `torch.mul` and `Tensor.mul`, and the
graph node. In PyTorch: an entry of
`aten/src/ATen/native/native_functions.yaml`, read by `torchgen/model.py`. Explained in the chapter "One operator call".
"""

import copy
import warnings

import numpy as np

from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import CUDA, GRAD_KEYS, MaskGuard
from readtorch.c10.memory_format import is_non_overlapping_and_dense
from readtorch.c10.storage_impl import address_of
from readtorch.c10.tensor_impl import TensorImpl, contiguous_strides, dtype_of, storage_impl, storage_offset, strides_of

from .dispatcher import register, registry
from .out_names import OUT_NAMES

BOTH = "function, method"  # `variants` of an operator that is both, as native_functions.yaml spells it

# Python name -> Packet: all overloads that share a name and a Python module.
packets = {}


class Packet:
    """All overloads of one name, in the order in which the argument parser tries them."""

    def __init__(self, name, module):
        self.name = name
        self.module = module  # where its function lives: "torch", "nn", "linalg", "special", "fft"
        self.overloads = []
        self.hidden = set()  # those that have no Python binding: error messages do not offer them
        self.is_function = False
        self.is_method = False
        self.out = {}  # functional Operator -> its out= Operator
        self.direct = False  # whether the first overload's arguments need no conversion: see gen_python_functions
        self.numbers_as_tensors = False
        self.binding = None  # hand-written Python function, when the generated one will not do


def native_function(
    text,
    variants="function",
    *,
    module="torch",
    inplace=False,
    out=False,
    direct=False,
    numbers_as_tensors=False,
    name=None,
):
    """Declare the operator that `text` spells.

    variants: "function", "method", "function, method" or "" for one that has no Python binding of its own.
    inplace, out: also derive the in-place (`name_`) and the `out=` operator. out: True, or the outputs' names where the
    schema gives none.
    direct: the Python binding may pass its arguments on as they are (tensors and numbers only).
    numbers_as_tensors: a Python number may stand where the schema says Tensor.
    name: the Python name, if it is not the schema's.
    """
    operator = register(text)
    python_name = name or operator.schema.name
    packet = _packet(python_name, module)
    packet.overloads.append(operator)
    if not variants:
        packet.hidden.add(operator)
    packet.is_function |= "function" in variants
    packet.is_method |= "method" in variants
    packet.direct |= direct
    packet.numbers_as_tensors |= numbers_as_tensors
    if inplace:
        _derive_inplace(operator, packet)
    if out:
        _derive_out(operator, packet, None if out is True else out)
    return operator


def python_binding(name, variants="function, method", module="torch"):
    """Decorator: this hand-written function is the Python binding of the operators called `name`."""

    def register_binding(function):
        packet = _packet(name, module)
        packet.binding = function
        packet.is_function |= "function" in variants
        packet.is_method |= "method" in variants
        return function

    return register_binding


def alias_of(name, existing, module="torch"):
    """`name` is another Python name of the operators called `existing`, and `name_` of `existing_`.

    In PyTorch: an operator of its own, which does nothing but call the other.
    """
    for suffix in ("", "_"):
        original = packets.get(("torch", existing + suffix))
        if original is not None and (module == "torch" or not suffix):
            alias = copy.copy(original)
            alias.name, alias.module = name + suffix, module
            packets[(module, name + suffix)] = alias


def _packet(name, module):
    return packets.setdefault((module, name), Packet(name, module))


# ------------------------------------------------------------------------------------------- derived operators


def _derive_inplace(operator, packet):
    schema = operator.schema
    overload = f".{schema.overload}" if schema.overload else ""
    text = f"{schema.name}_{overload}({_join('Tensor(a!) self', schema.arguments[1:])}) -> Tensor(a!)"
    inplace = operator.inplace = register(text)
    inplace.variant_of = operator
    target = _packet(packet.name + "_", packet.module)
    target.overloads.append(inplace)
    target.is_method = True
    target.is_function = packet.is_function
    target.direct = packet.direct
    target.numbers_as_tensors = packet.numbers_as_tensors

    @inplace.kernel
    def compute_then_copy(self, *arguments):
        for a in arguments:
            if isinstance(a, TensorImpl) and a._counter is self._counter and a is not self:
                check_no_partial_overlap(self, a)
        return write_result(self, operator.call(self, *arguments))


def _derive_out(operator, packet, names):
    schema = operator.schema
    usual = f"{schema.overload}_out" if schema.overload and packet.out else "out"
    overload = OUT_NAMES.get(operator.name.removeprefix("aten::"), usual)
    outputs = names or [r.name or "out" for r in schema.returns]
    arguments = _join("", schema.arguments)
    letters = [letter for letter in "abcdefgh" if f"({letter}!)" not in arguments]
    declared = ", ".join(f"Tensor({letter}!) {name}" for letter, name in zip(letters, outputs))
    returns = ", ".join(
        f"Tensor({letter}!)" + (f" {r.name}" if r.name else "") for letter, r in zip(letters, schema.returns)
    )
    star = "" if any(a.keyword_only for a in schema.arguments) else "*, "
    separator = ", " if arguments else ""
    many = f"({returns})" if len(outputs) > 1 else returns
    out = operator.out = register(f"{schema.name}.{overload}({arguments}{separator}{star}{declared}) -> {many}")
    out.variant_of = operator
    packet.out[operator] = out
    count = len(outputs)

    @out.kernel
    @any_device
    def compute_then_copy(*arguments):
        inputs, outs = arguments[:-count], arguments[-count:]
        for out in outs:
            for a in inputs:
                if isinstance(a, TensorImpl) and a._counter is out._counter and a is not out:
                    check_no_partial_overlap(out, a)
        return write_out(operator.call(*inputs), outs)


def any_device(kernel):
    """Decorator for a CPU kernel that only calls operators: it serves the tensors of every device."""
    kernel.any_device = True
    return kernel


def _join(first, arguments):
    parts, starred = ([first] if first else []), False
    for a in arguments:
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(str_argument(a))
    return ", ".join(parts)


def str_argument(a):
    """An argument as its schema spells it."""
    if not a.has_default:
        return f"{a.type} {a.name}"
    value = a.default
    shown = value if isinstance(value, str) and a.type.base not in ("str",) else repr(value)
    return f"{a.type} {a.name}={shown}"


def check_result_type(result, target):
    """Raises RuntimeError unless `result`'s dtype may be written to `target`."""
    have, want = dtype_of(result), dtype_of(target)
    if have is not want and not scalar_type.can_cast(have, want):
        raise RuntimeError(
            f"result type {scalar_type.SCALAR_TYPE_NAMES[have]} can't be cast to the desired "
            f"output type {scalar_type.SCALAR_TYPE_NAMES[want]}"
        )


def write_result(self, result):
    """Finish an in-place call: copy `result` into `self`, whose shape must already be the result's."""
    if result._array.shape != self._array.shape:
        raise RuntimeError(
            f"output with shape {list(self._array.shape)} doesn't match the broadcast shape {list(result._array.shape)}"
        )
    check_result_type(result, self)
    check_no_overlap(self)
    np.copyto(self._array, result._array, casting="unsafe")
    self._counter[0] += 1
    return self


def write_out(results, outs):
    """Finish an `out=` call: resize each output to its result and copy."""
    if len(outs) == 1:
        return _write_one(results, outs[0])
    return (
        type(results)(*[_write_one(r, o) for r, o in zip(results, outs)])
        if hasattr(results, "_fields")
        else tuple([_write_one(r, o) for r, o in zip(results, outs)])
    )


def check_no_overlap(t):
    """Raises RuntimeError if `t` shows one element several times (it was expanded): writing would be ambiguous."""
    array = t._array
    if 0 in array.strides and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)) and array.size:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def check_no_partial_overlap(written, read):
    """Raises RuntimeError if two tensors without gaps share some of their memory, but not element for element.

    What reading one gives would depend on how far the writing has come. In PyTorch: `aten/src/ATen/MemoryOverlap.cpp`.
    """
    a, b = written._array, read._array
    if np.may_share_memory(a, b) and not (
        a.shape == b.shape and a.strides == b.strides and address_of(a) == address_of(b)
    ):
        if is_non_overlapping_and_dense(a) and is_non_overlapping_and_dense(b):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor "
                "refer to a single memory location. Please clone() the tensor before performing the "
                "operation."
            )


def warn_of_overlap(t, name, example):
    """For the writes that were once allowed where `check_no_overlap` would refuse, and still are."""
    if 0 in t._array.strides:
        try:
            check_no_overlap(t)
        except RuntimeError:
            warnings.warn(
                f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before "
                "performing this operation. This also applies to advanced indexing e.g. "
                f"{example}",
                stacklevel=4,
            )


def check_same_backend(result, out):
    """Raises RuntimeError for an output on another device."""
    if (out._keys ^ result._keys) & CUDA or out._keys & CUDA and out.device != result.device:
        raise RuntimeError(f"Expected out tensor to have device {result.device}, but got {out.device} instead")


def _write_one(result, out):
    if (out._keys | result._keys) & CUDA:
        check_same_backend(result, out)
    check_result_type(result, out)
    if 0 in out._array.strides:
        check_no_overlap(out)
    if out._array.shape != result._array.shape:
        resize_output(out, result._array.shape, strides_of(result))
    if out._keys & CUDA:
        registry["aten::copy_"].call(out, result, False)
        return out
    np.copyto(out._array, result._array, casting="unsafe")
    out._counter[0] += 1
    return out


def resize_output(out, shape, strides=None):
    """Give `out` a new shape; warns when it held elements (`resize_output` in `aten/src/ATen/native/Resize.cpp`)."""
    if out._array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which does "
            f"not match the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch "
            "release outputs will not be resized unless they have zero elements. You can explicitly reuse an out "
            "tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            stacklevel=5,
        )
    resize(out, shape, strides)


def resize(out, shape, strides=None):
    """Change sizes and strides in place; the storage grows if it must, and keeps its bytes."""
    array = out._array
    strides = contiguous_strides(shape) if strides is None else strides
    storage = storage_impl(out)
    offset = storage_offset(out)
    last = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if all(shape) else 0
    needed = (offset + last) * array.itemsize
    if needed > storage.nbytes:
        storage.resize(needed)
    out._array = storage.as_strided(array.dtype, tuple(shape), strides, offset)


def below_autograd():
    """`with below_autograd():` calls inside skip autograd, as a kernel's calls do."""
    return MaskGuard(exclude=GRAD_KEYS)
