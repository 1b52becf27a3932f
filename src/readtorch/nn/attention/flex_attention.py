"""FlexAttention: attention whose scores and mask are Python functions of one place, (batch, head, query, key).

    def score_mod(score, batch, head, q_idx, kv_idx): ...  # another score
    def mask_mod(batch, head, q_idx, kv_idx): ...          # whether the query may see the key

`flex_attention` checks what it is given and finds the tensors that `score_mod` reads, which get gradients. What it computes
stands in `_higher_order_ops/flex_attention.py`, masks in `_block_mask.py`.

In PyTorch: `torch/nn/attention/flex_attention.py`. There the functions are compiled into the kernel, and what is described
as "not compiled" is a form for debugging. Explained in the chapter "Attention".
"""

import math
import warnings
from typing import NamedTuple, TypedDict

import readtorch
from readtorch import compiler
from readtorch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from readtorch._higher_order_ops.flex_attention import flex_attention as flex_attention_hop
from readtorch._tensor import Tensor
from readtorch.overrides import TorchFunctionMode
from readtorch.utils._pytree import tree_iter

from ._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,  # noqa: F401
    _LARGE_SPARSE_BLOCK_SIZE,
    BlockMask,
    _sliced_mask_mod_error,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
)
from ._utils import _validate_sdpa_input

__all__ = [
    "BlockMask",
    "flex_attention",
    "AuxOutput",
    "AuxRequest",
    "FlexKernelOptions",
    "create_block_mask",
    "create_mask",
    "or_masks",
    "and_masks",
    "noop_mask",
]

# True: the tensors that `score_mod` reads get no gradients, and nothing is said about compiling.
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False

_WARNINGS_SHOWN = set()
_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")


def _warn_once(warning_id, message, category=UserWarning):
    if warning_id not in _WARNINGS_SHOWN:
        if not compiler.is_compiling():
            warnings.warn(message, category, stacklevel=3)
        _WARNINGS_SHOWN.add(warning_id)


class FlexKernelOptions(TypedDict, total=False):
    """What the kernels that PyTorch compiles can be told; here they are checked and have no effect."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: str


class AuxRequest(NamedTuple):
    """What `flex_attention` shall return beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for, (B, Hq, L) each: the logarithm of the sum of the scores' exponentials, the largest score."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """softmax(score_mod(scale · query keyᵀ), where the mask lets it through) value: (B, Hq, L, Ev).

    query: (B, Hq, L, E). key: (B, Hkv, S, E). value: (B, Hkv, S, Ev). With `enable_gqa` Hkv may divide Hq.
    score_mod: of (score, batch, head, query, key), tensors without dimensions; the tensors that it reads get gradients.
    block_mask: see `create_block_mask`. scale: by default 1/√E. return_aux: an AuxRequest; the result is a pair then,
    with an AuxOutput. return_lse: an older way to ask for `lse`. kernel_options: see FlexKernelOptions.

    On a CPU query, key and value that require a gradient raise NotImplementedError, as in PyTorch, and so does the
    wish for `max_scores`; `torch.ops.higher_order.flex_attention` has both there. ValueError if shapes, devices or
    the mask's lengths do not fit.
    """
    _check_inputs(query, key, value, enable_gqa)
    _check_batches(query, key, block_mask)
    block_mask = _create_empty_block_mask(query) if block_mask is None else block_mask
    _check_mask(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. "
            "return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        _warn_once(
            "deprecated_return_lse",
            "return_lse is deprecated and will be removed in v2.10. Please use return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
        )
    wanted = AuxRequest(lse=return_lse) if return_aux is None else return_aux
    kernel_options = _checked_options(kernel_options, (query, key, value), wanted)
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    score_mod, buffers = _with_captured_tensors(_identity if score_mod is None else score_mod, block_mask, query)
    out, lse, max_scores = flex_attention_hop(
        query, key, value, score_mod, block_mask.as_tuple(), scale, kernel_options, buffers
    )
    log_2 = math.log(2)
    aux = AuxOutput(lse * log_2 if wanted.lse else None, max_scores * log_2 if wanted.max_scores else None)
    if return_aux is not None:
        return out, aux
    return (out, aux.lse) if return_lse else out


def _identity(score, batch, head, token_q, token_kv):
    return score


def _create_empty_block_mask(query):
    """One block, larger than any sequence."""
    return BlockMask.from_kv_blocks(
        readtorch.ones([1, 1, 1], dtype=readtorch.int32, device=query.device),
        readtorch.zeros([1, 1, 1, 1], dtype=readtorch.int32, device=query.device),
        BLOCK_SIZE=_LARGE_SPARSE_BLOCK_SIZE,
        seq_lengths=(1, 1),
    )


# ------------------------------------------------------------------------------------------------------ captured tensors


def _with_captured_tensors(score_mod, block_mask, query):
    """`score_mod` as a function that is also handed the tensors it reads, and these tensors, if they need gradients.

    It has them already, from its closure or wherever: they are named so that the graph gets an edge to each.
    AssertionError if `mask_mod` reads one.
    """
    if _FLEX_ATTENTION_DISABLE_COMPILE_DEBUG:
        return score_mod, ()
    _warn_once(
        "flex_attention_performance",
        "flex_attention called without torch.compile() - this will use an unfused implementation that materializes the "
        "full scores matrix instead of generating a fused kernel.\n\n"
        "SOLUTION: Use torch.compile(flex_attention)(...)\n\n"
        "If you want to debug your score_mod/mask_mod, you can set:\n"
        "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True\n\n"
        "This will allow you to use print statements or breakpoints. Note: This doesn't work with the backwards pass "
        "and may produce incorrect results.",
    )
    if not readtorch.is_grad_enabled():
        return score_mod, ()
    place = [query.new_zeros((), dtype=readtorch.int32) for _ in range(4)]
    if _captured(block_mask.mask_mod, place):
        raise AssertionError("Captured buffers from mask mod that require grad are not supported.")
    captured = _captured(score_mod, [query.new_zeros(()), *place])
    return (lambda score, b, h, q_idx, kv_idx, *captured: score_mod(score, b, h, q_idx, kv_idx)), captured


def _captured(function, arguments):
    """The tensors that a call of `function` reads, does not make, and that require a gradient."""
    with TransformGetItemToIndex(), _CapturedTensors() as reads:
        result = function(*arguments)
    if not isinstance(result, Tensor):
        raise RuntimeError(f"Expected output of score_mod to be a tensor.Got type {type(result)}.")
    reads.look_at(result)
    return tuple(reads.captured)


class _CapturedTensors(TorchFunctionMode):
    """Looks at what every function is called with. In PyTorch: Dynamo finds them where it traces `score_mod`."""

    def __init__(self):
        self.made, self.captured = [], []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for x in tree_iter((args, kwargs)):
            self.look_at(x)
        result = func(*args, **kwargs)
        self.made.extend(tree_iter(result))
        return result

    def look_at(self, x):
        if isinstance(x, Tensor) and x.requires_grad and not any(x is known for known in (*self.made, *self.captured)):
            self.captured.append(x)


# --------------------------------------------------------------------------------------------------------------- checks


def _check_inputs(query, key, value, enable_gqa):
    if query.is_nested or key.is_nested or value.is_nested:
        raise NotImplementedError(
            "flex_attention does not support NestedTensor inputs, including "
            "torch.compile(flex_attention) with jagged NestedTensor inputs. "
            "Convert inputs to dense tensors before calling flex_attention."
        )
    _validate_sdpa_input(query, key, value, allow_lowp_kv=True)
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.size(-1)} and E={key.size(-1)}."
        )
    _check_device(query, key, value)
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    Hq, Hkv = query.size(1), key.size(1)
    if not enable_gqa and Hq != Hkv:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={Hq} and Hkv={Hkv}. Try setting enable_gqa=True for GQA."
        )
    if Hq % Hkv != 0:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={Hq} and Hkv={Hkv}."
        )


def _check_device(query, key, value):
    device = query.device.type
    if device == "cpu" and (query.requires_grad or key.requires_grad or value.requires_grad):
        raise NotImplementedError(
            "FlexAttention does not support backward on CPU. Please set the input requires_grad to False or use "
            "another device."
        )
    if device not in ("cuda", "cpu"):
        raise ValueError(
            "FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. "
            f"Found input tensors on {device} device."
        )


def _check_batches(query, key, block_mask):
    Bq, Bkv = query.size(0), key.size(0)
    if Bq == Bkv:
        return
    if block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, Bq={Bq}, and Bkv={Bkv}."
        )
    B_block_mask = block_mask.kv_num_blocks.size(0)
    if B_block_mask != Bq:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have the same "
            f"batch size, but got Bq={Bq}, Bkv={Bkv}, B_block_mask={B_block_mask}."
        )


def _check_mask(query, key, block_mask):
    if block_mask.mask_mod is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if tuple(block_mask.BLOCK_SIZE) != (_LARGE_SPARSE_BLOCK_SIZE, _LARGE_SPARSE_BLOCK_SIZE):
        _check_lengths(query.size(-2), key.size(-2), block_mask.shape)
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device "
            f"but got {query.device} and {block_mask.kv_num_blocks.device}."
        )


def _check_lengths(q_len, kv_len, shape):
    begin = f"block_mask was created for block_mask.shape={shape} but got q_len={q_len} and kv_len={kv_len}. "
    if q_len > shape[-2] or kv_len > shape[-1]:
        raise ValueError(
            f"{begin}As the block mask was created for a smaller length than you're using it for, you likely need to "
            "create a new block mask."
        )
    if q_len < shape[-2] or kv_len < shape[-1]:
        raise ValueError(
            f"{begin}As the block mask was created for a larger length than you're using it for, you can either 1. "
            "create a new block mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
            "length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper "
            "left corner, which does not work for all mask_mods!"
        )


def _checked_options(kernel_options, inputs, wanted):
    options = {} if kernel_options is None else dict(kernel_options)
    if "BACKEND" in options and options.get("FORCE_USE_FLEX_ATTENTION", False):
        raise RuntimeError(
            "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. BACKEND supersedes the legacy knob; "
            "please drop FORCE_USE_FLEX_ATTENTION and only specify the desired BACKEND."
        )
    if options.setdefault("BACKEND", "AUTO") not in _BACKENDS:
        raise ValueError(f"Invalid BACKEND value '{options['BACKEND']}'. Must be one of {_BACKENDS}")
    for name in ("OUTPUT_LOGSUMEXP", "OUTPUT_MAX"):
        if name in options:
            raise AssertionError(f"{name} must not be in kernel_options")
    if options["BACKEND"] == "FLASH" and wanted.max_scores:
        raise NotImplementedError(
            "Returning max scores is not supported with BACKEND='FLASH'. "
            "Use return_aux=AuxRequest(lse=True) or omit max_scores."
        )
    if wanted.max_scores and any(x.device.type == "cpu" for x in inputs):
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")
    return options
