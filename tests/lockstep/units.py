"""Metres are not seconds: a subclass whose `__torch_function__` carries units through functions and refuses wrong sums."""

import torch
from torch.utils._pytree import tree_flatten

HANDLED = {}


def implements(*functions):
    def register(rule):
        HANDLED.update(dict.fromkeys(functions, rule))
        return rule

    return register


class Quantity(torch.Tensor):
    """unit: {"m": 1, "s": -2} is metres per second squared."""

    @staticmethod
    def __new__(cls, data, unit):
        t = torch.as_tensor(data).as_subclass(cls)
        t.unit = {name: power for name, power in unit.items() if power}
        return t

    def __repr__(self):
        return f"{self.plain().tolist()} {name_of(self.unit)}"

    def plain(self):
        return self.as_subclass(torch.Tensor)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        units = [getattr(a, "unit", {}) for a in tree_flatten(args)[0] if isinstance(a, torch.Tensor)]
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if func not in HANDLED or not isinstance(result, torch.Tensor):
            return result
        return Quantity(result, HANDLED[func](func, units, args))


def name_of(unit):
    return " ".join(n if p == 1 else f"{n}^{p:g}" for n, p in sorted(unit.items())) or "(pure number)"


@implements(torch.add, torch.Tensor.add, torch.sub, torch.Tensor.sub, torch.maximum, torch.cat, torch.stack)
def same_unit(func, units, args):
    if any(unit != units[0] for unit in units):
        raise TypeError(f"{func.__name__}: {' and '.join(name_of(u) for u in units)} do not go together")
    return units[0]


@implements(torch.mul, torch.Tensor.mul, torch.matmul, torch.Tensor.matmul, torch.dot)
def product(func, units, args):
    names = {n for unit in units for n in unit}
    return {n: sum(unit.get(n, 0) for unit in units) for n in names}


@implements(torch.div, torch.Tensor.div)
def quotient(func, units, args):
    return product(func, [units[0], *({n: -p for n, p in unit.items()} for unit in units[1:])], args)


@implements(torch.sqrt, torch.Tensor.sqrt)
def root(func, units, args):
    return {n: p / 2 for n, p in units[0].items()}


@implements(torch.sum, torch.Tensor.sum, torch.mean, torch.Tensor.__getitem__, torch.Tensor.reshape, torch.abs)
def unchanged(func, units, args):
    return units[0]


way = Quantity([100.0, 200.0, 400.0], {"m": 1})
time = Quantity([10.0, 20.0, 50.0], {"s": 1})
print(way, "|", torch.div(way, time), "|", torch.mul(way, way), "|", way.div(time).div(time))
print(torch.sqrt(torch.mul(way, way)), "|", torch.add(way, Quantity(1.0, {"m": 1})), "|", torch.dot(way, time))
print(torch.cat([way, way]).sum(), "|", way[1:], "|", torch.stack([time, time]).reshape(-1), "|", torch.div(way, way))
for wrong in (lambda: torch.add(way, time), lambda: torch.cat([way, way, time]), lambda: time.sub(1.0 * way[0])):
    try:
        print(wrong())
    except TypeError as error:
        print("TypeError:", error)
print(type(torch.exp(way)).__name__, type(way.plain()).__name__, way.shape, way.max().item())
way.requires_grad_()
kinetic = torch.mul(way, way).sum()
kinetic.backward()
print(kinetic.unit, way.grad.tolist(), way.is_leaf, kinetic.grad_fn.name())
