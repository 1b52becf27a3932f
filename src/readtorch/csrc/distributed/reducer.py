"""`Reducer`: averages the gradients of all ranks while backward is still running.

In PyTorch: `torch/csrc/distributed/c10d/reducer.cpp`; `GradBucket` is in `torch/csrc/distributed/c10d/comm.hpp`. Explained in the chapter "Process groups, DDP and
SyncBatchNorm".

Note [ The course of one iteration ]
    prepare_for_backward     the forward is over: nothing has arrived yet
    autograd_hook            a parameter's gradient is complete: it goes into its bucket
    all_reduce_bucket        a bucket is complete and it is its turn: its sum over the ranks begins, while
                             backward goes on
    finalize_backward        backward is over: wait for all buckets, put the averages into `.grad`
Buckets are reduced in the order of their numbers on every rank, however the gradients arrive, because
collectives must begin in the same order everywhere. They are first filled from the last parameter to the
first, which is about the order in which gradients become ready; after the first backward they are filled
again in the order that was seen (on rank 0).

Note [ Why buckets ]
Each message costs a latency, so many small gradients should travel as one. But a message can only leave when
its last gradient is there, so all in one would leave at the end of backward, when nothing is left to compute
meanwhile. Buckets of some megabytes (25 by default) are between the two: Note [ What a message costs ]. The
first one is smaller (1 MiB), so that communication begins early.
"""

import weakref

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.local_dispatch_key_set import AutoGradMode
from readtorch.c10.tensor_impl import dtype_of, host_array, view, wrap
from readtorch.csrc.autograd import engine
from readtorch.csrc.autograd.variable import grad_accumulator, gradient_edge, mark_view

from . import timeline
from .future import Future
from .sparse import empty_like, sparse_all_reduce

DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024
DEFAULT_BUCKET_BYTES = 25 * 1024 * 1024

# ------------------------------------------------------------------------- buckets


def compute_bucket_assignment_by_size(tensors, bucket_size_limits, expect_sparse_gradient=(), tensor_indices=()):
    """(lists of indices into `tensors`, one a bucket; the limit in bytes of each bucket).

    A bucket is full when it reaches its limit; the first bucket of each type and device has the first limit,
    the next the second, and all further ones the last. What tensor_indices names takes the place of 0, 1, 2
    …; then the order of buckets is that in which they filled up, else they are sorted by their first index.
    """
    result, open_buckets = [], {}
    for i, tensor in enumerate(tensors):
        index = tensor_indices[i] if tensor_indices else i
        if expect_sparse_gradient and expect_sparse_gradient[index]:
            result.append(([index], None))
            continue
        bucket = open_buckets.setdefault((dtype_of(tensor), tensor.device), _Filling(list(bucket_size_limits)))
        if bucket.add(index, tensor._array.nbytes):
            result.append(bucket.take())
    result += [bucket.take() for bucket in open_buckets.values() if bucket.indices]
    if not tensor_indices:
        result.sort(key=lambda pair: min(pair[0]))
    return [indices for indices, _ in result], [limit or 0 for _, limit in result]


class _Filling:
    """A bucket of one type that is being filled."""

    def __init__(self, limits):
        self.limits = limits
        self.indices = []
        self.bytes = 0

    def add(self, index, bytes_):
        """Whether it is full now."""
        self.indices.append(index)
        self.bytes += bytes_
        return self.bytes >= self.limits[0]

    def take(self):
        full = self.indices, self.limits[0]
        self.indices, self.bytes = [], 0
        if len(self.limits) > 1:
            self.limits.pop(0)
        return full


class Bucket:
    """One message: a flat tensor with a view for each gradient.

    indices: of the parameters, in the order in which they lie in `flat`. A sparse gradient has a bucket of
    its own, without a flat tensor.
    """

    def __init__(self, indices, parameters, sparse=False):
        self.indices = indices
        self.parameters = [parameters[i] for i in indices]
        self.sparse = sparse
        self.flat = None
        self.views = {}  # parameter index -> its part of flat
        if not sparse:
            self._lay_out()
        self.reset()

    def _lay_out(self):
        like = self.parameters[0]
        elements = sum(p._array.size for p in self.parameters)
        self.flat = at.zeros((elements,), dtype=dtype_of(like), device=like.device)
        begin = 0
        for i, p in zip(self.indices, self.parameters):
            part = self.flat._array[begin : begin + p._array.size].reshape(p._array.shape)
            self.views[i] = view(self.flat, part)
            mark_view(self.views[i], self.flat)
            begin += p._array.size

    def reset(self):
        """Before a backward: nothing has arrived."""
        self.pending = len(self.indices)  # gradients that are still missing
        self.future = None  # of the reduced flat tensor, once it is under way
        self.work = None


class GradBucket:
    """What a communication hook sees of a bucket."""

    def __init__(self, index, buffer, parameters, views, last):
        self._index = index
        self._buffer = buffer
        self._parameters = parameters
        self._views = views
        self._last = last

    def index(self):
        """Its number: 0 is ready first."""
        return self._index

    def buffer(self):
        """The flat tensor of all gradients in it."""
        return self._buffer

    def set_buffer(self, buffer):
        """Put another flat tensor in its place, for the hook's own use."""
        self._buffer = buffer

    def gradients(self):
        """The gradients, as views of the buffer."""
        return list(self._views)

    def parameters(self):
        """The parameters, in the order of the gradients."""
        return list(self._parameters)

    def is_last(self):
        """Whether it is the last one of this backward."""
        return self._last


GradBucket.__module__ = "readtorch.distributed"


# ------------------------------------------------------------------------- the reducer


class Reducer:
    """Averages the gradients of `params` over the ranks of `process_group`.

    bucket_indices: which parameters travel together, the first bucket first; per_bucket_size_limits: what the buckets were filled
    up to (not needed here). param_to_name_mapping: parameter index -> name, for messages. RuntimeError if a bucket has parameters
    of several types.
    """

    def __init__(
        self,
        params,
        bucket_indices,
        per_bucket_size_limits,
        process_group,
        expect_sparse_gradients=(),
        bucket_bytes_cap=DEFAULT_BUCKET_BYTES,
        find_unused_parameters=False,
        gradient_as_bucket_view=False,
        param_to_name_mapping=None,
        first_bucket_bytes_cap=DEFAULT_FIRST_BUCKET_BYTES,
        bucket_bytes_cap_list=(),
    ):
        self.parameters = list(params)
        self.process_group = process_group
        self.rebuilding_limits = list(bucket_bytes_cap_list) or [first_bucket_bytes_cap, bucket_bytes_cap]
        self.expect_sparse = list(expect_sparse_gradients) or [False] * len(self.parameters)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.names = param_to_name_mapping or {}
        self.static_graph = False
        self.iterations = 0
        self.comm_hook = None  # (state, hook)
        self.last_work = None  # of the plain sum, for the timeline

        # One backward.
        self.expects_hooks = False  # whether gradients that arrive are to be reduced
        self.unfinished = False  # whether some were reduced, and not all yet
        self.ready = set()  # indices of parameters that are in their buckets
        self.unused = []  # indices of parameters that this forward did not use
        self.unused_are_marked = False
        # 1 for each parameter with a gradient on this rank
        self.used_here = np.zeros(len(self.parameters), np.int32)
        self.used_work = None
        self.divisor = None
        self.forward_pass_work = None  # with `join`: counts the ranks that still have inputs
        self.divide_by_initial_world_size = True

        # Note [ A graph that stays the same ]: with static_graph, how often each parameter's hook runs in a
        # backward (several times when backward is called inside backward), counted in the first and used from
        # the second on.
        self.hook_counts = {}
        self.hooks_left = {}

        self.rebuilt = False
        self.arrival_order = []
        self.initialize_buckets(bucket_indices)
        # a leaf alone does not keep its node alive
        self.accumulators = [grad_accumulator(p) for p in self.parameters]
        self.handles = [node.register_hook(self._hook_of(i)) for i, node in enumerate(self.accumulators)]

    def initialize_buckets(self, bucket_indices):
        """Make the buckets, and find each parameter's."""
        for indices in bucket_indices:
            if len({self.parameters[i].dtype for i in indices}) > 1:
                raise RuntimeError("All parameters in a bucket must have the same dtype.")
        self.buckets = [Bucket(indices, self.parameters, self.expect_sparse[indices[0]]) for indices in bucket_indices]
        self.bucket_of = {i: bucket for bucket in self.buckets for i in bucket.indices}
        self.next_bucket = 0  # all before it are under way
        if self.gradient_as_bucket_view:
            for i, p in enumerate(self.parameters):
                if p.grad is not None and not self.expect_sparse[i]:
                    self._move_into_view(p, self.bucket_of[i].views[i])

    # ------------------------------------------------------------------------- before backward

    def prepare_for_forward(self):
        """An iteration that will be reduced begins."""
        self.iterations += 1

    def prepare_for_backward(self, outputs):
        """Expect gradients now. outputs: tensors whose graphs show which parameters are used; empty if all
        are.

        Raises RuntimeError if the last backward left parameters without gradients.
        """
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        if self.unfinished:
            raise unfinished_reduction(self)
        self.expects_hooks = True
        self.next_bucket = 0
        self.ready.clear()
        self.unused_are_marked = False
        self.hooks_left = dict(self.hook_counts)
        for bucket in self.buckets:
            bucket.reset()
        if self.find_unused_parameters and not self.static_graph:
            self.unused = self._find_unused(outputs)

    def _find_unused(self, outputs):
        """Walk from `outputs` to all leaves that they were computed from; the indices of the parameters not
        among them.
        """
        stack = [gradient_edge(t)[0] for t in outputs]
        seen = set(stack)
        while stack:
            node = stack.pop()
            if node is None:
                continue
            for child, _ in node._next_edges:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return [i for i, node in enumerate(self.accumulators) if node not in seen]

    # ------------------------------------------------------------------------- during backward

    def _hook_of(self, index):
        """It does not keep the reducer alive, so that the hooks go when DistributedDataParallel goes."""
        reducer = weakref.ref(self)
        return lambda *_: reducer().autograd_hook(index)

    def autograd_hook(self, index):
        """The gradient of parameter `index` has been added to its `.grad`."""
        if not self.expects_hooks:  # inside no_sync()
            return
        if self.parameters[index].grad is not None:
            self.used_here[index] = 1
        if self.static_graph and self.iterations == 1:
            self.hook_counts[index] = self.hook_counts.get(index, 0) + 1
            self._note_arrival(index)
            return
        if not self.unused_are_marked:
            self.unused_are_marked = True
            for i in self.unused:
                self.mark_variable_ready(i)
        if self.static_graph:
            if not self._is_last_call(index):
                return
        self._note_arrival(index)
        self.mark_variable_ready(index)

    def _is_last_call(self, index):
        """With static_graph: whether parameter `index` gets no further gradient in this backward."""
        left = self.hooks_left.get(index, 0)
        if left == 0:
            raise used_after_all()
        self.hooks_left[index] = left - 1
        return left == 1

    def _note_arrival(self, index):
        if self._may_rebuild() and index not in self.arrival_order:
            self.arrival_order.append(index)

    def mark_variable_ready(self, index):
        """Put the gradient into its bucket; start what became complete."""
        if index in self.ready:
            raise marked_twice(self, index)
        self.ready.add(index)
        self.unfinished = True
        bucket = self.bucket_of[index]
        if not bucket.sparse:
            with AutoGradMode(False):
                self._copy_into_bucket(index, bucket.views[index])
        recording = timeline.current.timeline
        if recording is not None:
            recording.instant(
                "gradient", parameter=self.names.get(index, str(index)), bucket=self.buckets.index(bucket)
            )
        bucket.pending -= 1
        if bucket.pending == 0:
            self._start_complete_buckets()

    def _copy_into_bucket(self, index, part):
        """The gradient, divided by the number of ranks unless a communication hook wants to do that itself."""
        parameter = self.parameters[index]
        grad, divisor = parameter.grad, 1 if self.comm_hook else self._divisor()
        if grad is None:
            part._array[...] = 0
        elif grad._array.dtype != part._array.dtype:
            raise RuntimeError(
                f"grad of parameter {self.names.get(index, index)} has type {grad.dtype}, the "
                "parameter "
                f"{parameter.dtype}"
            )
        else:
            np.multiply(host_array(grad), part._array.dtype.type(1 / divisor), out=part._array)
            if self.gradient_as_bucket_view and grad is not part:
                parameter.grad = part

    def _divisor(self):
        """How many ranks the sum is divided by: all, or with `join` those that still have inputs."""
        if self.divisor is None:
            self.divisor = self.process_group.size()
            if self.forward_pass_work is not None and not self.divide_by_initial_world_size:
                self.forward_pass_work.wait()
                self.divisor = int(self.forward_pass_work.outputs[0]._array[0])
        return self.divisor

    def _start_complete_buckets(self):
        """Begin the all-reduce of each bucket whose turn it is; after the last, wait for backward's end."""
        while self.next_bucket < len(self.buckets) and self.buckets[self.next_bucket].pending == 0:
            self.all_reduce_bucket(self.next_bucket)
            self.next_bucket += 1
        if self.next_bucket == len(self.buckets):
            if self.find_unused_parameters and not self.static_graph:
                self._all_reduce_used()
            engine.queue_callback(self.finalize_backward)

    def all_reduce_bucket(self, number):
        """Begin to sum a bucket over the ranks."""
        bucket = self.buckets[number]
        if bucket.sparse:
            bucket.future = self._reduce_sparse(bucket.parameters[0])
            return
        shown = GradBucket(
            number, bucket.flat, bucket.parameters, bucket.views.values(), number == len(self.buckets) - 1
        )
        bucket.future = self.run_comm_hook(shown)
        recording = timeline.current.timeline
        if recording is not None and self.last_work is not None:
            recording.follow(
                f"bucket {number}",
                self.last_work,
                bytes=bucket.flat._array.nbytes,
                bucket=number,
                parameters=[self.names.get(i, str(i)) for i in bucket.indices],
            )

    def _reduce_sparse(self, parameter):
        """A Future of the average of sparse gradients. This rank waits for it: how long it is only the ranks
        together know.

        in PyTorch: not waited for, and a communication hook gets it too.
        """
        done, grad = Future(), parameter.grad
        with AutoGradMode(False):
            grad = empty_like(parameter) if grad is None else grad * (1 / self._divisor())
            done.set_result(sparse_all_reduce(self.process_group, grad))
        return done

    def run_comm_hook(self, bucket):
        """A Future of the reduced buffer: from the registered hook, or a plain sum."""
        self.last_work = None
        if self.comm_hook is None:
            self.last_work = self.process_group.allreduce([bucket.buffer()])
            return self.last_work.get_future()
        state, hook = self.comm_hook
        future = hook(state, bucket)
        if not isinstance(future, Future):
            raise RuntimeError(
                "DDP communication hook's callback must return a torch.futures.Future object, "
                "but got "
                f"{type(future).__module__}.{type(future).__qualname__}"
            )
        return future

    def _all_reduce_used(self):
        """Which parameters got a gradient on some rank: those that nobody used keep theirs."""
        self.used_work = self.process_group.allreduce([wrap(self.used_here)])

    def delay_all_reduce(self):
        """The end of the first backward with static_graph: now it is known what is used, so all buckets may
        go.
        """
        self.unused = [i for i in range(len(self.parameters)) if i not in self.hook_counts]
        self.unused_are_marked = True
        if self._may_rebuild():
            self.arrival_order += self.unused
        for i in range(len(self.parameters)):
            self.mark_variable_ready(i)

    # ------------------------------------------------------------------------- after backward

    def finalize_backward(self):
        """Wait for the buckets and put what they hold into the parameters' gradients."""
        self.expects_hooks = False
        self.unfinished = False
        recording = timeline.current.timeline
        if recording is None:
            self._wait_for_buckets()
        else:
            recording.instant("backward is over")
            with recording.span("waits for the buckets", lane="wait"):
                self._wait_for_buckets()
        self.used_here[:] = 0
        self.used_work = self.divisor = self.forward_pass_work = None

    def _wait_for_buckets(self):
        nobody_used = self._unused_everywhere()
        for bucket in self.buckets:
            result = self._result_of(bucket)
            with AutoGradMode(False):
                if bucket.sparse:
                    if bucket.indices[0] not in nobody_used:
                        bucket.parameters[0].grad = result
                    continue
                if result is not bucket.flat:
                    bucket.flat._array[...] = result._array.reshape(-1)
                for i in bucket.indices:
                    if i not in nobody_used:
                        self._store_gradient(self.parameters[i], bucket.views[i])

    def _result_of(self, bucket):
        value = bucket.future.wait()
        return value[0] if isinstance(value, (list, tuple)) else value

    def _unused_everywhere(self):
        if self.used_work is None:
            if self.static_graph:
                return [i for i in self.unused if self.parameters[i].grad is None]
            return []
        self.used_work.wait()
        return {i for i, count in enumerate(self.used_here) if count == 0}

    def _store_gradient(self, parameter, part):
        if self.gradient_as_bucket_view:
            if parameter.grad is not part:
                parameter.grad = part
        elif parameter.grad is None:
            parameter.grad = part.clone()
        else:
            parameter.grad.copy_(part)

    def _move_into_view(self, parameter, part):
        part._array[...] = host_array(parameter.grad)
        parameter.grad = part

    # ------------------------------------------------------------------------- in the order of arrival

    def _may_rebuild(self):
        """Once, and not where parameters may be unused: then the order changes from one backward to the next."""
        return not self.rebuilt and (self.static_graph or not self.find_unused_parameters)

    def rebuild_buckets(self):
        """Before the second forward: fill the buckets in the order in which gradients arrived. Whether it
        did.
        """
        if not self._may_rebuild() or not self.arrival_order:
            return False
        self.arrival_order += [i for i in range(len(self.parameters)) if i not in self.arrival_order]
        order = np.array(self.arrival_order, np.int64)
        self.process_group.broadcast([wrap(order)], 0).wait()
        order = order.tolist()
        arrived = [self.parameters[i] for i in order]
        indices, _ = compute_bucket_assignment_by_size(arrived, self.rebuilding_limits, self.expect_sparse, order)
        self.initialize_buckets(indices)
        self.rebuilt, self.arrival_order = True, []
        return True

    # ------------------------------------------------------------------------- for DistributedDataParallel

    def set_static_graph(self):
        """The graph will be the same in every iteration; RuntimeError after the first."""
        if self.iterations:
            raise RuntimeError(
                "set_static_graph() should be called before training loop starts and after "
                "DistributedDataParallel is constructed."
            )
        self.static_graph = True

    def register_comm_hook(self, state, hook):
        """Let `hook(state, bucket)` reduce the buckets: it returns a Future of the reduced flat tensor."""
        if self.comm_hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.comm_hook = (state, hook)

    def set_forward_pass_work_handle(self, work, divide_by_initial_world_size):
        """With `join`: `work` counts the ranks that have inputs for this iteration."""
        self.forward_pass_work = work
        self.divide_by_initial_world_size = divide_by_initial_world_size

    def shadow_backward(self):
        """Take part in a backward of the other ranks, with zeros."""
        futures = []
        for i, bucket in enumerate(self.buckets):
            if bucket.sparse:
                sparse_all_reduce(self.process_group, empty_like(bucket.parameters[0]))
                continue
            zeros, last = at.zeros_like(bucket.flat), i == len(self.buckets) - 1
            futures.append(self.run_comm_hook(GradBucket(i, zeros, bucket.parameters, bucket.views.values(), last)))
        for future in futures:
            future.wait()

    def push_all_rebuilt_params(self):
        """The same rank: its order of arrival is as good as any, rank 0's counts."""
        if self._may_rebuild() and not self.arrival_order:
            self.arrival_order = list(range(len(self.parameters)))

    def remove_autograd_hooks(self):
        for handle in getattr(self, "handles", ()):
            handle.remove()

    __del__ = remove_autograd_hooks


# ------------------------------------------------------------------------- the same model on all ranks


def verify_params_across_processes(process_group, parameters):
    """RuntimeError on every rank whose parameters are not as many, or not of the sizes, as rank 0's."""
    counts = np.zeros((process_group.size(), 1), np.int64)
    process_group.all_gather_single(wrap(counts), wrap(np.array([len(parameters)], np.int64))).wait()
    first, rank = process_group.ranks[0], process_group.rank()
    for other, (count,) in zip(process_group.ranks, counts):
        if count != len(parameters):
            raise RuntimeError(
                "DDP expects same model across all ranks, but Rank "
                f"{process_group.ranks[rank]} has {len(parameters)} params, while rank "
                f"{other} has inconsistent {count} "
                "params."
            )
    sizes = np.full((len(parameters), 9), -1, np.int64)
    for row, p in zip(sizes, parameters):
        row[: 1 + len(p.shape)] = [len(p.shape), *p.shape][:9]
    expected = sizes.copy()
    process_group.broadcast([wrap(expected)], 0).wait()
    wrong = (sizes != expected).any(axis=1)
    flags = np.zeros((process_group.size(), 1), np.int64)
    process_group.all_gather_single(wrap(flags), wrap(np.array([wrong.any()], np.int64))).wait()
    if wrong.any():
        i = int(wrong.argmax())
        raise RuntimeError(
            f"[{process_group.ranks[rank]}]: params[{i}] in this process with sizes "
            f"{list(parameters[i].shape)} appears not to match sizes of the same param in "
            f"process {first}."
        )
    if flags.any():
        raise RuntimeError(
            f"[{process_group.ranks[rank]}]: params on rank "
            f"{process_group.ranks[int(flags.argmax())]} appear not to match sizes of the "
            f"same param in process {first}."
        )


# ------------------------------------------------------------------------- messages of errors


def unfinished_reduction(reducer):
    """A new iteration begins, and some parameters got no gradient in the last one."""
    begin = "Expected to have finished reduction in the prior iteration before starting a new one. "
    if reducer.static_graph:
        return RuntimeError(
            f"{begin}This error indicates that your training graph has changed in this iteration, e.g., one "
            "parameter is used in first iteration, but then got unused in the second iteration. this is not "
            "compatible with static_graph set to True."
        )
    missing = [i for i in range(len(reducer.parameters)) if i not in reducer.ready]
    names = ", ".join(reducer.names.get(i, str(i)) for i in missing)
    rank = reducer.process_group.rank()
    return RuntimeError(
        f"{begin}This error indicates that your module has parameters that were not used in producing loss. "
        f"{_advice(reducer)}making sure all `forward` function outputs participate in calculating loss. \n"
        f"Parameters which did not receive grad for rank {rank}: {names}\n"
        f"Parameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}"
    )


def _advice(reducer):
    if reducer.find_unused_parameters:
        return (
            "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` "
            "outputs participate in computing loss. You can fix this by "
        )
    return (
        "You can enable unused parameter detection by passing the keyword argument "
        "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n"
    )


def marked_twice(reducer, index):
    """A second gradient of a parameter came after its bucket had left."""
    return RuntimeError(
        "Expected to mark a variable ready only once. This error is caused by one of the following reasons: "
        "1) Use of a module parameter outside the `forward` function. Please make sure model parameters are "
        "not shared across multiple concurrent forward-backward passes. or try to use _set_static_graph() as "
        "a workaround if this module graph does not change during training loop.2) Reused parameters in "
        "multiple reentrant backward passes.\n"
        f"Parameter at index {index} with name {reducer.names.get(index, '?')} has been marked as ready "
        "twice. This means that multiple autograd engine  hooks have fired for this particular parameter "
        "during this iteration."
    )


def used_after_all():
    """With static_graph: a parameter got a gradient that had none in the first iteration."""
    return RuntimeError(
        "Your training graph has changed in this iteration, e.g., one parameter is unused in first "
        "iteration, but then got used in the second iteration. this is not compatible with static_graph set "
        "to True."
    )
