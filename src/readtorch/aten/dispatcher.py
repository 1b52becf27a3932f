"""Operators and the dispatcher: which kernel an operator call reaches.

What is registered for an operator, and which kernel follows from it, is in operator_entry.py.

In PyTorch: `aten/src/ATen/core/dispatch/Dispatcher.h`.
Explained in the chapter "One operator call".
"""

import functools
import textwrap

from readtorch.c10.device import keys_on
from readtorch.c10.dispatch_key import BACKEND_SELECT, CPU, ON_EVERY_TENSOR
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.tensor_impl import view

from .codegen import compile_function
from .context import context
from .function_schema import parse_schema
from .numpy_errors import FOREIGN, restate
from .operator_entry import BindingTable, OperatorEntry, fallbacks, fallthrough, registry, set_fallback, writers  # noqa: F401  (other rooms find them here)

# Backend -> function(operator) that makes the kernel of a structured operator there: see register_dispatch_key.py.
structured_kernels = {}

# Given to `Operator.backward` instead of a class of formulas: results may require grad, but backward raises.
NOT_IMPLEMENTED = "not implemented"


class Operator(OperatorEntry):
    """One overload of one operator, such as `aten::add.Tensor`: its schema and its kernels by key."""

    def __init__(self, schema):
        super().__init__()
        self.schema = schema
        self.name = schema.full_name
        self.shape_rule = None  # function that refuses bad arguments and describes the results, see `Operator.meta`
        self.impls = {}  # backend key -> function that fills results which are there, see `Operator.impl`
        self.scalar_function = None  # what a pointwise operator does to an element, see `Operator.elementwise`
        # What more is asked of the caller's outputs than that they can hold the results: see exact_out.py.
        self.out_check = self.out_shares_memory = None
        self.out_is_row_major = False
        self.debug = None  # where it was declared, if torch.library declared it
        self.derivative = None  # class of formulas, see `Operator.backward`
        self.inplace = self.out = None  # Operators derived from this one
        self.variant_of = None  # the functional operator that this in-place or out= one was derived from
        self.math_bits_kernel = None  # kernel -> what it is where tensors have math bits: see math_bits_fallback.py
        self.deterministic = {}  # backend -> function of its kernel, see `Operator.while_deterministic`

    def kernel(self, function, key=CPU):
        """Decorator: `function` is the operator's kernel for a backend. It receives the schema's arguments."""
        self.kernels[key] = function
        self.clear_tables()
        return function

    def view_kernel(self, function):
        """Decorator: `function` returns the array that a view of `self` looks at. The kernel of all backends makes a tensor of it.

        The kernel for ADInplaceOrView does both in one: see gen_inplace_or_view_type.py.
        """

        @functools.wraps(function)
        def make_view(self, *arguments):
            return view(self, function(self, *arguments))

        make_view.array_of = function
        self.kernel(make_view)
        return function

    def meta(self, function):
        """Decorator: `function` takes the operator's inputs, refuses bad ones, and returns a `TensorMeta` for each output
        (several in a tuple). It reads sizes, strides, dtypes and numbers, never elements.

        It serves every backend, the Meta device, and the forms in place and with `out=`. In PyTorch: TORCH_META_FUNC.
        """
        self.shape_rule = function
        self.clear_tables()
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
        self.clear_tables()
        return function

    def backward(self, formulas):
        """Decorator for the class that holds the derivative: its name is the graph node's, each function in it is the
        gradient of one input, and *the names of a function's parameters say what the node must save*.

        In PyTorch: an entry of `tools/autograd/derivatives.yaml`; its formulas' names are read in the same way.
        """
        self.derivative = formulas
        self.clear_tables()
        return formulas

    def while_deterministic(self, change, backends):
        """While use_deterministic_algorithms is on, `change(kernel)` runs in place of the kernels for these backends."""
        self.deterministic |= {1 << bit: change for bit in range(backends.bit_length()) if backends >> bit & 1}
        context.asking.add(self)

    def __getattr__(self, name):
        """`operator.call`, the entry that takes all arguments in schema order, is written when first asked for; so is
        `call_from_python`, for Python bindings: Note [ Who overrides ]."""
        if name == "call":
            self.call = make_call(self, self.table)
        elif name == "call_from_python":
            self.call_from_python = make_call(self, self.binding_table)
        elif name == "binding_table":
            self.binding_table = BindingTable(self)
            self.binding_tables.append(self.binding_table)
        else:
            raise AttributeError(name)
        return vars(self)[name]

    def __repr__(self):
        return f"<Operator {self.schema}>"


def register(text):
    """A new operator for a schema text."""
    operator = Operator(parse_schema(text))
    registry[operator.name] = operator
    return operator


def remove(operator):
    """Forget an operator that torch.library declared."""
    del registry[operator.name]
    operator.clear_tables()


def key_lines(arguments, renamed=None, absent=None):
    """Source lines that OR the key sets of the tensor arguments into `keys`; a `device` argument overrules them.

    absent: the name of what stands for an optional argument that was not given, beside None.
    """
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
            there = f"{name} is not None" + (f" and {name} is not {absent}" if absent else "")
            lines.append(f"if {there}: keys |= {name}._keys")
    if any([a.name == "device" for a in arguments]):
        lines.append("if device is not None: keys = keys_on(device, keys)")
    return lines


def make_call(operator, table):
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
            "table": table,
            **MASK,
            "no_tensor_keys": NO_TENSOR_KEYS if operator.kernels or operator.composite else OF_NO_BACKEND,
            "keys_on": keys_on,
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
OF_NO_BACKEND = BACKEND_SELECT | ON_EVERY_TENSOR  # the same for operators of torch.library
