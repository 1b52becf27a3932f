"""out= forms that take no other dtype than the result's.

Pointwise operators cast their result to what `out` holds. Matrix products and decompositions do not: a library routine
writes straight into the output's memory.

In PyTorch: the `set_output` of structured kernels (`torchgen`, `check_inplace`/`resize_out`).
"""
from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of
from ..native_function import write_out

# The names that C++ has for element types.
_C_NAMES = {"Byte": "unsigned char", "Char": "signed char", "Short": "short int", "Int": "int", "Long": "long int",
            "Half": "c10::Half", "Float": "float", "Double": "double", "ComplexFloat": "c10::complex<float>",
            "ComplexDouble": "c10::complex<double>", "Bool": "bool", "BFloat16": "c10::BFloat16"}


def type_name(t):
    return SCALAR_TYPE_NAMES[dtype_of(t)]


def c_name(t):
    return _C_NAMES[type_name(t)]


def expected_dtype(out, result, *arguments):
    return f"Expected out tensor to have dtype {c_name(result)}, but got {c_name(out)} instead"


def exact_out(operator, message=expected_dtype):
    """Make `operator.out` refuse an output of another dtype, with the words `message(out, result, *arguments)`."""
    count = len(operator.schema.returns)

    @operator.out.kernel
    def compute_then_copy(*arguments):
        arguments, outs = arguments[:-count], arguments[-count:]
        results = operator.call(*arguments)
        for out, result in zip(outs, (results,) if count == 1 else results):
            if out._array.dtype != result._array.dtype:
                raise RuntimeError(message(out, result, *arguments))
        return write_out(results, outs)
