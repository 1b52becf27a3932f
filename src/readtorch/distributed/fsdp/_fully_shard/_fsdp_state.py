"""The hooks of a sharded module. In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_state.py`.

Note [ Four hooks ]

Before forward: gather the parameters. After forward: free them, and hang a hook on each output. When the gradient of an output
comes: gather them again. When the gradients of the inputs are known, all of the module's own have been computed: free the
parameters and reduce the gradients; that is the backward of a node that the inputs were sent through. A module whose inputs
need no gradient, such as the first one, has no such node: its turn comes when the whole backward pass ends, in a callback of
the engine that the root asks for.
"""

import functools

import readtorch
from readtorch import autograd
from readtorch.nn.parallel.scatter_gather import scatter_kwargs

from ._fsdp_common import TrainingState, _cast_fp_tensor, apply_to_tensors, collect_grad_tensors
from ._fsdp_param_group import FSDPCommContext, FSDPParamGroup


class FSDPStateContext:
    """What all sharded modules below one root share."""

    def __init__(self):
        self.all_states = []
        self.iter_forward_root = None  # whose forward pass is under way
        self.post_backward_final_callback_queued = False
        self.is_last_backward = True
        self.post_optim_event = None


class FSDPState:
    """The state of one call of `fully_shard`: its modules, their group of parameters, their hooks."""

    def __init__(self, modules, device, mp_policy, auto_reshard_after_forward):
        self._modules = modules
        self._device = device
        self._mp_policy = mp_policy
        self._auto_reshard_after_forward = auto_reshard_after_forward
        self._fsdp_param_group = None  # None if no parameters are left for it
        self._is_root = None  # not known before the first forward
        self._state_ctx = FSDPStateContext()
        self._comm_ctx = FSDPCommContext()
        self._training_state = TrainingState.IDLE
        self._states_to_forward_prefetch = []
        self._states_to_backward_prefetch = []
        self._modules_to_run_forward = set()
        for module in modules:
            module.register_forward_pre_hook(self._pre_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._post_forward, prepend=False, always_call=len(modules) > 1)

    @property
    def _groups(self):
        return [] if self._fsdp_param_group is None else [self._fsdp_param_group]

    # ----------------------------------------------------------------------------------------- the first forward pass

    def _lazy_init(self):
        """The first module that runs forward is the root of those below it."""
        if self._is_root is not None:
            return
        self._is_root = True
        if len(self._modules) > 1:
            raise RuntimeError(f"FSDP requires a single root module but got {self._modules}")
        (root,) = self._modules
        states = self._state_ctx.all_states
        for name, module in root.named_modules():
            state = get_module_fsdp_state(module)
            if state is None or state in states:
                continue
            if state is not self:
                if state._is_root is not None:
                    raise RuntimeError(
                        f"FSDP state has already been lazily initialized for {name}\n"
                        "FSDP requires running forward through the root module first"
                    )
                state._is_root = False
            states.append(state)
        if self._auto_reshard_after_forward and self._groups:
            self._fsdp_param_group.post_forward_mesh_info = None  # backward would need them at once
        self._comm_ctx.lazy_init(self._device)
        self._init_fqns(root)
        self._share_and_init(states)

    def _init_fqns(self, root):
        """Names for messages."""
        names = {id(param): name for name, param in root.named_parameters()}
        modules = {module: name for name, module in root.named_modules()}
        for state in self._state_ctx.all_states:
            for group in state._groups:
                group._module_fqn = ", ".join(modules[module] for module in state._modules)
                for param in group.fsdp_params:
                    param._param_fqn = names.get(id(param.sharded_param))

    def _share_and_init(self, states):
        seen = set()
        for state in states:
            state._state_ctx, state._comm_ctx = self._state_ctx, self._comm_ctx
            for group in state._groups:
                group.comm_ctx = self._comm_ctx
                for param in group.fsdp_params:
                    if param._orig_param_uid in seen:
                        raise ValueError(
                            f"Parameter '{param._param_fqn}' is shared with a parameter already managed by another FSDP "
                            "group. For shared/tied parameters, use fully_shard([module_a, module_b]) to place them in "
                            "the same FSDP group."
                        )
                    seen.add(param._orig_param_uid)
                group.lazy_init()
        wanted = [group.reduce_scatter_max_input_buffers for state in states for group in state._groups]
        self._comm_ctx.reduce_scatter_max_input_buffers = max(wanted, default=1)

    # ------------------------------------------------------------------------------------------------------- forward

    def _root_pre_forward(self, args, kwargs):
        """Once a forward pass: the all-gathers wait for the optimizer's step; inputs go to the device."""
        self._lazy_init()
        if self._state_ctx.iter_forward_root is not None:
            return args, kwargs
        self._state_ctx.iter_forward_root = self
        streams = self._comm_ctx.all_gather_copy_in_stream, self._comm_ctx.all_gather_stream
        event, self._state_ctx.post_optim_event = self._state_ctx.post_optim_event, None
        for stream in streams:
            if event is not None:
                stream.wait_event(event)
            elif self._groups:
                stream.wait_stream(self._fsdp_param_group.device_handle.current_stream())
        if self._device.type == "cpu" or not (args or kwargs):
            return args, kwargs
        (args,), (kwargs,) = scatter_kwargs(args, kwargs, [self._device.index])
        return args, kwargs

    def _pre_forward(self, module, args, kwargs):
        if not self._modules_to_run_forward:
            self._modules_to_run_forward.update(self._modules)
        if self._training_state is TrainingState.PRE_BACKWARD:  # activation checkpointing computes it once more
            for group in self._groups:
                group.unshard()
                group.wait_for_unshard()
            return self._cast_forward_inputs(args, kwargs)
        first = self._training_state is not TrainingState.FORWARD
        self._training_state = TrainingState.FORWARD
        if first:
            args, kwargs = self._root_pre_forward(args, kwargs)
        args, kwargs = self._cast_forward_inputs(args, kwargs)
        for group in self._groups:
            args, kwargs = group.pre_forward(args, kwargs)
        if first:
            for state in self._states_to_forward_prefetch:
                for group in state._groups:
                    FSDPParamGroup._prefetch_unshard(group, TrainingState.FORWARD)
        return args, kwargs

    def _post_forward(self, module, inputs, output):
        if self._training_state is TrainingState.PRE_BACKWARD:
            return self._cast_output_dtype(output)
        self._modules_to_run_forward.discard(module)
        if not self._modules_to_run_forward:
            output = self._complete_forward(output)
        return self._cast_output_dtype(output)

    def _complete_forward(self, output):
        """When the last of the modules has run."""
        for group in self._groups:
            group.post_forward()
        output = self._register_pre_backward_hook(output)
        self._training_state = TrainingState.IDLE
        if self._state_ctx.iter_forward_root is self:
            if (kept := self._comm_ctx.all_gather_state) is not None:
                self._comm_ctx.all_gather_copy_in_stream.wait_event(kept.event)
                self._comm_ctx.all_gather_stream.wait_event(kept.event)
                self._comm_ctx.all_gather_state = None
            self._state_ctx.iter_forward_root = None
        return output

    def _cast_forward_inputs(self, args, kwargs):
        if not (self._mp_policy.cast_forward_inputs and self._mp_policy.param_dtype):
            return args, kwargs
        cast = functools.partial(_cast_fp_tensor, self._mp_policy.param_dtype)
        return apply_to_tensors(cast, args), apply_to_tensors(cast, kwargs)

    def _cast_output_dtype(self, output):
        if self._mp_policy.output_dtype is None:
            return output
        return apply_to_tensors(functools.partial(_cast_fp_tensor, self._mp_policy.output_dtype), output)

    # ------------------------------------------------------------------------------------------------------- backward

    def _register_pre_backward_hook(self, output):
        if readtorch.is_grad_enabled():
            for tensor in collect_grad_tensors(output):
                tensor.register_hook(self._pre_backward)
        return output

    def _pre_backward(self, grad):
        self._training_state = TrainingState.PRE_BACKWARD
        if not self._state_ctx.post_backward_final_callback_queued:
            self._state_ctx.post_backward_final_callback_queued = True
            autograd.Variable._execution_engine.queue_callback(self._root_post_backward_final_callback)
        for group in self._groups:
            group.pre_backward(default_prefetch=not self._states_to_backward_prefetch)
        for state in self._states_to_backward_prefetch:
            for group in state._groups:
                FSDPParamGroup._prefetch_unshard(group, TrainingState.PRE_BACKWARD)
        return grad

    def _root_post_backward_final_callback(self):
        """At the end of the backward pass: groups whose end nothing has told yet, and all waiting."""
        context = self._state_ctx
        for state in context.all_states:
            for group in state._groups:
                if group._training_state is not TrainingState.POST_BACKWARD:
                    group.post_backward()
                group._training_state = TrainingState.IDLE
            state._training_state = TrainingState.IDLE
            state._modules_to_run_forward.clear()
            if context.is_last_backward:
                for group in state._groups:
                    group.finalize_backward()
        if context.is_last_backward:
            self._forget_order()
        context.post_backward_final_callback_queued = False

    def _forget_order(self):
        self._comm_ctx.post_forward_order.clear()
        for _, event in self._comm_ctx.reduce_scatter_states:
            for group in self._groups[:1]:
                group._current_stream_waits_for(event)
        self._comm_ctx.reduce_scatter_states.clear()

    def reset_iter_state(self):
        """After an exception in forward or backward: make ready for another step."""
        if self._is_root is False:
            raise RuntimeError("reset_iter_state must be called on the root FSDP module")
        for state in self._state_ctx.all_states:
            state._training_state = TrainingState.IDLE
            state._modules_to_run_forward.clear()
            for group in state._groups:
                group.reset_iter_state()
        if self._is_root:
            self._comm_ctx.all_gather_state = None
            self._forget_order()
        self._state_ctx.iter_forward_root = None
        self._state_ctx.post_backward_final_callback_queued = False


def get_module_fsdp_state(module):
    """The state of a module that `fully_shard` was called on, or None."""
    return vars(module).get("_fsdp_state")
