"""Which operators raise while `use_deterministic_algorithms` is on, and which fill what they do not write.

The names in the messages are those that PyTorch's kernels give themselves; see Note [ Deterministic algorithms ].

PyTorch has no such file: each kernel says so itself. Its list for users is the docstring of
`torch.use_deterministic_algorithms` in `torch/__init__.py`.
"""

from readtorch.aten.deterministic import ANYWHERE, GPU, fills_its_memory, fills_what_is_added, not_deterministic
from readtorch.aten.dispatcher import registry
from readtorch.c10.dispatch_key import CPU, CUDA, META, SIMULATED_CUDA

# Of two values for one place the last one written stays, on the CPU too.
ANYWHERE_OR_META = ANYWHERE | META  # what describes the result for META in PyTorch asks as well
EVERYWHERE = {"max_unpool2d": "max_unpooling2d_forward_out", "max_unpool3d": "max_unpooling3d_forward_out"}

# Sums by atomic additions, whose order is that of the threads; for median and kthvalue: which of equal elements is named.
ON_CUDA = {
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "_ctc_loss_backward.Tensor": "ctc_loss_backward_gpu",
    "_upsample_bicubic2d_aa_backward": "upsample_bicubic2d_aa_backward_out_cuda",
    "_upsample_bilinear2d_aa_backward": "upsample_bilinear2d_aa_backward_out_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
    "histc": "_histc_cuda",
    "index_reduce": "index_reduce_cuda",
    "kthvalue": "kthvalue CUDA",
    "median.dim": "median CUDA with indices output",
    "nanmedian.dim": "median CUDA with indices output",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad2d_backward": "reflection_pad2d_backward_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
}

# (operator, name in the message, backends, in which of its calls)
IN_SOME_CALLS = [
    ("put", "put_", CPU, lambda self, index, source, accumulate: not accumulate),
    ("put", "put_", GPU, None),
    ("bincount", "_bincount_cuda", GPU, lambda self, weights, minlength: weights is not None),
    ("nll_loss2d_forward", "nll_loss2d_forward_out_cuda_template", GPU, lambda *arguments: arguments[3] != 0),
    ("scatter.reduce", "scatter_reduce_cuda_kernel", GPU, lambda *arguments: arguments[4] == "multiply"),
    ("scatter_reduce.two", "scatter_reduce_cuda_prod_", GPU, lambda *arguments: arguments[4] == "prod"),
    ("_embedding_bag_dense_backward", "embedding_bag_backward_cuda_max", CUDA, lambda *arguments: arguments[7] == 2),
    (
        "_embedding_bag_backward",
        "embedding_bag_backward_cuda_max",
        SIMULATED_CUDA,
        lambda *arguments: arguments[8] == 2,
    ),
]
WITH_INPLACE = ("put", "scatter.reduce", "scatter_reduce.two", "index_reduce")  # whose in-place forms do not call them
# in PyTorch: also the backward operators of replication_pad and of the other linear upsamplings, which `nn.functional.pad`
# and `interpolate` do not call then; they take others. Products by cuBLAS ask for CUBLAS_WORKSPACE_CONFIG.


def declare(name, caller, backends, when=None):
    operator = registry[f"aten::{name}"]
    for form in (operator, operator.inplace) if name in WITH_INPLACE else (operator,):
        not_deterministic(form, caller, backends, when)


for _name, _caller in EVERYWHERE.items():
    declare(_name, _caller, ANYWHERE_OR_META)
for _name, _caller in ON_CUDA.items():
    declare(_name, _caller, GPU)
for _declared in IN_SOME_CALLS:
    declare(*_declared)

fills_its_memory(
    *[registry[f"aten::{name}"] for name in ("empty.memory_format", "empty.out", "empty_strided", "empty_permuted")],
    *[registry[f"aten::{name}"] for name in ("empty_like", "new_empty", "new_empty_strided")],
)
fills_what_is_added(registry["aten::resize_"], registry["aten::resize_as_"])
