"""Operators and the dispatcher: which kernel an operator call reaches.

In PyTorch: `aten/src/ATen/core/dispatch/Dispatcher.h` and `aten/src/ATen/core/dispatch/OperatorEntry.h`.
Explained in the chapter "One operator call".
"""

import textwrap

from readtorch.c10.device import default_device, keys_on
from readtorch.c10.dispatch_key import (
    AUTOGRAD,
    BACKENDS,
    CPU,
    GRAD_FACTS,
    INFERENCE_MODE,
    INFERENCE_TENSOR,
    KEYS,
    META,
    NAMES,
    ON_EVERY_TENSOR,
    PYTHON,
    THREAD,
    TRACER,
    highest_key,
    key_names,
)
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls

from .codegen import compile_function
from .context import context
from .function_schema import parse_schema
from .numpy_errors import FOREIGN, restate
from .record_function import run_observed

# All operators by full name, in order of registration.
registry = {}

# Key -> function(operator, keys) that writes the kernel of an operator for a key set whose highest key it is, or returns
# None. Higher layers register theirs here: autograd, the tracer. Through this table the engine, which knows no operation,
# meets the operations. In PyTorch: torchgen and tools/autograd write such kernels before the compiler runs.
writers = {}

# Key -> function(operator, keys, args, kwargs): the kernel of every operator that has none of its own for the key.
# In PyTorch: boxed fallbacks (`TORCH_LIBRARY_IMPL(_, …)`), which take their arguments from a stack.
fallbacks = {}

# Backend -> function(operator) that makes the kernel of a structured operator there: see register_dispatch_key.py.
structured_kernels = {}

# Given to `Operator.backward` instead of a class of formulas: results may require grad, but backward raises.
NOT_IMPLEMENTED = "not implemented"


class Operator:
    """One overload of one operator, such as `aten::add.Tensor`: its schema and its kernels by key."""

    def __init__(self, schema):
        self.schema = schema
        self.name = schema.full_name
        self.kernels = {}  # backend key -> function that returns the results
        self.shape_rule = None  # function that refuses bad arguments and describes the results, see `Operator.meta`
        self.impls = {}  # backend key -> function that fills results which are there, see `Operator.impl`
        self.scalar_function = None  # what a pointwise operator does to an element, see `Operator.elementwise`
        # What more is asked of the caller's outputs than that they can hold the results: see exact_out.py.
        self.out_check = self.out_shares_memory = None
        self.out_is_row_major = False
        self.composite = None  # function of other operators: serves every backend and needs no derivative of its own
        self.derivative = None  # class of formulas, see `Operator.backward`
        self.inplace = self.out = None  # Operators derived from this one
        self.variant_of = None  # the functional operator that this in-place or out= one was derived from
        self.deterministic = {}  # backend -> function of its kernel, see `Operator.while_deterministic`
        self.table = DispatchTable(self)

    def kernel(self, function, key=CPU):
        """Decorator: `function` is the operator's kernel for a backend. It receives the schema's arguments."""
        self.kernels[key] = function
        self.table.clear()
        return function

    def meta(self, function):
        """Decorator: `function` takes the operator's inputs, refuses bad ones, and returns a `TensorMeta` for each output
        (several in a tuple). It reads sizes, strides, dtypes and numbers, never elements.

        It serves every backend, the Meta device, and the forms in place and with `out=`. In PyTorch: TORCH_META_FUNC.
        """
        self.shape_rule = function
        self.table.clear()
        return function

    def impl(self, *keys):
        """Decorator: `function` takes the inputs and then the outputs, which are there as `meta` described them, and
        fills these. keys: the backends that it is for, CPU unless given. In PyTorch: TORCH_IMPL_FUNC.
        """

        def register_impl(function):
            for key in keys or (CPU,):
                self.impls[key] = function
                self.kernel(structured_kernels[key](self), key)
            return function

        return register_impl

    def compose(self, function):
        """Decorator: `function` does the operator's work by calling other operators (CompositeImplicitAutograd)."""
        self.composite = function
        self.table.clear()
        return function

    def backward(self, formulas):
        """Decorator for the class that holds the derivative: its name is the graph node's, each function in it is the
        gradient of one input, and *the names of a function's parameters say what the node must save*.

        In PyTorch: an entry of `tools/autograd/derivatives.yaml`; its formulas' names are read in the same way.
        """
        self.derivative = formulas
        self.table.clear()
        return formulas

    def while_deterministic(self, change, backends):
        """While use_deterministic_algorithms is on, `change(kernel)` runs in place of the kernels for these backends."""
        self.deterministic |= {1 << bit: change for bit in range(backends.bit_length()) if backends >> bit & 1}
        context.asking.add(self)

    def resolve(self, keys):
        """The kernel for a masked key set: that of the highest key which has one."""
        if keys & THREAD:
            return with_thread_state(self, keys)
        for key in (TRACER, AUTOGRAD, PYTHON):
            if keys & key:
                kernel = self.functionality_kernel(key, keys)
                if kernel is not None:
                    return kernel
        return self.backend_kernel(keys)

    def stops_at(self, keys):
        """The key whose kernel a call with this masked set reaches first."""
        for key in (TRACER, AUTOGRAD, PYTHON):
            if keys & key and self.functionality_kernel(key, keys) is not None:
                return key
        return highest_key(keys & BACKENDS)

    def functionality_kernel(self, key, keys):
        """The kernel for `keys`, whose highest key is `key`, no backend; None if the call goes on to the next key.

        Note [ Hops that do nothing ]
        The kernel that is written for Autograd asks its operands whether one requires grad, and goes on if none does. The
        facts HISTORY and STALE say so already, so without them the call goes on at once.
        """
        if key == AUTOGRAD:
            if AUTOGRAD in self.kernels:
                return self.kernels[AUTOGRAD]
            if self.composite is not None:
                return self.composed(keys) if keys & (GRAD_FACTS | PYTHON) else None
            return writers[AUTOGRAD](self, keys) if keys & GRAD_FACTS else None
        if key in fallbacks:
            return boxed(fallbacks[key], self, keys)
        return writers[key](self, keys)

    def composed(self, keys):
        """The composition, which under inference mode marks what it makes."""
        return writers[INFERENCE_MODE](self, self.composite) if keys & INFERENCE_MODE else self.composite

    def backend_kernel(self, keys):
        """The backend's own kernel, else the composition, else the one that can be written for it."""
        backend = highest_key(keys & BACKENDS) if keys & BACKENDS else 0
        kernel = self.kernels.get(keys & INFERENCE_TENSOR or backend) or self.kernels.get(backend) or self.composite
        if kernel is None and backend in writers:
            kernel = writers[backend](self, keys)
        if kernel is None:
            raise NotImplementedError(missing_kernel(self, keys))
        kernel = self.as_set(kernel, keys)
        return writers[INFERENCE_MODE](self, kernel) if keys & INFERENCE_MODE else kernel

    def as_set(self, kernel, keys):
        """`kernel`, or what takes its place while deterministic algorithms are asked for."""
        if not (context.deterministic and self.deterministic and keys & BACKENDS):
            return kernel
        change = self.deterministic.get(highest_key(keys & BACKENDS))
        return kernel if change is None else change(kernel)

    def __getattr__(self, name):
        """`operator.call`, the entry that takes all arguments in schema order, is written when first asked for."""
        if name != "call":
            raise AttributeError(name)
        self.call = make_call(self)
        return self.call

    def __repr__(self):
        return f"<Operator {self.schema}>"


def with_thread_state(operator, keys):
    """The kernel for a set with THREAD: the thread's included keys come in, and its observers see the call."""
    table = operator.table

    def from_the_top(*arguments):
        kernel = table[(keys | tls.included) & tls.mask & ~THREAD]
        return run_observed(operator, kernel, arguments) if tls.observers else kernel(*arguments)

    return from_the_top


def boxed(function, operator, keys):
    """A boxed function as a kernel that takes its arguments one by one."""

    def unboxed(*arguments):
        return function(operator, keys, arguments, {})

    return unboxed


def missing_kernel(operator, keys):
    """What the error says when no kernel, composite or fallback serves these keys."""
    if keys & META:
        return (
            f"{operator.name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
            "registered. You may have run into this message while using an operator with PT2 compilation APIs "
            "(torch.compile/torch.export); in order to use this operator with those APIs you'll need to add a fake impl."
        )
    return (
        f"Could not run '{operator.name}' with arguments from the '{key_names(keys & BACKENDS or CPU)[0]}' backend. "
        f"'{operator.name}' is only available for these backends: [{', '.join(NAMES[key] for key in operator.kernels if key & KEYS)}]."
    )


class DispatchTable(dict):
    """Masked key set -> kernel. Filled on the first call with that set, so a call costs one look-up."""

    def __init__(self, operator):
        self.operator = operator

    def __missing__(self, keys):
        kernel = self[keys] = self.operator.resolve(keys)
        return kernel


def register(text):
    """A new operator for a schema text."""
    operator = Operator(parse_schema(text))
    registry[operator.name] = operator
    return operator


def key_lines(arguments, renamed=None):
    """Source lines that OR the key sets of the tensor arguments into `keys`; a `device` argument overrules them."""
    renamed = renamed or {}
    tensors = [a for a in arguments if a.type.is_tensor]
    plain = [renamed.get(a.name, a.name) for a in tensors if not a.type.is_list and not a.type.optional]
    lines = [f"keys = {' | '.join(f'{n}._keys' for n in plain) or 'no_tensor_keys'}"]
    for a in tensors:
        name = renamed.get(a.name, a.name)
        if a.type.is_list:
            lines.append(f"for t in {name}:")
            lines.append(f"    {'if t is not None: ' if a.type.inner_optional else ''}keys |= t._keys")
        elif a.type.optional:
            lines.append(f"if {name} is not None: keys |= {name}._keys")
    if any([a.name == "device" for a in arguments]):
        elsewhere = (
            "device is not None" if tensors else "device is not None or default_device.stack or default_device.chosen"
        )
        lines.append(f"if {elsewhere}: keys = keys_on(device, keys)")
    return lines


def make_call(operator):
    """The function through which every call of `operator` passes: OR the key sets, mask, look up, run.

    For `mul.Tensor` it writes:

        def mul(self, other):
            keys = self._keys | other._keys
            try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, other)
            except FOREIGN as error:
                restate(error)
                raise
    """
    name = operator.schema.name
    parameters = ", ".join(a.name for a in operator.schema.arguments)
    lines = "\n    ".join(key_lines(operator.schema.arguments))
    call = f"table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({parameters})"
    source = f"def {name}({parameters}):\n    {lines}\n" + run_lines(call)
    return compile_function(
        name,
        source,
        {
            "table": operator.table,
            **MASK,
            "no_tensor_keys": NO_TENSOR_KEYS,
            "keys_on": keys_on,
            "default_device": default_device,
        },
    )


def run_lines(call, indent=4):
    """Source lines that return what a kernel's call gives; an error of NumPy's gets PyTorch's words: see
    numpy_errors.py."""
    return textwrap.indent(
        f"try: return {call}\nexcept FOREIGN as error:\n    restate(error)\n    raise\n", " " * indent
    )


# What generated text needs for Note [ The mask of a call ], and for errors.
MASK = {
    "tls": tls,
    "threads_with_modes": threads_with_modes,
    "DEFAULT_MASK": DEFAULT_MASK,
    "FOREIGN": FOREIGN,
    "restate": restate,
}


# What an operator without tensor arguments is dispatched on, unless its `device` argument names another backend.
NO_TENSOR_KEYS = CPU | ON_EVERY_TENSOR
