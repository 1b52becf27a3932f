"""Modules. In PyTorch: `torch/_dynamo/variables/nn_module.py`.

A module is an object like others whose calls go to `forward` where nobody has registered a hook; where somebody has, the code
that runs the hooks is interpreted like any other.
"""

from readtorch._dynamo.exc import unimplemented
from readtorch._dynamo.source import MEMBERS, ConstantSource, GetItemSource, OwnAttrSource
from readtorch.nn.modules import module as nn_module

from .constant import ConstantVariable
from .dicts import ConstDictVariable
from .lists import BaseListVariable
from .tensor import TensorVariable
from .user_defined import UserDefinedObjectVariable

Module = nn_module.Module
OWN_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
GLOBAL_HOOKS = tuple(
    getattr(nn_module, f"_global_{kind}_hooks") for kind in ("backward", "backward_pre", "forward", "forward_pre")
)


class UnspecializedNNModuleVariable(UserDefinedObjectVariable):
    """A module that exists."""

    def describe(self):
        return f"UnspecializedNNModuleVariable({self.cls.__name__})"

    def keeps_setter(self):
        """Assignments that the capture allows do the same by `Module.__setattr__`."""
        return True

    def call_function(self, tx, args, kwargs):
        if self.cls.__call__ is not Module.__call__ or "forward" in self.attributes:
            return super().call_function(tx, args, kwargs)
        if self.original._compiled_call_impl is not None:
            unimplemented("Unsupported call of a module that is compiled by itself", context=self.describe())
        self.var_getattr(tx, "_compiled_call_impl").realize()  # that it is None is guarded
        return self.call_uncompiled(tx, args, kwargs)

    def own_source(self, name):
        return OwnAttrSource(self.source, name)

    def var_getattr(self, tx, name):
        is_ours = name == "_call_uncompiled" and self.cls._call_uncompiled is Module._call_uncompiled
        return tx.method_of(self, name) if is_ours else super().var_getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "_call_uncompiled":
            return self.call_uncompiled(tx, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def call_uncompiled(self, tx, args, kwargs):
        module = self.original
        with tx.output.in_module(self):
            if any(getattr(module, name) for name in OWN_HOOKS) or any(GLOBAL_HOOKS):
                return tx.call(tx.held(Module._call_uncompiled), [self, *args], kwargs)
            tx.output.guard("EMPTY_DICTS", self.source, OWN_HOOKS)
            tx.output.guard("EMPTY_GLOBALS", ConstantSource(GLOBAL_HOOKS), GLOBAL_HOOKS)
            return tx.call(self.var_getattr(tx, "forward").realize(), args, kwargs)

    def absent(self, tx, name):
        """What `Module.__getattr__` does: parameters, buffers and submodules stand in dictionaries of their own."""
        if self.cls.__getattr__ is not Module.__getattr__:
            return super().absent(tx, name)
        for kind in MEMBERS:
            members = self.original.__dict__.get(kind, ())
            if name in members:
                changed = tx.output.tracked.get(id(members))
                if changed is not None and changed in tx.output.side_effects:
                    unimplemented("Unsupported read of a member after members were changed", context=name)
                tx.output.guard("NOT_PRESENT_IN_GENERIC_DICT", self.source, name)
                return tx.output.read(members[name], GetItemSource(self.own_source(kind), name))
        tx.output.guard("NO_HASATTR", self.source, name)
        raise tx.error(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def call_setter(self, tx, name, value):
        """What `Module.__setattr__` does with a buffer, and with what is no member."""
        if self.cls.__setattr__ is not Module.__setattr__:
            return super().call_setter(tx, name, value)
        value = value.realize()
        state = self.original.__dict__
        is_plain = isinstance(value, (ConstantVariable, BaseListVariable, ConstDictVariable))
        if name in state["_buffers"]:
            taken = id(state["_buffers"]) in tx.output.tracked
            if taken or not isinstance(value, TensorVariable) or value.cls is not tx.output.tensor_class:
                unimplemented("Unsupported assignment to a buffer", context=name)
        elif any(name in state[kind] for kind in MEMBERS) or not (is_plain or self.is_free_tensor(tx, value)):
            unimplemented("Unsupported assignment to a member of a module", context=name)
        return self.store(tx, name, value)

    def is_free_tensor(self, tx, value):
        return isinstance(value, TensorVariable) and value.cls is tx.output.tensor_class
