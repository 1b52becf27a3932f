"""`DistributedDataParallel`: each rank has the model and a part of the batch, and gets the gradient of the whole batch.

In PyTorch: `torch/nn/parallel/distributed.py`. Explained in the chapter "Process groups, DDP and
SyncBatchNorm". The work on gradients is done by `readtorch.csrc.distributed.reducer`.
"""

import copy
import dataclasses
import inspect
import itertools
import os
import sys
import time
import warnings
import weakref
from contextlib import contextmanager

import readtorch
from readtorch import distributed as dist
from readtorch.autograd import Function, Variable
from readtorch.c10.scalar_type import C_TYPE_NAMES
from readtorch.csrc.distributed import timeline
from readtorch.csrc.distributed.comm import broadcast_coalesced
from readtorch.csrc.distributed.reducer import (
    DEFAULT_FIRST_BUCKET_BYTES,
    GradBucket,
    Reducer,
    compute_bucket_assignment_by_size,
    verify_params_across_processes,
)
from readtorch.distributed.algorithms.join import Join, Joinable, JoinHook
from readtorch.nn.modules.module import Module
from readtorch.nn.modules.sparse import Embedding, EmbeddingBag
from readtorch.nn.parameter import UninitializedParameter
from readtorch.nn.utils.rnn import PackedSequence
from readtorch.utils._pytree import tree_flatten, tree_unflatten

from .scatter_gather import _is_namedtuple, gather, scatter_kwargs

__all__ = ["DistributedDataParallel"]


class _DDPSink(Function):
    """The identity on outputs. Its backward runs before all others, and asks for a callback at the end of backward."""

    @staticmethod
    def forward(ctx, ddp, *outputs):
        ctx.set_materialize_grads(False)  # an output that the loss does not use keeps the gradient None
        ctx.ddp = ddp
        return tuple([o.clone() if isinstance(o, readtorch.Tensor) else o for o in outputs])

    @staticmethod
    def backward(ctx, *grads):
        ddp = ctx.ddp()
        if ddp.static_graph and not ddp._static_graph_delay_allreduce_enqueued:
            Variable._execution_engine.queue_callback(ddp.reducer.delay_all_reduce)
            ddp._static_graph_delay_allreduce_enqueued = True
        return (None, *grads)


def _check_module(parameters, device_ids, output_device):
    """RuntimeError or ValueError unless these parameters can be trained, with `device_ids`."""
    if not any(p.requires_grad for p in parameters):
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
        )
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    types = {p.device.type for p in parameters}
    if len(types) != 1:
        raise ValueError(
            "DistributedDataParallel's input module must be on the same type of devices, but "
            "input "
            f"module parameters locate in {types}."
        )
    devices = {p.device for p in parameters}
    if (types == {"cpu"} or len(devices) > 1) and (device_ids or output_device):
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {devices}."
        )
    if any(isinstance(p, UninitializedParameter) for p in parameters):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with "
            "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
            "modules"
        )


def _index_of(device):
    """The number of a device that is given as a number, a string or a device."""
    return device if isinstance(device, int) else readtorch.device(device).index


def _on_device(nest, device):
    """The nest with all its tensors moved to `device`. In PyTorch: `_recursive_to` of `torch/distributed/utils.py`."""
    if isinstance(nest, (readtorch.Tensor, PackedSequence)):
        return nest.to(device)
    if isinstance(nest, dict):
        return type(nest)((key, _on_device(part, device)) for key, part in nest.items())
    if isinstance(nest, (tuple, list)):
        parts = [_on_device(part, device) for part in nest]
        return type(nest)(*parts) if _is_namedtuple(nest) else parts if isinstance(nest, list) else tuple(parts)
    return nest


def _find_tensors(obj):
    """All tensors in lists, tuples, dicts and dataclasses, however deep."""
    if isinstance(obj, readtorch.Tensor):
        return [obj]
    if isinstance(obj, list | tuple):
        parts = obj
    elif isinstance(obj, dict):
        parts = obj.values()
    elif dataclasses.is_dataclass(obj):
        parts = [getattr(obj, field.name) for field in dataclasses.fields(obj)]
    else:
        parts = ()
    return itertools.chain.from_iterable(map(_find_tensors, parts))


def _note_backward(recording, output):
    """Add backward to the timeline: from the first gradient of the output to the end that the reducer reports."""
    tensor = next((t for t in _find_tensors(output) if t.requires_grad), None)
    if tensor is None:
        return

    def begins(_):
        begin = time.perf_counter()
        Variable._execution_engine.queue_callback(lambda: recording.add_span("compute", "backward", begin, end_of()))

    def end_of():
        return next(
            (i["at"] for i in reversed(recording.instants) if i["name"] == "backward is over"), time.perf_counter()
        )

    tensor.register_hook(begins)


DEFAULT_BUCKET_CAP_MB = 25
BROADCAST_BUCKET_BYTES = 250 * 1024 * 1024


class _DDPJoinHook(JoinHook):
    """What a rank without inputs does while the others run an iteration: see Note [ How a rank without inputs
    … ].
    """

    def __init__(self, ddp, divide_by_initial_world_size):
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self):
        ddp = self.ddp
        ddp.reducer.rebuild_buckets()
        if ddp.will_sync_module_buffers():
            ddp._sync_module_buffers(ddp._find_common_rank(ddp._distributed_rank, False))
        syncs = ddp._check_global_requires_backward_grad_sync(is_joined_rank=True)
        ddp.require_forward_param_sync = syncs
        if not syncs:
            return
        ddp.reducer.shadow_backward()
        if ddp.find_unused_parameters and not ddp.static_graph:
            used = readtorch.zeros(len(ddp.reducer.parameters), dtype=readtorch.int32)
            ddp.process_group.allreduce([used]).wait()
        ddp.reducer.push_all_rebuilt_params()

    def post_hook(self, is_last_joiner):
        self.ddp._sync_final_model(is_last_joiner)


class DistributedDataParallel(Module, Joinable):
    """Wraps a module so that after `backward()` every rank has the average of all ranks' gradients in
    `.grad`.

    module: the same on all ranks, on the CPU or on the one device of `device_ids`; rank 0's parameters and
    buffers are copied to all at the start. find_unused_parameters: the forward may leave parameters out.
    static_graph: every iteration uses the same ones. bucket_cap_mb: megabytes that travel together (25; the
    first bucket 1), or bucket_cap_mb_list, one number per bucket. gradient_as_bucket_view: `.grad` is a part of
    the bucket, which saves a copy. broadcast_buffers: rank 0's buffers are copied to all before each forward
    (forward_sync_buffers: the same, without the copy at the start).

    Raises RuntimeError if no parameter requires grad or the ranks' models differ in size. Use it like the
    module; the module itself is `.module`, and names in the state_dict begin with "module.". In PyTorch: also
    mixed_precision, device_mesh, delay_all_reduce_named_params, skip_all_reduce_unused_params and
    batched_grad_copy.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=None,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        *,
        bucket_cap_mb_list=None,
        forward_sync_buffers=None,
    ):
        super().__init__()
        Joinable.__init__(self)
        self.process_group = dist.distributed_c10d._group_or_default_group(process_group)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        ignored = self.parameters_to_ignore
        managed = [p for name, p in module.named_parameters() if name not in ignored]
        _check_module(managed, device_ids, output_device)
        self.module = module
        self.device = next(module.parameters()).device
        self.device_type = self.device.type
        # The device that inputs are moved to.
        self.device_ids = self.output_device = None
        if device_ids and self.device_type != "cpu":
            self.device_ids = [_index_of(device_ids[0])]
            self.output_device = _index_of(device_ids[0] if output_device is None else output_device)
        self.dim = dim
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self._static_graph_delay_allreduce_enqueued = False
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        sync_at_start = self._choose_buffer_sync(broadcast_buffers, forward_sync_buffers)
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. "
                "Please avoid using it.",
                FutureWarning,
                stacklevel=2,
            )
        self._choose_bucket_sizes(bucket_cap_mb, bucket_cap_mb_list)
        parameters = self._parameters_to_reduce()
        if init_sync:
            verify_params_across_processes(self.process_group, parameters)
            self._sync_module_states(0, sync_at_start)
        self._make_reducer(parameters, static_graph)
        if static_graph:
            self._set_static_graph()

    # ------------------------------------------------------------------------- construction

    def _choose_buffer_sync(self, broadcast_buffers, forward_sync_buffers):
        """Whether buffers are copied before each forward; returns whether they are at the start."""
        # in PyTorch: since 2.13 a FutureWarning says that broadcast_buffers has a new name
        if forward_sync_buffers is not None:
            self.forward_sync_buffers = forward_sync_buffers
            return True
        self.forward_sync_buffers = True if broadcast_buffers is None else broadcast_buffers
        return self.forward_sync_buffers

    def _choose_bucket_sizes(self, bucket_cap_mb, bucket_cap_mb_list):
        megabyte = 1024 * 1024
        self.bucket_bytes_cap_list = [int(mb * megabyte) for mb in bucket_cap_mb_list or ()]
        largest = max(bucket_cap_mb_list) if bucket_cap_mb_list else bucket_cap_mb
        self.bucket_bytes_cap_default = largest is None
        self.bucket_bytes_cap = int((DEFAULT_BUCKET_CAP_MB if largest is None else largest) * megabyte)
        self.first_bucket_bytes_cap = DEFAULT_FIRST_BUCKET_BYTES if largest is None else self.bucket_bytes_cap

    def _parameters_to_reduce(self):
        """Every parameter that requires grad, once, in the order of definition; notes their names."""
        self._names = {}
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad and name not in self.parameters_to_ignore:
                self._names[parameter] = name
        self._assign_modules_buffers()
        return list(self._names)

    def _make_reducer(self, parameters, static_graph):
        limits = self._first_limits(static_graph)
        sparse = self._gives_sparse_gradients(parameters)
        indices, _ = compute_bucket_assignment_by_size(parameters, limits, sparse)
        self.reducer = Reducer(
            parameters,
            indices[::-1],  # the last parameters get their gradients first
            limits[::-1],
            self.process_group,
            sparse,
            self.bucket_bytes_cap,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            dict(enumerate(self._names.values())),
            self.first_bucket_bytes_cap,
            self.bucket_bytes_cap_list,
        )

    def _gives_sparse_gradients(self, parameters):
        """For each parameter whether its gradient will be sparse: those of embeddings that were made so."""
        sparse = {
            id(p)
            for module in self.module.modules()
            if isinstance(module, Embedding | EmbeddingBag) and module.sparse
            for p in module.parameters()
        }
        return [id(p) in sparse for p in parameters]

    def _first_limits(self, static_graph):
        """Sizes of the first iteration's buckets: a single one if they will be made anew in the order of
        arrival.

        Until then the order of definition may be far from the order of gradients, and an early all-reduce
        could come between other collectives of backward in another order on each rank.
        """
        if self.bucket_bytes_cap_list:
            return self.bucket_bytes_cap_list
        if static_graph or not self.find_unused_parameters:
            return [sys.maxsize]
        return [self.first_bucket_bytes_cap, self.bucket_bytes_cap]

    def _set_static_graph(self):
        """Say that every iteration will use the same parameters in the same way; before the first."""
        if self.static_graph:
            warnings.warn("You've set static_graph to be True, no need to set it again.", stacklevel=2)
            return
        self.static_graph = True
        self.reducer.set_static_graph()
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, "
                "`_set_static_graph` will detect unused parameters automatically, so you do not "
                "need to set find_unused_parameters=true, just be sure these unused parameters "
                "will not change during training loop while calling "
                "`_set_static_graph`.",
                stacklevel=2,
            )

    @property
    def broadcast_buffers(self):
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value):
        self.forward_sync_buffers = value

    # ------------------------------------------------------------------------- forward

    def forward(self, *inputs, **kwargs):
        self._pre_forward()
        if self.device_ids:
            device = readtorch.device(self.device_type, self.device_ids[0])
            inputs, kwargs = _on_device(inputs, device), _on_device(kwargs, device)
        recording = timeline.current.timeline
        if recording is None:
            return self._post_forward(self.module(*inputs, **kwargs))
        with recording.span("forward"):
            output = self._post_forward(self.module(*inputs, **kwargs))
        _note_backward(recording, output)
        return output

    def _pre_forward(self):
        grad_enabled = readtorch.is_grad_enabled()
        if grad_enabled and self.require_backward_grad_sync:
            self.reducer.prepare_for_forward()
        work = Join.notify_join_context(self)
        if work:
            self.reducer.set_forward_pass_work_handle(work, self._divide_by_initial_world_size)
        if grad_enabled:
            self.reducer.rebuild_buckets()
        if self.will_sync_module_buffers():
            self._sync_buffers()
        if self._join_config.enable:
            self._check_global_requires_backward_grad_sync(is_joined_rank=False)

    def _post_forward(self, output):
        reduces = readtorch.is_grad_enabled() and self.require_backward_grad_sync
        self.require_forward_param_sync = reduces
        searches = self.find_unused_parameters and not self.static_graph
        if reduces:
            self.reducer.prepare_for_backward(list(_find_tensors(output)) if searches else [])
        if searches or self.static_graph and not self._static_graph_delay_allreduce_enqueued:
            return self._through_sink(output)
        return output

    def _through_sink(self, output):
        """`output` with its tensors passed through `_DDPSink`; those without a graph stay as they are."""
        leaves, spec = tree_flatten(output)
        passed = _DDPSink.apply(weakref.ref(self), *leaves)
        kept = [isinstance(old, readtorch.Tensor) and old.grad_fn is None for old in leaves]
        return tree_unflatten([old if keep else new for old, new, keep in zip(leaves, passed, kept)], spec)

    def scatter(self, inputs, kwargs, device_ids):
        """The arguments of a call cut along `dim` for several GPUs, as DataParallel does."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def gather(self, outputs, output_device):
        """What replicas on several GPUs return, put together along `dim`."""
        return gather(outputs, output_device, dim=self.dim)

    @contextmanager
    def no_sync(self):
        """Backward inside adds to `.grad` on this rank only; the first one after it reduces the sum."""
        previous = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = previous

    def register_comm_hook(self, state, hook):
        """Let `hook(state, bucket) -> Future` reduce each bucket, in place of averaging; once, before
        training.

        See `readtorch.distributed.algorithms.ddp_comm_hooks.default_hooks`.
        """
        if not callable(hook):
            self._log_and_throw(TypeError, "Communication hook must be callable.")
        signature = inspect.signature(hook)
        if signature.parameters["bucket"].annotation not in (inspect.Parameter.empty, GradBucket):
            self._log_and_throw(ValueError, "Communication hook: bucket annotation should be dist.GradBucket.")
        if signature.return_annotation not in (
            inspect.Signature.empty,
            readtorch.futures.Future,
            readtorch.futures.Future[readtorch.Tensor],
        ):
            words = "Communication hook: return annotation should be torch.futures.Future[torch.Tensor]."
            self._log_and_throw(ValueError, words)
        self.reducer.register_comm_hook(state, hook)

    # ------------------------------------------------------------------------- what it says of itself

    _error = None  # what was refused, in words

    def _log_and_throw(self, kind, words):
        self._error = f"{kind}: {words}"
        raise kind(words)

    def _get_ddp_logging_data(self):
        """How it was made and how far it is. In PyTorch: `torch/csrc/distributed/c10d/logger.cpp`, with times as well."""
        parameters, environment = self.reducer.parameters, os.environ.get
        data = {
            "backend_name": self.process_group.name(),
            "bucket_sizes": ", ".join(
                str(bucket.flat.nbytes) for bucket in self.reducer.buckets if bucket.flat is not None
            ),
            "dtypes": ", ".join(sorted({C_TYPE_NAMES[p.dtype] for p in parameters})),
            "master_addr": environment("MASTER_ADDR", "N/A"),
            "master_port": environment("MASTER_PORT", "N/A"),
            "module_name": type(self.module).__name__,
            "torch_distributed_debug": environment("TORCH_DISTRIBUTED_DEBUG", "N/A"),
            "broadcast_buffers": int(self.forward_sync_buffers),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "is_multi_device_module": 0,
            "iteration": self.reducer.iterations,
            "num_parameter_tensors": len(parameters),
            "rank": self.process_group.rank(),
            "static_graph": int(self.reducer.static_graph),
            "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in parameters),
            "world_size": self.process_group.size(),
        }
        return data | ({} if self._error is None else {"has_error": 1, "error": self._error})

    # ------------------------------------------------------------------------- buffers and the first state

    def will_sync_module_buffers(self):
        """Whether the next forward begins with copying buffers."""
        return self.require_forward_param_sync and self.forward_sync_buffers and len(self.modules_buffers) > 0

    def _assign_modules_buffers(self):
        self.named_module_buffers = {
            name: buffer for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore
        }
        self.modules_buffers = list(self.named_module_buffers.values())

    def _sync_buffers(self):
        """From rank 0; in a join context from a rank that still trains, since rank 0's may be old."""
        source = self._find_common_rank(self._distributed_rank, True) if self._join_config.enable else 0
        self._assign_modules_buffers()
        self._sync_module_buffers(source)

    def _sync_module_buffers(self, source):
        broadcast_coalesced(self.process_group, self.modules_buffers, BROADCAST_BUCKET_BYTES, source)

    def _sync_module_states(self, source, with_buffers):
        tensors = [p for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        if with_buffers:
            tensors += self.modules_buffers
        broadcast_coalesced(self.process_group, tensors, BROADCAST_BUCKET_BYTES, source)

    # ------------------------------------------------------------------------- uneven inputs

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """`with model.join():` around a training loop whose length may differ between the ranks.

        Gradients are divided by the number of all ranks, or with divide_by_initial_world_size=False of those
        that still have inputs. At the end all have the parameters of the last one.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs):
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self):
        return self.device

    @property
    def join_process_group(self):
        return self.process_group

    @property
    def _distributed_rank(self):
        return dist.get_rank(self.process_group)

    def _check_global_requires_backward_grad_sync(self, is_joined_rank):
        """Tell the ranks without inputs whether this backward reduces; they ask by taking part."""
        syncs = not is_joined_rank and self.require_backward_grad_sync
        count = readtorch.ones(1) if syncs else readtorch.zeros(1)
        work = dist.all_reduce(count, group=self.process_group, async_op=True)
        if not is_joined_rank:
            return None
        work.wait()
        return count.item() != 0

    def _find_common_rank(self, rank, is_candidate):
        """The highest rank among those for which `is_candidate` holds."""
        candidate = readtorch.tensor([rank if is_candidate else -1])
        dist.all_reduce(candidate, op=dist.ReduceOp.MAX, group=self.process_group)
        return candidate.item()

    def _sync_final_model(self, is_last_joiner):
        self._authoritative_rank = self._find_common_rank(self._distributed_rank, is_last_joiner)
        self._assign_modules_buffers()
        self._sync_module_states(self._authoritative_rank, self.forward_sync_buffers)

    # ------------------------------------------------------------------------- pickling

    def __getstate__(self):
        if self.process_group is not dist.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer", "_names"):
            del state[name]
        return state

    def __setstate__(self, state):
        self.process_group = dist.distributed_c10d._get_default_group()
        super().__setstate__(state)
        self._make_reducer(self._parameters_to_reduce(), self.static_graph)
        if self.static_graph:
            self.reducer.set_static_graph()
