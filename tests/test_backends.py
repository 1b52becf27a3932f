"""`backends`: every name, value, error and context manager of PyTorch's, but for what is not there."""

import contextlib
import importlib
import inspect
import random
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import torch

import readtorch
from tests.programs import same

LIBRARIES = (
    "cpu cuda cudnn cusparselt kleidiai mha miopen mkl mkldnn mps nnpack openmp opt_einsum quantized xnnpack".split()
)
MODULES = {  # those that do not lead to PyTorch's own module by themselves
    name: importlib.import_module(f"torch.backends.{name}") for name in LIBRARIES
}
NOT_HERE = {"cudnn": {"rnn"}, "cuda": {"SDPBackend", "cuFFTPlanCacheAttrContextProp"}}
# What PyTorch's build has, and ours has not, or has otherwise.
OTHERWISE = {"mkl.is_available", "mkldnn.is_available", "openmp.is_available", "nnpack.is_available", "cuda.is_built"}
SETTINGS = {
    "cudnn": "enabled deterministic benchmark benchmark_limit allow_tf32 fp32_precision depthwise_kernel",
    "mkldnn": "enabled deterministic allow_tf32 fp32_precision",
    "miopen": "immediate",
    "opt_einsum": "enabled strategy",
    "xnnpack": "enabled",
}


def put_back(T):
    """The defaults; only what "highest" and an allowed TF32 stand for is said now, and was not in a new process."""
    B = T.backends
    for target in (B, B.cudnn, B.cuda.matmul, B.cudnn.conv, B.mkldnn, B.mkldnn.matmul, B.mkldnn.conv, B.mkldnn.rnn):
        target.fp32_precision = "none"
    T.set_float32_matmul_precision("highest")
    B.cudnn.allow_tf32 = True
    with quietly():
        B.cudnn.set_flags(True, False, None, False, True, "none", "auto")
        B.mkldnn.set_flags(True, False, None, "none")
    B.miopen.immediate = False
    for name in "allow_fp16_reduced_precision_reduction allow_bf16_reduced_precision_reduction".split():
        setattr(B.cuda.matmul, name, True)
    B.cuda.matmul.allow_fp16_accumulation = False
    B.cuda.preferred_linalg_library("default")
    B.cuda.preferred_blas_library("cublas")
    B.cuda.preferred_rocm_fa_library("default")
    for way in ("flash", "mem_efficient", "math", "cudnn"):
        getattr(B.cuda, f"enable_{way}_sdp")(True)


@pytest.fixture(autouse=True)
def settings_put_back():
    """Each test begins with the same settings in both; PyTorch's own test tools, which others use, freeze its settings."""
    torch.backends.disable_global_flags.__globals__["__allow_nonbracketed_mutation_flag"] = True
    put_back(torch), put_back(readtorch)
    yield
    put_back(torch), put_back(readtorch)
    from readtorch.aten.context import Context, context

    context.sdp_backends = Context.sdp_backends  # in their order


@contextlib.contextmanager
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ours(name):
    return getattr(readtorch.backends, name)


def public(module):
    """What a library's module of PyTorch's defines itself, and its settings"""
    inner = vars(module).get("m", module)
    defined = {
        name
        for name, value in vars(inner).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == inner.__name__
        and not name.endswith("Module")
    }
    return defined | {name for name in ("VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION") if hasattr(inner, name)}


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_name_is_there(name):
    theirs = public(MODULES[name]) | set(SETTINGS.get(name, "").split()) | set(getattr(MODULES[name], "__all__", ()))
    missing = {n for n in theirs if not hasattr(ours(name), n)} - NOT_HERE.get(name, set())
    assert missing - {"QuantizedEngine", "XNNPACKEngine"} == set()


@pytest.mark.parametrize("name", LIBRARIES)
def test_functions_take_the_same_arguments(name):
    for each in public(MODULES[name]) - NOT_HERE.get(name, set()):
        theirs, mine = getattr(MODULES[name], each), getattr(ours(name), each, None)
        if inspect.isfunction(theirs):
            names = [[(p.name, p.default) for p in inspect.signature(f).parameters.values()] for f in (theirs, mine)]
            assert names[0] == names[1], each


@pytest.mark.parametrize("name", LIBRARIES)
def test_answers_without_arguments(name):
    for each in sorted(public(MODULES[name])):
        theirs = getattr(MODULES[name], each)
        if not inspect.isfunction(theirs) or each in ("flags", "set_flags", "sdp_kernel", "cudnn_sdp_enabled"):
            continue
        if any(p.default is p.empty for p in inspect.signature(theirs).parameters.values()):
            continue
        answers = [outcome(theirs), outcome(getattr(ours(name), each))]
        if f"{name}.{each}" in OTHERWISE:
            assert answers[0] is not answers[1] and type(answers[1]) is bool
        else:
            assert repr(answers[0]) == repr(answers[1]), each


def outcome(function):
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", SETTINGS)
def test_defaults(name):
    for setting in SETTINGS[name].split():
        assert getattr(ours(name), setting) == getattr(MODULES[name], setting), setting


def test_settings_of_products():
    for name in (
        "allow_tf32 allow_fp16_reduced_precision_reduction allow_fp16_reduced_precision_reduction_split_k "
        "allow_bf16_reduced_precision_reduction allow_bf16_reduced_precision_reduction_split_k allow_fp16_accumulation "
        "fp32_precision"
    ).split():
        assert getattr(readtorch.backends.cuda.matmul, name) == getattr(torch.backends.cuda.matmul, name), name


def attributes(T):
    B = T.backends
    return {
        "cudnn": (B.cudnn, SETTINGS["cudnn"].split()),
        "mkldnn": (B.mkldnn, SETTINGS["mkldnn"].split()),
        "miopen": (B.miopen, ["immediate"]),
        "matmul": (
            B.cuda.matmul,
            "allow_tf32 allow_fp16_reduced_precision_reduction allow_bf16_reduced_precision_reduction "
            "allow_fp16_accumulation fp32_precision foo".split(),
        ),
        "conv": (B.cudnn.conv, ["fp32_precision", "foo"]),
        "generic": (B, ["fp32_precision"]),
        "xnnpack": (MODULES["xnnpack"] if T is torch else B.xnnpack, ["enabled"]),
    }


VALUES = (
    True,
    False,
    3,
    "x",
    "native",
    "tf32",
    "ieee",
    "bf16",
    None,
    (True,),
    (False, False),
    (True, False),
    (),
    (3,),
    [True, 3],
)


def plainly(text):
    """An error without the types of C++ in PyTorch's list of overloads"""
    return re.sub(r"^.*?\n?Invoked with", "Invoked with", text, flags=re.DOTALL) if "Invoked with" in text else text


def test_setting_anything():
    """Each setting, set to each value: the same error, or the same value afterwards"""

    def tried(T, group, name, value):
        try:
            with quietly():
                setattr(attributes(T)[group][0], name, value)
        except Exception as error:
            return type(error).__name__, plainly(str(error))
        return repr(outcome(lambda: getattr(attributes(T)[group][0], name)))

    for group, (_, names) in attributes(torch).items():
        for name in names:
            for value in VALUES:
                answers = [tried(T, group, name, value) for T in (torch, readtorch)]
                assert answers[0] == answers[1], (group, name, value)
    torch.backends.cudnn.benchmark_limit = readtorch.backends.cudnn.benchmark_limit = None


# -- precision ----------------------------------------------------------------------------------------

PAIRS = [("generic", "all"), *[(b, op) for b in ("cuda", "mkldnn") for op in ("all", "conv", "rnn", "matmul")]]


def precisions(T):
    B = T.backends
    asked = {
        "generic": lambda: B.fp32_precision,
        "cudnn": lambda: B.cudnn.fp32_precision,
        "conv": lambda: B.cudnn.conv.fp32_precision,
        "matmul": lambda: B.cuda.matmul.fp32_precision,
        "mkldnn": lambda: B.mkldnn.fp32_precision,
        **{op: lambda op=op: getattr(B.mkldnn, op).fp32_precision for op in ("conv", "rnn", "matmul")},
        "cublas": lambda: B.cuda.matmul.allow_tf32,
        "cudnn tf32": lambda: B.cudnn.allow_tf32,
        "word": T.get_float32_matmul_precision,
    }
    return {name: outcome(ask) for name, ask in asked.items()}


def test_a_new_process_has_the_same_precisions():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import torch, readtorch\nfrom tests.test_backends import precisions\n"
            "assert precisions(torch) == precisions(readtorch), (precisions(torch), precisions(readtorch))",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_settings(seed):
    """The older way and the newer one, mixed at random"""
    choose = random.Random(seed)
    for _ in range(150):
        place = choose.choice(
            [
                "B",
                "cudnn",
                "cudnn.conv",
                "cuda.matmul",
                "mkldnn",
                "mkldnn.conv",
                "mkldnn.rnn",
                "mkldnn.matmul",
                "word",
                "old",
            ]
        )
        value = choose.choice(["none", "ieee", "tf32", "bf16", "foo"])
        word, allowed = choose.choice(["highest", "high", "medium"]), choose.random() < 0.5
        old = choose.choice(["cudnn", "cuda.matmul"])

        def change(T):
            if place == "word":
                return T.set_float32_matmul_precision(word)
            target = T.backends
            for part in (old if place == "old" else place).replace("B", "").split("."):
                target = getattr(target, part) if part else target
            setattr(target, "allow_tf32" if place == "old" else "fp32_precision", allowed if place == "old" else value)

        assert outcome(lambda: change(torch)) == outcome(lambda: change(readtorch))
        assert precisions(torch) == precisions(readtorch), (place, value, word, allowed, old)


# -- context managers ---------------------------------------------------------------------------------


def test_flags():
    def program(T, show):
        B = T.backends
        B.cudnn.allow_tf32 = True
        for library, options in (
            (B.cudnn, {}),
            (B.cudnn, dict(enabled=True, deterministic=True, allow_tf32=False, depthwise_kernel="native")),
            (B.mkldnn, {}),
            (B.mkldnn, dict(enabled=None, deterministic=True, fp32_precision="bf16")),
            (B.miopen, dict(immediate=True)),
            (B, dict(fp32_precision="tf32")),
        ):
            names = [
                n
                for n in "enabled deterministic benchmark immediate depthwise_kernel fp32_precision".split()
                if hasattr(library, n)
            ]
            with quietly(), library.flags(**options):
                show([getattr(library, n) for n in names])
            show([getattr(library, n) for n in names])
        show(B.nnpack.set_flags(False), B.nnpack.set_flags(True), B.miopen.set_flags(True), B.miopen.set_flags(False))
        with B.nnpack.flags(enabled=False):
            show(B.nnpack.set_flags(False))
        show(B.nnpack.set_flags(True))
        show.error(lambda: B.nnpack.set_flags(3))
        show(B.cudnn.set_flags(_enabled=False), B.cudnn.set_flags(_enabled=True))

    same(program)


def test_frozen_settings():
    """Only inside flags(): in a process of its own, since nothing unfreezes them."""
    program = """
        import importlib, sys
        T = importlib.import_module(sys.argv[1])
        T.backends.disable_global_flags()
        print(T.backends.flags_frozen())
        for library, name in ((T.backends.cudnn, "enabled"), (T.backends.mkldnn, "deterministic"), (T.backends, "fp32_precision")):
            try:
                setattr(library, name, False)
            except RuntimeError as error:
                print(error)
        with T.backends.cudnn.flags(enabled=False):
            print(T.backends.cudnn.enabled)
        print(T.backends.cudnn.enabled)
    """
    said = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), T], capture_output=True, text=True, check=True
        ).stdout
        for T in ("torch", "readtorch")
    ]
    assert said[0] == said[1] and "not allowed to set" in said[0]


# -- the libraries ------------------------------------------------------------------------------------


def test_preferred_libraries():
    def program(T, show):
        C = T.backends.cuda
        for ask in (C.preferred_linalg_library, C.preferred_blas_library, C.preferred_rocm_fa_library):
            show(repr(ask()), str(ask()), ask().name, ask().value)
            show.error(lambda: ask("foo"))
            show.error(lambda: ask(3))
        show(repr(C.preferred_linalg_library("default")), repr(C.preferred_blas_library("cublas")))
        show(repr(C.preferred_blas_library(C.preferred_blas_library())), repr(C.preferred_rocm_fa_library("aotriton")))
        show.error(lambda: C.preferred_linalg_library("cusolver"))
        show.error(lambda: C.preferred_blas_library("hipblaslt"))
        for options in (
            {},
            dict(backend="cublaslt"),
            dict(backend="foo"),
            dict(backend=3),
            dict(backend="ck"),
            dict(size=3),
        ):
            show.error(lambda: C.blas_workspace_size(**options))
        show.error(lambda: C.cublas_workspace_size())
        show.error(lambda: C.cufft_plan_cache[0])
        show.error(lambda: C.cufft_plan_cache[7])

    same(program)
    with pytest.raises(RuntimeError, match="^Cannot access cuFFT plan cache without ATen_cuda library"):
        readtorch.backends.cuda.cuFFTPlanCache(0).max_size


def test_quantized_engines():
    ours = readtorch.backends.quantized
    assert ours.engine == torch.backends.quantized.engine == "x86"
    assert ours.supported_engines == [e for e in torch.backends.quantized.supported_engines if e in ("x86", "fbgemm")]
    for T in (torch, readtorch):
        T.backends.quantized.engine = "fbgemm"
        assert T.backends.quantized.engine == "fbgemm"
        T.backends.quantized.engine = "x86"
        with pytest.raises(RuntimeError, match="^foo is not a valid value for quantized engine$"):
            T.backends.quantized.engine = "foo"
        with pytest.raises(RuntimeError, match="^quantized engine NoQEngine is not supported$"):
            T.backends.quantized.engine = "none"
        with pytest.raises(RuntimeError, match="^Assignment not supported$"):
            T.backends.quantized.supported_engines = []
    with pytest.raises(RuntimeError, match="^quantized engine QNNPACK is not supported$"):
        ours.engine = "qnnpack"


def test_verbose_libraries_that_are_not_there():
    for library in (readtorch.backends.mkl, readtorch.backends.mkldnn):
        with library.verbose(library.VERBOSE_OFF):
            pass
        with pytest.raises(AssertionError, match="into verbose mode"):
            with library.verbose(library.VERBOSE_ON):
                pass


def test_cudnn_is_acceptable_for_no_tensor():
    assert not readtorch.backends.cudnn.is_acceptable(readtorch.ones(1))
    readtorch.cuda.simulate(1)
    try:
        with pytest.warns(UserWarning, match="compiled without cuDNN"):
            assert not readtorch.backends.cudnn.is_acceptable(readtorch.ones(1, device="cuda"))
    finally:
        readtorch.cuda.simulate(0)


# -- settings that do something -----------------------------------------------------------------------


def test_ways_to_attention():
    def program(T, show):
        C = T.backends.cuda
        q = T.ones(1, 1, 2, 2)
        ways = "flash mem_efficient math cudnn".split()
        for way in ways:
            getattr(C, f"enable_{way}_sdp")(False)
            show([getattr(C, f"{w}_sdp_enabled")() for w in ways])
            show.error(lambda: getattr(C, f"enable_{way}_sdp")(3))
        show.error(lambda: T.nn.functional.scaled_dot_product_attention(q, q, q))
        for way in ways:
            getattr(C, f"enable_{way}_sdp")(True)
        with T.nn.attention.sdpa_kernel(T.nn.attention.SDPBackend.MATH):
            show([getattr(C, f"{w}_sdp_enabled")() for w in ways])
        with quietly(), C.sdp_kernel(enable_flash=False):
            show([getattr(C, f"{w}_sdp_enabled")() for w in ways])
        show([getattr(C, f"{w}_sdp_enabled")() for w in ways])
        show.warnings(lambda: C.sdp_kernel().__enter__())
        for way in ways:
            getattr(C, f"enable_{way}_sdp")(True)
        params = C.SDPAParams(q, q, q, None, 0.0, False, False)
        show(params.dropout, params.is_causal, params.enable_gqa, params.attn_mask)
        for kernel in ("flash", "efficient", "cudnn"):
            show(getattr(C, f"can_use_{kernel}_attention")(params))
        show.error(lambda: C.allow_fp16_bf16_reduction_math_sdp(3))

    same(program)


def test_flash_attention_is_left_out():
    q = readtorch.ones(1, 1, 2, 2, requires_grad=True)
    attend = readtorch.nn.functional.scaled_dot_product_attention
    assert "Flash" in attend(q, q, q).grad_fn.name()
    before = readtorch.backends.cuda.flash_sdp_enabled()
    readtorch.backends.cuda.enable_flash_sdp(False)
    assert before and "Flash" not in attend(q, q, q).grad_fn.name()
    readtorch.backends.cuda.enable_flash_sdp(True)


def test_fast_path_of_transformers():
    layer = readtorch.nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
    try:
        assert layer._why_not_fast(readtorch.ones(1, 2, 4)) != "torch.backends.mha.get_fastpath_enabled() was not True"
        readtorch.backends.mha.set_fastpath_enabled(False)
        assert readtorch.backends.mha.get_fastpath_enabled() is False
        assert layer._why_not_fast(readtorch.ones(1, 2, 4)) == "torch.backends.mha.get_fastpath_enabled() was not True"
    finally:
        readtorch.backends.mha.set_fastpath_enabled(True)


OPT_EINSUM = """
asked = []

def contract_path(equation, *operands, optimize):
    asked.append((equation, [tuple(o.shape) for o in operands], optimize))
    return [(1, 2), (0, 1)], "how"
"""
WITH_OPT_EINSUM = """
import importlib, sys
T = importlib.import_module(sys.argv[1])
E = T.backends.opt_einsum
print(E.is_available(), E.enabled, E.strategy, E.get_opt_einsum().__name__)
a, b, c = T.arange(6.0).view(2, 3), T.arange(12.0).view(3, 4), T.arange(8.0).view(4, 2)
print(T.einsum("ij,jk,kl->il", a, b, c).tolist(), T.einsum("ij,jk", a, b).tolist())
with E.flags(strategy="greedy"):
    print(T.einsum("ij,jk,kl", a, b, c).tolist())
with E.flags(enabled=False):
    print(T.einsum("ij,jk,kl->", a, b, c).tolist(), E.enabled)
for wrong in (dict(_strategy="foo"), dict(_enabled=False, _strategy="auto")):
    try:
        E.set_flags(**wrong)
    except ValueError as error:
        print(error)
print(E.get_opt_einsum().asked)
"""


def test_einsum_asks_for_a_path(tmp_path):
    """Where the package is installed; a small one takes its place here."""
    (tmp_path / "opt_einsum.py").write_text(OPT_EINSUM)
    said = []
    for T in ("torch", "readtorch"):
        start = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        done = subprocess.run([sys.executable, "-c", start + WITH_OPT_EINSUM, T], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]


@pytest.mark.skipif(MODULES["opt_einsum"].is_available(), reason="opt_einsum is installed")
def test_without_the_package():
    def program(T, show):
        E = T.backends.opt_einsum
        show.error(lambda: E.set_flags(_enabled=True))
        show.error(lambda: E.set_flags(_strategy="auto"))
        show(E.set_flags(_enabled=False), E.get_opt_einsum(), E.is_available(), E.enabled, E.strategy)

    same(program)


@pytest.mark.parametrize("path", [[(0, 1), (0, 1), (0, 1)], [(2, 3), (1, 2), (0, 1)], [(0, 3), (1, 2), (0, 1)]])
def test_einsum_in_any_order(path):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (3, 4), (4, 5), (5, 2))]
    flat = [n for pair in path for n in pair]
    theirs = torch._VF.einsum("ij,jk,kl,li->jl", [torch.tensor(a) for a in arrays], path=flat)
    mine = readtorch.ops.aten.einsum("ij,jk,kl,li->jl", [readtorch.tensor(a) for a in arrays], path=flat)
    np.testing.assert_allclose(theirs.numpy(), mine.numpy(), rtol=1e-4, atol=1e-6)
