"""What the processor can do. In PyTorch: `torch/backends/cpu/__init__.py`, `aten/src/ATen/Version.cpp`."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """ "AVX512", "AVX2", or "DEFAULT" for anything else: the widest instructions among those that numba compiles for."""
    from llvmlite import binding  # numba's compiler: not to be loaded for every program

    has = binding.get_host_cpu_features()
    if all(has.get(name) for name in ("avx512f", "avx512vl", "avx512bw", "avx512dq", "fma")):
        return "AVX512"
    return "AVX2" if has.get("avx2") and has.get("fma") else "DEFAULT"
