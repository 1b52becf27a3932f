"""`ExportedProgram` and `export`: parts, checks, and errors in PyTorch's words."""

import copy
import dataclasses
import io

import pytest
import torch

import readtorch as rt
import readtorch.export

from .programs import PROGRAMS, module
from .twins import exported, same


def program_of(T, name):
    model, args, kwargs = PROGRAMS[name](T)
    return T.export.export(model, args, kwargs)


def linear(T):
    return T.export.export(T.nn.Linear(2, 3), (T.ones(4, 2),))


def error_of(T, provoke):
    """(the type's name, the message) of what a function of the library raises. PyTorch points to `draft_export`, which is left out here."""
    try:
        provoke(T)
    except Exception as error:
        return type(error).__name__, str(error).replace("readtorch", "torch").partition("\n\nThe error above occurred")[
            0
        ]
    return None


def given(**options):
    """Exports x * y of tensors (2, 3) and (3,) with options of `export`."""

    def provoke(T):
        model = module(T, lambda self, x, y: x * y)
        T.export.export(model, (T.ones(2, 3), T.ones(3)), **options)

    return provoke


def dynamic(make):
    return lambda T: given(dynamic_shapes=make(T))(T)


def call(name, make_args, make_kwargs=lambda T: {}, **options):
    """Calls the module of a program with other arguments."""
    return lambda T: program_of(T, name).module(**options)(*make_args(T), **make_kwargs(T))


def setting(name):
    return lambda T: setattr(linear(T), name, None)


PROVOCATIONS = {
    "size": call("counter", lambda T: (T.ones(3),)),
    "size before the graph": call("counter", lambda T: (T.ones(3),), check_guards=False),
    "dimensions before the graph": call("counter", lambda T: (T.ones(2, 2),), check_guards=False),
    "no tensor before the graph": call("counter", lambda T: (2,), check_guards=False),
    "too many": call("counter", lambda T: (T.ones(2), T.ones(2))),
    "too few": call("keywords", lambda T: (), lambda T: {"scale": T.ones(2), "shift": T.ones(2)}),
    "keyword": call("keywords", lambda T: (T.ones(2),), lambda T: {"scale": T.ones(2)}),
    "other keyword": call("keywords", lambda T: (T.ones(2),), lambda T: {"scale": T.ones(2), "bias": T.ones(2)}),
    "nested size": call("nested", lambda T: ({"a": T.ones(2), "b": (T.ones(2), T.zeros(4))}, [T.ones(2)])),
    "nested keys": call("nested", lambda T: ({"a": T.ones(2), "c": (T.ones(2), T.zeros(3))}, [T.ones(2)])),
    "nested kind": call("nested", lambda T: ({"a": T.ones(2), "b": [T.ones(2), T.zeros(3)]}, [T.ones(2)])),
    "other number": call("plain_values", lambda T: (T.ones(2), 4, True, "name", None)),
    "other flag": call("plain_values", lambda T: (T.ones(2), 3, False, "name", None)),
    "other string": call("plain_values", lambda T: (T.ones(2), 3, True, "x", None)),
    "other number before the graph": call(
        "plain_values", lambda T: (T.ones(2), 4, True, "name", None), check_guards=False
    ),
    "other type before the graph": call(
        "plain_values", lambda T: (T.ones(2), 3.0, True, "name", None), check_guards=False
    ),
    "call of the program": lambda T: linear(T)(T.ones(4, 2)),
    "train": lambda T: linear(T).module().train(),
    "eval": lambda T: linear(T).module().eval(),
    **{
        f"set {name}": setting(name)
        for name in "graph graph_module graph_signature state_dict range_constraints module_call_graph call_spec verifier verifiers "
        "dialect constants tensor_constants".split()
    },
    "example inputs": lambda T: setattr(linear(T), "example_inputs", (T.ones(4, 2),)),
    "other example inputs": lambda T: setattr(linear(T), "example_inputs", ((T.ones(4, 2), 1), {})),
    "function": lambda T: T.export.export(lambda x: x, (T.ones(2),)),
    "list of arguments": lambda T: T.export.export(T.nn.ReLU(), [T.ones(2)]),
    "input of another type": lambda T: T.export.export(T.nn.ReLU(), (object(),)),
    "missing argument": lambda T: T.export.export(T.nn.ReLU(), ()),
    "save": lambda T: T.export.save(T.nn.ReLU(), io.BytesIO()),
    "dynamic names": dynamic(lambda T: {"x": None, "z": None}),
    "dynamic length": dynamic(lambda T: (None,)),
    "dynamic sizes": dynamic(lambda T: ((2,), None)),
    "dynamic dimension": dynamic(lambda T: ({0: "x"}, None)),
    "dynamic dimension of a tuple": dynamic(lambda T: ((2, 1.5), None)),
    "dynamic kind": dynamic(lambda T: (3, None)),
    "dynamic definitions": dynamic(lambda T: ({0: T.export.Dim("a", max=5)}, {0: T.export.Dim("a", max=6)})),
    "dynamic for a number": lambda T: T.export.export(
        module(T, lambda self, x, s: x), (T.ones(2), "s"), dynamic_shapes=({}, {0: T.export.Dim.AUTO})
    ),
    "Dim name": lambda T: T.export.Dim("a b"),
    "Dim bounds": lambda T: T.export.Dim("a", min=5, max=4),
    "Dim plus": lambda T: T.export.Dim("a") + 1.5,
    "Dim minus": lambda T: T.export.Dim("a") - "x",
    "Dim negated": lambda T: 1 - T.export.Dim("a"),
    "Dim times": lambda T: T.export.Dim("a") * 0,
    "hint called twice": lambda T: T.export.Dim.AUTO(min=1)(max=2),
    "hint bounds": lambda T: T.export.Dim.DYNAMIC(min=3, max=2),
    "collection": lambda T: T.export.ShapesCollection().__setitem__(3, ()),
    "additional inputs": lambda T: T.export.AdditionalInputs().add([1]),
    "buffer without flag": lambda T: T.export.graph_signature.InputSpec(
        T.export.graph_signature.InputKind.BUFFER, T.export.graph_signature.TensorArgument("x"), "x"
    ),
}


@pytest.mark.parametrize("name", PROVOCATIONS)
def test_errors(name):
    ours, theirs = error_of(rt, PROVOCATIONS[name]), error_of(torch, PROVOCATIONS[name])
    assert ours == theirs
    assert ours is not None


def test_sizes_that_may_stay():
    for dynamic_shapes in (None, {}, (None, None), {"x": {0: rt.export.Dim.AUTO}, "y": {0: rt.export.Dim.STATIC}}):
        given(dynamic_shapes=dynamic_shapes)(rt)
    inputs = rt.export.AdditionalInputs()
    inputs.add((rt.zeros(2, 3), rt.zeros(3)))
    given(dynamic_shapes=inputs)(rt)


def test_what_is_left_out_says_so():
    with pytest.raises(NotImplementedError, match="preserve_module_call_signature"):
        given(preserve_module_call_signature=("a",))(rt)


def test_dims():
    def shown(T):
        a, b = T.export.dims("a", "b", min=2, max=8)
        derived = 2 * a + 1
        hints = T.export.Dim.AUTO, T.export.Dim.STATIC, T.export.Dim.DYNAMIC(min=2), T.export.Dim.AUTO(max=4)
        return [repr(x) for x in (a, b, T.export.Dim("c"), *hints)], derived.__name__, derived.min, derived.max

    assert shown(rt) == shown(torch)


def test_parts():
    ours, _, theirs, *_ = exported("bn")
    assert ours.dialect == theirs.dialect == "TRAINING"
    assert ours.range_constraints == theirs.range_constraints == {}
    assert ours.graph_signature.buffers == theirs.graph_signature.buffers
    for part in "inputs_to_parameters inputs_to_buffers buffers_to_mutate user_inputs user_outputs non_persistent_buffers".split():
        assert getattr(ours.graph_signature, part) == getattr(theirs.graph_signature, part)
    same(list(ours.parameters()), list(theirs.parameters()))
    same(list(ours.buffers()), list(theirs.buffers()))


def test_state_is_that_of_the_module():
    model = rt.nn.Linear(2, 3)
    program = rt.export.export(model, (rt.ones(4, 2),))
    assert program.state_dict["weight"] is model.weight
    exported_module = program.module()
    exported_module(rt.ones(4, 2)).sum().backward()
    assert model.weight.grad is not None
    with rt.no_grad():
        model.weight.zero_()
        model.bias.zero_()
    assert exported_module(rt.ones(4, 2)).abs().sum() == 0


def test_export_leaves_the_module_as_it_was():
    model, args, kwargs = PROGRAMS["assigned_buffer"](rt)
    before = model.n
    model.seen = None
    forward = type(model).forward

    def remembers(self, x):
        self.seen = x
        return forward(self, x)

    type(model).forward = remembers
    rt.export.export(model, args, kwargs)
    assert model.n is before and model.n.tolist() == [0, 0] and model.seen is None
    assert all(type(p) is rt.nn.Parameter for p in rt.nn.Linear(2, 2).parameters())


def test_signature_replaces_names():
    signature = copy.deepcopy(exported("linear")[0].graph_signature)
    signature.replace_all_uses("linear", "other")
    assert signature.user_outputs == ("other",)
    signature.get_replace_hook(replace_inputs=True)
    with pytest.raises(AssertionError):
        signature.replace_all_uses(1, "x")


def test_a_program_must_fit_its_signature():
    program = linear(rt)
    signature = copy.deepcopy(program.graph_signature)
    signature.input_specs[0].target = "nothing"
    with pytest.raises(rt._export.verifier.SpecViolationError, match="is not in the state dict"):
        program._update(program.graph_module, signature)
    signature.input_specs.pop()
    with pytest.raises(rt._export.verifier.SpecViolationError, match="does not match number of inputs"):
        program._update(program.graph_module, signature)


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def test_dataclasses():
    results = []
    for T in (rt, torch):
        T.export.register_dataclass(Pair, serialized_type_name="tests.export.Pair")
        model = module(T, lambda self, p: Pair(p.a + p.b, p.a))
        program = T.export.export(model, (Pair(T.ones(2), T.ones(2)),))
        loaded = io.BytesIO()
        program.example_inputs = None
        T.export.save(program, loaded)
        loaded.seek(0)
        result = T.export.load(loaded).module()(Pair(T.ones(2), T.zeros(2)))
        assert type(result) is Pair
        results.append([result.a.tolist(), result.b.tolist(), str(program.graph_signature)])
    assert results[0] == results[1]


def test_gradients_of_an_exported_program():
    gradients = []
    for T in (rt, torch):
        model = module(T, lambda self, x: (x * self.p).sum() ** 2, p=T.nn.Parameter(T.tensor([1.0, 2.0])))
        program = T.export.export(model, (T.ones(2),))
        program.module()(T.ones(2)).backward()
        gradients.append(model.p.grad.tolist())
    assert gradients[0] == gradients[1]


def test_tensors_that_forward_assigns_are_warned_about():
    def outcome(T):
        def forward(self, x):
            self.linear.seen, self.pair, self.count = x, (x, 1), self.count + 1
            self.notes["x"] = x
            self.kept.append(x + 1)
            return self.linear(x)

        model = module(T, forward=forward)
        model.linear, model.pair, model.count, model.notes, model.kept = T.nn.Linear(2, 2), (None, 1), 0, {}, []
        with pytest.warns(UserWarning, match="assigned during export") as caught:
            T.export.export(model, (T.ones(2),))
        (message,) = [str(w.message) for w in caught if "assigned" in str(w.message)]
        head, _, rest = message.partition(" were ")
        names = sorted(head.removeprefix("The tensor attributes ").split(", "))
        return names, rest, model.pair, model.count, model.notes, model.kept

    assert outcome(rt) == outcome(torch)
