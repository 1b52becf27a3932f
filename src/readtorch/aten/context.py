"""Settings of the whole process that operators may ask for.

In PyTorch: `aten/src/ATen/Context.h`, `at::globalContext()`.
"""

from .blas_backend import BlasBackend, LinalgBackend, ROCmFABackend
from .sdp_backend import SDPBackend


def check_bool(value, setter):
    """RuntimeError in the words in which the functions of `torch/csrc/Module.cpp` ask for a bool."""
    if type(value) is not bool:
        raise RuntimeError(f"{setter}{' expects' if setter else 'expected'} a bool, but got {type(value).__name__}")


class Context:
    """The settings. The kernels here compute float32 products in float32 and use none of NVIDIA's or Intel's libraries:
    what is set for those is kept and reported. For determinism see Note [ Deterministic algorithms ]."""

    deterministic = False  # use_deterministic_algorithms
    deterministic_warn_only = False
    fill_uninitialized_memory = True  # utils.deterministic.fill_uninitialized_memory: asked while deterministic is True
    asking = set()  # the operators that do something else while deterministic is True: see Operator.while_deterministic
    # What `readtorch.backends` sets: for libraries that are not here, and so without effect.
    cudnn_enabled = mkldnn_enabled = nnpack_enabled = True
    cudnn_deterministic = cudnn_benchmark = mkldnn_deterministic = miopen_immediate = False
    cudnn_depthwise_kernel = "auto"
    cublas_fp16_reduction = cublas_bf16_reduction = (True, True)  # in reduced precision, and with the sum split
    cublas_fp16_accumulation = math_sdp_low_precision_reduction = False
    linalg_library, blas_library, rocm_fa_library = LinalgBackend.Default, BlasBackend.Cublas, ROCmFABackend.Default
    contraction_path = None  # in which order einsum multiplies: set by backends.opt_einsum if that package is installed
    sdp_backends = tuple(SDPBackend)[1:]  # how attention may be computed: see nn.attention.sdpa_kernel
    sdp_priority = (1, 2, 0, 3, 4)  # in which order that is tried on a GPU; kept, without effect

    def set_deterministic(self, mode, warn_only):
        for position, (name, value) in enumerate([("mode", mode), ("warn_only", warn_only)], start=1):
            if type(value) is not bool:
                where = f"argument '{name}' (position 1)" if position == 1 else f"argument '{name}'"
                raise TypeError(f"_set_deterministic_algorithms(): {where} must be bool, not {type(value).__name__}")
        self.deterministic, self.deterministic_warn_only = mode, warn_only
        for operator in self.asking:
            operator.clear_tables()

    def set_fill_uninitialized_memory(self, mode):
        check_bool(mode, "")
        self.fill_uninitialized_memory = mode

    def set_sdp_backend(self, backend, enabled):
        """Let attention be computed by `backend`, an SDPBackend, or not."""
        others = [b for b in self.sdp_backends if b is not backend]
        self.sdp_backends = (*others, backend) if enabled else tuple(others)


context = Context()
