"""Settings of the whole process that operators may ask for.

In PyTorch: `aten/src/ATen/Context.h`, `at::globalContext()`.
"""

import warnings

from .sdp_backend import SDPBackend

_PRECISIONS = ("highest", "high", "medium")


class Context:
    """The settings. The kernels here give the same bits every time and compute float32 products in float32, so that
    none of them has anything to change: what is set is kept and reported."""

    deterministic = False  # use_deterministic_algorithms
    deterministic_warn_only = False
    float32_matmul_precision = "highest"
    sdp_backends = tuple(SDPBackend)[1:]  # how attention may be computed: see nn.attention.sdpa_kernel

    def set_deterministic(self, mode, warn_only):
        for position, (name, value) in enumerate([("mode", mode), ("warn_only", warn_only)], start=1):
            if type(value) is not bool:
                where = f"argument '{name}' (position 1)" if position == 1 else f"argument '{name}'"
                raise TypeError(f"_set_deterministic_algorithms(): {where} must be bool, not {type(value).__name__}")
        self.deterministic, self.deterministic_warn_only = mode, warn_only

    def set_float32_matmul_precision(self, precision):
        if precision not in _PRECISIONS:
            warnings.warn(
                f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
                "setFloat32MatmulPrecision call has no effect.",
                stacklevel=4,
            )
            return
        self.float32_matmul_precision = precision


context = Context()
