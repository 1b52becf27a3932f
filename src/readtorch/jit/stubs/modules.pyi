"""Methods of the modules of `nn` for the compiler: see `_nn_stubs.py`."""

# ---------------------------------------------------------------------------------------------------- modules
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
        return F.batch_norm(
            input,
            self.running_mean if not self.training or self.track_running_stats else None,
            self.running_var if not self.training or self.track_running_stats else None,
            self.weight,
            self.bias,
            bn_training,
            factor,
            self.eps,
        )

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
    def _no_batch_dim(self) -> int:
        return 2

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        without_batch = self._no_batch_dim()
        features = input.size(input.dim() - without_batch)
        if features != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={input.dim() - without_batch} to match num_features "
                    + f"({self.num_features}), but got: {features}."
                )
            warnings.warn(
                f"input's size at dim={input.dim() - without_batch} does not match num_features. "
                + "You can silence this warning by not passing in num_features, "
                + "which is not used because affine=False"
            )
        is_batched = input.dim() != without_batch
        output = F.instance_norm(
            input if is_batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return output if is_batched else output.squeeze(0)

class InstanceNorm1d:
    def _check_input_dim(self, input):
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")

class InstanceNorm2d:
    def _no_batch_dim(self) -> int:
        return 3

    def _check_input_dim(self, input):
        if input.dim() != 3 and input.dim() != 4:
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")

class InstanceNorm3d:
    def _no_batch_dim(self) -> int:
        return 4

    def _check_input_dim(self, input):
        if input.dim() != 4 and input.dim() != 5:
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")

class Conv1d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]): ...

class Conv2d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]): ...

class Conv3d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]): ...

class ConvTranspose1d:
    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )

class ConvTranspose2d:
    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )

class ConvTranspose3d:
    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )

class MaxPool1d:
    def forward(self, input: Tensor):
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

class MaxPool2d:
    def forward(self, input: Tensor):
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

class MaxPool3d:
    def forward(self, input: Tensor):
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

class AvgPool2d:
    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

class AvgPool3d:
    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

class FractionalMaxPool2d:
    def forward(self, input: Tensor):
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            return_indices=self.return_indices,
            _random_samples=self._random_samples,
        )

class FractionalMaxPool3d:
    def forward(self, input: Tensor):
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            return_indices=self.return_indices,
            _random_samples=self._random_samples,
        )

class AdaptiveMaxPool3d:
    def forward(self, input: Tensor):
        return F.adaptive_max_pool3d(input, self.output_size, return_indices=self.return_indices)

class CircularPad1d:
    def _check_input_dim(self, input):
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")

class CircularPad2d:
    def _check_input_dim(self, input):
        if input.dim() != 3 and input.dim() != 4:
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")

class CircularPad3d:
    def _check_input_dim(self, input):
        if input.dim() != 4 and input.dim() != 5:
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")

class EmbeddingBag:
    def forward(
        self, input: Tensor, offsets: Optional[Tensor] = None, per_sample_weights: Optional[Tensor] = None
    ) -> Tensor: ...

class Flatten:
    def forward(self, input: Tensor) -> Tensor: ...

class LSTM:
    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
        batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        if hx is None:
            h = torch.zeros(self.num_layers * directions, batch, size, dtype=input.dtype, device=input.device)
            c = torch.zeros(
                self.num_layers * directions, batch, self.hidden_size, dtype=input.dtype, device=input.device
            )
        elif is_batched:
            h, c = hx
        else:
            h, c = hx[0].unsqueeze(1), hx[1].unsqueeze(1)
        result = torch.lstm(
            input,
            [h, c],
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
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
            h = torch.zeros(
                self.num_layers * directions, batch, self.hidden_size, dtype=input.dtype, device=input.device
            )
        else:
            h = hx if is_batched else hx.unsqueeze(1)
        output, last = torch.gru(
            input,
            h,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
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
            h = torch.zeros(
                self.num_layers * directions, batch, self.hidden_size, dtype=input.dtype, device=input.device
            )
        else:
            h = hx if is_batched else hx.unsqueeze(1)
        if self.mode == "RNN_TANH":
            output, last = torch.rnn_tanh(
                input,
                h,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        else:
            output, last = torch.rnn_relu(
                input,
                h,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
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
