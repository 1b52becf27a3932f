"""Parameters that are gathered and reduced together. In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py`.

Note [ What overlaps with what ]

The host runs ahead of the device. In forward it asks for the all-gather of a group when the group's turn comes, which is
while the device still computes the group before: so the collective runs beside that computation without being prefetched,
if only it is on a stream of its own and writes to other memory than the one before. That is why the output of an all-gather
is kept until the next one has copied in (`comm_ctx.all_gather_state`). In backward the reduce-scatter of a group would come
between, so the next all-gather is asked for before the group's gradients are computed: the groups are known from forward, in
reverse (`_backward_prefetch`). The input of a reduce-scatter is kept until the next one begins, or one of the next ones: more
of them take memory, and computation waits less for a reduction that takes longer than it.
"""

import contextlib
from typing import Any, NamedTuple

import readtorch
from readtorch import autograd
from readtorch import distributed as dist
from readtorch.distributed.device_mesh import _get_device_handle

from ._fsdp_api import CPUOffloadPolicy
from ._fsdp_collectives import (
    AllGatherResult,
    DefaultAllGather,
    DefaultReduceScatter,
    foreach_all_gather,
    foreach_all_gather_copy_out,
    foreach_reduce,
)
from ._fsdp_common import HSDPMeshInfo, TrainingState, collect_grad_tensors, is_bw, replace_grad_tensors
from ._fsdp_param import FSDPParam, ParamModuleInfo, ShardedState


class AllGatherState(NamedTuple):
    """An all-gather's output, which the next one must not overwrite before `event`."""

    all_gather_result: AllGatherResult
    event: Any


class FSDPCommContext:
    """Streams, and what is under way on them, shared by all groups below one root."""

    def lazy_init(self, device):
        handle = _get_device_handle(device.type)
        self.all_gather_copy_in_stream = handle.Stream(priority=-1)
        self.all_gather_stream = handle.Stream(priority=-1)
        self.reduce_scatter_stream = handle.Stream(priority=-1)
        self.all_reduce_stream = handle.Stream()
        self.all_gather_state = None
        self.reduce_scatter_states = []  # of the last groups: (its input, when it is over)
        self.reduce_scatter_max_input_buffers = 1
        self.post_forward_order = []  # the groups as they ran forward

    def get_all_gather_streams(self, async_op, training_state, current_stream):
        """(for the copy in, for the collective); where nothing shall overlap, the current one."""
        if not async_op and training_state in (TrainingState.FORWARD, TrainingState.PRE_BACKWARD):
            return self.all_gather_copy_in_stream, self.all_gather_stream
        return current_stream, current_stream


class FSDPParamGroup:
    """The parameters of one call of `fully_shard`."""

    def __init__(
        self, params, modules, mesh_info, post_forward_mesh_info, device, placement_fn, mp_policy, offload_policy
    ):
        self.modules = modules
        self.fsdp_params = [
            FSDPParam(param, info, mesh_info, post_forward_mesh_info, device, placement_fn, mp_policy, offload_policy)
            for param, info in zip(params, _get_param_module_infos(params, modules))
        ]
        self.mesh_info = mesh_info
        self.post_forward_mesh_info = post_forward_mesh_info
        self.device = device
        self.device_handle = _get_device_handle(device.type)
        self.offload_policy = offload_policy
        self.comm_ctx = FSDPCommContext()
        self._training_state = TrainingState.IDLE
        self._sharded_state = ShardedState.SHARDED
        self._module_fqn = None
        self._hooked = False
        # what FSDPModule's setters set
        self.reduce_grads = self.all_reduce_grads = True
        self.reshard_after_backward = True
        self.unshard_async_op = False
        self.unshard_in_backward = True
        self.gradient_divide_factor = None
        self.force_sum_reduction_for_comms = self.reduce_scatter_unused_params = False
        self.reduce_scatter_max_input_buffers = 1
        self._all_gather_comm, self._reduce_scatter_comm = DefaultAllGather(), DefaultReduceScatter()
        self._all_reduce_hook = self._all_reduce_hook_stream = None
        # what is under way
        self._all_gather_result = None
        self._post_reduce_event = None
        self._reshard_after_forward_event = None
        self._partial_reduce_output = None
        self._post_forward_indices = []

    # --------------------------------------------------------------------------------------- before the first step

    def lazy_init(self):
        """What can only be known when all parameters are where they will be trained."""
        for param in self.fsdp_params:
            param.reset_sharded_param()
            param.init_dtype_attrs()
        self._validate_devices()
        trained = [param for param in self.fsdp_params if param.sharded_param.requires_grad]
        self._orig_dtype = _uniform("original parameter", {param.orig_dtype for param in trained})
        self._reduce_dtype = _uniform("reduce", {param.reduce_dtype for param in trained})
        self._register_state_dict_hooks()

    def _validate_devices(self):
        where = [(param._param_fqn, param.sharded_param.device) for param in self.fsdp_params]
        on_meta = [name for name, device in where if device.type == "meta"]
        if on_meta:
            raise RuntimeError(
                "FSDP parameters should be materialized from meta device before training, "
                f"but the following were still on meta device: {on_meta}\n"
                "For example, call module.to_empty(device) to materialize to device and "
                "call module.reset_parameters() on each module to initialize values."
            )
        if isinstance(self.offload_policy, CPUOffloadPolicy):
            elsewhere = [(name, device) for name, device in where if device.type != "cpu"]
            if elsewhere:
                raise RuntimeError(
                    "FSDP parameters should be materialized on CPU when enabling CPU offloading. "
                    'For example, load a CPU state dict or call module.to_empty(device="cpu"). '
                    f"Found following parameters on non-CPU device: {elsewhere}\n"
                )

    def _register_state_dict_hooks(self):
        """A state_dict, saved or loaded, is one of shards."""
        if self._hooked:
            return
        self._hooked = True
        for module in {param._module_info.module for param in self.fsdp_params}:
            module.register_state_dict_pre_hook(lambda *args: self._to_sharded())
            module.register_load_state_dict_pre_hook(lambda *args: self._to_sharded())

    # ------------------------------------------------------------------------------------------ whole and sharded

    def unshard(self, async_op=False):
        """Begin the all-gather, unless the parameters are whole, or on their way."""
        if self._all_gather_result is not None or self.is_unsharded:
            return
        if not self.unshard_in_backward and self._training_state is TrainingState.PRE_BACKWARD:
            return
        if self._reshard_after_forward_event is not None:
            self._wait_all_gather_streams_on_event(self._reshard_after_forward_event)
            self._reshard_after_forward_event = None
        streams = self.comm_ctx.get_all_gather_streams(
            async_op, self._training_state, self.device_handle.current_stream()
        )
        self._all_gather_result = foreach_all_gather(
            self.fsdp_params, self._all_gather_process_group, async_op, *streams, self.device, self._all_gather_comm
        )

    def wait_for_unshard(self):
        """Wait for it, and let the modules have the whole parameters: Note [ What overlaps with what ]."""
        result = self._all_gather_result
        if result is None:
            return
        forward = self._training_state is TrainingState.FORWARD
        if forward and (previous := self.comm_ctx.all_gather_state) is not None:
            self._wait_all_gather_streams_on_event(previous.event)
            self.comm_ctx.all_gather_state = None
        foreach_all_gather_copy_out(result, self.fsdp_params, self._all_gather_process_group)
        for param in self.fsdp_params:
            param.init_unsharded_param()
        self._to_unsharded()
        event = self.device_handle.current_stream().record_event()
        if forward and result.all_gather_work is None:
            self.comm_ctx.all_gather_state = AllGatherState(result, event)
        else:
            self._wait_all_gather_streams_on_event(event)
        self._all_gather_result = None

    def _wait_all_gather_streams_on_event(self, event):
        if event is not None and hasattr(self.comm_ctx, "all_gather_stream"):
            self.comm_ctx.all_gather_copy_in_stream.wait_event(event)
            self.comm_ctx.all_gather_stream.wait_event(event)

    def reshard(self):
        """Free the whole parameters; after forward only if the caller wanted that."""
        if self._training_state is not TrainingState.FORWARD:
            self._to_sharded()
        elif self.post_forward_mesh_info is self.mesh_info:
            self._to_sharded()
        elif self.post_forward_mesh_info is not None:
            self._to_sharded_post_forward()
            self._reshard_after_forward_event = self.device_handle.current_stream().record_event()

    def _to_sharded(self):
        if self._sharded_state is not ShardedState.SHARDED:
            for param in self.fsdp_params:
                param.to_sharded()
            self._sharded_state = ShardedState.SHARDED

    def _to_sharded_post_forward(self):
        if self._sharded_state is ShardedState.UNSHARDED:
            for param in self.fsdp_params:
                param.to_sharded_post_forward()
            self._sharded_state = ShardedState.SHARDED_POST_FORWARD

    def _to_unsharded(self):
        for param in self.fsdp_params:
            param.to_unsharded()
        self._sharded_state = ShardedState.UNSHARDED

    @property
    def is_unsharded(self):
        return self._sharded_state is ShardedState.UNSHARDED

    @property
    def _is_hsdp(self):
        return isinstance(self.mesh_info, HSDPMeshInfo)

    @property
    def _all_gather_process_group(self):
        small = self._sharded_state is ShardedState.SHARDED_POST_FORWARD
        return (self.post_forward_mesh_info if small else self.mesh_info).shard_process_group

    @property
    def _reduce_scatter_process_group(self):
        return self.mesh_info.reduce_scatter_process_group or self.mesh_info.shard_process_group

    def _set_separate_reduce_scatter_group(self, enable, new_groups):
        """new_groups: {ranks: group} of those that one call has made."""
        info = self.mesh_info
        if not enable:
            info.reduce_scatter_process_group = None
            return
        ranks = tuple(dist.get_process_group_ranks(info.shard_process_group))
        if ranks not in new_groups:
            new_groups[ranks] = info.reduce_scatter_process_group or dist.new_group(
                list(ranks), use_local_synchronization=True, group_desc="fsdp_reduce_scatter"
            )
        info.reduce_scatter_process_group = new_groups[ranks]

    # ------------------------------------------------------------------------------------------ forward and backward

    def pre_forward(self, args, kwargs):
        """Before the module computes. Returns its arguments, which tell when its backward pass is over."""
        entering = self._training_state is not TrainingState.FORWARD
        self._training_state = TrainingState.FORWARD
        self.unshard(self.unshard_async_op)
        self.wait_for_unshard()
        return self._register_post_backward_hook(args, kwargs) if entering else (args, kwargs)

    def post_forward(self):
        if not is_bw():  # in activation checkpointing gradients come next
            self.reshard()
            self._post_forward_indices.append(len(self.comm_ctx.post_forward_order))
            self.comm_ctx.post_forward_order.append(self)
        self._training_state = TrainingState.IDLE

    def pre_backward(self, default_prefetch):
        """When the gradient of an output is there."""
        if self._training_state is TrainingState.PRE_BACKWARD:
            return
        self._training_state = TrainingState.PRE_BACKWARD
        self.unshard(self.unshard_async_op)  # nothing, if prefetched
        self.wait_for_unshard()
        if default_prefetch:
            self._backward_prefetch()

    def post_backward(self):
        """When the gradients of all parameters are there: free the parameters, reduce the gradients."""
        self._training_state = TrainingState.POST_BACKWARD
        for param in self.fsdp_params:
            param.accumulate_unsharded_grad_if_needed()
        params, grads = self._grads_to_reduce() if self.reduce_grads else ([], [])
        if self.reshard_after_backward:
            self.reshard()
        if not self.reduce_grads:
            for param in self.fsdp_params:
                param.to_accumulated_grad_if_needed()
            return
        while len(self.comm_ctx.reduce_scatter_states) >= self.comm_ctx.reduce_scatter_max_input_buffers:
            self._current_stream_waits_for(self.comm_ctx.reduce_scatter_states.pop(0)[1])  # its input is freed
        if not params:
            return
        result = foreach_reduce(params, grads, self, self.all_reduce_grads, self._partial_reduce_output)
        self.comm_ctx.reduce_scatter_states.append((result.reduce_scatter_input, result.reduce_scatter_event))
        self._post_reduce_event = result.post_reduce_event
        self._partial_reduce_output = result.partial_reduce_output

    def _grads_to_reduce(self):
        pairs = [(param, param.take_unsharded_grad(self.reduce_scatter_unused_params)) for param in self.fsdp_params]
        pairs = [(param, grad) for param, grad in pairs if grad is not None]
        return [param for param, _ in pairs], [grad for _, grad in pairs]

    def finalize_backward(self):
        """At the end of a backward pass: whoever looks at the gradients next finds them there."""
        self._current_stream_waits_for(self._post_reduce_event)
        self._post_reduce_event = None
        for param in self.fsdp_params:
            if param.grad_offload_event is not None:
                param.grad_offload_event.synchronize()
                param.grad_offload_event = None
        if self._all_gather_result is not None:  # prefetched, and never needed
            self._current_stream_waits_for(self._all_gather_result.all_gather_event)
            if self._all_gather_result.all_gather_work is not None:
                self._all_gather_result.all_gather_work.wait()
            self._all_gather_result = None
        self._post_forward_indices.clear()

    def _current_stream_waits_for(self, event):
        if event is not None:
            self.device_handle.current_stream().wait_event(event)

    def _backward_prefetch(self):
        """Ask for the group that ran before this one in forward."""
        if not self._post_forward_indices:
            return  # it can be run by another backward pass, which has no order of its own
        index = self._post_forward_indices.pop()
        if index > 0:
            self._prefetch_unshard(self.comm_ctx.post_forward_order[index - 1], TrainingState.PRE_BACKWARD)

    @staticmethod
    def _prefetch_unshard(target, training_state):
        with target.use_training_state(training_state):
            target.unshard(target.unshard_async_op)

    @contextlib.contextmanager
    def use_training_state(self, training_state):
        before, self._training_state = self._training_state, training_state
        try:
            yield
        finally:
            self._training_state = before

    def _register_post_backward_hook(self, args, kwargs):
        """Send the inputs that need gradients through a node whose backward runs when the module's own has ended."""
        if not readtorch.is_grad_enabled():
            return args, kwargs
        tensors = collect_grad_tensors((args, kwargs))
        if not tensors:
            return args, kwargs  # the end of the whole backward pass will do it
        return replace_grad_tensors((args, kwargs), iter(RegisterPostBackwardFunction.apply(self, *tensors)))

    def reset_iter_state(self):
        """After an exception: forget what was under way. Gradients of the step are lost."""
        self.finalize_backward()
        for param in self.fsdp_params:
            param.take_unsharded_grad()
        self._partial_reduce_output = self._reshard_after_forward_event = None
        self._training_state = TrainingState.IDLE
        self._to_sharded()

    def __repr__(self):
        return f"FSDPParamGroup(fqn={self._module_fqn})"


class RegisterPostBackwardFunction(autograd.Function):
    """Does nothing to the inputs of a module; its backward comes behind that of the module."""

    @staticmethod
    def forward(ctx, param_group, *inputs):
        ctx.param_group = param_group
        return tuple(tensor.view_as(tensor) for tensor in inputs)

    @staticmethod
    def backward(ctx, *grads):
        ctx.param_group.post_backward()
        return None, *grads


def _uniform(what, dtypes):
    if len(dtypes) > 1:
        raise AssertionError(f"FSDP expects uniform {what} dtype but got {dtypes}")
    return next(iter(dtypes), None)


def _get_param_module_infos(params, modules):
    """Where each parameter stands; shared ones have several places."""
    infos = {}
    wanted = set(params)
    for module in modules:
        for _, submodule in module.named_modules(remove_duplicate=False):
            for name, param in submodule._parameters.items():
                if param not in wanted:
                    continue
                if param not in infos:
                    infos[param] = ParamModuleInfo(submodule, name)
                elif submodule is not infos[param].module or name != infos[param].param_name:
                    infos[param].shared_modules.append(submodule)
                    infos[param].shared_param_names.append(name)
    return [infos[param] for param in params]
