"""How far products of float32 numbers may be rounded, as a program wishes it for each library and kind of operator.

Here the CUDA kernels for products of matrices take TF32 where it is set for "matmul" (aten/native/cuda/cuda_blas.py). All
else is computed in float32; what is set is kept and reported.

Note [ Two ways to set a precision ]
The older way says `set_float32_matmul_precision("high")` or `backends.cuda.matmul.allow_tf32 = True`, the newer one
`backends.cuda.matmul.fp32_precision = "tf32"`. Both write the same table of (library, operator) pairs; the older one keeps
its own word besides. If the table does not fit that word any more, asking in the older way is an error.

In PyTorch: `Context::setFloat32Precision` and its neighbors in `aten/src/ATen/Context.cpp`. PyTorch has no such file.
"""

import warnings

NONE, LEGACY = "none", "default"  # nothing said; nothing said, and TF32 is allowed
ALLOWED = {
    "generic": ("none", "ieee", "tf32", "bf16"),
    "cuda": ("none", "ieee", "tf32"),
    "mkldnn": ("none", "ieee", "tf32", "bf16"),
}
OPERATORS = ("all", "conv", "rnn", "matmul")
# What the older way's words mean for products of matrices, in CUDA's library and in oneDNN.
OF_WORD = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}
READ_MORE = "See also: https://pytorch.org/docs/main/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"


class Float32Precision:
    def __init__(self):
        self.table = {(backend, op): NONE for backend in ("cuda", "mkldnn") for op in OPERATORS}
        self.table |= {("generic", "all"): NONE, ("cuda", "conv"): LEGACY, ("cuda", "rnn"): LEGACY}
        self.matmul_word = "highest"
        self.cudnn_tf32 = True

    def get(self, backend, op):
        """The precision of an operator: its own, else that of its library, else that of all libraries."""
        self.check_pair(backend, op)
        own = self.table[backend, op]
        if own not in (NONE, LEGACY):
            return own
        above = self.table[backend, "all"]
        if above == NONE:
            above = self.table["generic", "all"]
        if above == NONE and own == LEGACY:
            return "tf32"
        return above if above in ALLOWED[backend] else NONE

    def set(self, backend, op, precision):
        """RuntimeError for names that do not exist, or a precision that the library has not."""
        if precision not in ALLOWED["generic"]:
            raise RuntimeError(f"Unknown precision: {precision}")
        self.check_pair(backend, op)
        if precision not in ALLOWED[backend]:
            raise RuntimeError(f"backend '{backend}' does not support precision '{precision}'")
        self.table[backend, op] = precision
        return precision

    def check_pair(self, backend, op):
        if backend not in ALLOWED:
            raise RuntimeError(f"Unknown backend: {backend}")
        if op not in OPERATORS:
            raise RuntimeError(f"Unknown op: {op}")
        if (backend, op) not in self.table:
            raise RuntimeError(f"Invalid (backend, op) pair: ({list(ALLOWED).index(backend)}, {OPERATORS.index(op)})")

    # -- the older way ------------------------------------------------------------------------------

    def set_matmul(self, word):
        """ "highest", "high" or "medium"; warns, and changes nothing, for any other word."""
        if word not in OF_WORD:
            warnings.warn(
                f"{word} is not one of 'highest', 'high', or 'medium'; the current"
                "setFloat32MatmulPrecision call has no effect.",
                stacklevel=4,
            )
            return
        self.matmul_word = word
        self.table["cuda", "matmul"], self.table["mkldnn", "matmul"] = OF_WORD[word]

    def matmul(self):
        word, of_mkldnn = self.matmul_word, self.get("mkldnn", "matmul")
        mixed = self.get("cuda", "matmul") == "tf32" and word == "highest"
        mixed |= of_mkldnn == "bf16" and word != "medium" or of_mkldnn == "tf32" and word != "high"
        if mixed:
            raise RuntimeError(
                "PyTorch is checking the matmul precision without a specific backend name,Current status indicate that "
                "you have used mix of the legacy and new APIs to set the matmul precision. We suggest only using the new "
                f"API for matmul precision. {READ_MORE}"
            )
        return word

    def set_cublas_tf32(self, allowed):
        self.matmul_word = "high" if allowed else "highest"
        self.table["cuda", "matmul"] = "tf32" if allowed else "ieee"

    def cublas_tf32(self):
        allowed = self.get("cuda", "matmul") == "tf32"
        if allowed != (self.matmul_word != "highest"):
            raise RuntimeError(
                "PyTorch is checking whether allow_tf32_new is enabled for cuBlas matmul,Current status indicate that you "
                "have used mix of the legacy and new APIs to set the TF32 status for cublas matmul. We suggest only using "
                f"the new API to set the TF32 flag. {READ_MORE}"
            )
        return allowed

    def set_cudnn_tf32(self, allowed):
        self.cudnn_tf32 = allowed
        self.table["cuda", "conv"] = self.table["cuda", "rnn"] = "tf32" if allowed else NONE

    def cudnn_tf32_allowed(self):
        conv, rnn = (self.get("cuda", op) == "tf32" for op in ("conv", "rnn"))
        if not conv == rnn == self.cudnn_tf32:
            raise RuntimeError(
                "PyTorch is checking whether allow_tf32 is enabled for cuDNN without a specific operator name,but the "
                "current flag(s) indicate that cuDNN conv and cuDNN RNN have different TF32 flags.This combination "
                "indicates that you have used a mix of the legacy and new APIs to set the TF32 flags. We suggest only "
                f"using the new API to set the TF32 flag(s). {READ_MORE}"
            )
        return conv


float32_precision = Float32Precision()
