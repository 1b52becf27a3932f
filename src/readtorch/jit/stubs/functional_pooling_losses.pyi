"""Functions of `nn.functional` for the compiler: see `_nn_stubs.py`."""

# ---------------------------------------------------------------------------------------------------- pooling
# The default of the first parameter of a `_dispatch` is the place of `return_indices` among the arguments.
def _max_pool1d_dispatch(place=6): ...
def _max_pool1d(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)

def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)

def _max_pool2d_dispatch(place=6): ...
def _max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)

def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch._C._nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)

def _max_pool3d_dispatch(place=6): ...
def _max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)

def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch._C._nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)

def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor: ...
def _adaptive_max_pool1d_dispatch(place=2): ...
def _adaptive_max_pool1d(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]

def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)

def _adaptive_max_pool2d_dispatch(place=2): ...
def _adaptive_max_pool2d(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tensor:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)[0]

def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)

# ---------------------------------------------------------------------------------------- padding, upsampling
def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch._C._nn.pad(input, pad, mode, value)

def interpolate(
    input: Tensor,
    size: Optional[Union[int, List[int]]] = None,
    scale_factor: Optional[Union[float, List[float]]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    dim = input.dim() - 2
    sizes = torch.jit.annotate(Optional[List[int]], None)
    scales = torch.jit.annotate(Optional[List[float]], None)
    if size is not None:
        if isinstance(size, int):
            sizes = [size for i in range(dim)]
        else:
            sizes = size
    if scale_factor is not None:
        if isinstance(scale_factor, float):
            scales = [scale_factor for i in range(dim)]
        else:
            scales = scale_factor
    corners = align_corners is not None and align_corners
    if dim == 1 and mode == "nearest":
        return torch._C._nn.upsample_nearest1d(input, sizes, scales)
    if dim == 2 and mode == "nearest":
        return torch._C._nn.upsample_nearest2d(input, sizes, scales)
    if dim == 3 and mode == "nearest":
        return torch._C._nn.upsample_nearest3d(input, sizes, scales)
    if dim == 1 and mode == "linear":
        return torch._C._nn.upsample_linear1d(input, sizes, corners, scales)
    if dim == 2 and mode == "bilinear":
        return torch._C._nn.upsample_bilinear2d(input, sizes, corners, scales)
    if dim == 2 and mode == "bicubic":
        return torch._C._nn.upsample_bicubic2d(input, sizes, corners, scales)
    if dim == 3 and mode == "trilinear":
        return torch._C._nn.upsample_trilinear3d(input, sizes, corners, scales)
    raise NotImplementedError(f"Input Error: got {input.dim()}D input and mode {mode}")

def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch._C._nn.im2col(input, kernel_size, dilation, padding, stride)

def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch._C._nn.col2im(input, output_size, kernel_size, dilation, padding, stride)

# ----------------------------------------------------------------------------------------------------- losses
def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    elif reduction == "mean":
        return 1
    elif reduction == "sum":
        return 2
    else:
        raise ValueError(f"{reduction} is not a valid value for reduction")

def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    return torch._C._nn.mse_loss(input, target, _reduction(reduction))

def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    return torch._C._nn.l1_loss(input, target, _reduction(reduction))

def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    return torch._C._nn.smooth_l1_loss(input, target, _reduction(reduction), beta)

def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Optional[Tensor] = None,
) -> Tensor:
    return torch._C._nn.huber_loss(input, target, _reduction(reduction), delta)

def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return torch._C._nn.cross_entropy_loss(
        input, target, weight, _reduction(reduction), ignore_index, label_smoothing
    )

def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)

def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.binary_cross_entropy(input, target, weight, _reduction(reduction))

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction(reduction))

def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    if reduction == "batchmean":
        return torch.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return torch.kl_div(input, target, _reduction(reduction), log_target=log_target)

def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.soft_margin_loss(input, target, _reduction(reduction))

def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Optional[bool] = None,
    eps: float = 1e-08,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction))

def local_response_norm(
    input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    squares = input.mul(input).unsqueeze(1)
    if input.dim() == 3:
        padded = torch._C._nn.pad(squares, [0, 0, size // 2, (size - 1) // 2])
        means = torch._C._nn.avg_pool2d(padded, [size, 1], 1).squeeze(1)
    else:
        sizes = input.size()
        padded = torch._C._nn.pad(
            squares.view(sizes[0], 1, sizes[1], sizes[2], -1), [0, 0, 0, 0, size // 2, (size - 1) // 2]
        )
        means = torch._C._nn.avg_pool3d(padded, [size, 1, 1], 1).squeeze(1).view(sizes)
    return input / means.mul(alpha).add(k).pow(beta)
