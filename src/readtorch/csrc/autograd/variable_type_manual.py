"""What is written by hand around an operator's Autograd kernel: the making and taking apart of duals, and what refuses them.

In PyTorch: `torch/csrc/autograd/VariableTypeManual.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.c10.dispatch_key import TANGENT

from .forward_grad import set_tangent, share_nothing, tangent


def fw_primal(kernel, keys):
    """`_fw_primal`: its result has no tangent."""

    def fw_primal_autograd(self, level):
        result = share_nothing(kernel(self, level))
        if tangent(self) is not None and level != 0:
            raise RuntimeError("Invalid level given to _fw_primal")
        return result

    return fw_primal_autograd


def make_dual(kernel, keys):
    """`_make_dual`: its result has the tangent that is given."""

    def make_dual_autograd(primal, of_primal, level):
        if tangent(primal, level) is not None:
            raise RuntimeError(
                "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
                f"{level} is not supported."
            )
        result = share_nothing(kernel(primal, of_primal, level))
        if level != 0:
            raise RuntimeError("Invalid level given to _make_dual")
        set_tangent(result, of_primal, level)
        return result

    return make_dual_autograd


def resize(kernel, keys):
    """`resize_`, `resize_as_`: a tangent would keep its size."""
    if not keys & TANGENT:
        return kernel

    def resize_autograd(self, *arguments):
        result = kernel(self, *arguments)
        if tangent(self) is not None:
            raise RuntimeError("cannot resize variables that has a forward grad")
        return result

    return resize_autograd


# Name of an operator -> function(kernel, keys) that returns its Autograd kernel; `kernel` is the one that notes the call in the graph.
by_hand_kernels = {
    "aten::_fw_primal": fw_primal,
    "aten::_make_dual": make_dual,
    "aten::resize_": resize,
    "aten::resize_as_": resize,
}
