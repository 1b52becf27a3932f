"""`fully_shard`, and what a sharded module can do. In PyTorch: `torch/distributed/fsdp/_fully_shard/_fully_shard.py`."""

import functools
import warnings

from readtorch.distributed.fsdp._fully_shard._fsdp_api import MixedPrecisionPolicy, OffloadPolicy

from ._fsdp_init import (
    _get_device_from_mesh,
    _get_managed_modules,
    _get_managed_states,
    _get_mesh_info,
    _get_post_forward_mesh_info,
    _init_default_mesh,
    _move_states_to_device,
    _validate_module,
)
from ._fsdp_param_group import FSDPParamGroup
from ._fsdp_state import FSDPState, get_module_fsdp_state

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


def fully_shard(
    module,
    *,
    mesh=None,
    reshard_after_forward=None,
    shard_placement_fn=None,
    mp_policy=MixedPrecisionPolicy(),
    offload_policy=OffloadPolicy(),
    ignored_params=None,
):
    """Spread the parameters of `module` over the ranks of `mesh`, in place; its class becomes an FSDPModule.

    Call it on layers first and on the whole model last: each call takes the parameters that no earlier one has, and they are
    gathered and reduced together. See Note [ One step of a sharded model ]. Explained in the chapter "Shards: FSDP and DTensor".

    module: or a list of modules that make one group. mesh: of one dimension, by default all ranks; of two, the rows are
    copies of the model, and each is sharded within. reshard_after_forward: whether whole parameters are freed between
    forward and backward, by default not those of the root; an int keeps them sharded over so many ranks.
    shard_placement_fn: of a parameter, the Shard along another dimension than the first, or None. ignored_params: a set.
    in PyTorch: also `dp_mesh_dims`, for parameters that are DTensors on a larger mesh.
    """
    modules = tuple(module) if isinstance(module, (list, tuple)) else (module,)
    for each in modules:
        _validate_module(each, "fully_shard")
        if get_module_fsdp_state(each) is not None:
            raise AssertionError(
                f"Each distinct composable distributed API can only be applied to a module once: {each}"
            )
    mesh_info = _get_mesh_info(mesh or _init_default_mesh())
    device = _get_device_from_mesh(mesh_info.mesh)
    post_forward = _get_post_forward_mesh_info(
        True if reshard_after_forward is None else reshard_after_forward, mesh_info
    )
    managed = _get_managed_modules(modules, lambda m: get_module_fsdp_state(m) is not None)
    params, buffers = _get_managed_states(managed, ignored_params or set())
    _move_states_to_device(params, buffers, device)
    state = FSDPState(modules, device, mp_policy, reshard_after_forward is None)
    for each in modules:
        vars(each)["_fsdp_state"] = state
    if params:
        state._fsdp_param_group = FSDPParamGroup(
            params, modules, mesh_info, post_forward, device, shard_placement_fn, mp_policy, offload_policy
        )
    for each in modules:
        each.__class__ = _sharded_class(type(each))
    return module


@functools.cache
def _sharded_class(cls):
    return type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _unimplemented_deepcopy})


def _unimplemented_deepcopy(*args, **kwargs):
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class FSDPModule:
    """What `fully_shard` adds to the class of a module.

    in PyTorch: also `set_allocate_memory_from_process_group_for_comm` and `set_symm_mem_for_comm`, for memory that NCCL provides.
    """

    def __new__(cls, *args, **kwargs):
        """An object of the class as it was: when a Sequential makes another of its own kind from a slice, say."""
        original = cls.__mro__[2]
        self = original.__new__(original, *args, **kwargs)
        self.__init__(*args, **kwargs)
        return self

    def _get_fsdp_state(self):
        return get_module_fsdp_state(self)

    def _states(self, recurse=True):
        """The states of this module and of those below."""
        modules = self.modules() if recurse else [self]
        return [state for module in modules if (state := get_module_fsdp_state(module)) is not None]

    def _groups(self, recurse=True):
        return [group for state in self._states(recurse) for group in state._groups]

    def reshard(self):
        """Free the whole parameters of this module alone."""
        for group in self._groups(recurse=False):
            group.reshard()

    def unshard(self, async_op=False):
        """Gather the parameters of this module alone; with async_op an UnshardHandle to wait for it."""
        groups = self._groups(recurse=False)
        for group in groups:
            group.lazy_init()
            group.unshard(async_op=async_op)
        handle = UnshardHandle(groups)
        if async_op:
            return handle
        handle.wait()
        return None

    def reset_iter_state(self):
        """After an exception in forward or backward, on the root: make ready for another step."""
        self._get_fsdp_state().reset_iter_state()

    def set_is_last_backward(self, is_last_backward):
        """Whether the next backward pass is the last before a step: only then reductions are waited for."""
        self._get_fsdp_state()._state_ctx.is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """Whether gradients are reduced; if not, whole ones are added up, as with `no_sync`."""
        for group in self._groups(recurse):
            group.reduce_grads = group.all_reduce_grads = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """With copies of the model: whether the gradients of the copies are added, too."""
        for group in self._groups(recurse):
            group.all_reduce_grads = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Whether whole parameters are freed between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state._auto_reshard_after_forward = False
            for group in state._groups:
                group.post_forward_mesh_info = _get_post_forward_mesh_info(reshard_after_forward, group.mesh_info)

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Whether they are freed after backward; if not, the next forward pass gathers nothing."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules):
        """Modules whose all-gathers are asked for as soon as this module's is over, in forward."""
        _assert_all_fsdp_modules(modules)
        self._get_fsdp_state()._states_to_forward_prefetch = [module._get_fsdp_state() for module in modules]

    def set_modules_to_backward_prefetch(self, modules):
        """The same in backward, in place of the one module that ran before this one."""
        _assert_all_fsdp_modules(modules)
        self._get_fsdp_state()._states_to_backward_prefetch = [module._get_fsdp_state() for module in modules]

    def set_post_optim_event(self, event):
        """What the next step's all-gathers wait for, in place of all that is on the current stream. On the root."""
        self._get_fsdp_state()._state_ctx.post_optim_event = event

    def set_custom_all_gather(self, comm):
        """Gather this module's parameters by an `AllGather` of one's own."""
        for group in self._groups(recurse=False):
            group._all_gather_comm = comm

    def set_custom_reduce_scatter(self, comm):
        """Reduce this module's gradients by a `ReduceScatter` of one's own."""
        for group in self._groups(recurse=False):
            group._reduce_scatter_comm = comm

    def set_all_reduce_hook(self, hook, *, stream=None):
        """What is called with this rank's part of this module's gradients once they are reduced, with copies of the model by all of them.

        stream: where; only without copies of the model.
        """
        for group in self._groups(recurse=False):
            group._all_reduce_hook = hook
            if stream is not None:
                if group._is_hsdp:
                    raise ValueError("stream cannot be set when using native HSDP")
                group._all_reduce_hook_stream = stream

    def set_reduce_scatter_divide_factor(self, factor):
        """The old name of set_gradient_divide_factor."""
        warnings.warn("Use `set_gradient_divide_factor` instead", DeprecationWarning, stacklevel=2)
        self.set_gradient_divide_factor(factor)

    def set_gradient_divide_factor(self, factor):
        """What the sum of the ranks' gradients is divided by, in place of their number."""
        for group in self._groups(recurse=False):
            group.gradient_divide_factor = factor

    def set_force_sum_reduction_for_comms(self, enable):
        """Whether this module's collectives are sums, which are divided afterwards, where they could be averages."""
        for group in self._groups(recurse=False):
            group.force_sum_reduction_for_comms = enable

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params, *, recurse=True):
        """Whether parameters that have got no gradient bring zeros: needed where other ranks use other parameters."""
        for group in self._groups(recurse):
            group.reduce_scatter_unused_params = reduce_scatter_unused_params

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers, *, recurse=True):
        """How many groups' gradients may be on their way at once, by default 1: Note [ What overlaps with what ]. Before the first step."""
        if isinstance(max_input_buffers, bool) or not isinstance(max_input_buffers, int):
            raise TypeError(f"max_input_buffers must be an int, got {type(max_input_buffers).__name__}")
        if max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be a positive int, got {max_input_buffers}")
        for group in self._groups(recurse):
            group.reduce_scatter_max_input_buffers = max_input_buffers

    def set_separate_reduce_scatter_group(self, enable=True, *, recurse=True):
        """Whether reductions have a process group of their own beside that of the all-gathers. All ranks must call it."""
        new_groups = {}
        for group in self._groups(recurse):
            group._set_separate_reduce_scatter_group(enable, new_groups)

    def set_unshard_in_backward(self, unshard_in_backward):
        """Whether this module's parameters are needed in backward: an embedding's are not."""
        for group in self._groups(recurse=False):
            group.unshard_in_backward = unshard_in_backward

    def _set_unshard_async_op(self, async_op):
        for group in self._groups():
            group.unshard_async_op = async_op

    def _apply(self, *args, **kwargs):
        """`to`, `cuda`, `to_empty` …: what they do is done to the shards."""
        self.reshard()
        result = super()._apply(*args, **kwargs)
        for group in self._groups(recurse=False):
            for param in group.fsdp_params:
                param.reset_sharded_param()
        return result


class UnshardHandle:
    """An all-gather that is under way."""

    def __init__(self, groups):
        self._groups = groups

    def wait(self):
        """Let the current stream wait for it, and the module have its parameters."""
        for group in self._groups:
            group.wait_for_unshard()
        self._groups = []


def register_fsdp_forward_method(module, method_name):
    """Let another method of the module than `forward` have the hooks before and after it, too."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{method_name} does not exist on {module}")
    method = getattr(type(module), method_name)

    @functools.wraps(method)
    def wrapped(*args, **kwargs):
        state = module._get_fsdp_state()
        args, kwargs = state._pre_forward(module, args, kwargs)
        return state._post_forward(module, args, method(module, *args, **kwargs))

    setattr(module, method_name, wrapped)


def _assert_all_fsdp_modules(modules):
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")
