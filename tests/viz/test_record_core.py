"""The functions that a program runs, with their lines and chapters."""

import readtorch as rt
from readtorch.show import _functions
from readtorch.viz.record_core import CoreFunction, Docstrings, record_core


def one_step():
    x = rt.ones(2, requires_grad=True)
    (x * 2).sum().backward()


def test_functions_in_the_order_in_which_they_are_entered():
    functions = record_core(one_step)
    names = [f.name for f in functions]
    assert "one_step" not in names and len(set(f.key for f in functions)) == len(functions)
    assert names.index("Tensor.backward") < names.index("execute") < names.index("MulBackward0.apply")
    execute = functions[names.index("execute")]
    assert (execute.file, execute.chapter) == ("csrc/autograd/engine.py", "Autograd")
    assert execute.first < execute.last and execute.about


def test_generated_functions_are_named_by_class_or_signature():
    generated = {f.name: f.chapter for f in record_core(one_step) if f.file == "generated"}
    assert generated["MulBackward0.apply"] == generated["mul_autograd(self, other)"] == "Autograd"


def test_a_second_run_gives_the_same():
    assert record_core(one_step) == record_core(one_step, warm=0)


def test_the_innermost_docstring_names_the_chapter():
    texts = Docstrings()
    texts.texts = {
        "readtorch.a": 'See the chapter "A".',
        "readtorch.a.b.f": "No chapter.",
        "readtorch.a.b.F": 'See the chapter "F".',
    }
    assert [texts.chapter("a.b", name) for name in ("f", "F.g")] == ["A", "F"]
    assert texts.chapter("other", "f") is None


def test_lines_of_a_function_within_another_one_count_once():
    functions = [
        CoreFunction("a.py", name, first, last, None, "")
        for name, first, last in (("f", 1, 10), ("f.g", 3, 5), ("h", 12, 12))
    ]
    assert _functions.lines_of(functions) == 11
    texts = [CoreFunction("generated", name, 1, 4, None, "") for name in ("f()", "g()")]
    assert _functions.lines_of(texts) == 8
