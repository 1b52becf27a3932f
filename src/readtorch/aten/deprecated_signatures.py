"""Orders of arguments that old programs use: `addcmul(x, value, a, b)`, `addmm(beta, x, alpha, a, b)`.

In PyTorch: `tools/autograd/deprecated.yaml`; the warning: `torch/csrc/utils/python_arg_parser.cpp`.
"""

from readtorch.c10.exception import warn_once

# Of a name: the orders in which its arguments may also stand; a factor that is left out is 1.
ORDERS = dict.fromkeys(("add", "sub"), ["self alpha other"])
ORDERS |= dict.fromkeys(("addcdiv", "addcmul"), ["self value tensor1 tensor2"])
for _name, _pair in {
    "addbmm": "batch1 batch2",
    "addmm": "mat1 mat2",
    "addmv": "mat vec",
    "addr": "vec1 vec2",
    "baddbmm": "batch1 batch2",
    "sspaddmm": "mat1 mat2",
}.items():
    ORDERS[_name] = [f"beta self alpha {_pair}", f"beta self {_pair}"]


def deprecated_orders(packet):
    """The old orders of the arguments of a name, most often none."""
    orders = ORDERS.get(packet.name.removesuffix("_"), ()) if packet.module == "torch" else ()
    return [order.split() for order in orders]


def warn_of(signature):
    """Once a process: that this signature is deprecated, and which others are not."""
    others = "".join([f"\n\t{s.name}{s}" for s in signature.others if not s.hidden])
    warn_once(
        f"This overload of {signature.name} is deprecated:\n\t{signature.name}{signature}\n"
        f"Consider using one of the following signatures instead:{others}",
        stacklevel=5,
    )
