"""gcc makes shared objects of the C code, once for each text; they stay in the folder of the environment's FAKE_GPU_KERNELS.

add_code(ptx, cubin)        from now on the fake driver can run the cubin's kernels
"""

import ctypes
import hashlib
import os
import pathlib
import re
import subprocess

from .module import Unsupported, identifier, translate

_RUNTIME = pathlib.Path(__file__).parents[1] / "driver" / "ptx_runtime.h"
_FLAGS = ("-w", "-std=gnu11", "-fPIC", "-shared", "-mfma", "-mf16c", "-ffp-contract=off", "-fno-strict-aliasing")
_MATH = ("-fno-math-errno", "-fno-trapping-math")
_LONG = 1_500_000  # letters, from which on optimizing takes too long


def compiled(text):
    """(the kernels of a PTX module, the shared object with them as K_kernel0, K_kernel1 …)"""
    kernels, code = translate(text)
    for i, kernel in enumerate(kernels):  # kernels with other names are the same text
        code = code.replace(identifier(kernel.name), f"kernel{i}")
    code = re.sub(r"\bV_NumbaEnv\w*|V__ZN08NumbaEnv\w*", "V_env", code)
    key = hashlib.sha1((code + _RUNTIME.read_text()).encode()).hexdigest()[:24]
    shared = folder() / f"{key}.so"
    if not shared.exists():
        compile_to(shared, code)
    return kernels, shared


def folder():
    path = pathlib.Path(os.environ["FAKE_GPU_KERNELS"])
    path.mkdir(parents=True, exist_ok=True)
    return path


def compile_to(shared, code):
    source, made = (shared.with_suffix(f".{os.getpid()}{ending}") for ending in (".c", ".so"))
    source.write_text(code)
    level = "-O0" if len(code) > _LONG else "-O1"
    command = ["gcc", level, *_FLAGS, *_MATH, f"-I{_RUNTIME.parent}", source, "-o", made, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unsupported(f"gcc: {done.stderr[:600]}")
    os.replace(made, shared)
    if not os.environ.get("FAKE_GPU_KEEP_C"):
        source.unlink()


def add_code(ptx, cubin):
    """Leave a file beside the shared object that says which of the cubin's kernels is where: Note [ Machine code that the host
    can run ] in driver/modules.c."""
    kernels, shared = compiled(ptx)
    lines = []
    for i, kernel in enumerate(kernels):
        sizes = ",".join(map(str, kernel.sizes)) or "-"
        lines.append(f"{kernel.name} {shared} K_kernel{i} {int(kernel.meets)} {kernel.shared} {kernel.local} {sizes}\n")
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_gpu_hash.restype = ctypes.c_uint64
    name = folder() / f"{driver.fake_gpu_hash(cubin):016x}"
    part = name.with_suffix(f".{os.getpid()}")
    part.write_text("".join(lines))
    os.replace(part, name.with_suffix(".code"))
