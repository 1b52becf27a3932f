"""Which module is parallelized in which style. In PyTorch: `torch/distributed/tensor/parallel/api.py`."""

import warnings
from fnmatch import fnmatch

from readtorch.distributed.device_mesh import _mesh_resources

from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Spread the parameters of a module, or of modules in it, over the ranks of a mesh of one dimension. In place; returns the module.

    parallelize_plan: a `ParallelStyle`, or {"name.of.a.submodule": style}, where names may have wildcards. src_data_rank: whose
    parameters they are; None: each rank cuts its own, which must be equal.
    """
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported "
            "at the moment, so this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for"
            f" parallelize_plan, {type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        _parallelize_path(module, device_mesh, path, style, src_data_rank)
    return module


def _parallelize_path(module, mesh, path, style, src_data_rank):
    """Apply a style to all submodules that a path names."""
    if path == "":
        parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
        return
    token, _, rest = path.partition(".")
    children = [child for name, child in module.named_children() if fnmatch(name, token)]
    if not children:
        warnings.warn(
            f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{token}' in module {module}, "
            "skipping this plan entry.",
            stacklevel=3,
        )
    for child in children:
        parallelize_module(child, mesh, {rest: style} if rest else style, src_data_rank=src_data_rank)
