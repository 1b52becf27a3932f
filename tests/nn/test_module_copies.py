"""Modules that are pickled and copied: what they share, what becomes of their hooks, pickles of older versions."""

import copy
import gc
import pickle
from collections import OrderedDict

import torch

import readtorch
from tests.programs import same


def named(T, name):
    """A class that pickle finds in this file."""

    class Named(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = T.nn.Linear(2, 2)
            self.again = self.linear
            self.register_buffer("b", T.ones(1), persistent=False)
            self.handle = self.register_forward_hook(double)
            self.linear.register_forward_pre_hook(add_one, with_kwargs=True)

        def method_hook(self, module, *args):
            self.seen = type(module).__name__

        def forward(self, x):
            return self.linear(x)

    Named.__qualname__ = name
    return Named


def double(module, args, output):
    return output * 2


def add_one(module, args, kwargs):
    return (args[0] + 1,), kwargs


def load_hook(module, *args):
    module.loaded = len(args)


TorchNamed, ReadtorchNamed = named(torch, "TorchNamed"), named(readtorch, "ReadtorchNamed")


def net_of(T):
    return TorchNamed() if T is torch else ReadtorchNamed()


def copies(net):
    return [copy.deepcopy(net), copy.copy(net), pickle.loads(pickle.dumps(net)), pickle.loads(pickle.dumps(net, 2))]


def test_sharing_and_hooks_survive():
    def program(T, show):
        net = net_of(T)
        net.linear.weight.requires_grad_(False)
        for other in copies(net):
            show(
                other.again is other.linear,
                other.linear is net.linear,
                other.b is net.b,
                other._non_persistent_buffers_set,
            )
            show(type(other.linear.weight).__name__, other.linear.weight.requires_grad, other.linear.bias.requires_grad)
            show(
                list(other._forward_hooks) == list(net._forward_hooks), len(other.linear._forward_pre_hooks_with_kwargs)
            )
            show.numbers(other(T.ones(1, 2)), net(T.ones(1, 2)))

    same(program)


def test_a_handle_removes_the_hook_of_its_copy():
    def program(T, show):
        net = net_of(T)
        for other in copies(net):
            other.handle.remove()
            show(len(net._forward_hooks), len(other._forward_hooks))

    same(program)


def test_hooks_that_are_bound_methods():
    def program(T, show):
        net = net_of(T)
        net.linear.register_forward_hook(net.method_hook)
        for other in copies(net)[::2]:
            other(T.ones(1, 2))
            show(hasattr(net, "seen"), other.seen)

    same(program)


def test_hooks_with_their_module():
    def program(T, show):
        net = net_of(T)
        net.linear.register_load_state_dict_pre_hook(load_hook)
        for other in copies(net)[::2]:
            other.load_state_dict(other.state_dict())
            show(other.linear.loaded, hasattr(net.linear, "loaded"))
        (hook,) = net.linear._load_state_dict_pre_hooks.values()
        show(hook.__name__, hook.with_module, sorted(hook.__getstate__()))
        del net, other
        gc.collect()
        show.error(lambda: hook({}, ""))
        show.error(lambda: pickle.loads(pickle.dumps(hook)))

    same(program)


def test_state_is_a_copy():
    def program(T, show):
        net = net_of(T)
        state = net.__getstate__()
        show(list(state), state is net.__dict__)
        state.clear()
        show(len(net.__dict__))

    same(program)


def test_setstate_fills_in_what_old_pickles_lack():
    def program(T, show):
        net = net_of(T)
        state = {k: v for k, v in net.__dict__.items() if not k.endswith("_hooks") and not k.startswith("_is_full")}
        state["_forward_hooks"] = state["_backward_hooks"] = OrderedDict()
        for lacking in ("_non_persistent_buffers_set", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"):
            del state[lacking]
        old = type(net).__new__(type(net))
        old.__setstate__(state)
        show(sorted(old.__dict__), old(T.ones(1, 2)).shape, list(old.state_dict()))

    same(program)


def test_parameters_and_buffers():
    def program(T, show):
        p = T.nn.Parameter(T.ones(2), requires_grad=False)
        p.note = "kept"
        p.grad = T.ones(2)
        b = T.nn.Buffer(T.ones(2), persistent=False)
        for other in (copy.deepcopy(p), copy.copy(p), pickle.loads(pickle.dumps(p))):
            show(
                type(other).__name__,
                other.requires_grad,
                getattr(other, "note", None),
                other.grad,
                other.data_ptr() == p.data_ptr(),
            )
        for other in (copy.deepcopy(b), pickle.loads(pickle.dumps(b))):
            show(type(other).__name__, isinstance(other, T.nn.Buffer), other.persistent)

    same(program)
