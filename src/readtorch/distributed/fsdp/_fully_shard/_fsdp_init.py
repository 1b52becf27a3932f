"""What a call of `fully_shard` takes charge of. In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_init.py`."""

import logging

import readtorch
from readtorch import distributed as dist
from readtorch import nn
from readtorch.distributed.device_mesh import DeviceMesh, _get_device_handle, init_device_mesh
from readtorch.distributed.tensor import DTensor

from ._fsdp_common import FSDPMeshInfo, HSDPMeshInfo

logger = logging.getLogger("torch.distributed.fsdp.fully_shard")


def _validate_module(module, func_name):
    """ValueError for a container without a forward, which has nothing that hooks could run before."""
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)) and type(module).forward is nn.Module.forward:
        raise ValueError(f"{func_name} does not support containers that do not implement forward: {module}")


def _init_default_mesh():
    """All ranks, each with its current GPU if there is one, else with the CPU."""
    if not dist.is_initialized():
        dist.init_process_group()
    device_type = "cuda" if readtorch.cuda.is_available() else "cpu"
    return init_device_mesh(device_type, (dist.get_world_size(),))


def _get_mesh_info(mesh):
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    return FSDPMeshInfo(mesh) if mesh.ndim == 1 else HSDPMeshInfo(mesh, shard_mesh_dim=1, replicate_mesh_dim=0)


def _get_post_forward_mesh_info(reshard_after_forward, mesh_info):
    """Over which ranks parameters are sharded between forward and backward; None: they stay whole.

    An int is a number of ranks that share a whole: the all-gather before backward is then one of a few neighbours.
    """
    size = mesh_info.shard_mesh_size
    if not isinstance(reshard_after_forward, int):
        raise ValueError(
            "reshard_after_forward should be a bool or an int representing the "
            f"group size to reshard to, not {reshard_after_forward}"
        )
    if isinstance(reshard_after_forward, bool):
        return mesh_info if reshard_after_forward else None
    if reshard_after_forward < 1 or size % reshard_after_forward != 0:
        raise ValueError(
            f"If passing reshard_after_forward as an int, it should be a factor of {size}, not {reshard_after_forward}"
        )
    if reshard_after_forward == 1:
        logger.warning(
            "reshard_after_forward=1 (int) means resharding parameters to world size 1, "
            "instead of reshard_after_forward=True (bool)"
        )
        return None
    if reshard_after_forward == size:
        return mesh_info
    small = DeviceMesh(mesh_info.mesh.device_type, mesh_info.mesh.mesh.view(-1, reshard_after_forward))
    return HSDPMeshInfo(small, shard_mesh_dim=1, replicate_mesh_dim=0)


def _get_device_from_mesh(mesh):
    if mesh.device_type == "cpu":
        return readtorch.device("cpu")
    return readtorch.device(mesh.device_type, _get_device_handle(mesh.device_type).current_device())


def _get_managed_modules(root_modules, is_sharded):
    """The modules below, children first, without those that an earlier call has taken (`is_sharded`)."""
    modules, visited = [], set()

    def visit(module):
        if module in visited or (module not in root_modules and is_sharded(module)):
            return
        visited.add(module)
        for child in module.children():
            visit(child)
        modules.append(module)

    for module in root_modules:
        visit(module)
    return modules


def _get_managed_states(modules, ignored_params):
    """(parameters, buffers) of the modules, each once."""
    params, buffers = {}, {}
    for module in modules:
        for name, param in module.named_parameters(recurse=False):
            if param not in ignored_params:
                _verify_managed_param(name, param)
                params[param] = None
        buffers.update(dict.fromkeys(module.buffers(recurse=False)))
    return list(params), list(buffers)


def _verify_managed_param(name, param):
    if len(param.shape) == 0:
        raise ValueError(
            f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
        )


def _move_states_to_device(params, buffers, device):
    """Parameters and buffers that are somewhere else are moved; those of the meta device wait for `to_empty`."""
    for tensor in (*params, *buffers):
        if tensor.device == device or tensor.device.type == "meta":
            continue
        if isinstance(tensor, DTensor):
            _refuse_to_move(tensor, device)
        with readtorch.no_grad():
            tensor.data = tensor.to(device)


def _refuse_to_move(tensor, device):
    """A DTensor is where its mesh is, or something has moved it."""
    kind = tensor.device_mesh.device_type
    if kind != device.type:
        raise ValueError(
            f"Requires DTensor to have mesh of the same type as the FSDP mesh but got {kind} for DTensor and {device.type} for FSDP"
        )
    raise AssertionError(f"Expects DTensor to be moved to {kind} but got {tensor.device}")
