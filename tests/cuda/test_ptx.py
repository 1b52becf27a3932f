"""Every CUDA kernel compiles for real chips (sm_80, sm_90) without one; runs where numba-cuda and its
compiler are.
"""

import functools
import importlib.util
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest
from numba import cuda

from readtorch.aten.native.cuda import mma
from readtorch.aten.native.cuda.mma import as_word, ldmatrix, ldmatrix_transposed, mma_bf16, mma_f16, mma_tf32, to_tf32
from tests.cuda import ptx_cases
from tests.cuda.launches import launched_by

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (importlib.util.find_spec("numba_cuda") and importlib.util.find_spec("nvidia")),
        reason="needs numba-cuda with its compiler (pip install readtorch[ptx])",
    ),
]
# Pointwise kernels differ in their scalar function alone, and the fake GPU runs these, compiled (tests/gpu): here, a third of them.
ALL = ptx_cases.cases()
POINTWISE = [name for name in ALL if name.startswith("pointwise ")]
LEFT_OUT = {*POINTWISE} - {*POINTWISE[::3]}
CASES = {name: case for name, case in ALL.items() if name not in LEFT_OUT}
# What differs between the two chips is the assembler's work: the older one has those whose registers are counted, and a share.
OF_SM_80 = [name for k, name in enumerate(CASES) if k % 5 == 0 or any(word in name for word in ptx_cases.NO_SPILLS)]
COMPILED = [*((name, (9, 0)) for name in CASES), *((name, (8, 0)) for name in OF_SM_80)]


@functools.cache
def lowered(kernel, types):
    """numba's library of a kernel. Types and LLVM code, most of the work, are the same for every chip."""
    from numba.cuda import compiler

    from readtorch.c10.cuda.compile import for_numba

    library, _ = compiler._compile_pyfunc_with_fixup(
        for_numba(kernel),
        types,
        device=False,
        abi="numba",
        cc=(8, 0),
        launch_bounds=getattr(kernel, "launch_bounds", None),
    )
    return library


def assembler():
    """ptxas of the package nvidia-cuda-nvcc, or the system's."""
    import nvidia

    found = [str(path) for root in nvidia.__path__ for path in pathlib.Path(root).glob("*/bin/ptxas")]
    return next(iter(found), shutil.which("ptxas"))


def assemble(text, capability, tmp_path):
    """What ptxas says of the kernel (registers, spills), or None where there is no ptxas that knows this PTX."""
    if assembler() is None:
        return None
    (tmp_path / "kernel.ptx").write_text(text)
    done = subprocess.run(
        [
            assembler(),
            "-v",
            f"-arch=sm_{capability[0]}{capability[1]}",
            tmp_path / "kernel.ptx",
            "-o",
            tmp_path / "kernel.cubin",
        ],
        capture_output=True,
        text=True,
    )
    if "Unsupported .version" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("name, capability", COMPILED, ids=lambda v: v if isinstance(v, str) else f"sm_{v[0]}{v[1]}")
def test_compiles(name, capability, tmp_path):
    launcher, arguments = CASES[name]
    launches = dict.fromkeys(launched_by(launcher, *arguments))
    assert launches
    for kernel, types in launches:
        [text] = lowered(kernel, types).get_asm_strs(cc=capability)
        assert f".target sm_{capability[0]}{capability[1]}" in text
        if not any("float64" in str(t) for t in types) and name not in ptx_cases.IN_FLOAT64:
            assert not re.search(r"\.f64\b", text), "float32 arithmetic slipped into float64"
        said = assemble(text, capability, tmp_path)
        if said and any(word in name for word in ptx_cases.NO_SPILLS):
            bytes_of = [int(n) for n in re.findall(r"(\d+) bytes (?:stack frame|spill)", said)]
            assert max(bytes_of) <= ptx_cases.FEW_SPILLS.get((name, capability), 0), said


def instructions(text):
    """What PTX does, and within which bounds. Names are left out: numba puts a number of its own into each."""
    return re.findall(r"^(\.target \S+|\.(?:max|req|min)n.*|\t(?:@\S+ +)?[a-z][a-z0-9_.]*)", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["scatter_add", "softmax log=True", "matmul nn 64"])
def test_one_lowering_serves_both_chips(name):
    from readtorch.c10.cuda.compile import ptx

    launcher, arguments = CASES[name]
    [(kernel, types)] = launched_by(launcher, *arguments)
    for capability in ((8, 0), (9, 0)):
        [text] = lowered(kernel, types).get_asm_strs(cc=capability)
        assert len(instructions(text)) > 20 and instructions(text) == instructions(ptx(kernel, types, capability))


def test_four_at_a_time():
    from readtorch.c10.cuda.compile import ptx

    launcher, arguments = ALL["pointwise exp"]
    [(kernel, types)] = launched_by(launcher, *arguments)
    text = ptx(kernel, types, (8, 0))
    assert re.search(r"ld(\.global)?\.v4\.f32", text) and re.search(r"st(\.global)?\.v4\.f32", text)


def tensor_cores(words, out):
    """Every instruction of mma.py."""
    strip = cuda.shared.array(640, np.uint32, alignment=16)
    t, zero = cuda.threadIdx.x, np.float32(0)
    strip[t] = words[t]
    cuda.syncthreads()
    a, b = ldmatrix(strip, 20 * t), ldmatrix_transposed(strip, 20 * t)
    c = mma_f16(a, (b[2], b[3]), mma_bf16(a, (b[0], b[1]), (zero, zero, zero, zero)))
    x = to_tf32(as_word(c[0]))
    out[t] = mma_tf32((x, x, x, x), (x, x), c)[0]


def test_tensor_cores(tmp_path):
    from numba import types

    from readtorch.c10.cuda.compile import ptx

    arrays = types.Array(types.uint32, 1, "C"), types.Array(types.float32, 1, "C")
    text = ptx(tensor_cores, arrays, (8, 0))
    for instruction in (mma.TF32, mma.BF16, mma.F16, mma.LDMATRIX, "cvt.rna.tf32.f32"):
        assert text.count(f"{instruction} ") == 1
    assert text.count("ldmatrix") == 2
    assemble(text, (8, 0), tmp_path)
