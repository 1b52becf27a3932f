"""Writes `call(args)`: memory is allocated, kernels and operators are called, what is no longer needed is let go or used again.

In PyTorch: `torch/_inductor/codegen/wrapper.py`, with memory planning in `torch/_inductor/memory.py`.
"""

import math

import numpy as np

from readtorch._inductor.graph import ScalarInput
from readtorch._inductor.ir import (
    Buffer,
    ComputedBuffer,
    ExternKernelOut,
    MultiOutput,
    ReinterpretView,
    contiguous_strides,
)
from readtorch._inductor.sizevars import Size
from readtorch._ops import OpOverload
from readtorch.aten.python_arg_parser import default_of
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.sym_int import SYM_TYPES
from readtorch.c10.tensor_impl import wrap
from readtorch.csrc.autograd.inference_mode import mark
from readtorch.csrc.utils.python_dispatch import as_type
from readtorch.utils._pytree import tree_leaves

from .numba_cpu import NumbaKernel, compiled_kernel

# Operators whose results share no memory with their arguments: these arguments' memory can be used again.
OWN_RESULTS = set(
    "baddbmm mm bmm convolution convolution_backward embedding embedding_dense_backward gather index index_put scatter "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward cat".split()
)


class FreeIfNotReused(str):
    """A buffer's name, where it was read for the last time."""


def is_written(line, unused):
    return not isinstance(line, FreeIfNotReused) or line in unused


class PythonWrapperCodegen:
    """source: the text of `call`. kernels: name -> NumbaKernel. names: what the text uses."""

    def __init__(self, graph, scheduler):
        self.graph, self.scheduler = graph, scheduler
        self.lines, self.kernels, self.names = [], {}, {}
        self.buffers = {buffer.name: buffer for buffer in graph.buffers}
        self.flat, self.free, self.allocated = set(), [], {}  # flat: buffers that are arrays, not tensors
        self.users = scheduler.users()
        self.never_again = set(scheduler.outputs)
        self.last_use = self.find_last_uses()
        for k, group in enumerate(scheduler.groups):
            (self.extern_call if group.is_extern else self.kernel_call)(group)
            self.let_go(k)
        results = [
            self.result(view) if isinstance(view, ReinterpretView) else self.spelled(view, False)
            for view in graph.outputs
        ]
        self.lines.append(f"return [{', '.join(results)}]")
        self.source = self.text()

    def find_last_uses(self):
        """The buffers that a step is the last to read."""
        last = {}
        for k, group in enumerate(self.scheduler.groups):
            for name in group.reads | group.names:
                last[name] = k
        result = {}
        for name, k in last.items():
            if name not in self.scheduler.outputs and not name.startswith("constant"):
                result.setdefault(k, []).append(name)
        return result

    def text(self):
        """The text: for (x * 2).sum(-1) with x of sizes (3, 4)

            def call(args):
                arg0_1, = args
                args.clear()
                buf0 = empty(3, float32)
                numba_fused_sum_mul_0(flat(arg0_1), buf0)
                del arg0_1
                return [tensor(buf0, (3,))]

        Memory is an array of one dimension until somebody needs a tensor.
        """
        unused = set(self.free)
        lines = [
            f"del {line}" if isinstance(line, FreeIfNotReused) else line
            for line in self.lines
            if is_written(line, unused)
        ]
        return self.function("call", ["args.clear()", *lines])

    def text_of_fits(self):
        """The text of what says whether arguments are such as the code was written for: for x of sizes (s77, 4)

        def fits(args):
            arg0_1, arg1_1 = args
            s77 = arg0_1
            array = arg1_1._array
            if array.shape != (s77, 4) or array.strides != (16, 4) or array.dtype != dtype_float32: return False
            return True
        """
        lines = []
        for name, layout in self.graph.input_layouts.items():
            dtype = layout.dtype.numpy
            self.names[f"dtype_{layout.dtype.name}"] = dtype
            strides = tuple(stride * dtype.itemsize for stride in layout.stride)
            other = f"array.shape != {layout.size} or array.strides != {strides} or array.dtype != dtype_{layout.dtype.name}"
            lines += [f"array = {name}._array", f"if {other}: return False"]
        return self.function("fits", [*lines, "return True"])

    def text_of_expected(self):
        """The text of what says which sizes and strides the code was written for: (place among the arguments, sizes, strides) of each tensor."""
        places = {name: k for k, name in enumerate(self.graph.graph_inputs)}
        found = [(places[name], layout.size, layout.stride) for name, layout in self.graph.input_layouts.items()]
        return self.function("expected", [f"return {found}"])

    def function(self, name, lines):
        """A function of the arguments, in which their names and those of sizes are known."""
        names = self.graph.graph_inputs
        unpack = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = args"] if names else []
        sizes = [f"{size} = {text}" for size, text in self.graph.sizes.items()]
        return "\n".join([f"def {name}(args):", *[f"    {line}" for line in [*unpack, *sizes, *lines]], ""])

    # -- kernels

    def kernel_call(self, group):
        stored = {
            name
            for name in group.names
            if name in self.scheduler.outputs or any(user is not group for user in self.users.get(name, []))
        }
        kernel = NumbaKernel(group.domain, stored)
        name = f"numba_fused_{'_'.join(origins(group))}_{len(self.kernels)}"
        self.kernels[name], self.names[name] = kernel, compiled_kernel(kernel.source)
        for output in kernel.outputs:
            self.allocate(output)
        self.lines.append(f"{name}({', '.join([*map(self.pointer, kernel.arguments), *kernel.sizes])})")

    def allocate(self, name):
        """Memory for a buffer: that of one that is no longer needed, or new."""
        layout = self.buffers[name].layout
        kind = math.prod(layout.size), layout.dtype.name
        self.flat.add(name)
        self.allocated[name] = kind
        for old in self.free:
            if self.allocated[old] == kind and name not in self.never_again:
                self.free.remove(old)
                self.lines.append(f"{name} = {old}; del {old}  # reuse")
                return
        self.names[f"{layout.dtype.name}"] = layout.dtype.numpy
        self.lines.append(f"{name} = empty({kind[0]}, {kind[1]})")

    def pointer(self, name):
        """A buffer as a kernel takes it: an array of one dimension."""
        if name in self.graph.constants:
            self.names[name] = self.graph.constants[name]
        return name if name in self.flat else f"flat({name})"

    def let_go(self, step):
        gone = sorted(self.last_use.get(step, []))
        for name in gone:
            if name in self.flat and name not in self.never_again:
                self.free.append(name)
                self.lines.append(FreeIfNotReused(name))
        tensors = [name for name in gone if name not in self.flat and self.is_known(name)]
        if tensors:
            self.lines.append(f"del {', '.join(tensors)}")

    def is_known(self, name):
        return name in self.graph.graph_inputs or not isinstance(self.buffers.get(name), ComputedBuffer)

    # -- operators

    def extern_call(self, group):
        buffer = group.nodes[0].buffer
        if isinstance(buffer, MultiOutput):
            self.lines.append(f"{buffer.name} = {buffer.source.name}[{buffer.number}]")
            return
        if isinstance(buffer, ExternKernelOut):
            self.extern_call_out(buffer)
            return
        op = buffer.op
        if op._opname not in OWN_RESULTS:
            self.never_again |= set(buffer.reads)
        in_place, kwargs = bool(buffer.mutates), buffer.kwargs
        if isinstance(op, OpOverload) and not has_numbers([buffer.args, kwargs]):
            name, args = f"{op.namespace}_{op.__name__.replace('.', '_')}", bound(op, buffer.args, kwargs)
            self.names[name], kwargs = op._operator.call, {}
        else:
            name, args = self.operator(op), buffer.args
        args = [self.spelled(a, in_place) for a in args]
        args += [f"{key}={self.spelled(a, False)}" for key, a in kwargs.items()]
        self.lines.append(f"{buffer.name} = {name}({', '.join(args)})")

    def extern_call_out(self, buffer):
        """A function that is given memory for its result."""
        name = buffer.function.__name__
        self.names[name] = buffer.function
        args = [self.arrays(a) for a in buffer.args]
        self.allocate(buffer.name)
        self.lines.append(f"{name}({', '.join(args)}, {buffer.name}.reshape{buffer.layout.size})")

    def arrays(self, value):
        """An argument with arrays for tensors, as text."""
        if isinstance(value, list):
            return f"[{', '.join(map(self.arrays, value))}]"
        return self.array(value) if isinstance(value, ReinterpretView) else repr(value)

    def array(self, view):
        """A view's elements as an array, as text."""
        name, layout = view.buffer.name, view.buffer.layout
        if name not in self.flat and name not in self.graph.constants and view.offset == 0:
            if (view.size, view.stride) == (layout.size, layout.stride):
                return f"{name}._array"
            if (view.size, view.stride) == (layout.size[::-1], layout.stride[::-1]):
                return f"{name}._array.T"
        pointer = self.pointer(name)
        if is_whole(view):
            return f"{pointer}.reshape{view.size}"
        if is_whole(view._replace(size=view.size[::-1], stride=view.stride[::-1])):
            return f"{pointer}.reshape{view.size[::-1]}.T"
        return f"strided({pointer}, {view.size}, {view.stride}, {view.offset})"

    def operator(self, op):
        """Its name in the text."""
        if isinstance(op, OpOverload):
            self.names[op.namespace] = _namespace(op.namespace)
            return str(op)
        name = getattr(op, "__name__", "function")
        self.names[name] = op
        return name

    def spelled(self, value, in_place):
        """An operator's argument as text."""
        if isinstance(value, ReinterpretView):
            return self.argument(value, in_place)
        if isinstance(value, ScalarInput | Size):
            return str(value)
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            inner = ", ".join(self.spelled(v, in_place) for v in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        if isinstance(value, SYM_TYPES):
            raise AssertionError(f"{value} is a number of the trace, and none of the call")
        if value is None or isinstance(value, bool | int | float | str) and value == value and abs_is_finite(value):
            return repr(value)
        name = f"value{len(self.names)}"
        self.names[name] = value
        return name

    def result(self, view):
        """What is returned, as text. A buffer that is returned several times is one tensor, or views of one: who writes to a result, as a
        gradient is added to, must be able to see that others have it.
        """
        name, layout = view.buffer.name, view.buffer.layout
        if name in self.flat and self.is_seen_twice(name):
            self.flat.discard(name)
            self.lines.append(f"{name} = tensor({name}, {layout.size}, {layout.stride})")
        return self.argument(view, keep=True)

    def is_seen_twice(self, name):
        """Whether a buffer is returned several times, and the caller gets it. What is saved for backward nobody writes to."""
        outputs = [(v.buffer.name, k) for k, v in enumerate(self.graph.outputs) if isinstance(v, ReinterpretView)]
        places = [k for other, k in outputs if other == name]
        return len(places) > 1 and min(places) < self.graph.visible_outputs

    def argument(self, view, keep):
        """A tensor as text. keep: whether it is to be a view, with the version that its base has: who writes to it, or gets it."""
        buffer = view.buffer
        name, layout = buffer.name, buffer.layout
        plain = view.offset == 0 and view.size == layout.size and view.stride == layout.stride
        if name in self.graph.constants:
            self.names[name] = self.graph.constants[name]
        if name not in self.flat and (plain or layout is None):
            return name
        if name in self.flat:
            return f"tensor({name}, {view.size}{place(view)})"
        if name not in self.graph.constants and not keep:
            return f"tensor(flat({name}), {view.size}{place(view)})"
        return f"{name}.as_strided({view.size}, {view.stride}, {name}.storage_offset() + {view.offset})"


def is_whole(view):
    """Whether it has all elements of a buffer, one after the other."""
    dense = view.offset == 0 and view.stride == contiguous_strides(view.size)
    return dense and math.prod(view.size) == math.prod(view.buffer.layout.size)


def place(view):
    """Strides and offset as further arguments, where they are needed."""
    return "" if is_whole(view) else f", {view.stride}, {view.offset}"


def has_numbers(arguments):
    return any(isinstance(leaf, ScalarInput | Size) for leaf in tree_leaves(arguments))


def bound(op, args, kwargs):
    """The operator's arguments in the order of its schema, converted as a call would do, so that no call has to."""
    arguments = op._operator.schema.arguments
    given = dict(zip([a.public_name for a in arguments], args)) | kwargs
    return [converted(a.type, given[a.public_name]) if a.public_name in given else default_of(a) for a in arguments]


def converted(kind, value):
    is_tensor = any(isinstance(leaf, Buffer) for leaf in tree_leaves(value))  # a ReinterpretView has one, too
    return value if value is None or is_tensor else as_type(kind, value)


def abs_is_finite(value):
    return isinstance(value, str) or math.isfinite(value)


def _namespace(name):
    from readtorch._ops import ops

    return getattr(ops, name)


def origins(group):
    """The names of the operators that a kernel computes, at most six."""
    names = dict.fromkeys(o.strip("_") for node in group.nodes for o in node.buffer.data.origins)
    return list(names)[:6] or ["copy"]


# ----------------------------------------------------------------------------------------- what the text calls


def flat(tensor):
    """A tensor's memory as an array of one dimension, from its first element to its last."""
    array = tensor._array
    if array.flags.c_contiguous:
        return array.reshape(-1)
    if array.flags.f_contiguous:
        return array.T.reshape(-1)
    turned = array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
    if turned.flags.c_contiguous:
        return turned.reshape(-1)
    span = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) // array.itemsize
    return np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,))


def strided(array, size, stride, offset=0):
    """Elements of an array of one dimension."""
    width = array.itemsize
    return np.ndarray(size, array.dtype, array, offset * width, [s * width for s in stride])


def tensor(array, size, stride=None, offset=0):
    """A tensor over the memory of an array of one dimension. stride: None if it has all elements, one after the other."""
    made = wrap(array.reshape(size) if stride is None else strided(array, size, stride, offset))
    return mark(made) if tls.inference_mode else made


def load_wrapper(codegen):
    """The functions `call`, `fits` and `expected`."""
    from readtorch.aten.codegen import compile_function

    names = {"empty": np.empty, "math": math, "flat": flat, "tensor": tensor, "strided": strided, **codegen.names}
    call = compile_function("call", codegen.source, names)
    fits = compile_function("fits", codegen.text_of_fits(), codegen.names)
    return call, fits, compile_function("expected", codegen.text_of_expected(), {})
