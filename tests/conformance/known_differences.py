"""What differs from the reference and stays so, and what is left out: each with its reason.

Nothing is skipped silently. A failure that an entry of DIFFERENCES describes is reported with its reason
instead of as a failure; a test runs every entry, and fails when the difference no longer happens. A name of
op_db that readtorch lacks is either in LEFT_OUT, or it counts as missing.
"""

import dataclasses
import re

import torch

from tests.reference import FUSES


@dataclasses.dataclass(frozen=True)
class Difference:
    name: str  # of the operator, module or optimizer
    pattern: str  # a regular expression that finds the failure: in "form dtype sample: reason"
    why: str
    rounding: bool = (
        False  # whether it hangs on last bits, which another processor has otherwise: then it need not happen
    )


OWN_SERIES = "PyTorch's own series are off from the sixth digit on; ours are SciPy's functions"
IHFFT_OUT = "with out=, PyTorch's function returns other numbers than without"

ADDS_IN_FLOAT16 = torch.cpu.get_capabilities().get("avx512_fp16", False)

ADDS_IN_BFLOAT16 = not torch.ops.mkldnn._is_mkldnn_bf16_supported()

DIFFERENCES = [
    *[
        Difference(
            f"nn.functional.conv_transpose{dims}d",
            r" float16 .*: (result|gradient\[\d\]|second gradient.*): Tensor-likes are not close",
            "where the processor has instructions for float16 (AVX512-FP16), oneDNN adds in float16; ours adds in float32",
            rounding=True,
        )
        for dims in (1, 2, 3)
    ]
    * ADDS_IN_FLOAT16,
    *[
        Difference(
            f"nn.functional.conv_transpose{dims}d",
            r" bfloat16 .*: (result|gradient\[\d\]|second gradient.*): Tensor-likes are not close",
            "where oneDNN has no bfloat16 for the processor, PyTorch's own loop adds in bfloat16; ours adds in float32",
            rounding=True,
        )
        for dims in (1, 2, 3)
    ]
    * ADDS_IN_BFLOAT16,
    Difference(
        "native_layer_norm",
        r": no error instead of RuntimeError: Expected a proper Tensor but got None",
        "PyTorch's second derivative fails with an internal error where there is no weight; ours answers",
    ),
    # PyTorch's default loops round twice, and nothing remains: Note [ Processors without FMA ] in reference.py
    *[
        Difference(
            "native_layer_norm",
            r"float16 \(b?f16\[1\], \(1\)",
            "a row of one element minus its mean is 0; PyTorch computes x / std - mean / std, of which the rounding "
            "remains",
        )
    ]
    * FUSES,
    Difference(
        "nn.functional.multi_head_attention_forward",
        r" float32 .*: result\[0\]: .*not close",
        "scores of 10^5: float32 rounds them by a hundredth, a per cent of a softmax's weight; neither library "
        "is nearer to float64, in which they agree",
    ),
    Difference("fft.ihfft2", r"out= .* not close", IHFFT_OUT),
    Difference("fft.ihfftn", r"out= .* not close", IHFFT_OUT),
    Difference("special.bessel_j0", r"float64 .*not close", OWN_SERIES),
    Difference("special.bessel_y1", r"float64 .*not close", OWN_SERIES),
    *[
        Difference(
            "special.hermite_polynomial_he",
            r" float32 .*not close",
            "the terms of the recurrence cancel; a fused multiply-add, which PyTorch's compiler puts in, rounds "
            "otherwise than two operations",
        )
    ]
    * FUSES,
    Difference(
        "_segment_reduce",
        r" b?float16 .*not close",
        "16-bit sums: PyTorch rounds after each addition, readtorch at the end",
    ),
    Difference(
        "istft",
        r"complex128 .*gradient\[1\]: a tensor instead of None",
        "PyTorch gives a complex window that is shorter than a frame no gradient; ours has one",
    ),
    Difference(
        "as_strided_scatter",
        r"gradient\[0\]",
        "PyTorch hands on the gradient of the part that was replaced; ours that of the part that was kept",
    ),
    Difference(
        "linalg.householder_product",
        r"^function complex128 .*: second gradient",
        "PyTorch inverts the reflections one after the other, and where one is nearly singular loses "
        "digits; readtorch does not invert",
        rounding=True,
    ),
    Difference(
        "matrix_exp",
        r" float32 .*: result",
        "small elements among large ones: PyTorch computes in single precision, readtorch rounds at the end",
    ),
    Difference(
        "matrix_exp",
        r" b?float16 .*: result",
        "PyTorch's 16-bit result is inf and nan, already for a matrix of ones; readtorch computes it",
    ),
    Difference("complex", r" float16 ", "complex numbers of two half floats are left out"),
]

# Here, but not in the form that op_db tries: `torch.sparse.mm` with `reduce`, `sampled_addmm` with tensors that are not carried over.
OTHER_FORM = {"sparse.mm", "sparse.sampled_addmm"}

# reason -> names of op_db, or how they begin ("sparse.*")
LEFT_OUT = {
    "op_db tries these with tensors of the layout CSR, which are not carried over: they have tests of their own": [
        "sparse.*"
    ],
    "it compiles code for a GPU while it runs": ["jiterator_*"],
    "complex32, complex numbers of two half floats, is left out": ["chalf"],
    "8-bit floating-point numbers are left out": ["torch._scaled_mm", "torch._scaled_mm_v2"],
    "a kernel for GPUs": ["torch.ops.aten._flash_attention_forward", "torch.ops.aten._efficient_attention_forward"],
}


def differences_of(name):
    return [d for d in DIFFERENCES if d.name == name]


def explain(name, findings):
    """Turn the failures that are known into findings of the kind "known", with the reason.

    Returns the differences that were met.
    """
    met = []
    for finding in findings:
        known = next((d for d in differences_of(name) if describes(d, finding)), None)
        if known is not None and finding.kind == "FAIL":
            finding.kind, finding.reason = "known", f"{known.why} ({finding.reason})"
            met.append(known)
    return met


def describes(difference, finding):
    text = f"{finding.form} {finding.dtype} {finding.sample}: {finding.reason}"
    return re.search(difference.pattern, text) is not None


def why_left_out(name):
    """The reason why readtorch has no operator of that name, or None."""
    return next((why for why, names in LEFT_OUT.items() if any(_covers(n, name) for n in names)), None)


def _covers(pattern, name):
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
