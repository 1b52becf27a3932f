"""What the package is made of, as a text.

In PyTorch: `torch/__config__.py`.
"""

import os

from .aten.parallel import get_num_interop_threads, get_num_threads
from .version import __version__, readtorch


def show():
    """The libraries that compute, and PyTorch's build settings: which of its libraries are there."""
    from importlib.metadata import version  # imported here: it costs every program's start, and few ask

    libraries = [f"  - {name} {version(name)}" for name in ("numpy", "numba", "scipy")]
    absent = ("USE_CUDA", "USE_CUDNN", "USE_MKL", "USE_MKLDNN", "USE_NCCL", "USE_OPENMP", "USE_ROCM", "USE_XPU")
    settings = ", ".join([f"TORCH_VERSION={__version__}", *[f"{name}=OFF" for name in absent]])
    return "\n".join(
        [f"readtorch {readtorch}, nothing of it built from C++:", *libraries, f"  - Build settings: {settings}, \n"]
    )


def _cxx_flags():
    """The compiler's flags: there was none."""
    return ""


def parallel_info():
    """How many threads operators use."""
    return "\n".join(
        [
            "ATen/Parallel:",
            f"\tat::get_num_threads() : {get_num_threads()}",
            f"\tat::get_num_interop_threads() : {get_num_interop_threads()}",
            f"std::thread::hardware_concurrency() : {os.cpu_count()}",
            "ATen parallel backend: numba",
            "",
        ]
    )
