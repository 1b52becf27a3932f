"""Methods of the modules of `nn` for the compiler: see `_nn_stubs.py`."""

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
