"""The functions of `nn.functional` and the modules of `nn` for the compiler: see `_nn_stubs.py`."""
# ---------------------------------------------------------------------------------------------------------- activations
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor: ...
def relu(input: Tensor, inplace: bool = False) -> Tensor: ...
def glu(input: Tensor, dim: int = -1) -> Tensor: ...
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor: ...
def relu6(input: Tensor, inplace: bool = False) -> Tensor: ...
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor: ...
def selu(input: Tensor, inplace: bool = False) -> Tensor: ...
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor: ...
def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False) -> Tensor: ...
def tanhshrink(input) -> Tensor: ...
def softsign(input) -> Tensor: ...
def tanh(input) -> Tensor: ...
def sigmoid(input) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor: ...
def silu(input: Tensor, inplace: bool = False) -> Tensor: ...
def mish(input: Tensor, inplace: bool = False) -> Tensor: ...
def hardswish(input: Tensor, inplace: bool = False) -> Tensor: ...
def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor: ...
def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor: ...
def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor: ...

def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.", stacklevel=stacklevel)
    if ndim == 0 or ndim == 1 or ndim == 3:
        return 0
    return 1

# --------------------------------------------------------------------------------------------------------------- dropout
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor: ...
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor: ...
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor: ...
def _check_probability(p: float): ...

def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if input.dim() == 2:
        return torch.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)

def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)

def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if input.dim() == 4:
        return torch.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)

# --------------------------------------------------------------------------------------------------------- normalization
def _verify_batch_size(size: List[int]) -> None:
    size_prods = size[0]
    for i in range(len(size) - 2):
        size_prods *= size[i + 2]
    if size_prods == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")

def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if training:
        _verify_batch_size(input.size())
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)

def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)

def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor: ...
def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor: ...

def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _verify_batch_size([input.size(0) * input.size(1) // num_groups, num_groups] + list(input.size()[2:]))
    return torch.group_norm(input, num_groups, weight, bias, eps, True)

def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    denom = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denom

# ------------------------------------------------------------------------------------------------------------- embedding
def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
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

# --------------------------------------------------------------------------------------------------------------- pooling
# The default of the first parameter of a `_dispatch` is the place of `return_indices` among the arguments.
def _max_pool1d_dispatch(place=6): ...
def _max_pool1d(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
def max_pool1d_with_indices(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
def _max_pool2d_dispatch(place=6): ...
def _max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
def max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch._C._nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
def _max_pool3d_dispatch(place=6): ...
def _max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
def max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch._C._nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor: ...
def _adaptive_max_pool1d_dispatch(place=2): ...
def _adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)
def _adaptive_max_pool2d_dispatch(place=2): ...
def _adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)[0]
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)

# ---------------------------------------------------------------------------------------------------- padding, upsampling
def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch._C._nn.pad(input, pad, mode, value)

def interpolate(input: Tensor, size: Optional[Union[int, List[int]]] = None, scale_factor: Optional[Union[float, List[float]]] = None, mode: str = "nearest", align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
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

def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch._C._nn.im2col(input, kernel_size, dilation, padding, stride)
def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch._C._nn.col2im(input, output_size, kernel_size, dilation, padding, stride)

# ---------------------------------------------------------------------------------------------------------------- losses
def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    elif reduction == "mean":
        return 1
    elif reduction == "sum":
        return 2
    else:
        raise ValueError(f"{reduction} is not a valid value for reduction")
def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    return torch._C._nn.mse_loss(input, target, _reduction(reduction))
def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    return torch._C._nn.l1_loss(input, target, _reduction(reduction))
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    return torch._C._nn.smooth_l1_loss(input, target, _reduction(reduction), beta)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Optional[Tensor] = None) -> Tensor:
    return torch._C._nn.huber_loss(input, target, _reduction(reduction), delta)
def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    return torch._C._nn.cross_entropy_loss(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)
def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch._C._nn.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch._C._nn.binary_cross_entropy(input, target, weight, _reduction(reduction))
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", pos_weight: Optional[Tensor] = None) -> Tensor:
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction(reduction))
def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", log_target: bool = False) -> Tensor:
    if reduction == "batchmean":
        return torch.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return torch.kl_div(input, target, _reduction(reduction), log_target=log_target)

def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch._C._nn.soft_margin_loss(input, target, _reduction(reduction))
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None, eps: float = 1e-08, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction))
def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    squares = input.mul(input).unsqueeze(1)
    if input.dim() == 3:
        padded = torch._C._nn.pad(squares, [0, 0, size // 2, (size - 1) // 2])
        means = torch._C._nn.avg_pool2d(padded, [size, 1], 1).squeeze(1)
    else:
        sizes = input.size()
        padded = torch._C._nn.pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), [0, 0, 0, 0, size // 2, (size - 1) // 2])
        means = torch._C._nn.avg_pool3d(padded, [size, 1, 1], 1).squeeze(1).view(sizes)
    return input / means.mul(alpha).add(k).pow(beta)

# --------------------------------------------------------------------------------------------------------------- modules
class RNNCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        is_batched = input.dim() == 2
        if not is_batched:
            input = input.unsqueeze(0)
        if hx is None:
            h = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        else:
            h = hx if is_batched else hx.unsqueeze(0)
        if self.nonlinearity == "tanh":
            result = torch.rnn_tanh_cell(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            result = torch.rnn_relu_cell(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if is_batched else result.squeeze(0)

class _BatchNorm:
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if self.momentum is None:
            factor = 0.0
        else:
            factor = self.momentum
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                if self.momentum is None:
                    factor = 1.0 / float(self.num_batches_tracked)
                else:
                    factor = self.momentum
        if self.training:
            bn_training = True
        else:
            bn_training = (self.running_mean is None) and (self.running_var is None)
        return F.batch_norm(input, self.running_mean if not self.training or self.track_running_stats else None, self.running_var if not self.training or self.track_running_stats else None, self.weight, self.bias, bn_training, factor, self.eps)

class BatchNorm1d:
    def _check_input_dim(self, input):
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")
class BatchNorm2d:
    def _check_input_dim(self, input):
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")
class BatchNorm3d:
    def _check_input_dim(self, input):
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")

class _InstanceNorm:
    def forward(self, input: Tensor) -> Tensor:
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training or not self.track_running_stats, self.momentum if self.momentum is not None else 0.0, self.eps)

class Conv1d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]): ...
class Conv2d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]): ...
class Conv3d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]): ...

class ConvTranspose1d:
    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
class ConvTranspose2d:
    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
class ConvTranspose3d:
    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)

class MaxPool1d:
    def forward(self, input: Tensor):
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices)
class MaxPool2d:
    def forward(self, input: Tensor):
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices)
class MaxPool3d:
    def forward(self, input: Tensor):
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices)
class AvgPool2d:
    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
class AvgPool3d:
    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)

class Flatten:
    def forward(self, input: Tensor) -> Tensor: ...

class LSTM:
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
        batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        if hx is None:
            h = torch.zeros(self.num_layers * directions, batch, size, dtype=input.dtype, device=input.device)
            c = torch.zeros(self.num_layers * directions, batch, self.hidden_size, dtype=input.dtype, device=input.device)
        elif is_batched:
            h, c = hx
        else:
            h, c = hx[0].unsqueeze(1), hx[1].unsqueeze(1)
        result = torch.lstm(input, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        if is_batched:
            return result[0], (result[1], result[2])
        return result[0].squeeze(batch_dim), (result[1].squeeze(1), result[2].squeeze(1))

class GRU:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
        batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        if hx is None:
            h = torch.zeros(self.num_layers * directions, batch, self.hidden_size, dtype=input.dtype, device=input.device)
        else:
            h = hx if is_batched else hx.unsqueeze(1)
        output, last = torch.gru(input, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        if is_batched:
            return output, last
        return output.squeeze(batch_dim), last.squeeze(1)

class RNN:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
        batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        if hx is None:
            h = torch.zeros(self.num_layers * directions, batch, self.hidden_size, dtype=input.dtype, device=input.device)
        else:
            h = hx if is_batched else hx.unsqueeze(1)
        if self.mode == "RNN_TANH":
            output, last = torch.rnn_tanh(input, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        else:
            output, last = torch.rnn_relu(input, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        if is_batched:
            return output, last
        return output.squeeze(batch_dim), last.squeeze(1)

class LSTMCell:
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        is_batched = input.dim() == 2
        if not is_batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            h, c = zeros, zeros
        elif is_batched:
            h, c = hx
        else:
            h, c = hx[0].unsqueeze(0), hx[1].unsqueeze(0)
        h, c = torch.lstm_cell(input, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if is_batched:
            return h, c
        return h.squeeze(0), c.squeeze(0)

class GRUCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        is_batched = input.dim() == 2
        if not is_batched:
            input = input.unsqueeze(0)
        if hx is None:
            h = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        else:
            h = hx if is_batched else hx.unsqueeze(0)
        result = torch.gru_cell(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if is_batched else result.squeeze(0)
