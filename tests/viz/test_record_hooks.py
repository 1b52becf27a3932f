"""The hook timeline's model: every hook that runs, in order, with what it got and gave, and nothing left behind."""

import importlib

import pytest
import torch

import readtorch
from readtorch.viz.record_hooks import record_hooks

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def net_of(T):
    return T.nn.Sequential(T.nn.Linear(3, 2), T.nn.ReLU())


def ran(record):
    return [
        (event["kind"], record["lanes"][event["lane"]]["path"], event["got"], event["gave"])
        for event in record["events"]
    ]


@LIBRARIES
def test_a_call_without_hooks_is_the_forwards_alone(T):
    record = record_hooks(net_of(T), (T.ones(5, 3),))
    assert ran(record) == [
        ("begin", "net", "[5, 3]", None),
        ("begin", "0", "[5, 3]", None),
        ("end", "0", "", "[5, 2]"),
        ("begin", "1", "[5, 2]", None),
        ("end", "1", "", "[5, 2]"),
        ("end", "net", "", "[5, 2]"),
    ]
    assert sorted(record["spans"]) == [[0, 0, 5], [1, 1, 2], [2, 3, 4]]
    assert record["lanes"][1] == {"path": "0", "type": "Linear"} and record["error"] is None


@LIBRARIES
def test_hooks_of_all_kinds(T):
    net = net_of(T)
    net[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    net[0].register_forward_hook(lambda m, args, kwargs, out: None, with_kwargs=True)
    net[0].register_full_backward_pre_hook(lambda m, grad_output: None)
    net[0].register_full_backward_hook(lambda m, grad_input, grad_output: None)
    hooks = importlib.import_module(T.__name__ + ".nn.modules.module")
    handle = hooks.register_module_forward_hook(lambda m, args, out: out)
    try:
        record = record_hooks(net, (T.ones(5, 3, requires_grad=True),))
    finally:
        handle.remove()
    events = [event for event in ran(record) if event[0] not in ("begin", "end")]
    assert events == [
        ("pre", "0", "([5, 3],)", "([5, 3],)"),
        ("hook", "0", "([5, 3],), [5, 2]", "[5, 2]"),
        ("hook", "0", "([5, 3],), {}, [5, 2]", None),
        ("hook", "1", "([5, 2],), [5, 2]", "[5, 2]"),
        ("hook", "net", "([5, 3],), [5, 2]", "[5, 2]"),
        ("bpre", "0", "([5, 2],)", None),
        ("back", "0", "([5, 3],), ([5, 2],)", None),
    ]
    assert [event["is_global"] for event in record["events"]].count(True) == 3


@LIBRARIES
def test_nothing_is_left_behind(T):
    net = net_of(T)
    calls = []
    handle = net.register_forward_hook(lambda m, args, out: calls.append(1))
    net.register_forward_hook(lambda m, args, out: handle.remove())
    own = net[0].forward = lambda x: T.ones(5, 2, requires_grad=True)
    hooks = list(net._forward_hooks.values())
    record_hooks(net, (T.ones(5, 3),))
    assert calls == [1] and list(net._forward_hooks.values()) == hooks[1:]
    assert net[0].forward is own and "forward" not in vars(net) and "forward" not in vars(net[1])


@LIBRARIES
def test_an_error_ends_the_record(T):
    net = net_of(T)
    net.register_forward_hook(lambda m, args, out: None, always_call=True)
    record = record_hooks(net, (T.ones(5, 5),))
    assert record["error"].startswith("RuntimeError") and record["spans"] == []
    assert [kind for kind, *_ in ran(record)] == ["begin", "begin", "hook"]


@LIBRARIES
def test_several_results_and_long_calls(T):
    class Two(T.nn.Module):
        def forward(self, x):
            return x, {"a": x, "b": 3}, [x]

    assert ran(record_hooks(Two(), (T.ones(1, requires_grad=True),)))[-1][3].startswith("([1]: 1, {a: [1]: 1, b: 3}, [")
    record = record_hooks(T.nn.Sequential(*[T.nn.ReLU() for _ in range(60)]), (T.ones(1),))
    assert len(record["events"]) == 80 and record["left_out"] == 42


@LIBRARIES
def test_values_of_small_tensors_and_what_replaces_them(T):
    net = T.nn.Identity()
    net.register_forward_pre_hook(lambda m, args: args[0] * 0.5)
    net.register_forward_hook(lambda m, args, out: None)
    net.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 3,))
    assert ran(record_hooks(net, (T.tensor([2.0, 1 / 3], requires_grad=True),))) == [
        ("pre", "net", "([2]: 2 0.3333,)", "[2]: 1 0.1667"),
        ("begin", "net", "[2]: 1 0.1667", None),
        ("end", "net", "", "[2]: 1 0.1667"),
        ("hook", "net", "([2]: 1 0.1667,), [2]: 1 0.1667", None),
        ("back", "net", "([2]: 1 1,), ([2]: 1 1,)", "([2]: 3 3,)"),
    ]
