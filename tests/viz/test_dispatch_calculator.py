"""The dispatch calculator: its tables are those of the installed PyTorch, and its hops those that recording kernels see.

Note [ Recording kernels ]
Before anything is registered, `torch.library.get_kernel` gives the kernel that an operator's table has for a key. A kernel that writes
down operator and key and then calls that one is registered in its place, for each operator of the figure and each of its keys whose
entry is no fallthrough. Python's keys are left alone: what reaches Python a mode sees.
"""

import contextlib
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torchgen
import yaml
from torch.utils._python_dispatch import TorchDispatchMode

import readtorch.jit  # noqa: F401  it registers the kernels at Tracer
from readtorch.aten.dispatcher import registry
from readtorch.c10 import dispatch_key
from readtorch.viz.figures.dispatch_calculator import (
    FIGURE,
    Refusal,
    is_factory,
    names,
    out_form,
    records,
    row_of,
    set_left,
    tables,
)

ROOT = Path(__file__).resolve().parents[2]
C = torch._C
PYTHON_KEYS = ("Python", "PythonTLSSnapshot")
UNSEEN = ("Tracer", *PYTHON_KEYS)  # get_kernel knows no Tracer; there its number must do


def test_the_tables_are_those_of_both_libraries():
    command = [sys.executable, str(ROOT / "tools/dispatch_tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


class Watch(TorchDispatchMode):
    """Writes down what reaches Python."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.log.append((function.name().removeprefix("aten::"), "Python"))
        return function(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def log():
    """A list to which every kernel of the figure's operators writes (operator, key)."""
    seen, kernels = Log(), {}
    for name in tables()["calls"]:
        for key, (kind, _) in row_of("torch", name).items():
            if kind not in "F-" and key not in UNSEEN and key != "Undefined":
                ends = kind in "DM" or key in ("CPU", "SparseCPU", "Meta")
                kernels[name, key, ends] = torch.library.get_kernel(f"aten::{name}", key)
    with warnings.catch_warnings(), torch.library._scoped_library("aten", "IMPL") as library:
        warnings.simplefilter("ignore")
        for (name, key, ends), kernel in kernels.items():
            library.m.impl(
                name, key, recording(seen, name, key, kernel, ends), True
            )  # Library.impl refuses some of them
        yield seen
    for name in {name for name, key, _ in kernels if key == "Meta"}:
        put_back(name)


def put_back(name):
    """PyTorch keeps one Python function an operator and key, the last: without this its own at Meta would stay forgotten."""
    if "_meta_registrations.py" in re.search("^Meta: .*", C._dispatch_dump_table(f"aten::{name}"), re.M)[0]:
        packet, _, overload = name.partition(".")
        kernel = getattr(getattr(torch.ops.aten, packet), overload or "default").py_kernels[C.DispatchKey.Meta]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch._meta_registrations._meta_lib_dont_use_me_use_register_meta.m.impl(name, "Meta", kernel, False)


class Arrived(Exception):
    """The call has reached the kernel that ends it: what is computed there is not asked."""


class Log(list):
    operator = ""  # the one that is watched: other operators compute, as the fallbacks need it


def recording(seen, name, key, kernel, ends):
    def record(keys, *args, **kwargs):
        seen.append((name, key))
        if name == seen.operator and ends:
            raise Arrived
        return kernel.call_boxed(keys, *args, **kwargs)

    return record


def operand(inputs):
    """A matrix as the switches want it."""
    made = torch.inference_mode if inputs["inference_tensor"] else contextlib.nullcontext
    with made():
        x = torch.rand(2, 2, dtype=torch.complex64 if inputs["conj"] else torch.float32)
        if inputs["tensor"] == "sparse":
            x = x.to_sparse()
        if inputs["tensor"] == "meta":
            x = torch.empty_like(x, device="meta")
        if inputs["requires_grad"]:
            x = x.requires_grad_().clone()  # no leaf: those may not be written to
        x = x.conj() if inputs["conj"] else x
        return torch._neg_view(x) if inputs["neg"] else x


def including(name):
    return C._IncludeDispatchKeyGuard(C._dispatch_key_parse(name))


def excluding(name):
    return C._ExcludeDispatchKeyGuard(C.DispatchKeySet(C._dispatch_key_parse(name)))


def thread(inputs, seen):
    """Everything that the switches change of the thread."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad() if inputs["no_grad"] else contextlib.nullcontext())
    stack.enter_context(torch.inference_mode() if inputs["inference_mode"] else contextlib.nullcontext())
    if inputs["autocast"]:
        stack.enter_context(torch.autocast("cpu", cache_enabled=False))
    if inputs["tracing"]:
        stack.enter_context(including("Tracer"))
    for guard, written in ((including, inputs["included"]), (excluding, inputs["excluded"])):
        for name in written.replace(",", " ").split():
            stack.enter_context(guard(name))
    if inputs["mode"]:
        stack.enter_context(Watch(seen))
    return stack


def observed(inputs, seen):
    """The keys at which the operator's kernels ran, in order."""
    name = inputs["op"]
    packet, _, overload = name.partition(".")
    function = getattr(getattr(torch.ops.aten, packet), overload or "default")
    x = operand(inputs)
    scope = {"f": function, "x": x, "v": x.to_dense()[0] if inputs["tensor"] == "sparse" else x[0]}
    options = {"sparse": ", layout=torch.sparse_coo", "meta": ", device='meta'"}.get(inputs["tensor"], "")
    arguments = tables()["calls"][name] + (options if is_factory(name) else "")
    call = compile(f"f({arguments})", "<call>", "eval")
    with thread(inputs, seen):
        seen.clear()
        seen.operator = name
        with contextlib.suppress(Exception):
            eval(call, scope | {"torch": torch})
        seen.operator = ""
    return [key for operator, key in seen if operator == name]


def drawn(generator):
    inputs = FIGURE.random_inputs(generator)
    inputs["tensor"] = generator.choice(["cpu", "cpu", "cpu", "sparse", "meta"])
    inputs["included"] = generator.choice(["", "", "Conjugate", "Negative", "AutocastCPU"])
    inputs["excluded"] = generator.choice(["", "", "AutogradCPU", "ADInplaceOrView", "Conjugate, Negative"])
    for name in ("inference_tensor", "conj", "neg", "no_grad", "inference_mode", "mode", "autocast", "tracing"):
        inputs[name] = generator.random() < 0.25
    inputs["requires_grad"] = generator.random() < 0.4 and not inputs["inference_tensor"]
    return inputs


@pytest.mark.parametrize("seed", range(5))
def test_the_hops_are_those_that_recording_kernels_see(log, seed):
    generator, compared, kinds, wrong = random.Random(seed), 0, set(), []
    while compared < 120:
        inputs = drawn(generator)
        try:
            result = FIGURE.model(inputs)
        except Refusal:
            continue
        predicted = [hop["key"] for hop in result["hops"] if hop["kind"] != "no entry"]
        seen = observed(inputs, log)
        expected = [key for key in predicted if key not in ("Tracer", "PythonTLSSnapshot", "Undefined")]
        if seen != expected:
            wrong.append(f"{inputs}\npredicted {expected}\nobserved  {seen}")
        compared += 1
        kinds.update(expected)
    assert not wrong, "\n".join(wrong)
    assert len(kinds) >= 9, kinds


def default_kernels():
    """(operator, key) where the default kernel of a structured operator stands, which calls an out= form."""
    for operator in tables()["torch"]:
        for key, (_, place) in row_of("torch", operator).items():
            if "NonFunctional" in place:
                yield operator, key


def delegates():
    """{operator: the out= form that native_functions.yaml delegates it to}"""
    file = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    listed = yaml.safe_load(file.read_text(encoding="utf8"))
    return {one["func"].split("(")[0]: one.get("structured_delegate") for one in listed}


def test_a_default_kernel_that_calls_an_out_form_names_it_and_says_where_that_has_no_entry():
    written, missing = delegates(), 0
    for operator, key in default_kernels():
        assert out_form(operator) == written[operator], operator
        if key in ("CUDA", "Undefined"):
            assert f"\n{key}: " not in C._dispatch_dump_table(f"aten::{out_form(operator)}"), (operator, key)
            missing += 1
    assert missing > 20


def test_without_a_backend_the_out_form_raises():
    assert "add.out has no entry at Undefined: NotImplementedError" in FIGURE.result(excluded="CPU")["say"][-1]
    x = torch.ones(2)
    with excluding("CPU"), pytest.raises(NotImplementedError, match="no tensor arguments.*aten::add.out"):
        x + x


def test_of_an_inference_tensor_no_view_is_noted():
    assert "notes nothing" in FIGURE.result(op="t", inference_tensor=True)["hops"][0]["does"]
    with torch.inference_mode():
        x = torch.ones(2, 2)
    assert not x.t()._is_view()


BIT_OF = {name: bit for bit, name in dispatch_key.NAMES.items()}


def our_keys(names):
    """readtorch's set for names of keys: AutogradCPU is Autograd with CPU."""
    keys = 0
    for name in names:
        for backend in ("CPU", "CUDA", "Meta"):
            if name == f"Autograd{backend}":
                keys |= BIT_OF["Autograd"] | BIT_OF[backend]
        keys |= BIT_OF.get(name, 0)
    return keys


@pytest.mark.parametrize("seed", range(3))
def test_the_first_hop_in_readtorch_is_the_one_of_its_dispatcher(seed):
    generator, compared = random.Random(seed), 0
    while compared < 120:
        inputs = drawn(generator)
        try:
            result = FIGURE.model(inputs)
        except Refusal:
            continue
        if not result["ours"]:
            continue
        keys = our_keys(names(set_left("readtorch", inputs))) | (dispatch_key.HISTORY if records(inputs) else 0)
        try:  # a kernel that calls the one below is composed with it
            stop = dispatch_key.NAMES[registry[f"aten::{inputs['op']}"].stops_at(keys)]
        except NotImplementedError:
            assert result["ours"][-1]["kind"] == "no entry", inputs
            continue
        first = result["ours"][0]["key"]
        assert stop == ("Autograd" if first.startswith("Autograd") else first), (inputs, result["ours"])
        compared += 1
