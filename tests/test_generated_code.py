"""Law 11: generated code can be read. The function that writes it shows in its docstring what it writes for one operator."""

import inspect
import textwrap

import pytest

import readtorch as rt
from readtorch.aten import dispatcher, gen_python_functions
from readtorch.aten.dispatcher import registry
from readtorch.aten.native.tensor_shape.view import sizes_binding
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.csrc.autograd import gen_autograd_functions, gen_forward_type, gen_variable_type
from readtorch.csrc.autograd.load_derivatives import forward_derivatives


def call(name):
    return inspect.getsource(registry[name].call)


def autograd_kernel(name):
    operator = registry[name]
    formulas = gen_autograd_functions.Formulas(operator)
    return gen_variable_type.kernel_source(operator, formulas, may_be_stale=False)


def forward_kernel(name):
    operator = registry[name]
    formulas = gen_autograd_functions.Formulas(operator)
    return gen_forward_type.forward_source(operator, formulas, forward_derivatives(formulas))


def apply(name):
    return inspect.getsource(gen_autograd_functions.node_class(registry[name]).apply)


GENERATORS = {  # the function that writes a text -> the text
    gen_python_functions._direct_binding: lambda: inspect.getsource(rt.exp.__code__),
    gen_python_functions._first_overload_binding: lambda: inspect.getsource(rt.mul.__code__),
    gen_python_functions._method_in_python: lambda: inspect.getsource(rt.Tensor.lu),
    gen_python_functions.make_infix: lambda: inspect.getsource(rt.Tensor.__mul__),
    sizes_binding: lambda: inspect.getsource(rt.Tensor.view),
    dispatcher.make_call: lambda: call("aten::mul.Tensor"),
    gen_variable_type.kernel_source: lambda: autograd_kernel("aten::mul.Tensor"),
    gen_variable_type._inplace_lines: lambda: autograd_kernel("aten::sin_"),
    gen_forward_type.forward_source: lambda: forward_kernel("aten::mul.Tensor"),
    gen_forward_type._inplace_lines: lambda: forward_kernel("aten::sin_"),
    gen_autograd_functions._make_apply: lambda: apply("aten::mul.Tensor"),
}


def shown(function):
    """The code in a function's docstring: its indented block."""
    lines = inspect.getdoc(function).splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    "))).strip()


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda function: function.__name__)
def test_docstring_shows_what_is_written(generator):
    assert shown(generator) == GENERATORS[generator]().strip()


def test_the_kernel_that_runs_is_the_one_shown():
    x = rt.ones(2, requires_grad=True)
    y = x * x
    kernel = registry["aten::mul.Tensor"].table[x._keys & tls.mask]
    assert inspect.getsource(kernel).strip() == shown(gen_variable_type.kernel_source)
    assert inspect.getsource(type(y.grad_fn).apply).strip() == shown(gen_autograd_functions._make_apply)


@pytest.mark.parametrize(
    "module", [gen_python_functions, dispatcher, gen_variable_type, gen_forward_type, gen_autograd_functions]
)
def test_every_function_that_compiles_text_is_listed(module):
    writers = {
        name
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and "compile_" in " ".join(function.__code__.co_names)
    }
    writers -= {
        "make_recording_kernel",
        "make_forward_kernel",
    }  # they compile what `kernel_source` and `forward_source` write
    assert writers <= {function.__name__ for function in GENERATORS}
