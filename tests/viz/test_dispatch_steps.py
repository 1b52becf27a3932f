"""The dispatch stepper's model, on real calls of ours."""

import pytest

import readtorch
from readtorch.c10.dispatch_key import AUTOGRAD, CPU, HISTORY, THREAD, WRAPPED_NUMBER
from readtorch.viz.dispatch_steps import record_dispatch


def titles(record, operator=None):
    return [step["title"] for step in record["steps"] if operator in (None, step["operator"])]


def step_called(record, title):
    return next(step for step in record["steps"] if step["title"] == title)


def test_a_plain_call_goes_straight_to_the_backend():
    a, b = readtorch.ones(2, 3), readtorch.ones(3)
    record = record_dispatch("add", (a, b))
    assert titles(record)[:5] == ["Python call", "entry", "key sets", "mask", "look-up"]
    look_up = step_called(record, "look-up")
    assert look_up["operator"] == "aten::add.Tensor" and look_up["chosen"] == CPU
    kernel = record["steps"][5]
    assert "add_cpu" in kernel["title"] and kernel["source"]["file"] == "aten/native/binary_ops/arithmetic.py"


def test_key_sets_are_the_operands_own():
    a, b = readtorch.ones(2, requires_grad=True), readtorch.ones(2)
    sets = dict(step_called(record_dispatch(lambda: a * b), "key sets")["columns"])
    assert sets["self"] == a._keys and sets["other"] == b._keys and sets["OR"] == a._keys | b._keys
    assert sets["OR"] & THREAD


def test_a_number_becomes_a_wrapped_number_on_the_way():
    sets = dict(step_called(record_dispatch(lambda a: a + 1, (readtorch.ones(2),)), "key sets")["columns"])
    assert sets["wrapped number"] & WRAPPED_NUMBER and sets["OR"] & WRAPPED_NUMBER


def test_the_parser_stands_between_the_name_and_the_entry():
    record = record_dispatch("flip", (readtorch.ones(2), (0,)))
    through = [step["title"] for step in record["steps"] if step["title"].startswith("through")]
    assert "through make_parser.parse" in through


def test_a_composed_operator_shows_its_parts_below_itself():
    record = record_dispatch("linear", (readtorch.ones(1, 2), readtorch.ones(3, 2)))
    assert {step["depth"] for step in record["steps"]} >= {0, 1}


def test_autograd_stands_above_the_backend():
    a, b = readtorch.ones(2, requires_grad=True), readtorch.ones(2)
    record = record_dispatch(lambda: a * b)
    assert step_called(record, "look-up")["chosen"] == AUTOGRAD
    kernels = [step for step in record["steps"] if step["title"].startswith("kernel")]
    assert [kernel["chosen"] for kernel in kernels] == [AUTOGRAD, CPU]
    assert kernels[0]["source"]["file"] == "generated"


def test_no_grad_masks_autograd_off():
    a = readtorch.ones(2, requires_grad=True)
    with readtorch.no_grad():
        record = record_dispatch(lambda: a * a)
    sets = dict(step_called(record, "mask")["columns"])
    assert sets["OR"] & HISTORY and not sets["left"] & HISTORY and sets["left"] & AUTOGRAD
    assert step_called(record, "look-up")["chosen"] == CPU


def test_the_call_runs_once():
    a = readtorch.zeros(2)
    record_dispatch("add_", (a, 1))
    assert a.tolist() == [1, 1]


def test_a_quoted_line_is_in_the_file():
    record = record_dispatch("add", (readtorch.ones(2), readtorch.ones(2)))
    for step in record["steps"]:
        if step["source"]:
            assert any("def " in line or "lambda" in line for line in step["source"]["lines"])


def test_what_calls_no_operator_is_refused():
    with pytest.raises(ValueError, match="no operator"):
        record_dispatch(lambda: 1 + 1)
    with pytest.raises(ValueError, match="no function"):
        record_dispatch("no_such_function")
