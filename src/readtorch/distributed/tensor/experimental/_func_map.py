"""Functions of local tensors, called with DTensors. In PyTorch: `torch/distributed/tensor/experimental/_func_map.py`."""

import functools

from readtorch import Tensor
from readtorch.distributed.tensor._api import DTensor
from readtorch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["local_map"]


def local_map(
    func=None,
    out_placements=None,
    in_placements=None,
    in_grad_placements=None,
    device_mesh=None,
    *,
    redistribute_inputs=False,
):
    """A function of DTensors that calls `func` with what each rank has of them, and makes DTensors of the tensors that it returns.

    Without `func` a decorator. out_placements: of the only output, as a list, or a tuple with those of each output; None for one that is
    no tensor. in_placements: what those of each positional argument must be, None for what is no DTensor; others raise ValueError, or are
    redistributed if redistribute_inputs. in_grad_placements: of the gradients of the local tensors, where they are placed in another way
    (see `DTensor.to_local`). device_mesh: of the outputs; by default that of the first DTensor. Called without any DTensor it is `func`.
    """
    settings = out_placements, in_placements, in_grad_placements, device_mesh, redistribute_inputs
    if func is None:
        return lambda function: functools.partial(_local_map_wrapped, function, *settings)
    return functools.partial(_local_map_wrapped, func, *settings)


def _local_map_wrapped(
    func, out_placements, in_placements, in_grad_placements, device_mesh, redistribute_inputs, *args, **kwargs
):
    flat, structure = tree_flatten(args)
    if in_placements is not None and len(in_placements) != len(flat):
        raise AssertionError(
            f"in_placements length {len(in_placements)} does not match the number of input args {len(flat)}!"
        )
    local = []
    for i, arg in enumerate(flat):
        if isinstance(arg, DTensor):
            device_mesh = device_mesh or arg.device_mesh
            if in_placements is not None:
                arg = _placed(arg, in_placements[i], redistribute_inputs)
            arg = arg.to_local(grad_placements=_grad_placements(arg, in_grad_placements, i))
        elif in_placements is not None and in_placements[i] is not None and not isinstance(arg, Tensor):
            raise AssertionError(f"Non-Tensor input {arg} expects None placements but received {in_placements[i]}!")
        local.append(arg)
    result = func(*tree_unflatten(local, structure), **kwargs)
    if not any(isinstance(arg, DTensor) for arg in flat):
        return result
    return _distributed(result, out_placements, device_mesh)


def _placed(arg, wanted, redistribute):
    """A DTensor with the placements that it must have."""
    if wanted is None:
        raise AssertionError(f"DTensor input {arg} expects placements but received {wanted}!")
    wanted = tuple(wanted)
    if arg.placements == wanted:
        return arg
    if not redistribute:
        raise ValueError(
            f"arg {arg} in local_map has a mismatched placements: arg placements is {arg.placements} but the input placements is "
            f"{wanted}! If redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
        )
    return arg.redistribute(placements=wanted)


def _grad_placements(arg, in_grad_placements, i):
    if in_grad_placements is None:
        return None
    if in_grad_placements[i] is None:
        raise AssertionError(f"DTensor input {arg} expects in grad placements but received {in_grad_placements[i]}!")
    return tuple(in_grad_placements[i])


def _distributed(result, out_placements, mesh):
    """What a function has returned, with DTensors in place of tensors."""
    flat, structure = tree_flatten(result)
    placements = out_placements if isinstance(out_placements, tuple) else (out_placements,)
    if len(flat) != len(placements):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, received "
            f"{len(placements)} out_placements but {len(flat)} is expected!"
        )
    made = []
    for out, wanted in zip(flat, placements, strict=True):
        if isinstance(out, DTensor):
            raise AssertionError(f"torch.Tensor output expected but received {type(out)}: {out}")
        if isinstance(out, Tensor):
            out = DTensor.from_local(out, mesh, wanted, run_check=False)
        elif wanted is not None:
            raise AssertionError(f"Non-tensor output {out} expects None placements but received {wanted}!")
        made.append(out)
    return tree_unflatten(made, structure)
