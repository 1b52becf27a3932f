"""Batches of sequences of different lengths: padded, packed, and back. In PyTorch: `torch/nn/utils/rnn.py`.

The layout of packed data is described in `aten/native/packed_sequence.py`. See the chapter "Layers:
convolution, embedding, recurrence".
"""

from collections.abc import Iterable
from typing import NamedTuple

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.aten.native.copy import parse_to

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def bind(optional, fn):
    """`fn` of it, or None of None."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """Sequences sorted by time, longest first: `data` (sum of lengths, *), `batch_sizes` (longest length).

    sorted_indices: in which order the caller's sequences were put, None if they came sorted;
    unsorted_indices: its inverse. batch_sizes is an int64 tensor on the CPU, wherever data is. Made by the
    functions below.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        fields = _packed_sequence_init_args(data, batch_sizes, sorted_indices, unsorted_indices)
        return super().__new__(cls, *fields)

    def _with_data(self, data, move):
        """`data` and indices that `move` has brought to its device."""
        indices = [bind(i, move) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self):
        """The data and the indices in page-locked memory."""
        return self._with_data(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args, **kwargs):
        """Arguments as of `Tensor.to`, for the data; the indices follow to its device. Returns self if
        nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        _, _, non_blocking, _, memory_format = parse_to(*args, **kwargs)
        return self._with_data(
            data, lambda t: t.to(data.device, non_blocking=non_blocking, memory_format=memory_format)
        )

    def _to_device_type(self, kind, args, kwargs):
        probe = readtorch.tensor((), dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs)
        if probe.device.type != kind:
            kwargs["device"] = kind
        return self.to(*args, **kwargs)

    def cuda(self, *args, **kwargs):
        return self._to_device_type("cuda", args, kwargs)

    def cpu(self, *args, **kwargs):
        return self._to_device_type("cpu", args, kwargs)

    def double(self):
        return self.to(dtype=readtorch.double)

    def float(self):
        return self.to(dtype=readtorch.float)

    def half(self):
        return self.to(dtype=readtorch.half)

    def long(self):
        return self.to(dtype=readtorch.long)

    def int(self):
        return self.to(dtype=readtorch.int)

    def short(self):
        return self.to(dtype=readtorch.short)

    def char(self):
        return self.to(dtype=readtorch.int8)

    def byte(self):
        return self.to(dtype=readtorch.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def _packed_sequence_init_args(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    """Also accepts `PackedSequence((data, batch_sizes), sorted_indices=…)`."""
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is None:
        if not (isinstance(data, (list, tuple)) and len(data) == 2):
            raise AssertionError("Expected data to be a list or tuple of length 2")
        return data[0], data[1], sorted_indices, unsorted_indices
    if batch_sizes.device.type != "cpu":
        raise ValueError(
            "batch_sizes should always be on CPU. "
            "Instances of PackedSequence should never be created manually. "
            "They should be instantiated by functions like pack_sequence "
            "and pack_padded_sequences in nn.utils.rnn. "
            "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
        )
    return data, batch_sizes, sorted_indices, unsorted_indices


def invert_permutation(permutation):
    """The permutation that undoes this one, an int64 tensor; None of None."""
    if permutation is None:
        return None
    positions = readtorch.arange(0, permutation.numel(), device=permutation.device)
    return readtorch.empty_like(permutation).scatter_(0, permutation, positions)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """A padded batch (T, B, *), or (B, T, *) with batch_first, as a PackedSequence.

    lengths: how long each sequence is, a list of ints or a tensor on the CPU. They must decrease, unless
    enforce_sorted is False: then the sequences are sorted first. Raises RuntimeError for lengths that do not
    fit.
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=readtorch.int64)
    else:
        lengths = readtorch.as_tensor(lengths, dtype=readtorch.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = readtorch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = readtorch._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded batch (T, B, *) and the lengths, in the order before sorting. With batch_first (B, T, *).

    total_length: T, if the longest sequence is shorter; ValueError if it is longer.
    """
    max_seq_length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < max_seq_length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {max_seq_length}"
            )
        max_seq_length = total_length
    padded_output, lengths = readtorch._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, max_seq_length
    )
    unsorted_indices = sequence.unsorted_indices
    if unsorted_indices is None:
        return padded_output, lengths
    padded_output = padded_output.index_select(0 if batch_first else 1, unsorted_indices)
    return padded_output, lengths[unsorted_indices.cpu()]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors of shape (length, *) beside each other, padded: (T, B, *), or (B, T, *) with batch_first."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    return _nn.pad_sequence(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences (length, *) of a padded batch, a list. lengths: tensor (B)."""
    if not batch_first:
        padded_sequences.transpose_(0, 1)  # the caller's tensor stays turned, as in PyTorch
    position = readtorch.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[position < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences, enforce_sorted=True):
    """A list of tensors (length, *) as a PackedSequence. See `pack_padded_sequence`."""
    lengths = readtorch.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a PackedSequence, a list of tensors (length, *)."""
    padded_sequences, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded_sequences, lengths, batch_first=True)
