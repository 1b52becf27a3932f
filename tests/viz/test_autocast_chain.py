"""The figure of autocast against PyTorch: chains on the CPU, and on fake tensors of CUDA; and against readtorch's simulated CUDA."""

import contextlib
import random
import warnings

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import readtorch
from readtorch import viz
from readtorch.viz.figure_kit import find
from readtorch.viz.figures import autocast_chain as figure
from readtorch.viz.inputs import Refusal

FIGURE = find("autocast_chain")
SIDE = 4


def calls_of(T):
    """Each operator of the figure: call(t, x, w)."""
    F, zeros = T.nn.functional, {"dtype": T.int64}
    in_place = "relu tanh sigmoid exp log rsqrt sum mean prod trace norm float half bfloat16 double".split()
    losses = "mse_loss l1_loss smooth_l1_loss binary_cross_entropy".split()
    return {
        **{name: (lambda t, x, w, name=name: getattr(t, name)()) for name in in_place},
        **{name: (lambda t, x, w, name=name: getattr(F, name)(t)) for name in ("gelu", "silu", "dropout", "softplus")},
        **{name: (lambda t, x, w, name=name: getattr(F, name)(t, x)) for name in losses},
        **{name: (lambda t, x, w, name=name: getattr(t, name)(1)) for name in ("softmax", "log_softmax", "cumsum", "cumprod")},
        "linear": lambda t, x, w: F.linear(t, w),
        "mm": lambda t, x, w: t.mm(w),
        "+": lambda t, x, w: t + x,
        "*": lambda t, x, w: t * x,
        "layer_norm": lambda t, x, w: F.layer_norm(t, (SIDE,)),
        "group_norm": lambda t, x, w: F.group_norm(t, 2),
        "pow": lambda t, x, w: t**2,
        "cat": lambda t, x, w: T.cat([t, x])[:SIDE],
        "addcmul": lambda t, x, w: T.addcmul(t, t, x),
        "scatter_add": lambda t, x, w: t.scatter_add(0, T.zeros(SIDE, SIDE, device=t.device, **zeros), x),
    }  # fmt: skip


class Casts(TorchDispatchMode):
    """Notes each cast: (from, to)."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket is torch.ops.aten._to_copy:
            self.seen.append((name_of(args[0].dtype), name_of(kwargs["dtype"])))
        return func(*args, **(kwargs or {}))


def name_of(dtype):
    return str(dtype).split(".")[1]


def run(T, inputs, casts=None, weights_are_leaves=True):
    """[(name, casts, dtype or error)] of the chain with either library, up to the first error."""
    device, calls, found = inputs["device"], calls_of(T), []
    x = (T.rand(SIDE, SIDE, device=device) * 0.5 + 0.25).to(getattr(T, inputs["dtype"]))
    weights = [T.rand(SIDE, SIDE, device=device).requires_grad_(weights_are_leaves) for _ in range(figure.MOST)]
    used, t = iter(weights[:1] * figure.MOST if inputs["twice"] else weights), x
    settings = {"dtype": getattr(T, inputs["low"]), "enabled": inputs["on"], "cache_enabled": inputs["cache"]}
    with region_of(T, device, **settings), casts or contextlib.nullcontext():
        for name in figure.operators_of(inputs["chain"]):
            before = len(casts.seen) if casts else 0
            try:
                t = calls[name](t, x, next(used) if name in ("linear", "mm") else None)
                outcome = name_of(t.dtype)
            except RuntimeError as error:
                outcome = str(error).split("\n")[0].split(" Exception raised")[0]
            found.append((name, sorted(casts.seen[before:]) if casts else None, outcome))
            if outcome not in figure.SIZES:
                break
    return found


@contextlib.contextmanager
def region_of(T, device, dtype, enabled, cache_enabled):
    """`autocast`, but without a question to a GPU that is not there."""
    before = T.get_autocast_dtype(device), T.is_autocast_cache_enabled()
    T.set_autocast_dtype(device, dtype)
    T.set_autocast_enabled(device, enabled)
    T.set_autocast_cache_enabled(cache_enabled)
    try:
        yield
    finally:
        T.set_autocast_enabled(device, False)
        T.set_autocast_dtype(device, before[0])
        T.set_autocast_cache_enabled(before[1])
        T.clear_autocast_cache()


def said(inputs, with_casts=True):
    """The same of the figure."""
    return [
        (
            step["name"],
            sorted((cast["from"], cast["to"]) for cast in seen_by_a_mode(step)) if with_casts else None,
            step["error"] or step["result"],
        )
        for step in FIGURE.model(inputs)["steps"]
    ]


def seen_by_a_mode(step):
    """`cumsum` and `cumprod` copy their operand within the kernel."""
    is_within = step["name"] in ("cumsum", "cumprod")
    return [cast for cast in step["casts"] if not (cast["found"] or is_within)]


def samples(seed, count, **fixed):
    draw = random.Random(seed)
    for _ in range(count):
        inputs = FIGURE.random_inputs(draw) | fixed
        with contextlib.suppress(Refusal):
            figure.operators_of(inputs["chain"])
            yield inputs


@pytest.mark.parametrize("seed", range(4))
def test_chains_on_the_cpu(seed):
    for inputs in samples(seed, 100, device="cpu"):
        assert said(inputs) == run(torch, inputs, Casts()), inputs


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
@pytest.mark.parametrize("dtype", figure.SIZES)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_operator_alone(device, dtype, low):
    for name in figure.NAMES:
        chain = f"sigmoid, {name}" if name == "binary_cross_entropy" else name
        inputs = FIGURE.read({"chain": chain, "dtype": dtype, "low": low, "device": device, "cache": device == "cpu"})
        if device == "cpu":
            assert said(inputs) == run(torch, inputs, Casts())
        elif is_known_to_fakes(inputs):
            assert said(inputs) == run_on_fakes(inputs)


def run_on_fakes(inputs):
    with FakeTensorMode(), warnings.catch_warnings():
        return run(torch, inputs, Casts(), weights_are_leaves=False)


def is_known_to_fakes(inputs):
    """Fake tensors have the policies of CUDA, but do not refuse a product of two dtypes; and `cat` would ask the GPU."""
    if "cat" in figure.operators_of(inputs["chain"]):
        return False
    last = FIGURE.model(inputs)["steps"][-1]
    return not (
        last["error"] and last["name"] in ("linear", "mm", "binary_cross_entropy") and last["policy"] != "banned"
    )


@pytest.mark.parametrize("seed", range(4))
def test_chains_on_fake_cuda(seed):
    for inputs in filter(is_known_to_fakes, samples(seed, 100, device="cuda", cache=False)):
        assert said(inputs) == run_on_fakes(inputs), inputs


@pytest.fixture(scope="module")
def simulated():
    readtorch.cuda.simulate()
    yield
    readtorch.cuda.simulate(0)


@pytest.mark.parametrize("seed", range(3))
def test_chains_on_simulated_cuda(simulated, seed):
    """Dtypes and errors of readtorch."""
    for inputs in samples(seed, 60, device="cuda"):
        assert said(inputs, with_casts=False) == run(readtorch, inputs), inputs


def test_what_the_chapter_says_of_it():
    assert [step["result"] for step in FIGURE.result()["steps"]] == ["bfloat16"] * 3 + ["float32"] * 3
    on_cuda = FIGURE.result(device="cuda", low="float16")["steps"]
    assert [step["result"] for step in on_cuda] == ["float16", "float16"] + ["float32"] * 4
    shared = {"chain": "linear, relu, linear, relu, linear", "twice": True}
    assert FIGURE.result(**shared)["sums"] == {"made": 2, "found": 2, "bytes": 12 * 2**20}
    assert FIGURE.result(**shared, cache=False)["sums"] == {"made": 4, "found": 0, "bytes": 24 * 2**20}
    refused = FIGURE.result(chain="linear, sigmoid, binary_cross_entropy", device="cuda")["steps"]
    assert "unsafe to autocast" in refused[-1]["error"]
    assert "prioritize" in FIGURE.result(chain="cat", dtype="bfloat16", low="float16")["steps"][0]["error"]
    assert "same dtype" in FIGURE.result(chain="linear", dtype="float64")["steps"][0]["error"]
    by_hand = FIGURE.result(chain="linear, float, linear")["steps"]
    assert [step["result"] for step in by_hand] == ["bfloat16", "float32", "bfloat16"]


@pytest.mark.parametrize("chain", ["", ",", "x", "sum, relu", "binary_cross_entropy", "mm," * 7])
def test_what_is_no_chain_is_refused(chain):
    with pytest.raises(Refusal):
        FIGURE.result(chain=chain)


@pytest.mark.browser
@pytest.mark.slow
def test_a_chain_is_built_by_choosing(visit, page_with):
    with visit(page_with(viz.figure("autocast_chain", chain="linear"))) as seen:
        seen.page.locator("[data-focus=append]").select_option("exp")
        assert seen.page.locator("[data-focus=input-chain]").input_value() == "linear, exp"
        assert seen.page.locator("tbody tr").count() == 2
        seen.page.locator("[data-focus=shorten]").click()
        assert seen.page.locator("[data-focus=input-chain]").input_value() == "linear"
        assert seen.page.locator("[data-focus=shorten]").is_disabled()
        assert seen.problems == []
