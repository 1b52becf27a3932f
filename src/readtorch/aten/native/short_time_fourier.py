"""The short-time Fourier transform and its inverse: the spectrum of a signal as it changes.

In PyTorch: `aten/src/ATen/native/SpectralOps.cpp`.
"""

import warnings

from ...c10.scalar_type import FLOAT
from ...c10.tensor_impl import dtype_of, legacy_type_name, strides_of
from ..functions import at
from ..native_function import native_function, python_face
from .constant_pad import constant_pad_nd
from .slicing import slice_
from .spectral_ops import BY_N, BY_ROOT_N, NONE, _fft_c2c, _fft_c2r, _fft_r2c

BOTH = "function, method"
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
def stft_composite(
    self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
):
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
    self,
    n_fft,
    hop_length,
    win_length,
    window,
    center,
    pad_mode,
    normalized,
    onesided,
    return_complex,
    align_to_window,
):
    """Frames of n_fft samples, hop_length apart, each times the window and transformed: (batch, frequency,
    frame).
    """
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


@python_face("stft", "function, method")
def stft_face(
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
def istft_composite(
    self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
):
    """The frames transformed back, times the window, laid over each other and divided by the sum of the
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
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
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
    if abs(envelope._array).min() < 1e-11:
        raise RuntimeError(f"{call}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signals = signals / envelope
    if self._array.ndim == 2:
        signals = signals.squeeze(0)
    if end > whole:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in "
            "the tail. Please check your center and hop_length settings.",
            stacklevel=3,
        )
        signals = constant_pad_nd.call(signals, (0, end - whole), 0)
    return signals
