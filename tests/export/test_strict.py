"""`export(strict=True)`: graphs, signatures, ranges, results and refusals are those of PyTorch."""

import io
import re
import warnings

import pytest
import torch

import readtorch as rt
import readtorch.export

from . import programs
from .strict_programs import PROGRAMS, linear
from .test_graphs import text_of_code
from .test_unflatten import described
from .twins import copy_state, models, models_of_torch, same, to_torch

LIBRARIES = rt, torch
# Symbols are called here as in a program that is not strict, there after the place of the input among all; there are more nodes of
# sizes there before those that are not needed go.
NUMBERED = re.compile(r"\b(s|sym_size_int_)\d+\b")


def text(program):
    """What a program prints, with symbols and their nodes numbered as they come."""
    numbers = {}
    return [
        NUMBERED.sub(lambda m: f"{m[1]}{numbers.setdefault(m[0], len(numbers))}", line)
        for line in text_of_code(program)
    ]


def export(T, name, strict=True):
    """(program, module, args, kwargs)"""
    made, args, kwargs, sizes = PROGRAMS[name](T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return T.export.export(made, args, kwargs, dynamic_shapes=sizes, strict=strict), made, args, kwargs


def both(name):
    """The same of both libraries, for modules with the same numbers."""
    made = [PROGRAMS[name](T) for T in LIBRARIES]
    copy_state(made[0][0], made[1][0])
    found = []
    for T, (m, args, kwargs, sizes) in zip(LIBRARIES, made):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append((T.export.export(m, args, kwargs, dynamic_shapes=sizes, strict=True), m, args, kwargs))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    (ours, *_, args, kwargs), (theirs, *_, args_of_torch, kwargs_of_torch) = both(name)
    assert text(ours) == text(theirs)
    assert sorted(ours.constants) == sorted(theirs.constants)
    assert list(ours.state_dict) == list(theirs.state_dict)
    assert [e.fqn for e in ours.module_call_graph] == [e.fqn for e in theirs.module_call_graph]
    assert str(ours.call_spec) == str(theirs.call_spec)
    same(ours.module()(*args, **kwargs), theirs.module()(*args_of_torch, **kwargs_of_torch))
    origins = [
        [list(n.meta["nn_module_stack"].values()) for n in p.graph.nodes if "nn_module_stack" in n.meta]
        for p in (ours, theirs)
    ]
    if not ours.range_constraints:  # in PyTorch, nodes of sizes have an entry of their own
        assert str(origins[0]).replace("readtorch", "torch") == str(origins[1])


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_programs_that_need_no_capture(name):
    """Those of the other tests."""
    found = []
    for T in LIBRARIES:
        m, *inputs = programs.PROGRAMS[name](T)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(text(T.export.export(m, *inputs, strict=True)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", "conv1 gn in rms pool emb bag kv moe lm vae wn dense bilinear".split())
def test_models(name):
    (ours, arguments), (theirs, _) = models.MODELS[name](), models_of_torch()[name]()
    copy_state(ours, theirs)
    found = [
        rt.export.export(ours, arguments, strict=True),
        torch.export.export(theirs, to_torch(arguments), strict=True),
    ]
    assert text(found[0]) == text(found[1])


@pytest.mark.parametrize("name", ["gpt_block", "resnet_block", "lstm_by_hand", "loops", "reads_what_it_needs", "sizes"])
def test_saved_and_taken_apart(name):
    (ours, *_, args, kwargs), (theirs, *_, args_of_torch, kwargs_of_torch) = both(name)
    file = io.BytesIO()
    rt.export.save(ours, file)
    loaded = rt.export.load(file)
    same(loaded.module()(*args, **kwargs), theirs.module()(*args_of_torch, **kwargs_of_torch))
    unsaid = [line.replace(" persistent=True", "") if "CONSTANT" in line else line for line in text(ours)]
    assert text(loaded) == unsaid  # a file does not say of constants that they are persistent
    if name != "sizes":
        mine, yours = rt.export.unflatten(ours), torch.export.unflatten(theirs)
        assert [NUMBERED.sub("n", str(d)) for d in described(mine)] == [
            NUMBERED.sub("n", str(d)) for d in described(yours)
        ]
        same(mine(*args, **kwargs), yours(*args_of_torch, **kwargs_of_torch))


def test_torch_loads_it():
    ours, _, args, kwargs = export(rt, "gpt_block")
    file = io.BytesIO()
    rt.export.save(ours, file)
    theirs = torch.export.load(file)
    same(ours.module()(*args, **kwargs), theirs.module()(*to_torch(args), **kwargs))


def test_other_sizes():
    """A program with open sizes runs with others, and does what the module does."""
    ours, made, *_ = export(rt, "gpt_block")
    x = rt.randn(7, 11, 8)
    same(ours.module()(x), made(x))
    with pytest.raises(AssertionError, match="Guard failed"):
        ours.module()(rt.randn(2, 17, 8))


@pytest.mark.parametrize(
    "name", ["unused_parameter", "reads_what_it_needs", "assigned_buffer_is_lost", "is_compiling", "order_of_reads"]
)
def test_not_strict_is_another_program(name):
    """Tests that pass without a capture would prove nothing."""
    assert text(export(rt, name)[0]) != text(export(rt, name, strict=False)[0])


def test_print(capsys):
    export(rt, "prints")
    assert capsys.readouterr().out == ""
    export(rt, "prints", strict=False)
    assert capsys.readouterr().out


# ------------------------------------------------------------------------------------------------- what is refused


def error(T, forward, *args, **options):
    with pytest.raises(Exception) as caught:
        T.export.export(linear(T, forward), args, strict=True, **options)
    return caught.value


REFUSED = {"elements decide": lambda self, x: x if x.sum() > 0 else -x, "an exception": lambda self, x: self.nothing(x)}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured(name):
    ours, theirs = (error(T, REFUSED[name], T.ones(2, 4)) for T in LIBRARIES)
    assert type(ours).__name__ == type(theirs).__name__ == "Unsupported"
    assert str(ours).partition("\n")[0] == str(theirs).partition("\n")[0]


@pytest.mark.parametrize(
    "forward", [lambda self, x: open("no file") if x.dim() else x, lambda self, x: self.a(x).tolist()]
)
def test_what_breaks_a_graph(forward):
    ours, theirs = (error(T, forward, T.ones(2, 4)) for T in LIBRARIES)
    assert type(ours).__name__ == "Unsupported"
    assert type(theirs).__name__ in ("Unsupported", "UserError")


def fixes(self, x):
    return self.a(x) if x.shape[0] == 3 else self.b(x)


def narrows(self, x):
    return self.a(x) if x.shape[0] > 2 else self.b(x)


def first_lines(e):
    """Without where it happened, which is not told here."""
    return (
        re.sub(r"\n\nUser stack:.*?\n\n", "\n", str(e), flags=re.DOTALL)
        .partition("\n\nThe error above")[0]
        .splitlines()
    )


@pytest.mark.parametrize("forward", [fixes, narrows])
def test_sizes_that_must_not_be_fixed(forward):
    ours, theirs = (error(T, forward, T.ones(3, 4), dynamic_shapes=({0: T.export.Dim("b")},)) for T in LIBRARIES)
    assert type(ours).__name__ == type(theirs).__name__ == "UserError"
    assert first_lines(ours) == first_lines(theirs)


def test_two_names_for_one_size():
    sizes = lambda T: ({0: T.export.Dim("b")}, {0: T.export.Dim("c")})  # noqa: E731
    ours, theirs = (
        error(T, lambda self, x, y: x + y, T.ones(3, 4), T.ones(3, 4), dynamic_shapes=sizes(T)) for T in LIBRARIES
    )
    assert first_lines(ours) == first_lines(theirs)


# ----------------------------------------------------------------------------------------------------- side effects


def appends(self, x):
    self.seen.append(x.shape[0])
    self.total = 3
    return self.a(x)


def assigns_a_buffer(self, x):
    self.n = self.n + 1
    return self.a(x)


@pytest.mark.parametrize("forward", [appends, assigns_a_buffer])
def test_side_effects_are_told_and_not_done(forward):
    told = []
    for T in LIBRARIES:
        made = linear(T, forward)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            T.export.export(made, (T.ones(2, 4),), strict=True)
        told += [str(w.message) for w in caught if "side effects" in str(w.message)]
        assert made.seen == [] and made.n == 0 and not hasattr(made, "total")
    assert told[0] == told[1].replace("._modules['_export_root']", "")


def test_no_side_effect_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rt.export.export(linear(rt, lambda self, x: self.a(x)), (rt.ones(2, 4),), strict=True)


def test_gradients_flow_to_the_module():
    ours, _, args, _ = export(rt, "resnet_block")
    runs = ours.module()
    runs(*args).sum().backward()
    assert all(p.grad is not None for p in runs.parameters())
