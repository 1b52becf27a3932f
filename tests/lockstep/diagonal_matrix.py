"""A diagonal matrix that keeps one row of numbers: no Tensor subclass at all, only `__torch_function__`."""

import torch

RULES = {}


def rule(*functions):
    def register(function):
        RULES.update(dict.fromkeys(functions, function))
        return function

    return register


class Diagonal:
    def __init__(self, entries):
        self.entries = torch.as_tensor(entries)

    def __repr__(self):
        return f"Diagonal({self.entries.tolist()})"

    def dense(self):
        return torch.diag(self.entries)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in RULES or not all(issubclass(t, (torch.Tensor, Diagonal)) for t in types):
            return NotImplemented
        return RULES[func](*args, **(kwargs or {}))


@rule(torch.add)
def total(a, b):
    if isinstance(a, Diagonal) and isinstance(b, Diagonal):
        return Diagonal(a.entries + b.entries)
    return torch.add(*(m.dense() if isinstance(m, Diagonal) else m for m in (a, b)))


@rule(torch.matmul, torch.mm)
def product(a, b):
    if isinstance(a, Diagonal) and isinstance(b, Diagonal):
        return Diagonal(a.entries * b.entries)
    return a.entries[:, None] * b if isinstance(a, Diagonal) else a * b.entries


@rule(torch.mean)
def mean(a, dim=None):
    return a.entries.sum() / len(a.entries) ** 2 if dim is None else a.entries / len(a.entries)


@rule(torch.linalg.inv, torch.inverse)
def inverse(a):
    return Diagonal(1 / a.entries)


@rule(torch.linalg.det)
def determinant(a):
    return a.entries.prod()


@rule(torch.nn.functional.linear)
def linear(input, weight, bias=None):
    return product(input, weight) + (0 if bias is None else bias)


d = Diagonal([1.0, 2.0, 4.0])
x = torch.arange(6.0).reshape(3, 2)
print(torch.add(d, d), torch.matmul(d, d), torch.matmul(d, x).tolist(), torch.mm(x.t(), d).tolist())
print(torch.mean(d), torch.mean(d, dim=0), torch.linalg.inv(d), torch.linalg.det(d).item())
print("linear", torch.nn.functional.linear(x.t(), d, bias=torch.ones(3)).tolist())
print("the same as dense", torch.equal(torch.matmul(d, x), d.dense() @ x), torch.add(d, torch.ones(3, 3)).tolist())
for wrong in (
    lambda: torch.exp(d),
    lambda: torch.stack([d, d]),
    lambda: torch.nn.functional.softmax(d, 0),
    lambda: torch.where(x > 0, x, d),
    lambda: d + d,
    lambda: x.add(d),
):
    try:
        print(wrong())
    except TypeError as error:
        print("TypeError:", str(error).split("0x")[0])
print(torch.overrides.has_torch_function((x, d)), torch.overrides.has_torch_function((x,)), torch.is_tensor(d))
print(torch.overrides.get_overridable_functions()[torch].count(torch.add), len(RULES))
