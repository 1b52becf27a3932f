"""Functions in the TorchScript language. The reference compiles them; its printed graphs are read and run here.

A module of its own, so that the compiler finds their source.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch


class Point(NamedTuple):
    x: torch.Tensor
    n: int


def branch(x: torch.Tensor):
    if x.sum() > 0:
        return x * 2
    return x - 1


def loop(x: torch.Tensor, n: int):
    total = torch.zeros_like(x)
    for i in range(n):
        if i % 2 == 0:
            total = total + x * i
        else:
            total -= x
    return total


def while_loop(n: int):
    steps = 0
    while n != 1 and steps < 50:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def early_exit(l: List[int], wanted: int):
    for i in range(len(l)):
        if l[i] == wanted:
            return i
        if l[i] < 0:
            break
    return -1


def lists(n: int):
    l = [1, 2, 3]
    l.append(n)
    l.extend([7, 8])
    l[0] = 10
    m = l + [n]
    return l[1:4], len(m), m[-1], sum(m), 7 in l, [a * 2 for a in l]


def dicts(n: int):
    d: Dict[str, int] = {"a": 1}
    d["b"] = n
    total = 0
    for k in d.keys():
        total += d[k]
    return total, "a" in d, d.get("z", 5), len(d)


def strings(a: str, n: int):
    return (
        a + "-" + str(n),
        f"{a}:{n}",
        a.upper(),
        a.replace("o", "0"),
        "{} {}".format(n, 1.5),
        len(a),
        a[0],
        a.split("o"),
    )


def tuples(t: Tuple[int, float]):
    a, b = t
    return b, a, (a, (b, a))


def named(p: Point):
    return Point(p.x + p.n, p.n * 2)


def optional(x: Optional[int]):
    if x is None:
        return 0
    return x + 1


def numbers(a: int, b: int, x: float, y: float):
    return (
        a // b,
        a % b,
        a / b,
        a**b,
        x // y,
        x % y,
        round(x),
        int(x),
        a << b,
        a ^ b,
        a & b,
        abs(a),
        min(a, b),
        max(x, y),
        a == x,
        bool(a),
        float(a),
        -a,
        divmod(a, b),
        x**y,
        a < b or x < y,
        not a > b,
    )


def nested(n: int):
    count = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 3 == 0:
                continue
            count += i * j
    return count


def tensors(x: torch.Tensor, y: torch.Tensor):
    z = torch.cat([x, y], dim=0)
    a, b = z.split(x.size(0))
    return (
        (a @ b.t()).relu().sum(dim=[0]),
        z.shape,
        z.view(-1, x.size(1)).mean(1),
        torch.zeros(2, 3),
        x.to(torch.float64),
    )


def inplace(x: torch.Tensor):
    y = x.clone()
    for i in range(3):
        y[i % 2] += i
    y.mul_(2)
    return y, y.sum()


def constants(x: torch.Tensor):
    a = 2 * 3
    b = [1, 2, a]
    if a > 5:
        return x * (a + b[0])
    return x


def common(x: torch.Tensor):
    return torch.exp(x) + torch.exp(x) * torch.exp(x)


def helper(x: torch.Tensor, k: int = 2):
    return x * k


def calls(x: torch.Tensor):
    return helper(helper(x, 3)) + helper(x)


def list_of_tensors(x: torch.Tensor, n: int):
    out: List[torch.Tensor] = []
    for i in range(n):
        out.append(x + i)
    return torch.stack(out)


def ternary(n: int, x: torch.Tensor):
    y = x if n > 2 else -x
    return y * (1 if n % 2 == 0 else 3)


def fixed_turns(x: torch.Tensor):
    for i in range(4):
        x = x * (i + 1)
    return x


def asserts(n: int):
    assert n > 0, "must be positive"
    if n > 10:
        raise ValueError("too big")
    return n * 2


FUNCTIONS = [
    (branch, [[torch.ones(2)], [-torch.ones(2)]]),
    (loop, [[torch.ones(2), 5], [torch.ones(2), 0], [torch.arange(3.0), 21]]),
    (while_loop, [[1], [6], [27]]),
    (early_exit, [[[1, 2, 3], 3], [[1, -1, 3], 3], [[], 1]]),
    (lists, [[4]]),
    (dicts, [[3]]),
    (strings, [["foo", 3], ["x", -1]]),
    (tuples, [[(1, 2.5)]]),
    (named, [[Point(torch.ones(2), 3)]]),
    (optional, [[None], [4]]),
    (numbers, [[7, 3, 7.5, 2.0], [-7, 3, -7.5, 2.0], [1, 2, 0.5, 0.25]]),
    (nested, [[0], [5], [17]]),
    (tensors, [[torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)]]),
    (inplace, [[torch.zeros(2, 2)]]),
    (constants, [[torch.ones(2)]]),
    (common, [[torch.arange(3.0)]]),
    (calls, [[torch.ones(2)]]),
    (list_of_tensors, [[torch.ones(2), 3]]),
    (ternary, [[1, torch.ones(1)], [3, torch.ones(1)], [4, torch.ones(1)]]),
    (fixed_turns, [[torch.ones(2)]]),
    (asserts, [[3]]),
]
