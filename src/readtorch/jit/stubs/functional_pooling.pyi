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

def _adaptive_max_pool3d_dispatch(place=2): ...
def _adaptive_max_pool3d(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tensor:
    return torch._C._nn.adaptive_max_pool3d(input, output_size)[0]

def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool3d(input, output_size)

def _fractional_max_pool2d_dispatch(place=4): ...
def _fractional_max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:
    return fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]

def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    size = _fractional_size(input, output_size, output_ratio)
    samples = _fractional_samples(input, 2, _random_samples)
    return torch._C._nn.fractional_max_pool2d(input, kernel_size, size, samples)

def _fractional_max_pool3d_dispatch(place=4): ...
def _fractional_max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:
    return fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]

def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    size = _fractional_size(input, output_size, output_ratio)
    samples = _fractional_samples(input, 3, _random_samples)
    return torch._C._nn.fractional_max_pool3d(input, kernel_size, size, samples)

def _fractional_size(
    input: Tensor, output_size: Optional[List[int]], output_ratio: Optional[List[float]]
) -> List[int]:
    if output_size is not None:
        return output_size
    if output_ratio is not None:
        dims = len(output_ratio)
        return [int(input.size(i - dims) * output_ratio[i]) for i in range(dims)]
    raise ValueError("fractional_max_pool requires specifying either an output_size or an output_ratio")

def _fractional_samples(input: Tensor, dims: int, samples: Optional[Tensor]) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == dims + 1 else input.size(0)
    return torch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)

def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: Optional[BroadcastingList1[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = stride if stride is not None else [kernel_size]
    if norm_type == float("inf"):
        return torch.max_pool1d(input.abs(), kernel_size, steps, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -torch.max_pool1d(-input.abs(), kernel_size, steps, 0, 1, ceil_mode)
    means = torch.avg_pool1d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return _root(means, kernel_size, norm_type)

def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = stride if stride is not None else kernel_size
    if norm_type == float("inf"):
        return torch.max_pool2d(input.abs(), kernel_size, steps, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -torch.max_pool2d(-input.abs(), kernel_size, steps, 0, 1, ceil_mode)
    means = torch._C._nn.avg_pool2d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return _root(means, kernel_size[0] * kernel_size[1], norm_type)

def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = stride if stride is not None else kernel_size
    if norm_type == float("inf"):
        return torch.max_pool3d(input.abs(), kernel_size, steps, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -torch.max_pool3d(-input.abs(), kernel_size, steps, 0, 1, ceil_mode)
    means = torch._C._nn.avg_pool3d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return _root(means, kernel_size[0] * kernel_size[1] * kernel_size[2], norm_type)

def _root(means: Tensor, count: int, norm_type: float) -> Tensor:
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(count).pow(1.0 / norm_type)

# ---------------------------------------------------------------------------------------- padding, upsampling
def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch._C._nn.pad(input, pad, mode, value)

def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    dim = input.dim() - 2
    sizes = torch.jit.annotate(Optional[List[int]], None)
    scales = torch.jit.annotate(Optional[List[float]], None)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, int):
            sizes = [size for _ in range(dim)]
        else:
            sizes = size
    elif scale_factor is not None:
        if isinstance(scale_factor, float):
            scales = [scale_factor for _ in range(dim)]
        else:
            scales = scale_factor
    else:
        raise ValueError("either size or scale_factor should be defined")
    _check_interpolation(input, sizes, scales, mode, align_corners, antialias)
    recompute = recompute_scale_factor is not None and recompute_scale_factor
    if recompute and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute or mode == "area"):
        sizes = [int(input.size(i + 2) * scales[i]) for i in range(dim)]
        scales = None
    return _interpolate(input, sizes, scales, mode, align_corners is not None and align_corners, antialias)

def _check_interpolation(
    input: Tensor,
    sizes: Optional[List[int]],
    scales: Optional[List[float]],
    mode: str,
    align_corners: Optional[bool],
    antialias: bool,
) -> None:
    if align_corners is not None and (mode == "nearest" or mode == "area" or mode == "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the "
            + "interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if sizes is not None and len(sizes) != input.dim() - 2:
        raise ValueError("Input and output must have the same number of spatial dimensions")
    if scales is not None and len(scales) != input.dim() - 2:
        raise ValueError("Input and scale_factor must have the same number of spatial dimensions")
    if antialias and not (input.dim() == 4 and (mode == "bilinear" or mode == "bicubic" or mode == "lanczos")):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
            + "tensor as input"
        )

def _interpolate(
    input: Tensor,
    sizes: Optional[List[int]],
    scales: Optional[List[float]],
    mode: str,
    corners: bool,
    antialias: bool,
) -> Tensor:
    dim = input.dim() - 2
    if mode == "nearest" and dim == 1:
        return torch._C._nn.upsample_nearest1d(input, sizes, scales)
    if mode == "nearest" and dim == 2:
        return torch._C._nn.upsample_nearest2d(input, sizes, scales)
    if mode == "nearest" and dim == 3:
        return torch._C._nn.upsample_nearest3d(input, sizes, scales)
    if mode == "nearest-exact" and dim == 1:
        return torch._C._nn._upsample_nearest_exact1d(input, sizes, scales)
    if mode == "nearest-exact" and dim == 2:
        return torch._C._nn._upsample_nearest_exact2d(input, sizes, scales)
    if mode == "nearest-exact" and dim == 3:
        return torch._C._nn._upsample_nearest_exact3d(input, sizes, scales)
    if mode == "area" and sizes is not None:
        if dim == 1:
            return torch.adaptive_avg_pool1d(input, sizes)
        if dim == 2:
            return torch._C._nn.adaptive_avg_pool2d(input, sizes)
        if dim == 3:
            return torch._C._nn.adaptive_avg_pool3d(input, sizes)
    if mode == "bilinear" and antialias:
        return torch._C._nn._upsample_bilinear2d_aa(input, sizes, corners, scales)
    if mode == "bicubic" and antialias:
        return torch._C._nn._upsample_bicubic2d_aa(input, sizes, corners, scales)
    if mode == "lanczos" and dim == 2:
        if corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        return torch._C._nn._upsample_lanczos2d_aa(input, sizes, corners, scales)
    if mode == "linear" and dim == 1:
        return torch._C._nn.upsample_linear1d(input, sizes, corners, scales)
    if mode == "bilinear" and dim == 2:
        return torch._C._nn.upsample_bilinear2d(input, sizes, corners, scales)
    if mode == "bicubic" and dim == 2:
        return torch._C._nn.upsample_bicubic2d(input, sizes, corners, scales)
    if mode == "trilinear" and dim == 3:
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
