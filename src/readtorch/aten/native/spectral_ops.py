"""Fourier transforms, and the short-time transform and its inverse. NumPy computes them.

A transform goes from complex to complex (c2c), from real to complex (r2c) or from complex to real (c2r). All others are
one of these with its input padded, cut or conjugated.

In PyTorch: `aten/src/ATen/native/SpectralOps.cpp` and `aten/src/ATen/native/mkl/SpectralOps.cpp`; derivatives in
`torch/csrc/autograd/FunctionsManual.cpp`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10 import scalar_type
from readtorch.c10.exception import warn_once
from readtorch.c10.memory_format import strides_in_order
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import dtype_of, legacy_type_name, strides_of, type_name
from readtorch.c10.wrap_dim import wrap_dim, wrap_dims

from .pad_nd import constant_pad_nd
from .tensor_shape.slice import slice_

_fft_c2c = native_function("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", out=True)
_fft_r2c = native_function("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", out=True)
_fft_c2r = native_function(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", out=True
)

# ------------------------------------------------------------------------------------------------- normalization

NONE, BY_ROOT_N, BY_N = range(3)  # what the sum is divided by


def normalization_of(norm, forward):
    """The number for norm="backward" (or None), "forward" or "ortho"."""
    if norm == "ortho":
        return BY_ROOT_N
    if norm not in (None, "backward", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return BY_N if (norm == "forward") == forward else NONE


def store_normalized(result, of, dim, normalization, out):
    """`out` = result, divided as asked by how many numbers of the array `of` are transformed together."""
    if normalization == NONE or not result.size:
        out._array[...] = result
        return
    count = math.prod([of.shape[d] for d in dim])
    share = out._array.real.dtype.type(1 / count if normalization == BY_N else 1 / math.sqrt(count))
    np.multiply(result, share, out._array, casting="unsafe")


# ------------------------------------------------------------------------------------------------ three operators


def by_stride(x, dims):
    return sorted(dims, key=lambda d: -x.strides[d])


def spectrum(self, dims, shape, dtype):
    """The output of a transform, in the memory order in which PyTorch's library leaves it: the transformed dimensions
    innermost, as `dims` has them; the others as they are ordered in the input."""
    others = by_stride(self._array, [d for d in range(self._array.ndim) if d not in dims])
    return TensorMeta(tuple(shape), dtype, strides_in_order(shape, [*others, *dims][::-1]))


@_fft_c2c.meta
def fft_c2c_meta(self, dim, normalization, forward):
    return spectrum(self, by_stride(self._array, dim), self._array.shape, dtype_of(self)) if dim else like(self)


@_fft_c2c.impl()
def fft_c2c_cpu(self, dim, normalization, forward, out):
    x = self._array
    if dim:
        x = np.fft.fftn(x, axes=dim) if forward else np.fft.ifftn(x, axes=dim, norm="forward")
    store_normalized(x, self._array, dim, normalization, out)


@_fft_r2c.meta
def fft_r2c_meta(self, dim, normalization, onesided):
    shape = list(self._array.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    return spectrum(self, (*by_stride(self._array, dim[:-1]), dim[-1]), shape, dtype_of(self).to_complex())


@_fft_r2c.impl()
def fft_r2c_cpu(self, dim, normalization, onesided, out):
    transform = np.fft.rfftn if onesided else np.fft.fftn
    store_normalized(transform(self._array, axes=dim), self._array, dim, normalization, out)


@_fft_c2r.meta
def fft_c2r_meta(self, dim, normalization, last_dim_size):
    shape = list(self._array.shape)
    shape[dim[-1]] = last_dim_size
    return spectrum(self, (*by_stride(self._array, dim[:-1]), dim[-1]), shape, dtype_of(self).to_real())


@_fft_c2r.impl()
def fft_c2r_cpu(self, dim, normalization, last_dim_size, out):
    x = self._array
    if len(dim) > 1:
        x = np.fft.ifftn(x, axes=dim[:-1], norm="forward")
    result = np.fft.irfft(x, n=last_dim_size, axis=dim[-1], norm="forward")
    store_normalized(result, out._array, dim, normalization, out)


@_fft_c2c.backward
class FftC2CBackward0:
    def self(grad, dim, normalization, forward):
        return _fft_c2c.call(grad, dim, normalization, not forward)

    result = "auto_linear"


@_fft_r2c.backward
class FftR2CBackward0:
    """The transform of a real tensor is that of a complex one; of the gradient only the real part counts."""

    def self(grad, self_sym_sizes, dim, normalization, onesided):
        if onesided:  # what was left out had no part in the result: zeros
            grad = resized(grad, [dim[-1]], [self_sym_sizes[dim[-1]]])
        return at.real(_fft_c2c.call(grad, dim, normalization, False))

    result = "auto_linear"


@_fft_c2r.backward
class FftC2RBackward0:
    """All but the first element of the half, and perhaps the last, stand for two of the whole."""

    def self(grad, dim, normalization):
        half = _fft_r2c.call(grad, dim, normalization, True)
        twice = grad._array.shape[dim[-1]] - half._array.shape[dim[-1]]
        if twice > 0:
            half.narrow(dim[-1], 1, twice).mul_(2)
        return half

    result = "auto_linear"


# ---------------------------------------------------------------------------------------- what goes into a transform


def promoted(self, to_complex=False):
    """Integers become floats, and floats complex if they must."""
    dtype = dtype_of(self)
    if dtype.category < FLOAT:
        dtype = scalar_type.get_default_dtype()
    if dtype.numpy.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {type_name(self)}")
    if to_complex and not dtype.is_complex:
        dtype = dtype.to_complex()
    return self if dtype is dtype_of(self) else self.to(dtype)


def resized(self, dims, sizes):
    """Cut, or padded with zeros at the end, to `sizes` along `dims`; -1 leaves a size as it is."""
    for dim, size in zip(dims, sizes):
        have = self._array.shape[dim]
        if size == -1 or size == have:
            continue
        if size < have:
            self = slice_.call(self, dim, 0, size, 1)
        else:
            after = self._array.ndim - 1 - dim
            self = constant_pad_nd.call(self, (0, 0) * after + (0, size - have), 0)
    return self


def one_dim(self, n, dim):
    """(dimension, its size): n if it is given."""
    if not self._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, self._array.ndim)
    return dim, check_size(self._array.shape[dim] if n is None else n)


def check_size(n):
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def check_real(self, name, word="real"):
    if dtype_of(self).is_complex:
        raise RuntimeError(f"{name} expects a {word} input tensor, but got {type_name(self)}")


def shape_and_dims(self, s, dim):
    """Sizes and dimensions of a transform over several: by default all of them, as they are."""
    ndim = self._array.ndim
    dims = None if dim is None else wrap_dims_once(dim, ndim)
    if s is None:
        dims = list(range(ndim)) if dims is None else dims
        sizes = [self._array.shape[d] for d in dims]
    else:
        if dims is not None and len(dims) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(ndim - len(s), ndim)) if dims is None else dims
        sizes = [self._array.shape[d] if n == -1 else n for n, d in zip(s, dims)]
    for n in sizes:
        check_size(n)
    return sizes, dims


def wrap_dims_once(dim, ndim):
    if not ndim and dim:
        raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    try:
        return wrap_dims(dim, ndim)
    except RuntimeError:
        raise RuntimeError("FFT dims must be unique") from None


# ------------------------------------------------------------------------------------------------- one dimension

_ONE = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
_TWO = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"
_MANY = "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"


def declare(name, text):
    operator = native_function(f"fft_{name}{text}", module="fft", name=name, out=True)
    kind = "floating point" if name.startswith(("irfft", "hfft")) else "complex"
    shown = name.replace("2", "n").replace("ifftn", "fftn")  # as PyTorch's message calls them

    def check(i, out, result, inputs):
        dtype = dtype_of(out)
        if "freq" not in name and not (dtype.is_complex if kind == "complex" else dtype.is_floating_point):
            raise RuntimeError(f"{shown} expects a {kind} output tensor, but got {type_name(out)}")

    operator.out_check, operator.out_is_row_major = check, True
    return operator


def to_complex(self, sizes, dims, norm, forward):
    """fft and ifft over any dimensions."""
    self = resized(promoted(self), dims, sizes)
    normalization = normalization_of(norm, forward)
    if dtype_of(self).is_complex:
        return _fft_c2c.call(self, tuple(dims), normalization, forward)
    result = _fft_r2c.call(self, tuple(dims), normalization, False)
    return result if forward else at.conj(result)


def to_half(self, sizes, dims, norm, forward):
    """rfft and ihfft: only half of the result, the other half being its mirror image."""
    self = resized(promoted(self), dims, sizes)
    result = _fft_r2c.call(self, tuple(dims), normalization_of(norm, forward), True)
    return result if forward else at.conj(result)


def from_half(self, sizes, dims, norm, forward):
    """irfft and hfft: the input is half of a transform, sizes are those of the result."""
    self = resized(promoted(self, to_complex=True), dims, [*sizes[:-1], sizes[-1] // 2 + 1])
    if forward:
        self = at.conj(self)
    return _fft_c2r.call(self, tuple(dims), normalization_of(norm, forward), sizes[-1])


def transform_of_one(name, body, forward):
    operator = declare(name, _ONE)

    @operator.compose
    def transform(self, n, dim, norm):
        if body is to_half:
            check_real(self, name)
        if body is from_half and n is None and self._array.ndim:
            n = 2 * (self._array.shape[wrap_dim(dim, self._array.ndim)] - 1)
        dim, n = one_dim(self, n, dim)
        return body(self, [n], [dim], norm, forward)


for _name, _body, _forward in (
    ("fft", to_complex, True),
    ("ifft", to_complex, False),
    ("rfft", to_half, True),
    ("irfft", from_half, False),
    ("hfft", from_half, True),
    ("ihfft", to_half, False),
):
    transform_of_one(_name, _body, _forward)


# -------------------------------------------------------------------------------------------- several dimensions


def fftn(self, s, dim, norm, forward):
    sizes, dims = shape_and_dims(self, s, dim)
    x = resized(promoted(self, to_complex=True), dims, sizes)
    return _fft_c2c.call(x, tuple(dims), normalization_of(norm, forward), forward)


def rfftn(self, s, dim, norm):
    check_real(self, "rfftn", "real-valued")
    sizes, dims = shape_and_dims(self, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return to_half(self, sizes, dims, norm, True)


def half_shape(name, self, s, dim):
    """For irfftn and hfftn: the sizes of the result."""
    sizes, dims = shape_and_dims(self, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    if s is None or s[-1] == -1:
        sizes[-1] = check_size(2 * (self._array.shape[dims[-1]] - 1))
    return sizes, dims


def irfftn(self, s, dim, norm):
    return from_half(self, *half_shape("irfftn", self, s, dim), norm, False)


def hfftn(self, s, dim, norm):
    """An fft over all dimensions but the last, then hfft over that."""
    sizes, dims = half_shape("hfftn", self, s, dim)
    x = resized(promoted(self, to_complex=True), dims, [*sizes[:-1], sizes[-1] // 2 + 1])
    normalization = normalization_of(norm, True)
    if len(dims) > 1:
        x = _fft_c2c.call(x, tuple(dims[:-1]), normalization, True)
    return _fft_c2r.call(at.conj(x), (dims[-1],), normalization, sizes[-1])


def ihfftn(self, s, dim, norm):
    """ihfft over the last dimension, then an ifft over the others."""
    check_real(self, "ihfftn", "real-valued")
    sizes, dims = shape_and_dims(self, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    normalization = normalization_of(norm, False)
    half = at.conj(_fft_r2c.call(resized(promoted(self), dims, sizes), (dims[-1],), normalization, True))
    return half if len(dims) == 1 else _fft_c2c.call(half, tuple(dims[:-1]), normalization, False)


for _name, _body in (
    ("fft", lambda *a: fftn(*a, True)),
    ("ifft", lambda *a: fftn(*a, False)),
    ("rfft", rfftn),
    ("irfft", irfftn),
    ("hfft", hfftn),
    ("ihfft", ihfftn),
):
    declare(_name + "2", _TWO).compose(_body)
    declare(_name + "n", _MANY).compose(_body)


# ------------------------------------------------------------------------------------------ frequencies and shifts

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
fftfreq = declare("fftfreq", f"(int n, float d=1.0, *, {_OPTIONS}) -> Tensor")
rfftfreq = declare("rfftfreq", f"(int n, float d=1.0, *, {_OPTIONS}) -> Tensor")


@fftfreq.kernel
@any_device
def fftfreq_composite(n, d, dtype, layout, device, pin_memory):
    """0, 1, 2, … and from the middle on the negative ones, in cycles per unit if samples are `d` apart."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {[n]}")
    places = at.arange(n, dtype=dtype or scalar_type.get_default_dtype(), device=device)
    return in_cycles(at.where(places < (n + 1) // 2, places, places - n), n, d)


@rfftfreq.kernel
@any_device
def rfftfreq_composite(n, d, dtype, layout, device, pin_memory):
    """0, 1, 2, … up to the middle."""
    return in_cycles(at.arange(n // 2 + 1, dtype=dtype or scalar_type.get_default_dtype(), device=device), n, d)


def in_cycles(places, n, d):
    """With n or d 0 they are inf, but for 0, which is nan."""
    return places * float(1 / np.float64(n * d))


def shifted(self, dim, halves):
    dims = range(self._array.ndim) if dim is None else dim
    return at.roll(self, [halves(self._array.shape[d]) for d in dims], list(dims))


fftshift = native_function("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", module="fft", name="fftshift")
ifftshift = native_function("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", module="fft", name="ifftshift")
fftshift.compose(lambda self, dim: shifted(self, dim, lambda n: n // 2))
ifftshift.compose(lambda self, dim: shifted(self, dim, lambda n: (n + 1) // 2))


# ------------------------------------------------------------------------------------------------ stft, istft

_FRAMES = "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None"
_RESULT = "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None"
stft = native_function(f"stft({_FRAMES}, {_RESULT}) -> Tensor", "")
stft_center = native_function(
    f'stft.center({_FRAMES}, bool center=True, str pad_mode="reflect", {_RESULT}) -> Tensor', ""
)
istft = native_function(
    f"istft({_FRAMES}, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
    "bool return_complex=False) -> Tensor",
    BOTH,
)


def shown(sizes):
    return "[" + ", ".join(map(str, sizes)) + "]"


def describe(name, self, n_fft, hop_length, win_length, window, *rest):
    """The call, as error messages begin."""
    seen = "None" if window is None else f"{legacy_type_name(window)}{{{shown(window._array.shape)}}}"
    others = "".join(f", {key}={int(value) if isinstance(value, bool) else value}" for key, value in rest)
    return (
        f"{name}({legacy_type_name(self)}{shown(self._array.shape)}, n_fft={n_fft}, hop_length={hop_length}, "
        f"win_length={win_length}, window={seen}{others}) "
    )


def is_complex(t):
    return t is not None and dtype_of(t).is_complex


# ------------------------------------------------------------------------------------------------------- stft


def check_stft(call, self, n_fft, hop_length, win_length, window, length):
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{call}: expected 0 < n_fft < {length}, but got n_fft={win_length}")
    if hop_length <= 0:
        raise RuntimeError(f"{call}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and window._array.shape != (win_length,):
        raise RuntimeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={win_length}, but got "
            f"window with size {shown(window._array.shape)}"
        )


def in_the_middle(window, self, win_length, n_fft):
    """The window with zeros on both sides, as wide as a frame."""
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    like = self if window is None else window
    wide = at.zeros((n_fft,), dtype=like.dtype, device=like.device)
    middle = wide.narrow(0, left, win_length)
    middle.fill_(1) if window is None else middle.copy_(window)
    return wide


def padded(signals, amount, mode):
    """The signals (batch, time) with `amount` more samples at each end."""
    return at.pad(signals.view((1, *signals._array.shape)), (amount, amount), mode).squeeze(0)


@stft.compose
def stft_composite(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window):
    return stft_center.call(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        False,
        "constant",
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


@stft_center.compose
def stft_center_composite(
    self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
):
    """Frames of n_fft samples, hop_length apart, each times the window and transformed: (batch, frequency, frame)."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    call = describe(
        "stft",
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        ("normalized", normalized),
        ("onesided", onesided),
        ("return_complex", return_complex),
    )
    as_complex = is_complex(self) or is_complex(window) if return_complex is None else return_complex
    if not as_complex and return_complex is None:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if dtype_of(self).category < FLOAT:
        raise RuntimeError(f"{call}: expected a tensor of floating point or complex values")
    if not 1 <= self._array.ndim <= 2:
        raise RuntimeError(f"{call}: expected a 1D or 2D tensor")
    signals = self.unsqueeze(0) if self._array.ndim == 1 else self
    if center:
        signals = padded(signals, n_fft // 2, pad_mode)
    batch, length = signals._array.shape
    check_stft(call, self, n_fft, hop_length, win_length, window, length)
    window = in_the_middle(window, self, win_length, n_fft)
    between, step = strides_of(signals)
    frames = at.as_strided(
        signals, (batch, 1 + (length - n_fft) // hop_length, n_fft), (between, hop_length * step, step)
    )
    frames = frames if window is None else frames.mul(window)
    spectra = transformed(frames, BY_ROOT_N if normalized else NONE, onesided)
    spectra.transpose_(1, 2)
    if self._array.ndim == 1:
        spectra.squeeze_(0)
    return spectra if as_complex else at.view_as_real(spectra)


@python_binding("stft", "function, method")
def stft_binding(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of overlapping frames of a signal: (*, time) -> (*, frequency, frame).

    Frames of n_fft samples lie hop_length apart (n_fft // 4); each is multiplied with `window`. center: frame
    t is centered at sample t * hop_length, the signal being padded by `pad_mode`. Raises RuntimeError. See
    `istft`.
    In PyTorch: `torch/functional.py`, which pads before it calls the operator.
    """
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        shape = input._array.shape
        wide = at.pad(input.view((1,) * (3 - len(shape)) + shape), (n_fft // 2, n_fft // 2), pad_mode)
        input = wide.view(wide._array.shape[-len(shape) :])
    return stft.call(
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
    )


def transformed(frames, normalization, onesided):
    if not is_complex(frames):
        return _fft_r2c.call(frames, (2,), normalization, onesided is None or onesided)
    if onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return _fft_c2c.call(frames, (2,), normalization, True)


# ------------------------------------------------------------------------------------------------------ istft


def check_istft(call, self, n_fft, hop_length, win_length, window, onesided):
    sizes = self._array.shape
    if not self._array.size:
        raise RuntimeError(f"{call}: input tensor cannot be empty.")
    if len(sizes) not in (2, 3):
        raise RuntimeError(f"{call}: expected a tensor with 3 or 4 dimensions, but got {len(sizes) + 1}")
    if sizes[-2] != (n_fft // 2 + 1 if onesided else n_fft):
        wanted = "n_fft / 2 + 1 when onesided=True" if onesided else "n_fft when onesided=False"
        raise RuntimeError(
            f"{call}: expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{wanted}, but got {sizes[-2]}"
        )
    if not 0 < hop_length <= win_length:
        raise RuntimeError(f"{call}: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (win_length,):
        raise RuntimeError(f"{call}: Invalid window shape. window has to be 1D and length of `win_length`")


def frames_of(spectra, n_fft, normalization, onesided, window, return_complex):
    """The inverse transform of (channel, frame, frequency)."""
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return _fft_c2c.call(spectra, (2,), normalization, False)
    if is_complex(window):
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    half = spectra if onesided else slice_.call(spectra, -1, 0, n_fft // 2 + 1, 1)
    return _fft_c2r.call(half, (2,), normalization, n_fft)


@istft.compose
def istft_composite(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """The frames transformed back, times the window, overlapped, added and divided by the sum of the
    squared windows there.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    call = describe(
        "istft",
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        ("center", center),
        ("normalized", normalized),
        ("onesided", onesided),
        ("length", length),
        ("return_complex", return_complex),
    )
    if not is_complex(self):
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    onesided = self._array.shape[-2] != n_fft if onesided is None else onesided
    check_istft(call, self, n_fft, hop_length, win_length, window, onesided)
    wide = window
    if window is None:
        wide = at.ones((win_length,), dtype=dtype_of(self).to_real(), device=self.device)
    left = (n_fft - win_length) // 2
    if win_length != n_fft:
        wide = constant_pad_nd.call(wide, (left, n_fft - win_length - left), 0)
    spectra = self.unsqueeze(0) if self._array.ndim == 2 else self
    frames = frames_of(
        spectra.transpose(1, 2), n_fft, BY_ROOT_N if normalized else BY_N, onesided, window, return_complex
    )
    count = frames._array.shape[1]
    whole = n_fft + hop_length * (count - 1)
    frames = frames * wide.view((1, 1, n_fft))
    signals = at.unfold_backward(frames, (frames._array.shape[0], whole), 1, n_fft, hop_length)
    envelope = at.unfold_backward(wide.pow(2).expand((1, count, n_fft)), (1, whole), 1, n_fft, hop_length)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else -(n_fft // 2) if center else whole
    signals, envelope = (slice_.call(t, 1, start, end, 1) for t in (signals, envelope))
    too_small = envelope.abs().min() < 1e-11
    if at.equal(too_small, at.ones_like(too_small)):
        raise RuntimeError(f"{call}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signals = signals / envelope
    if self._array.ndim == 2:
        signals = signals.squeeze(0)
    if end > whole:
        warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in "
            "the tail. Please check your center and hop_length settings.",
            stacklevel=3,
        )
        signals = constant_pad_nd.call(signals, (0, end - whole), 0)
    return signals
