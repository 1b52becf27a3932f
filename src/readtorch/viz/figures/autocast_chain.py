"""A chain of operators within autocast: the policy of each, the casts that it makes, and the dtype that comes out (the chapter
"Mixed precision").

The policies are those of `readtorch.aten.autocast_mode`; the casts follow PyTorch's `aten/src/ATen/autocast_mode.h`.
`tests/viz/test_autocast_chain.py` lets PyTorch run chains on the CPU, and on fake tensors of CUDA.
"""

from dataclasses import dataclass

from readtorch.aten.autocast_mode import POLICIES
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Refusal, Switch
from readtorch.viz.picture import box, drawing, text

SIDE = 1024  # all tensors are SIDE × SIDE
MOST = 6  # operators
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


@dataclass(frozen=True)
class Operator:
    """aten: whose policy counts. operands: t the tensor that the chain has so far, w a weight, x the chain's input.
    ends: gives one number, so nothing comes behind it. mixes: promotes operands of two dtypes, instead of refusing them."""

    aten: str
    operands: str = "t"
    ends: bool = False
    mixes: bool = True


OPERATORS = {
    "linear": Operator("linear", "tw", mixes=False),
    "mm": Operator("mm", "tw", mixes=False),
    **{name: Operator(name) for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "dropout")},
    "+": Operator("add.Tensor", "tx"),
    "*": Operator("mul.Tensor", "tx"),
    **{name: Operator(name) for name in ("exp", "log", "rsqrt", "softplus", "layer_norm", "group_norm")},
    "pow": Operator("pow.Tensor_Scalar"),
    "softmax": Operator("softmax.int"),
    "log_softmax": Operator("log_softmax.int"),
    "cumsum": Operator("cumsum"),
    "cumprod": Operator("cumprod"),
    "cat": Operator("cat", "tx"),
    "addcmul": Operator("addcmul", "ttx"),
    "scatter_add": Operator("scatter_add", "tx", mixes=False),
    **{name: Operator(name, ends=True) for name in ("sum", "mean", "prod", "trace")},
    "norm": Operator("norm.ScalarOpt_dim", ends=True),
    **{name: Operator(name, "tx", ends=True) for name in ("mse_loss", "l1_loss", "smooth_l1_loss")},
    "binary_cross_entropy": Operator("binary_cross_entropy", "tx", ends=True, mixes=False),
}
BY_HAND = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}
NAMES = [*OPERATORS, *BY_HAND]
ALIASES = {"+ x": "+", "add": "+", "* x": "*", "mul": "*", "matmul": "mm", "@ w": "mm"}
FROM_0_TO_1 = ("sigmoid", "softmax")


# ---- the chain


def operators_of(words):
    names = [one.strip().lower() for one in words.split(",") if one.strip()]
    names = [ALIASES.get(name, name) for name in names]
    if not 1 <= len(names) <= MOST:
        raise Refusal(f"A chain is 1 to {MOST} operators with commas between them, such as linear, gelu, softmax.")
    for i, name in enumerate(names):
        if name not in NAMES:
            raise Refusal(f"There is no operator {name} here. There are {', '.join(NAMES)}.")
        if i < len(names) - 1 and name in OPERATORS and OPERATORS[name].ends:
            raise Refusal(f"{name} gives one number, so it stands last.")
        if name == "binary_cross_entropy" and (i == 0 or names[i - 1] not in FROM_0_TO_1):
            raise Refusal("binary_cross_entropy takes numbers from 0 to 1: put sigmoid or softmax before it.")
    return names


# ---- casts and dtypes


class Error(Exception):
    """What PyTorch raises."""


class Chain:
    """A forward in one region: what is cast, and what is kept of it. `None` as `low` is no autocast."""

    def __init__(self, inputs):
        self.device, self.low = inputs["device"], inputs["low"] if inputs["on"] else None
        self.shares, self.keeps = inputs["twice"], inputs["cache"]
        self.x = self.now = inputs["dtype"]
        self.weights, self.kept = 0, set()
        self.steps, self.casts = [], []

    def run(self, names):
        for name in names:
            self.casts = []
            policy = self.policy_of(name)
            error = None
            try:
                self.now = self.result_of(name, policy)
            except Error as raised:
                error = str(raised)
            result = None if error else self.now
            self.steps.append({"name": name, "policy": policy, "casts": self.casts, "result": result, "error": error})
            if error:
                break
        return self

    def policy_of(self, name):
        """The name of a policy; "" for an operator on no list, and without autocast."""
        if self.low is None or name in BY_HAND:
            return ""
        policy = POLICIES[self.device].get(f"aten::{OPERATORS[name].aten}")
        return policy.__name__ if policy else ""

    def result_of(self, name, policy):
        if name in BY_HAND:
            want = BY_HAND[name]
            return want if want == self.now else self.copy(self.name_of_now(), self.now, want)
        operator = OPERATORS[name]
        operands = self.operands_of(operator)
        if policy == "banned":
            raise Error("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.")
        if policy in ("fp32_set_opt_dtype", "fp32_append_dtype"):
            return self.reads_as_float32(operator)
        if policy:
            target = self.target_of(policy, operands)
            operands = [(who, self.cast(who, dtype, target)) for who, dtype in operands]
        dtypes = [dtype for _, dtype in operands]
        if not operator.mixes and len(set(dtypes)) > 1:
            raise Error(mismatch(name, self.device, *dtypes))
        return promoted(dtypes)

    def operands_of(self, operator):
        """(name, dtype) of each; a product has a weight of its own unless they share one."""
        if "w" in operator.operands:
            self.weights += 1
        weight = "w" if self.shares else f"w{self.weights}"
        found = {"t": (self.name_of_now(), self.now), "x": ("x", self.x), "w": (weight, "float32")}
        return [found[one] for one in operator.operands]

    def name_of_now(self):
        return f"y{len(self.steps)}" if self.steps else "x"

    def target_of(self, policy, operands):
        if policy == "fp32":
            return "float32"
        target = self.low
        for _, dtype in operands if policy == "promote" else ():
            if dtype == "float64" or dtype == target:
                continue
            if "float32" not in (target, dtype):
                raise Error("Unexpected floating ScalarType in at::autocast::prioritize")
            target = "float32"
        return target

    def cast(self, who, have, want):
        """The dtype in which an operand arrives: doubles are left alone."""
        return have if have in (want, "float64") else self.copy(who, have, want)

    def copy(self, who, have, want):
        is_kept = who.startswith("w") and want == self.low and self.keeps
        found = is_kept and who in self.kept
        if is_kept:
            self.kept.add(who)
        numbers = 0 if found else SIDE * SIDE
        self.casts.append(
            {
                "of": who,
                "from": have,
                "to": want,
                "found": found,
                "read": numbers * SIZES[have],
                "written": numbers * SIZES[want],
            }
        )
        return want

    def reads_as_float32(self, operator):
        """The kernel gets `dtype=float32`. Reductions convert as they read, softmax does so for float16 alone, cumsum never."""
        if self.now == "float64":
            return "float64"
        is_softmax = operator.aten in ("softmax.int", "log_softmax.int")
        copies = self.now == "bfloat16" if is_softmax else operator.aten in ("cumsum", "cumprod")
        if copies and self.now != "float32":
            self.copy(self.name_of_now(), self.now, "float32")
        return "float32"


CPP_NAMES = {"float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double"}
SCALAR_TYPES = {"float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double"}


def mismatch(name, device, first, second):
    """The error of an operator that takes operands of one dtype only."""
    if name == "scatter_add":
        return "scatter(): Expected self.dtype to be equal to src.dtype"
    if name == "binary_cross_entropy":
        return f"Found dtype {SCALAR_TYPES[second]} but expected {SCALAR_TYPES[first]}"
    words = "m1 and m2" if device == "cpu" else "mat1 and mat2"
    return f"expected {words} to have the same dtype, but got: {CPP_NAMES[first]} != {CPP_NAMES[second]}"


def promoted(dtypes):
    """float16 and bfloat16 together are float32."""
    largest = max(dtypes, key=SIZES.get)
    return "float32" if {"float16", "bfloat16"} <= set(dtypes) and SIZES[largest] == 2 else largest


# ---- what is said and shown


def model(inputs):
    names = operators_of(inputs["chain"])
    steps = Chain(inputs).run(names).steps
    casts = [cast for step in steps for cast in step["casts"]]
    sums = {
        "made": sum(not cast["found"] for cast in casts),
        "found": sum(cast["found"] for cast in casts),
        "bytes": sum(cast["read"] + cast["written"] for cast in casts),
    }
    return {
        "dtype": inputs["dtype"],
        "steps": steps,
        "left": names[len(steps) :],
        "sums": sums,
        "say": said(steps, sums),
    }


def said(steps, sums):
    last = steps[-1]
    comes = f"An error stops the chain at {last['name']}." if last["error"] else f"The result is {last['result']}."
    more = f"; {sums['found']} more from the cache" if sums["found"] else ""
    return f"{comes} {sums['made']} cast{'s' * (sums['made'] != 1)}, {sums['bytes'] // 2**20} MiB read and written for them{more}."


def picture(result, step):
    parts = [text(f"x {result['dtype']}", 8, 20, "dim")]
    for i, one in enumerate(result["steps"]):
        kind = "gold" if one["error"] else "pale" if one["policy"] else "free"
        x = 8 + 106 * i
        words = "error" if one["error"] else one["result"]
        parts += [box(x, 30, 98, 26, kind, one["name"][:13]), text(words, x, 74, "mono")]
        parts += [text(f"{len(one['casts'])} casts", x, 92, "dim")] if one["casts"] else []
    return drawing(650, 104, *parts)


def sample(random):
    """Chains of known operators, now and then a bad one."""
    inner = [name for name in NAMES if name not in OPERATORS or not OPERATORS[name].ends]
    names = [random.choice(["linear", random.choice(inner)]) for _ in range(random.randint(0, MOST - 1))]
    names.append(random.choice([*NAMES, "sigmoid, binary_cross_entropy"] if len(names) < MOST - 1 else NAMES))
    words = (
        random.choice(["", "x", "sum, relu", "add, @ w ,", "a,a,a,a,a,a,a"])
        if random.random() < 0.1
        else ", ".join(names)
    )
    return {"chain": words, "on": random.random() < 0.8}


FIGURE = Figure(
    name="autocast_chain",
    title="Dtype by dtype through a region",
    inputs=(
        Expression("chain", "operators", "linear, gelu, layer_norm, +, softmax, mse_loss", longest=100),
        Choice("device", "device", "cpu", options={"cpu": "CPU", "cuda": "CUDA"}),
        Choice("low", "region", "bfloat16", options=["bfloat16", "float16"]),
        Choice("dtype", "x", "float32", options=["float32", "bfloat16", "float16", "float64"]),
        Switch("on", "autocast", True),
        Switch("twice", "products share a weight", False),
        Switch("cache", "cache", True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
