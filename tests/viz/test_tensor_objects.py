"""The figure of a program's tensors: its model against PyTorch's objects, whose memory is read."""

import ctypes
import random
import sys
import weakref

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import tensor_objects
from readtorch.viz.inputs import Refusal

AT = {"counts": 8, "storage": 16, "autograd_meta": 24, "version_counter": 40, "key_set": 168}


def word(address):
    return int.from_bytes(ctypes.string_at(address, 8), "little")


def field(t, name):
    return word(t._cdata + AT[name])


class Real:
    """A program of the figure, run by PyTorch."""

    def __init__(self):
        self.names = {"torch": torch}
        self.seen = []  # weak references to all Python objects, in the order in which they were made

    def run(self, statement):
        exec(statement, self.names)
        for name in tensor_objects.NAMES:
            t = self.names.get(name)
            if t is not None and not any(t is other() for other in self.seen):
                self.seen.append(weakref.ref(t))

    def state(self):
        """What the figure shows of each tensor that is alive."""
        places = {"storage": {}, "version_counter": {}}
        described = []
        for i, reference in enumerate(self.seen):
            t = reference()
            if t is None:
                continue
            both = field(t, "counts")
            names = [name for name in tensor_objects.NAMES if self.names.get(name) is t]
            described.append(
                {
                    "id": i + 1,
                    "names": names,
                    "note": hasattr(t, "note"),
                    "python": sys.getrefcount(t) - 2,  # this function's own, and the argument's
                    "strong": both & 0xFFFFFFFF,
                    "weak": both >> 32 & 0x7FFFFFFF,
                    "has_pyobject": both >> 63,
                    "storage": places["storage"].setdefault(field(t, "storage"), i),
                    "sharers": word(field(t, "storage") + 8) & 0xFFFFFFFF,
                    "made": field(t, "autograd_meta") != 0,
                    "requires_grad": t.requires_grad,
                    "grad_fn": None if t.grad_fn is None else t.grad_fn.name(),
                    "counter": field(t, "version_counter")
                    and places["version_counter"].setdefault(field(t, "version_counter"), i + 1),
                    "version": t._version if field(t, "version_counter") else None,
                    "shape": list(t.shape),
                    "strides": list(t.stride()),
                    "keys": str(torch._C._dispatch_keys(t))[len("DispatchKeySet(") : -1].split(", "),
                }
            )
            del t
        return described


def modelled(state):
    """The model's state, as `Real.state` says it: identities by the first tensor that has them."""
    first = {"storage": {}, "counter": {}}
    described = []
    for t in state:
        parts = t["meta"].split(", ")
        described.append(
            {
                "id": t["id"],
                "names": t["names"],
                "note": t["note"],
                "python": t["python"],
                "strong": t["strong"],
                "weak": 1,
                "has_pyobject": 1,
                "storage": first["storage"].setdefault(t["storage"], t["id"] - 1),
                "sharers": t["sharers"],
                "made": t["meta"] != "null",
                "requires_grad": t["requires_grad"],
                "grad_fn": next((part for part in parts if part.endswith("Backward0")), None),
                "counter": first["counter"].setdefault(t["counter"], t["id"]) if t["counter"] else 0,
                "version": t["version"],
                "shape": t["shape"],
                "strides": t["strides"],
                "keys": t["keys"],
            }
        )
    return described


@pytest.mark.parametrize("seed", range(400))
def test_a_random_program_does_what_the_figure_says(seed):
    rng = random.Random(seed)
    machine, real, done = tensor_objects.Machine(), Real(), []
    for _ in range(40):
        statement = tensor_objects.random_statement(rng)
        try:
            machine.run(statement)
        except Refusal as refusal:
            check_refusal(str(refusal), statement, real)
            if "backward" in statement:  # it went part of the way
                break
            continue
        done.append(statement)
        real.run(statement)
        assert modelled(machine.state()) == real.state(), "\n".join(done)


def check_refusal(words, statement, real):
    """What the figure refuses in PyTorch's name, PyTorch refuses in these words."""
    kind, colon, message = words.partition("Error: ")
    if not colon:
        return
    told = None
    try:
        exec(statement, dict(real.names))
    except Exception as error:  # kept as text: an error that is kept would hold tensors
        told = f"{type(error).__name__}: {error}"
    assert told and told.startswith(f"{kind}Error: {message}")


def test_the_figure_says_who_keeps_a_tensor_alive():
    result = tensor_objects.FIGURE.result()
    before, after = result["steps"][-3:-1]
    assert [t["names"] for t in before] == [["x"], ["w"], ["y"]]
    assert after[0]["owners"] == ["Python object", "MulBackward0 of T3 saves self"]
    assert result["say"][-2].endswith("lives on, held by MulBackward0 of T3 saves self.")
    assert result["steps"][-1][0]["names"] == ["z"]


@pytest.mark.parametrize(
    ("program", "steps", "words"),
    [
        ("x = torch.zeros(2)", 1, "none of this figure's statements"),
        ("y = x; x = torch.ones(2, 3)", 1, "NameError: name 'x' is not defined. What follows is not run."),
        ("x = torch.ones(2, 3); import os", 2, "none of this figure's statements"),
    ],
)
def test_a_failing_line_is_the_last_step_and_shows_what_was_before_it(program, steps, words):
    result = tensor_objects.FIGURE.result(program=program)
    assert result["failed"] and len(result["statements"]) == steps == len(result["steps"]) - 1 == len(result["say"]) - 1
    assert result["steps"][-1] == result["steps"][-2] and words in result["say"][-1]


@pytest.mark.browser
@pytest.mark.slow
def test_typing_goes_to_the_last_step_undo_comes_back_and_a_failing_line_makes_room(visit, tmp_path):
    page = tmp_path / "figure.html"
    page.write_text(f'<!doctype html><html lang="en"><title>x</title>{viz.figure("tensor_objects").static_html()}')
    with visit(page) as seen:
        figure = seen.page.locator(".rt-fig")
        program = figure.get_by_label("program", exact=True)
        lines = figure.locator(".rt-program .rt-stmt")
        current = figure.locator(".rt-program .rt-is-pick")
        button = lambda name: figure.get_by_role("button", name=name, exact=True)
        seen.page.locator(".rt-program .rt-stmt").nth(1).click()
        program.fill("")
        program.press_sequentially("x=torch.ones(2,3);w=torch.ones(2,3,requires_grad=True);y=x*w")
        assert current.all_inner_texts() == ["y = x * w"]
        button("Undo").click()
        assert current.all_inner_texts() == ["x.note = 'mine'"] and lines.count() == 7
        button("Redo").click()
        button("x.add_(1)").click()
        button("y = x.grad_fn._saved_self").click()
        assert (
            figure.locator(".rt-failed").all_inner_texts() == current.all_inner_texts() == ["y = x.grad_fn._saved_self"]
        )
        button("del x").click()
        assert lines.all_inner_texts()[-2:] == ["x.add_(1)", "del x"] and not figure.locator(".rt-failed").count()


def test_what_was_never_saved_is_none_after_backward_too():
    program = "x = torch.ones(2, 3, requires_grad=True); w = torch.ones(2, 3); y = x * w; y.sum().backward()"
    result = tensor_objects.FIGURE.result(program=program + "; z = y.grad_fn._saved_self")
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    y = x * w
    y.sum().backward()
    assert y.grad_fn._saved_self is None and "_saved_self is None" in result["say"][-1]


@pytest.mark.parametrize(
    ("program", "written"),
    [
        ("w = torch.ones(2, 3); w.requires_grad_(); y = w.detach(); y.add_(1)", True),
        ("w = torch.ones(2, 3); w.requires_grad_(); y = w * w; z = y.detach(); z.add_(1)", True),
        ("w = torch.ones(2, 3); w.requires_grad_(); y = w * w; y.add_(1)", False),
    ],
)
def test_what_was_detached_may_be_written_to(program, written):
    """The last statement counts for both tensors; only where the written one has a graph the figure stops."""
    result = tensor_objects.FIGURE.result(program=program)
    assert result["failed"] is not written
    assert ("Written. The counter" in result["say"][-1]) is written


def test_a_long_program_is_refused():
    with pytest.raises(Refusal):
        tensor_objects.FIGURE.result(program="; ".join(["x = torch.ones(2, 3)"] * 15))


def test_blanks_and_quotes_are_as_one_likes():
    typed = 'x=torch.ones(2,3);x.note="mine";  with torch.no_grad() :y = x*x ; x . add_( 1 );z=torch.ones( 2,3,requires_grad = True)'
    assert tensor_objects.FIGURE.result(program=typed)["statements"] == [
        "x = torch.ones(2, 3)", "x.note = 'mine'", "with torch.no_grad(): y = x * x", "x.add_(1)",
        "z = torch.ones(2, 3, requires_grad=True)",
    ]  # fmt: skip
