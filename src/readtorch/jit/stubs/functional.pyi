"""Functions of `nn.functional` for the compiler: see `_nn_stubs.py`."""

# ------------------------------------------------------------------------------------------------ activations
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor: ...
def relu(input: Tensor, inplace: bool = False) -> Tensor: ...
def glu(input: Tensor, dim: int = -1) -> Tensor: ...
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor: ...
def relu6(input: Tensor, inplace: bool = False) -> Tensor: ...
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor: ...
def selu(input: Tensor, inplace: bool = False) -> Tensor: ...
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor: ...
def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
) -> Tensor: ...
def tanhshrink(input) -> Tensor: ...
def softsign(input) -> Tensor: ...
def tanh(input) -> Tensor: ...
def sigmoid(input) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor: ...
def silu(input: Tensor, inplace: bool = False) -> Tensor: ...
def mish(input: Tensor, inplace: bool = False) -> Tensor: ...
def hardswish(input: Tensor, inplace: bool = False) -> Tensor: ...
def softmax(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor: ...
def softmin(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor: ...
def log_softmax(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor: ...
def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        + "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    if ndim == 0 or ndim == 1 or ndim == 3:
        return 0
    return 1

# ---------------------------------------------------------------------------------------------------- dropout
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor: ...
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor: ...
def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")

def _features_of_one(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if inplace:
        return torch.feature_dropout_(input.unsqueeze_(0), p, training).squeeze_(0)
    return torch.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)

def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if input.dim() != 2 and input.dim() != 3:
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input.")
    if input.dim() == 2:
        return _features_of_one(input, p, training, inplace)
    return (
        torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)
    )

def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return (
        torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)
    )

def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if input.dim() == 4:
        return _features_of_one(input, p, training, inplace)
    return (
        torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)
    )

# ---------------------------------------------------------------------------------------------- normalization
def _verify_batch_size(size: List[int]) -> None:
    size_prods = size[0]
    for i in range(len(size) - 2):
        size_prods *= size[i + 2]
    if size_prods == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")

def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    if training:
        _verify_batch_size(input.size())
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)

def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    return torch.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )

def layer_norm(
    input: Tensor,
    normalized_shape: List[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-05,
) -> Tensor: ...
def rms_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None
) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-05,
) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _verify_batch_size([input.size(0) * input.size(1) // num_groups, num_groups] + list(input.size()[2:]))
    return torch.group_norm(input, num_groups, weight, bias, eps, True)

def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None
) -> Tensor:
    denom = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denom

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

# -------------------------------------------------------------------------------------------------- embedding
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    if padding_idx is not None:
        if padding_idx > 0:
            assert padding_idx < weight.size(0), "Padding_idx must be within num_embeddings"
        elif padding_idx < 0:
            assert padding_idx >= -weight.size(0), "Padding_idx must be within num_embeddings"
            padding_idx = weight.size(0) + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)

def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    if weight.dtype == torch.long and input.is_floating_point():
        weight, input = input, weight
    if per_sample_weights is not None:
        if input.size() != per_sample_weights.size():
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({per_sample_weights.size()}) is not None, "
                + f"then it must have the same shape as the input ({input.size()})"
            )
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. "
                + "per_sample_weights is only supported for mode='sum' "
                + f"(got mode='{mode}'). Please open a feature request on GitHub."
            )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None")
        offsets = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    else:
        number = _bag_mode(mode, scale_grad_by_freq, sparse)
        if max_norm is not None:
            torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
        return torch.embedding_bag(
            weight,
            input,
            offsets,
            scale_grad_by_freq,
            number,
            sparse,
            per_sample_weights,
            include_last_offset,
            padding_idx,
        )[0]

def _bag_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> int:
    if mode == "sum":
        return 0
    if mode == "mean":
        return 1
    if mode != "max":
        raise ValueError("mode has to be one of sum, mean or max")
    if scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if sparse:
        raise ValueError("max mode does not support sparse weights")
    return 2
