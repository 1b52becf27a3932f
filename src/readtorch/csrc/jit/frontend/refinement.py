"""What a condition tells about the types of variables.

    if x is not None:      here x is no longer Optional
        ...
    elif isinstance(y, int):   here y is an int

In PyTorch: `RefinementSet`, `CondValue` in `torch/csrc/jit/frontend/ir_emitter.cpp`. Explained in the chapter
"JIT: scripting".
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refinements:
    """variable -> its type, where the condition holds (`true`) and where it does not (`false`)."""

    true: dict
    false: dict

    def __and__(self, other):
        return Refinements(_both(self.true, other.true), _either(self.false, other.false))

    def __or__(self, other):
        return Refinements(_either(self.true, other.true), _both(self.false, other.false))

    def __invert__(self):
        return Refinements(self.false, self.true)


def _both(a, b):
    """Both conditions hold: what each tells. Where they contradict each other, nothing."""
    merged = dict(a)
    for name, type in b.items():
        if name in merged and merged[name] != type:
            del merged[name]
        else:
            merged[name] = type
    return merged


def _either(a, b):
    return {name: type for name, type in a.items() if b.get(name) == type}


NOTHING = Refinements({}, {})


@dataclass
class Condition:
    """value: the bool in the graph. known: what it is, if that is so while compiling: then only one branch is
    compiled.
    """

    value: object
    refinements: Refinements = NOTHING
    known: bool | None = None
