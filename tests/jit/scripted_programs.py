"""Functions to script: each is compiled by the reference and by readtorch from this one text (see
`both_libraries.py`).
"""

import math
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

# ----------------------------------------------------------------------------------------------- control flow


def early_return(x, n: int, c: bool):
    y = x
    for i in range(n):
        if c:
            y = y + i
            if i == 3:
                return y
        else:
            y = 2 * y
            break
    return y - 1


def branch(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def loop(x, n: int):
    total = torch.zeros_like(x)
    for i in range(n):
        if i % 2 == 0:
            total = total + x * i
        else:
            total -= x
    return total


def while_loop(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 100:
            break
    return steps


def while_continue(n: int):
    total, i = 0, 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        total += i
    return total


def nested_loops(n: int, m: int):
    found = -1
    for i in range(n):
        for j in range(m):
            if i * j == 12:
                found = i + j
                break
            if j > i:
                continue
            found += 1
        if found > 20:
            return found
    return found


def early_return_in_while(xs: List[int], wanted: int) -> int:
    i = 0
    while i < len(xs):
        if xs[i] == wanted:
            return i
        i += 1
    return -1


def elif_chain(x: float) -> str:
    if x < 0:
        kind = "negative"
    elif x == 0:
        kind = "zero"
    elif x < 1:
        kind = "small"
    else:
        kind = "large"
    return kind


def ternary(x, c: bool, n: int):
    y = x if c else -x
    return y + (1 if n > 2 else 0)


def logic(a: bool, b: bool, n: int):
    c = a and b or n > 3
    d = not a and (b or n == 2)
    return c, d, a and b and n > 1, 0 < n <= 5


def ranges(n: int):
    total = 0
    for i in range(2, n):
        total += i
    for i in range(n, 0, -2):
        total -= i
    for i in range(0, n, 3):
        total *= 2
    return total


def raises(x, n: int):
    if n < 0:
        raise ValueError(f"negative: {n}")
    if n > 100:
        raise RuntimeError("too large")
    return x * n


def asserts(x: Optional[Tensor], n: int):
    assert n > 0, "n must be positive"
    assert x is not None
    return x + n


def raise_in_else(n: int):
    if n == 1:
        y = 10
    elif n == 2:
        y = 20
    else:
        raise ValueError("unknown")
    return y


def loop_carried_types(n: int):
    x, y, z = 1, 2.0, "a"
    for i in range(n):
        x, y, z = x + i, y * 2, z + "b"
    return x, y, z


# ------------------------------------------------------------------------------------------------- containers


def lists(n: int):
    xs = [1, 2, 3]
    xs.append(n)
    xs.extend([5, 6])
    xs.insert(0, 7)
    last = xs.pop()
    xs[1] = 9
    xs.reverse()
    ys = xs + [last]
    del ys[0]
    return ys, len(ys), ys[1:3], ys[-1], 9 in ys, max(ys), min(ys), sum(ys), sorted(ys), ys == xs, ys * 2


def empty_lists(n: int):
    xs: List[int] = []
    ys = torch.jit.annotate(List[float], [])
    ts = []
    for i in range(n):
        xs.append(i * i)
        ys.append(float(i))
        ts.append(torch.ones(i + 1))
    return xs, ys, ts


def dicts(x):
    d = {"a": x, "b": x * 2}
    d["c"] = d["a"] + 1
    total = torch.zeros_like(x)
    for k in d.keys():
        total = total + d[k]
    for k, v in d.items():
        if k == "b":
            total = total - v
    del d["a"]
    return total, "a" in d, len(d), d.get("zz", x), list(d.keys()), d["c"]


def dict_loops(d: Dict[str, int]):
    best, name = -1, ""
    for k in d:
        if d[k] > best:
            best, name = d[k], k
    e = {v: k for k, v in d.items()}
    return name, best, e[best], d.get("nothing")


def tuples(a: int, b: float):
    t = (a, b, "c")
    x, y, z = t
    u = (t, (a,))
    return t[0] + t[-3], y, z, u[0][1], u[1], t[1:], len(z)


def unpacking(xs: List[int], t: Tuple[int, Tuple[int, float]]):
    a, b, c = xs
    d, (e, f) = t
    first, *rest = (a, b, c)
    g = h = a + b
    a, b = b, a
    return a, b, c, d, e, f, first, rest, g, h


def comprehensions(xs: List[int], x):
    squares = [i * i for i in xs]
    pairs = {i: i * 2 for i in range(3)}
    tensors = [x * i for i in xs]
    nested = [[i + j for j in range(2)] for i in xs]
    return squares, pairs[1], tensors, nested, [c for c in "abc"]


def iteration(xs: List[int], ys: List[float], s: str):
    total = 0.0
    for i, x in enumerate(xs):
        total += i * x
    for x, y in zip(xs, ys):
        total += x * y
    for i, (x, y) in enumerate(zip(xs, ys)):
        total -= i + x + y
    for c in s:
        if c == "a":
            total += 1
    for i, v in enumerate(ys, 5):
        total += i * v
    return total


def over_tensor(x):
    total = torch.zeros(x.size(1))
    for row in x:
        total = total + row * row.sum()
    return total


def over_tuple(x):
    out = []
    for f in (1.0, 2.0, 3.0):
        out.append(x * f)
    return out


def list_of_lists(n: int) -> List[List[int]]:
    rows: List[List[int]] = []
    for i in range(n):
        row = [j for j in range(i)]
        rows.append(row)
    return rows


def strings(s: str, n: int):
    t = s.upper() + "-" + s.lower()
    u = "{} and {}".format(n, s)
    v = f"{s}: {n}, {n + 1}"
    w = "%d %s" % (n, s)
    return (
        t,
        u,
        v,
        w,
        s[0],
        s[1:3],
        s.split(","),
        ",".join(["a", "b"]),
        s.startswith("a"),
        len(s),
        str(n),
        s.replace("a", "b"),
        "a" in s,
        s.find("c"),
        s.strip(),
        int("12"),
        float("1.5"),
    )


# ------------------------------------------------------------------------------------------------------ types


def optional(x: Optional[int], y: Optional[Tensor] = None):
    z = 0
    if x is not None:
        z += x
    if y is None:
        w = torch.zeros(2)
    else:
        w = y + z
    if x is None or y is None:
        return w - 1
    return w + x + y


def unions(x: Union[int, str, List[int]]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    else:
        return sum(x)


def any_type(x: Any):
    if isinstance(x, int):
        return x * 2
    if isinstance(x, Tensor):
        return int(x.sum())
    return -1


def casts(x, n: int, f: float, b: bool):
    return (
        int(f),
        float(n),
        bool(n),
        int(b),
        float(x.sum()),
        int(x.max()),
        bool(x.sum() > 0),
        str(f),
        abs(-n),
        round(f),
        max(n, 3),
        min(f, 2.0),
        divmod(n, 3),
        -n,
        n**2,
        n / 2,
        n // 2,
        n % 3,
        f // 1.5,
        2**f,
        n << 2,
        n >> 1,
        n & 6,
        n | 1,
        n ^ 3,
    )


def arithmetic_augmented(n: int, f: float):
    n += 2
    n -= 1
    n *= 3
    f /= 2
    f += n
    m = n
    m %= 4
    return n, f, m


def math_functions(f: float, n: int):
    return (
        math.sqrt(f),
        math.sin(f),
        math.exp(f),
        math.log(f),
        math.floor(f),
        math.ceil(f),
        math.pi,
        math.pow(f, 2.0),
        math.atan2(f, 2.0),
        math.isnan(f),
        math.fabs(-f),
        math.factorial(n),
        math.inf,
    )


def type_comment(x, n, f):
    # type: (Tensor, int, float) -> Tuple[Tensor, float]
    return x * n, f * n


class Point(NamedTuple):
    x: Tensor
    scale: float
    n: int = 3


def named_tuple(x, f: float):
    p = Point(x, f)
    q = Point(x=x + 1, scale=f * 2, n=4)
    return p.x * p.scale + q.x * q.n, p


def named_tuple_argument(p: Point):
    return p.x * p.n, p[1]


class Color(Enum):
    RED = 1
    GREEN = 2


def enums(c: Color):
    if c == Color.RED:
        return c.value + 10, c.name
    return c.value, "other"


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start
        self.names: List[str] = []

    def add(self, name: str, n: int = 1):
        self.count += n
        self.names.append(name)
        return self

    def __len__(self) -> int:
        return self.count

    @staticmethod
    def double(n: int) -> int:
        return n * 2


def classes(n: int):
    c = Counter(n)
    c.add("one")
    c.add("two", 5).add("three")
    return c.count, c.names, len(c), Counter.double(n)


# ---------------------------------------------------------------------------------------------------- tensors


def poly(x):
    return torch.relu(x) * 2 + x.sigmoid()


def scalars(x):
    return (
        1 + x,
        2 - x,
        3 * x,
        4 / (x * x + 1),
        2.5 > x,
        1 == x,
        x // 2,
        x % 2,
        x**2,
        2**x,
        -x,
        ~(x > 0),
        x > 1,
        x != 0.5,
        abs(x),
        (x > 0) & (x < 1),
        (x > 0) | (x < -1),
    )


def indexing(x, i: int):
    y = x[0]
    z = x[:, 1]
    return (
        y,
        z,
        x[1:, ::2],
        x[..., 0],
        x[None],
        x[i, -1],
        x[:i],
        x[i:],
        x[:, None, 1:],
        x[x > 0],
        x[[0, 1]],
        x[torch.tensor([1, 0])],
        x[..., None, 1],
        x[-1],
        x[torch.tensor([0]), 1:],
    )


def writes(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] = x[:, 0]
    y[0, 2] += 5
    y[y > 2] = 0.5
    y += 1
    y *= 2
    y[1] -= x[0]
    return y


def shapes(x):
    b, n = x.shape
    c, d = x.size()
    return (
        x.view(b * n),
        x.reshape(n, -1),
        x.numel(),
        x.dim(),
        x.ndim,
        x.shape[0],
        x.size(1),
        len(x),
        x.T,
        x.dtype == torch.float32,
        x.device,
        x.is_cuda,
        x.requires_grad,
    )


def factories(n: int):
    return (
        torch.zeros(n, 2),
        torch.ones([n]),
        torch.arange(n),
        torch.full((2, n), 1.5),
        torch.tensor([1, 2, n]),
        torch.tensor(2.5),
        torch.eye(n),
        torch.empty(n, 0),
        torch.linspace(0, 1, n),
        torch.zeros(n, dtype=torch.int64),
    )


def conversions(x):
    return (
        x.float(),
        x.to(torch.float64),
        x.double().half(),
        x.int(),
        x.type_as(x),
        x.long(),
        x.to("cpu"),
        x.to(torch.bool),
    )


def broadcasting_lists(x):
    return (
        x.sum(1),
        x.sum([0, 1]),
        x.mean(dim=0, keepdim=True),
        x.permute(1, 0),
        x.view(-1),
        x.expand(3, 2, 3),
        x.repeat(2, 1),
        F.avg_pool2d(x[None, None], 2, stride=1),
        x.transpose(0, 1),
    )


def several_results(x):
    values, indices = x.max(1)
    v, i = torch.topk(x, 2)
    a, b = torch.chunk(x, 2)
    first, second = x.split(1)
    return values, indices, v, i, a + b, x.sort(1), first * second, x.max(1)[0], torch.min(x, 0).indices


def functions(x, y):
    return (
        torch.cat([x, y]),
        torch.stack((x, y), 1),
        torch.where(x > 0, x, y),
        torch.matmul(x, y.t()),
        x @ y.t(),
        torch.add(x, y, alpha=2),
        x.clamp(min=0),
        torch.clamp(x, -0.5, 0.5),
        torch.softmax(x, dim=-1),
        x.masked_fill(x > 0, 1.0),
        torch.einsum("ij,kj->ik", [x, y]),
        x.eq(y).any(),
        torch.maximum(x, y),
        x.norm(),
    )


def callee(x, n: int = 2):
    return x * n


def calls(x):
    y = callee(x)
    z = callee(x, n=3) + callee(y, 4)
    return (
        F.relu(z),
        F.linear(x, y),
        torch.nn.functional.softmax(x, dim=1),
        F.dropout(x, 0.5, False),
        F.gelu(x),
        torch.tanh(y),
    )


def higher(x):
    def_ = torch.zeros(2)
    with_ = def_ + 1
    return with_.sum() + x


def multiple_assignment(x):
    a = b = x + 1
    a = a * 2
    return a, b


def prints(x, n: int):
    print("n is", n, 2.5, [1, 2], (1, "a"))
    return x + n


def without_gradients(x):
    with torch.no_grad():
        y = x * 2
    return y + 1


def forked(x):
    future = torch.jit.fork(callee, x, 3)
    y = x + 1
    return y + torch.jit.wait(future)


def shadowing(x, n: int):
    y = x
    if n > 0:
        y = y + 1
        z = n
    else:
        z = n * 2
    for x_ in range(z):
        y = y + x_
    return y, z


def is_scripting_branch(x):
    if torch.jit.is_scripting():
        return x + 1
    else:
        return undefined_name(x)  # noqa: F821


X = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]
Y = [[1.0, 2.0, -3.0], [0.5, -0.5, 4.0]]


def cases():
    """(function, arguments): what starts with T is a tensor."""
    x, y = torch.tensor(X), torch.tensor(Y)
    return [
        (early_return, (x, 6, True)),
        (early_return, (x, 2, True)),
        (early_return, (x, 3, False)),
        (branch, (x,)),
        (branch, (-x,)),
        (loop, (x, 5)),
        (while_loop, (27,)),
        (while_continue, (10,)),
        (nested_loops, (6, 5)),
        (nested_loops, (2, 2)),
        (early_return_in_while, ([3, 4, 5], 4)),
        (early_return_in_while, ([3, 4, 5], 9)),
        (elif_chain, (0.5,)),
        (elif_chain, (-2.0,)),
        (ternary, (x, True, 1)),
        (ternary, (x, False, 5)),
        (logic, (True, False, 2)),
        (logic, (False, True, 6)),
        (ranges, (9,)),
        (raises, (x, 3)),
        (asserts, (x, 2)),
        (raise_in_else, (2,)),
        (loop_carried_types, (3,)),
        (lists, (4,)),
        (empty_lists, (3,)),
        (dicts, (x,)),
        (dict_loops, ({"a": 1, "b": 5, "c": 2},)),
        (tuples, (3, 1.5)),
        (unpacking, ([1, 2, 3], (4, (5, 6.0)))),
        (comprehensions, ([1, 2, 3], x)),
        (iteration, ([1, 2, 3], [0.5, 1.5, 2.5], "banana")),
        (over_tensor, (x,)),
        (over_tuple, (x,)),
        (list_of_lists, (3,)),
        (strings, ("a,bca", 3)),
        (optional, (3, x)),
        (optional, (None,)),
        (unions, (3,)),
        (unions, ("abc",)),
        (unions, ([1, 2],)),
        (any_type, (4,)),
        (any_type, (x,)),
        (any_type, ("s",)),
        (casts, (x, 7, 2.5, True)),
        (arithmetic_augmented, (7, 2.5)),
        (math_functions, (1.5, 4)),
        (type_comment, (x, 2, 0.5)),
        (named_tuple, (x, 0.5)),
        (named_tuple_argument, (Point(x, 0.5),)),
        (enums, (Color.RED,)),
        (enums, (Color.GREEN,)),
        (classes, (3,)),
        (poly, (x,)),
        (scalars, (x,)),
        (indexing, (x, 1)),
        (writes, (x,)),
        (shapes, (x,)),
        (factories, (3,)),
        (conversions, (x,)),
        (broadcasting_lists, (x,)),
        (several_results, (x,)),
        (functions, (x, y)),
        (calls, (x,)),
        (higher, (x,)),
        (multiple_assignment, (x,)),
        (prints, (x, 3)),
        (forked, (x,)),
        (without_gradients, (x,)),
        (shadowing, (x, 3)),
        (is_scripting_branch, (x,)),
    ]
