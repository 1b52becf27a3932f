"""Calls as data: one usable call of every operator (calls.json), odd values to put in its place, and how both libraries run it.

calls.json has {operator or Python name: [positional arguments, keyword arguments]}. It was written down while PyTorch ran its
own list of inputs (`torch.testing._internal.common_methods_invocations.op_db`) and their backward passes; tensors are
{"t": dtype, "s": shape, "v": values}.
"""

import functools
import json
import pathlib
import warnings

import numpy as np
import torch

import readtorch
from tests.attack import limits

GUARD = 64  # bytes before and behind every tensor
SIGN = 0xA5  # what stands there

FLOATS = ["float32", "float64", "float16", "bfloat16"]
DTYPES = [
    "float32",
    "float64",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
]
ODD_INTS = [
    -1,
    0,
    1,
    2,
    3,
    7,
    -2,
    -9,
    100,
    2**31 - 1,
    2**31,
    -(2**31),
    -(2**31) - 1,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
]
ODD_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 1e308, -1e308, 3.4e38, float("inf"), float("-inf"), float("nan")]
ODD_SHAPES = [
    [],
    [0],
    [1],
    [3],
    [2, 3],
    [0, 3],
    [3, 0],
    [1, 1],
    [4, 4],
    [2, 3, 4],
    [1, 3, 4, 4],
    [2, 0, 3, 3],
    [1, 1, 2, 3, 3],
    [1] * 9,
]
LYING = [-1, -9, 0, 1, 3, 100, 900000, 2**31 - 1, -(2**31), 2**40, -(2**62), 2**63 - 1]


@functools.cache
def usable():
    return json.loads((pathlib.Path(__file__).parent / "calls.json").read_text())


# ------------------------------------------------------------------------------------------- from data to arguments


class Side:
    """Makes one library's arguments out of data, each tensor between guards."""

    def __init__(self, library):
        self.library = library
        self.guarded = []
        self.made = {}  # one description stands for one tensor: an argument may come twice

    def make(self, value):
        if isinstance(value, list):
            return [self.make(v) for v in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value))
        if kind == "t":
            key = id(value)
            if key not in self.made:
                self.made[key] = self.tensor(**value)
            return self.made[key]
        if kind == "c":
            return complex(*value["c"])
        if kind == "device":
            return self.library.device(value["device"])
        return getattr(self.library, value[kind])  # a dtype, a layout, a memory format

    def tensor(self, t, s, v, how="guarded"):
        """how: "guarded" is memory of NumPy's with guards; "own" the library's, which may be resized; "expanded", "transposed"."""
        array = numbers(t, v, s)
        if how == "own":
            made = self.library.from_numpy(array.copy()).clone()
        else:
            made = self.library.from_numpy(self.guard(array))
        if t == "bfloat16":
            made = made.view(self.library.bfloat16)
        if how == "expanded" and made.dim():
            made = made[:1].expand(made.shape) if made.shape[0] else made
        if how == "transposed" and made.dim() > 1:
            made = made.transpose(0, -1)
        if how == "grad" and (made.is_floating_point() or made.is_complex()):
            made = made.requires_grad_()
        return made

    def guard(self, array):
        whole = np.full(array.nbytes + 2 * GUARD, SIGN, np.uint8)
        self.guarded.append(whole)
        inside = whole[GUARD : GUARD + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        return inside

    def untouched(self):
        """Whether nothing was written in front of a tensor or behind it."""
        return all((whole[:GUARD] == SIGN).all() and (whole[-GUARD:] == SIGN).all() for whole in self.guarded)


def numbers(t, v, s):
    """The values as an array; bfloat16 as its upper halves of float32. Values too few are repeated."""
    count = int(np.prod(s))
    if t in ("complex64", "complex128"):
        flat = np.array([complex(*x) if isinstance(x, list) else complex(x) for x in v] or [0], t)
    elif t == "bfloat16":
        flat = (as_floats(v).astype(np.float32).view(np.int32) >> 16).astype(np.int16)
    elif t in FLOATS:
        with np.errstate(all="ignore"):
            flat = as_floats(v).astype(t)
    elif t == "bool":
        flat = np.array([bool(x) for x in v] or [0], bool)
    else:
        bits = np.dtype(t).itemsize * 8
        flat = np.array([wrapped(x, bits) for x in v] or [0], np.uint64).astype(f"uint{bits}").view(t)
    return np.resize(flat, count).reshape(s)


def as_floats(v):
    return np.array([x[0] if isinstance(x, list) else float(x) for x in v] or [0.0], np.float64)


def wrapped(x, bits):
    x = x[0] if isinstance(x, list) else x
    x = 0 if isinstance(x, float) and (x != x or abs(x) == float("inf")) else int(x)
    return x % (1 << bits)


# ------------------------------------------------------------------------------------------------------- odd values


def odd_tensor(random, like):
    """A tensor's description with something odd about it."""
    changed = dict(like)
    for _ in range(random.choice((1, 1, 2))):
        random.choice((_other_dtype, _other_shape, _other_values, _other_values, _other_memory))(random, changed)
    return changed


def _other_dtype(random, tensor):
    tensor["t"] = random.choice(DTYPES)


def _other_shape(random, tensor):
    shape = list(tensor["s"])
    what = random.randrange(5)
    if what == 0 or not shape:
        shape = list(random.choice(ODD_SHAPES))
    elif what == 1:
        shape.pop(random.randrange(len(shape)))
    elif what == 2:
        shape.insert(random.randrange(len(shape) + 1), random.choice((0, 1, 2)))
    else:
        shape[random.randrange(len(shape))] += random.choice((-1, 1, 1, 2))
    if all(0 <= n < 40 for n in shape) and np.prod([max(n, 1) for n in shape]) < 4000:
        tensor["s"] = shape
        tensor["v"] = tensor["v"] or [1]


def _other_values(random, tensor):
    count = max(1, min(8, int(np.prod(tensor["s"]))))
    floating = tensor["t"] in FLOATS or tensor["t"].startswith("complex")
    pool = ODD_FLOATS if floating else LYING
    values = list(tensor["v"]) or [0]
    if random.random() < 0.5:
        values[random.randrange(len(values))] = random.choice(pool)
    else:
        values = [random.choice(pool) for _ in range(count)]
    tensor["v"] = values


def _other_memory(random, tensor):
    tensor["how"] = random.choice(("own", "expanded", "transposed", "grad"))


def odd_value(random, kind, value, tensors):
    """Something odd for an argument of a schema's type, in place of `value`; tensors: others of the call."""
    if kind.is_list:
        return _odd_list(random, kind, value, tensors)
    if random.random() < 0.04:
        return random.choice((None, "x", [], 1.5))
    if kind.base == "Tensor":
        if tensors and random.random() < 0.1:
            return random.choice(tensors)
        return odd_tensor(
            random,
            value if isinstance(value, dict) and "t" in value else {"t": "float32", "s": [2, 3], "v": [0.5, 1, 2]},
        )
    if kind.base == "int":
        return random.choice(ODD_INTS)
    if kind.base == "float":
        return random.choice(ODD_FLOATS)
    if kind.base == "Scalar":
        return random.choice([*ODD_INTS, *ODD_FLOATS, {"c": [1.0, 2.0]}, True])
    if kind.base == "bool":
        return random.choice((True, False))
    if kind.base == "ScalarType":
        return {"dtype": random.choice(DTYPES)}
    return random.choice((value, None, "x"))


def _odd_list(random, kind, value, tensors):
    value = list(value) if isinstance(value, list) else [] if value is None else [value]
    inner = type(kind)(kind.base)
    what = random.randrange(5)
    if what == 0:
        return random.choice(([], None, value[:-1], value + value[-1:]))
    if what == 1 or not value:
        return [odd_value(random, inner, None, tensors) for _ in range(random.randrange(4))]
    value[random.randrange(len(value))] = odd_value(random, inner, random.choice(value), tensors)
    return value


def plain_value(random, kind):
    """A value of a schema's type for an operator that calls.json does not have."""
    if kind.is_list:
        return [plain_value(random, type(kind)(kind.base)) for _ in range(kind.size or random.choice((1, 2, 2, 3)))]
    if kind.optional and random.random() < 0.5:
        return None
    if kind.base == "Tensor":
        shape = random.choice(([2, 3], [2, 3], [3], [], [4, 4], [1, 2, 4, 4], [2, 2, 3]))
        if random.random() < 0.25:
            return {"t": "int64", "s": shape, "v": [0, 1, 2]}
        return {"t": "float32", "s": shape, "v": [0.5, -1.0, 2.0, 1.5, 0.25]}
    return {
        "int": random.choice((0, 1, 1, 2)),
        "float": 0.5,
        "Scalar": 1.5,
        "bool": random.random() < 0.5,
        "str": "none",
        "ScalarType": {"dtype": "float32"},
        "Layout": {"layout": "strided"},
        "MemoryFormat": {"format": "contiguous_format"},
        "Device": {"device": "cpu"},
    }.get(kind.base)


# ------------------------------------------------------------------------------------------------- what became of it


def outcome(side, run):
    """("value", result), or ("error", type name, words)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "value", run(side)
    except Exception as error:
        kind = type(error).__name__
        words = str(error).replace("readtorch", "torch")
        return "error", kind, plain(words)


def plain(words):
    """A message without what tells nothing: PyTorch's C++ stack, and how a schema spells its ints and defaults."""
    words = words.partition("\nException raised from")[0].strip().rstrip('"')
    return words.replace("SymInt", "int").replace('"', "'") if "Declaration: " in words else words


def flat(value):
    """The tensors and numbers of a result, one after another."""
    if isinstance(value, (list, tuple)):
        return [part for v in value for part in flat(v)]
    if isinstance(value, dict):
        return [part for v in value.values() for part in flat(v)]
    return [value]


def as_array(value):
    """A tensor's or number's values for a comparison."""
    if isinstance(value, torch.Tensor):
        value = value.to_dense() if value.is_sparse else value
        value = value.detach().resolve_conj().resolve_neg()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, readtorch.Tensor):
        value = value.to_dense() if value.is_sparse else value
        value = value.detach().resolve_conj().resolve_neg()
        return (value.float() if value.dtype == readtorch.bfloat16 else value).numpy()
    return value


def same(ours, theirs):
    """Whether two results are alike: dtypes, shapes, and values within some percent."""
    ours, theirs = flat(ours), flat(theirs)
    return len(ours) == len(theirs) and all(map(_same_one, ours, theirs))


def _same_one(ours, theirs):
    if isinstance(theirs, torch.Tensor) != isinstance(ours, readtorch.Tensor):
        return False
    if not isinstance(theirs, torch.Tensor) and not isinstance(theirs, (int, float, complex)):
        return str(ours).replace("readtorch", "torch") == str(theirs)
    a, b = np.asarray(as_array(ours)), np.asarray(as_array(theirs))
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    with np.errstate(all="ignore"):
        return bool(np.isclose(a, b, rtol=0.02, atol=1e-3, equal_nan=True).all())


def foreign(value):
    """Whether a result shows what stands in the guards: it was read outside a tensor."""
    for part in flat(value):
        if isinstance(part, (torch.Tensor, readtorch.Tensor)) and part.numel():
            array = np.ascontiguousarray(as_array(part))
            if (
                array.dtype.itemsize > 1
                and (array.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize) == SIGN).all(1).any()
            ):
                return True
    return False


def judge(report, run, call, compared):
    """Runs a call with both libraries, run(side), and reports what became of it: verdicts are faults of ours."""
    torch.manual_seed(0)
    readtorch.manual_seed(0)
    report(at="ours", call=call)
    limits.forget_peak()
    before = limits.peak()
    here, there = Side(readtorch), Side(torch)
    ours = outcome(here, run)
    verdicts = ["memory"] if limits.peak() - before > limits.GIGABYTE else []
    if not here.untouched():  # before PyTorch's turn, which may write anywhere
        verdicts.append("wrote outside")
    report(at="torch")
    theirs = outcome(there, run)
    if ours[0] == "value" and foreign(ours[1]):
        verdicts.append("read outside")
    report(verdicts=verdicts, became=compare(ours, theirs, compared), ours=told(ours), theirs=told(theirs), call=call)


def told(found):
    return f"{found[1]}: {found[2]}" if found[0] == "error" else " ".join(shown(v) for v in flat(found[1]))[:300]


def shown(value):
    text = (
        f"{tuple(value.shape)} {value.dtype}"
        if isinstance(value, (torch.Tensor, readtorch.Tensor))
        else type(value).__name__
    )
    try:
        return f"{text} {value.detach().reshape(-1)[:6].tolist()}" if hasattr(value, "detach") else f"{text} {value}"
    except Exception:
        return text


def compare(ours, theirs, compared):
    """What became of a call, in words."""
    if ours[0] != theirs[0]:
        return "only ours refuses" if ours[0] == "error" else "only torch refuses"
    if ours[0] == "error":
        return "other type" if ours[1] != theirs[1] else "same error" if ours[2] == theirs[2] else "other words"
    try:
        return "not compared" if not compared else "same values" if same(ours[1], theirs[1]) else "other values"
    except Exception:
        return "not compared"
