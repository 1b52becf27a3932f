"""VariableTracker: what is known of a value while bytecode is interpreted.

In PyTorch: `torch/_dynamo/variables/base.py`.
"""

import itertools

from readtorch._dynamo.exc import unimplemented

_serials = itertools.count()


class VariableTracker:
    """source: where the value came from; original: the object itself, if it exists already. Both None for new values.

    What a kind of variable does not know raises Unsupported: then the graph breaks and Python does it.
    """

    source = None
    original = None

    def __new__(cls, *args, **kwargs):
        """serial: the number of the variable: one that is made later has a higher one."""
        made = object.__new__(cls)
        made.serial = next(_serials)
        return made

    @staticmethod
    def next_serial():
        return next(_serials)

    def realize(self):
        """The variable that is behind a lazy one."""
        return self

    def describe(self):
        return type(self).__name__

    def python_type(self):
        self.unknown("type()")

    def as_python_constant(self):
        """The value, where all of it is known."""
        self.unknown("use as a constant")

    def as_proxy(self, output):
        """(what stands for it in the arguments of a node, what stands for it when the operator runs on fake tensors)"""
        self.unknown("use as an argument of an operator")

    def var_getattr(self, tx, name):
        self.unknown(f"attribute {name}")

    def var_setattr(self, tx, name, value):
        self.unknown(f"assignment to attribute {name}")

    def var_delattr(self, tx, name):
        self.unknown(f"deletion of attribute {name}")

    def call_function(self, tx, args, kwargs):
        self.unknown("call")

    def call_method(self, tx, name, args, kwargs):
        self.unknown(f"call of method {name}")

    def call_iter(self, tx):
        self.unknown("iteration")

    def next_variable(self, tx):
        """The next element, None at the end."""
        self.unknown("next()")

    def call_bool(self, tx):
        self.unknown("truth")

    def call_len(self, tx):
        self.unknown("len()")

    def contains(self, tx, item):
        """Whether `item` is in it, by a loop over its elements."""
        for each in tx.iterate(self):
            each = each.realize()
            if each is item or tx.equal(each, item):
                return True
        return False

    def getitem(self, tx, key):
        self.unknown("subscript")

    def setitem(self, tx, key, value):
        self.unknown("item assignment")

    def delitem(self, tx, key):
        self.unknown("item deletion")

    def reconstruct(self, codegen):
        """The text of an expression that makes the value; lines that must come before go to `codegen`."""
        self.unknown("making it anew")

    def unknown(self, what):
        unimplemented(
            f"Unsupported {what} on {self.describe()}",
            f"Dynamo does not know how to trace {what} of {self.describe()}",
            context=str(self.source.name if self.source is not None else self.describe()),
        )


class NullVariable(VariableTracker):
    """The empty place that CPython puts under a callable on the stack. In PyTorch: `variables/misc.py`."""


NULL = NullVariable()
