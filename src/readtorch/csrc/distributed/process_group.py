"""`ProcessGroup`: some ranks and the collectives that they can run together.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroup.hpp`, `torch/csrc/distributed/c10d/Backend.hpp`. There a ProcessGroup holds one Backend
for each type of device; here it is the backend. Every collective comes down to one `Collective` with at most
two contiguous arrays, which a backend's `start` carries out.
"""

import os
from datetime import timedelta
from enum import Enum

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.device import device
from readtorch.c10.dispatch_key import CONJUGATE, CPU, MATH_BITS, SPARSE_CPU
from readtorch.c10.tensor_impl import type_name

from .device_streams import stream_of
from .exception import DistBackendError
from .flight_recorder import FlightRecorder
from .process_group_wrapper import Collective
from .sparse import sparse_all_reduce_into
from .types import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    RedOpType,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    check_reduce_op,
    combine,
    op_type,
)
from .utils import Refuse
from .watchdog import Watchdog
from .work import CoalescedWork, Work


class BackendType(Enum):
    """Kinds of backends."""

    UNDEFINED = 0
    GLOO = 1
    NCCL = 2
    UCC = 3
    MPI = 4
    XCCL = 5
    CUSTOM = 6


class ProcessGroup:
    """Some of the ranks, numbered from 0 inside the group.

    ranks: the global rank of each; timeout: seconds that a collective may take.
    """

    backend_name = "undefined"
    # whether nobody can have taken a rank's place: Note [ The secret of a group ]
    knows_its_peers = True

    BackendType = BackendType
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = BackendType

    def __init__(self, rank, ranks, name="", timeout=1800.0, store=None, desc="undefined"):
        self._rank = rank
        self.ranks = list(range(ranks) if isinstance(ranks, int) else ranks)
        self.group_name = name
        self.group_desc = desc
        self._timeout = timeout
        self.store = store
        self.sequence = 0  # collectives begun so far: Note [ Do all ranks mean the same? ]
        self.bound_device_id = None  # in PyTorch: the GPU of this rank, if it is known from the beginning
        self._coalesced = None  # while a block coalesces: the Works that it began

    def rank(self):
        """This rank's number in the group."""
        return self._rank

    def size(self):
        """How many ranks the group has."""
        return len(self.ranks)

    def getBackendName(self):
        """What a backend of a program's own defines for `name`."""
        return self.backend_name

    def name(self):
        """The backend's name."""
        return self.getBackendName()

    def _get_backend_name(self):
        return self.getBackendName()

    def _get_backend(self, device):
        """What carries out collectives of tensors on a device: here the group itself."""
        return self

    @property
    def _device_types(self):
        return [device("cpu")]

    def _set_group_name(self, name):
        self.group_name = name

    def _set_group_desc(self, desc):
        self.group_desc = desc

    def get_group_store(self):
        """The store through which the group's ranks found one another."""
        return self.store

    def _get_sequence_number_for_group(self):
        return self.sequence

    def _set_sequence_number_for_group(self):
        """Nothing to do: all ranks begin to count when they make the group. in PyTorch: rank 0 draws a number."""

    @property
    def options(self):
        """What the group was made with."""
        return Options(self)

    def set_timeout(self, timeout):
        """How long a collective may take, as a timedelta."""
        self._timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    # ------------------------------------------------------------------------- what a backend defines

    def subgroup(self, ranks, name, timeout, desc):
        """The group of some of the ranks, this one among them. timeout: seconds."""
        raise RuntimeError(f"Backend {self.backend_name} does not support new_group")

    def start(self, collective, work):
        """Begin `collective`; call `work.finish` when it is over."""
        raise RuntimeError(f"Backend {self.backend_name} does not support {collective.name}")

    def start_send(self, array, peer, tag, work):
        """Begin to send a contiguous array to group rank `peer`."""
        raise RuntimeError(f"Backend {self.backend_name} does not support send")

    def start_recv(self, array, peer, tag, work):
        """Begin to receive into a contiguous array from group rank `peer`, from anyone if that is None."""
        raise RuntimeError(f"Backend {self.backend_name} does not support recv")

    def shutdown(self):
        """Let go of threads and connections. Nothing can be run afterwards."""

    abort = shutdown

    # ------------------------------------------------------------------------- collectives

    # Each takes an object with options, as in PyTorch, or the root or the reduction by itself.

    def allreduce(self, tensors, opts=None, timeout=None, op=None):
        """Reduce a tensor over all ranks, in place on all; of several tensors first those of a rank among one another."""
        tensors, opts = _several(tensors), AllreduceOptions.of(opts, timeout, reduceOp=op)
        refuse, op = Refuse("allreduce"), op_type(opts.reduceOp)
        refuse.empty(tensors)
        refuse.other_layouts(tensors)
        refuse.unlike_first(tensors)
        if tensors[0]._keys & SPARSE_CPU:
            return self._sparse_allreduce(refuse, tensors, op)
        check_reduce_op(op, tensors[0])
        buffer, copies = _in_place(tensors[0])
        for other in tensors[1:]:
            combine(op, buffer, array_of(other))
            copies.append((array_of(other), buffer))
        return self._run(Collective("all_reduce", buffer, buffer, buffer, op=op), copies, tensors, opts)

    def _sparse_allreduce(self, refuse, tensors, op):
        """Done before it returns: what is to be sent is known after the first messages only."""
        if op != RedOpType.SUM:
            refuse("unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)")
        sparse_all_reduce_into(self, tensors)
        work = Work(self.describe("all_reduce of sparse tensors"), tensors, self._timeout)
        work.finish()
        return work

    def allreduce_coalesced(self, tensors, opts=None):
        """Reduce several tensors over all ranks, in one message."""
        opts, refuse = AllreduceCoalescedOptions.of(opts), Refuse("allreduce_coalesced")
        refuse.empty(tensors)
        refuse.other_layouts(tensors)
        if any(t.dtype is not tensors[0].dtype for t in tensors):
            refuse("tensors must all have the same type")
        if tensors[0]._keys & SPARSE_CPU:
            refuse("unsupported layout")
        op = op_type(opts.reduceOp)
        check_reduce_op(op, tensors[0])
        flat = np.concatenate([array_of(t).reshape(-1) for t in tensors])
        copies = _parts(flat, tensors)
        return self._run(Collective("all_reduce", flat, flat, flat, op=op), copies, tensors, opts)

    def reduce(self, tensors, opts=None, op=None, timeout=None, root=None):
        """Reduce a tensor over all ranks, in place on the root only."""
        tensors, opts = _several(tensors), ReduceOptions.of(opts, timeout, reduceOp=op, rootRank=root)
        refuse, root, op = Refuse("reduce"), opts.rootRank, op_type(opts.reduceOp)
        refuse.root(root, self.size())
        refuse.root_tensor(opts.rootTensor, tensors)
        refuse.not_one(tensors, "tensor")
        check_reduce_op(op, tensors[0])
        buffer, copies = _in_place(tensors[0])
        at_root = root == self._rank
        collective = Collective("reduce", buffer, buffer if at_root else None, buffer, op=op, root=root)
        return self._run(collective, copies if at_root else [], tensors, opts)

    def broadcast(self, tensors, opts=None, timeout=None, root=None):
        """Copy a tensor of the root into that of every rank; of several tensors, one of the root into all."""
        tensors, opts = _several(tensors), BroadcastOptions.of(opts, timeout, rootRank=root)
        refuse = Refuse("broadcast")
        refuse.root(opts.rootRank, self.size())
        refuse.root_tensor(opts.rootTensor, tensors)
        refuse.unlike_first(tensors)
        buffer, copies = _in_place(tensors[opts.rootTensor])
        copies += [(array_of(t), buffer) for i, t in enumerate(tensors) if i != opts.rootTensor]
        return self._run(Collective("broadcast", buffer, buffer, buffer, root=opts.rootRank), copies, tensors, opts)

    def allgather(self, output_lists, inputs, opts=None, timeout=None):
        """Copy the tensor of every rank into a list of tensors on every rank; with several, all into each of as many lists."""
        inputs, opts, refuse = _several(inputs), AllgatherOptions.of(opts, timeout), Refuse("allgather")
        if output_lists and not isinstance(output_lists[0], (list, tuple)):
            output_lists = [output_lists]
        if not inputs:
            refuse("requires non-empty input tensor list")
        if len(inputs) != len(output_lists):
            refuse("requires input/output tensor lists to have the same length")
        for i, outputs in enumerate(output_lists):
            refuse.length(i, outputs, self.size() * len(inputs))
        for tensors in (inputs, *output_lists):
            refuse.unlike(inputs[0], tensors)
        if len(inputs) == 1:
            source = rows = _contiguous(inputs[0])
        else:
            source = np.stack([array_of(t) for t in inputs])
            rows = source[0]
        target = np.empty((self.size(), *source.shape), source.dtype)
        parts = target.reshape(self.size() * len(inputs), *rows.shape)
        copies = [(array_of(t), part) for outputs in output_lists for t, part in zip(outputs, parts)]
        outputs = output_lists[0] if len(output_lists) == 1 else output_lists
        return self._run(Collective("all_gather", source, target, source), copies, outputs, opts)

    def allgather_coalesced(self, output_lists, inputs, opts=None):
        """Copy several tensors of every rank into a list of as many for each rank, in one message."""
        opts, refuse = AllgatherOptions.of(opts), Refuse("allgather_coalesced")
        if not inputs:
            refuse("requires non-empty input tensor list")
        if len(output_lists) != self.size():
            refuse("output lists should be equal to world size")
        for outputs in output_lists:
            _check_coalesced(refuse, outputs, inputs)
        source = np.concatenate([_as_bytes(t) for t in inputs])
        target = np.empty((self.size(), source.size), np.uint8)
        copies = [copy for row, outputs in zip(target, output_lists) for copy in _byte_parts(row, outputs)]
        return self._run(Collective("all_gather", source, target, source), copies, output_lists, opts)

    def all_gather_single(self, output, tensor, opts=None, timeout=None):
        """Copy the tensors of all ranks one behind the other into `output`."""
        opts = AllgatherOptions.of(opts, timeout)
        source, (target, copies) = _contiguous(tensor), _in_place(output)
        if target.size != source.size * self.size():
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        rows = target.reshape(self.size(), *source.shape)
        return self._run(Collective("all_gather", source, rows, source), copies, [output], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        """`all_gather_single` of several pairs of tensors. in PyTorch: in one message."""
        if len(outputs) != len(inputs):
            raise RuntimeError("requires input/output tensor lists to have the same length")
        return CoalescedWork([self.all_gather_single(o, i, opts) for o, i in zip(outputs, inputs)])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, output_lists, inputs, opts=None, timeout=None, root=None):
        """Copy the tensor of every rank into a list of tensors on the root."""
        inputs, opts = _several(inputs), GatherOptions.of(opts, timeout, rootRank=root)
        refuse, root = Refuse("gather"), opts.rootRank
        refuse.root(root, self.size())
        refuse.not_one(inputs, "input tensor")
        outputs = self._list_of_root(refuse, root, output_lists, "output")
        refuse.unlike(inputs[0], outputs)
        source, target, copies = _contiguous(inputs[0]), None, []
        if root == self._rank:
            target = np.empty((self.size(), *source.shape), source.dtype)
            copies = [(array_of(output), part) for output, part in zip(outputs, target)]
        return self._run(Collective("gather", source, target, source, root=root), copies, outputs, opts)

    def scatter(self, outputs, input_lists, opts=None, timeout=None, root=None):
        """Copy the i-th of a list of tensors on the root into the tensor of rank i."""
        outputs, opts = _several(outputs), ScatterOptions.of(opts, timeout, rootRank=root)
        refuse, root = Refuse("scatter"), opts.rootRank
        refuse.root(root, self.size())
        refuse.not_one(outputs, "output tensor")
        tensors = self._list_of_root(refuse, root, input_lists, "input")
        refuse.unlike(outputs[0], tensors)
        target, copies = _in_place(outputs[0])
        source = np.stack([array_of(t) for t in tensors]) if root == self._rank else None
        return self._run(Collective("scatter", source, target, target, root=root), copies, outputs, opts)

    def _list_of_root(self, refuse, root, lists, kind):
        """The list of a tensor for each rank, which the root gives and nobody else."""
        if root != self._rank:
            if lists:
                refuse(f"requires empty {kind} on non-root")
            return []
        if len(lists) != 1:
            refuse(f"requires a single-element {kind} list containing a list with {self.size()} tensors.")
        if len(lists[0]) != self.size():
            refuse(
                f"Incorrect {kind} list size {len(lists[0])}. {kind.capitalize()} list size should be {self.size()}, "
                "same as size of the process group."
            )
        return lists[0]

    def reduce_scatter(self, outputs, input_lists, opts=None, timeout=None, op=None):
        """Reduce a list of tensors over all ranks; rank i gets the i-th."""
        (output,), opts = _several(outputs), ReduceScatterOptions.of(opts, timeout, reduceOp=op)
        tensors = input_lists[0] if isinstance(input_lists[0], (list, tuple)) else input_lists
        refuse, op = Refuse("reduce_scatter"), op_type(opts.reduceOp)
        refuse.length(0, tensors, self.size())
        refuse.unlike(output, tensors)
        check_reduce_op(op, output)
        target, copies = _in_place(output)
        source = np.stack([array_of(t) for t in tensors])
        return self._run(Collective("reduce_scatter", source, target, target, op=op), copies, [output], opts)

    def reduce_scatter_single(self, output, tensor, opts=None, timeout=None, op=None):
        """Reduce a tensor over all ranks; rank i gets the i-th of its equal parts."""
        opts = ReduceScatterOptions.of(opts, timeout, reduceOp=op)
        op = op_type(opts.reduceOp)
        check_reduce_op(op, output)
        source, (target, copies) = _contiguous(tensor), _in_place(output)
        if source.size != target.size * self.size():
            raise RuntimeError("input tensor must be the same size as output size times world size")
        rows = source.reshape(self.size(), *target.shape)
        return self._run(Collective("reduce_scatter", rows, target, target, op=op), copies, [output], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        """`reduce_scatter_single` of several pairs of tensors. in PyTorch: in one message."""
        if len(outputs) != len(inputs):
            raise RuntimeError("requires input/output tensor lists to have the same length")
        return CoalescedWork([self.reduce_scatter_single(o, i, opts) for o, i in zip(outputs, inputs)])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(self, output, tensor, output_split_sizes=(), input_split_sizes=(), opts=None, timeout=None):
        """Send part i of `tensor` to rank i, fill part i of `output` from rank i.

        The split sizes count along dimension 0; without them the parts are equal.
        """
        opts = AllToAllOptions.of(opts, timeout)
        source, (target, copies) = _contiguous(tensor), _in_place(output)
        collective = Collective(
            "all_to_all",
            source.reshape(-1),
            target.reshape(-1),
            source,
            source_counts=self._counts(source, input_split_sizes),
            target_counts=self._counts(target, output_split_sizes),
        )
        collective.finger = collective.finger._replace(shape=source.shape[1:])  # dimension 0 may differ
        return self._run(collective, copies, [output], opts)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs, inputs, opts=None, timeout=None):
        """Send tensor i of `inputs` to rank i, fill tensor i of `outputs` from rank i."""
        opts = AllToAllOptions.of(opts, timeout)
        for tensors in (outputs, inputs):
            if len(tensors) != self.size():
                raise RuntimeError("Number of tensors must be the same as the number of ranks")
        counts = [[array_of(t).size for t in tensors] for tensors in (inputs, outputs)]
        source = np.concatenate([array_of(t).reshape(-1) for t in inputs])
        target = np.empty(sum(counts[1]), source.dtype)
        copies = _parts(target, outputs)
        collective = Collective("all_to_all", source, target, source, source_counts=counts[0], target_counts=counts[1])
        collective.finger = collective.finger._replace(shape=())
        return self._run(collective, copies, outputs, opts)

    def barrier(self, opts=None, timeout=None):
        """Complete when all ranks have come here."""
        return self._run(Collective("barrier", None, None, None), [], [], BarrierOptions.of(opts, timeout))

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier that says which ranks did not come within `timeout`: RuntimeError on all others.

        in PyTorch: for Gloo only, and names just the first missing rank unless `wait_all_ranks`; here every collective names
        those who are missing.
        """
        timeout = timedelta(seconds=self._timeout) if timeout is None else timeout
        try:
            self.barrier(timeout=timeout).wait()
        except RuntimeError as error:
            raise RuntimeError(
                f"[Rank {self.ranks[self._rank]}]: failed to pass monitoredBarrier in "
                f"{timeout / timedelta(milliseconds=1):.0f} ms\n Original exception: \n"
                f"{error}"
            ) from error

    # ------------------------------------------------------------------------- several at once

    supports_coalescing = True

    def _start_coalescing(self, device=None):
        """From here on what is begun counts as one. in PyTorch: for NCCL, which hands it to the GPU in one kernel."""
        self._coalesced = []

    def _end_coalescing(self, device=None):
        """One Work for all that was begun since."""
        works, self._coalesced = self._coalesced, None
        return CoalescedWork(works or [])

    # ------------------------------------------------------------------------- one rank to another

    def send(self, tensors, peer, tag=0):
        """Begin to send a tensor to group rank `peer`."""
        (tensor,) = _several(tensors)
        Refuse("send").root(peer, self.size())
        if tag < 0:
            raise RuntimeError("Tag must be nonnegative")
        work = Work(self.describe(f"send to rank {self.ranks[peer]}"), [tensor], self._timeout)
        self._note(work, "send", tensor, peer)
        self.start_send(_contiguous(tensor), peer, tag, work)
        return work

    def recv(self, tensors, peer, tag=0):
        """Begin to receive a tensor from group rank `peer`."""
        Refuse("recv").root(peer, self.size())
        return self._receive(tensors, peer, tag, f"recv from rank {self.ranks[peer]}")

    def recv_anysource(self, tensors, tag=0):
        """Begin to receive a tensor from whichever rank sends first."""
        return self._receive(tensors, None, tag, "recv from any rank")

    def _receive(self, tensors, peer, tag, name):
        (tensor,) = _several(tensors)
        if tag < 0:
            raise RuntimeError("Tag must be nonnegative")
        buffer, copies = _in_place(tensor)
        work = Work(self.describe(name), [tensor], self._timeout, source=peer)
        work.copies = copies
        self._note(work, "recv", tensor, peer)
        self.start_recv(buffer, peer, tag, work)
        return work

    # ------------------------------------------------------------------------- shared by all of them

    def _run(self, collective, copies, tensors, opts):
        """Number the collective and let the backend begin it."""
        self.sequence += 1
        collective.finger = collective.finger._replace(number=self.sequence)
        collective.copies = copies
        collective.stream = stream_of(_flat(tensors))
        work = Work(self.what(collective.finger), tensors, opts.seconds(self._timeout))
        work.kind = collective.name
        RECORDER.record(self, work, collective)
        self._coalesce(work)
        self.start(collective, work)
        if not work.is_completed():
            WATCHDOG.watch(work, self, collective)
        return work

    def _note(self, work, name, tensor, peer):
        work.kind = name
        RECORDER.record_message(self, work, name, array_of(tensor), peer)
        self._coalesce(work)

    def _coalesce(self, work):
        if self._coalesced is not None:
            self._coalesced.append(work)

    def what(self, finger):
        """How messages name a collective of this rank."""
        return self.describe(f"{finger.name} no. {finger.number}")

    def describe(self, name):
        """How messages name what this rank does."""
        return f"Rank {self.ranks[self._rank]}: {name} of group {self.group_desc}"

    def _counts(self, array, split_sizes):
        """Elements of an all_to_all's part for each rank."""
        ranks = self.size()
        if not split_sizes:
            if array.shape[0] % ranks:
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            return [array.size // ranks] * ranks
        if len(split_sizes) != ranks:
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(split_sizes) != array.shape[0]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        return [n * array[:1].size for n in split_sizes]

    def broken(self, cause):
        """The error of whoever uses a group after it failed."""
        return DistBackendError(
            f"group {self.group_desc} cannot be used any more on rank {self.ranks[self._rank]}: {cause}"
        )


class Options:
    """What a group was made with; setting them changes the group's."""

    def __init__(self, group):
        self._group = group
        self.backend, self.group_name = group.name(), group.group_name
        self.global_ranks_in_group = list(group.ranks)
        self._threads, self._devices = 1, []

    @property
    def _timeout(self):
        return timedelta(seconds=self._group._timeout)

    @_timeout.setter
    def _timeout(self, timeout):
        self._group.set_timeout(timeout)


RECORDER = FlightRecorder()
WATCHDOG = Watchdog(RECORDER)
os.register_at_fork(after_in_child=WATCHDOG.reset)
BackendType.__qualname__ = "ProcessGroup.BackendType"
for _class in (ProcessGroup, BackendType):
    _class.__module__ = "readtorch.distributed"


def refuse_math_bits(tensor):
    """Raises RuntimeError: the other ranks would see what lies in memory."""
    if tensor._keys & CONJUGATE:
        at.view_as_real(tensor)  # in PyTorch: complex numbers are sent as pairs of real ones
    raise RuntimeError("a tensor with the negative bit cannot be sent: use tensor.resolve_neg()")


def array_of(tensor):
    """The elements as an array that may be read and written: of tensors on the CPU or on a simulated device.

    RuntimeError for others.
    """
    if tensor._keys & MATH_BITS:
        refuse_math_bits(tensor)
    if not tensor._keys & CPU:
        raise RuntimeError(f"No backend type associated with device type {tensor.device.type}")
    return tensor._array


def _contiguous(tensor):
    array = array_of(tensor)
    return array if array.flags.c_contiguous else array.copy(order="C")


def _in_place(tensor):
    """A contiguous array with the tensor's elements, and what must be copied back when it has been written."""
    array, buffer = array_of(tensor), _contiguous(tensor)
    return buffer, [] if buffer is array else [(array, buffer)]


def _several(tensors):
    """PyTorch's groups take lists, of one tensor since they serve one device; a tensor alone will do."""
    return tensors if isinstance(tensors, (list, tuple)) else [tensors]


def _flat(tensors):
    """The first of several lists of tensors, or the list that it is."""
    return tensors[0] if tensors and isinstance(tensors[0], (list, tuple)) else tensors


def _parts(flat, tensors):
    """Which part of an array goes to which of several tensors, one behind the other."""
    copies, begin = [], 0
    for array in map(array_of, tensors):
        copies.append((array, flat[begin : begin + array.size].reshape(array.shape)))
        begin += array.size
    return copies


def _as_bytes(tensor):
    return _contiguous(tensor).reshape(-1).view(np.uint8)


def _byte_parts(row, tensors):
    """The same of bytes, so that the tensors may be of several types."""
    copies, begin = [], 0
    for array in map(array_of, tensors):
        end = begin + array.nbytes
        copies.append((array, row[begin:end].view(array.dtype).reshape(array.shape)))
        begin = end
    return copies


def _check_coalesced(refuse, outputs, inputs):
    if len(outputs) != len(inputs):
        refuse(f"invalid output size: (expected length {len(inputs)}, got {len(outputs)})")
    for i, (output, tensor) in enumerate(zip(outputs, inputs)):
        if output.shape != tensor.shape:
            shapes = f"(expected length {list(tensor.shape)}, got {list(output.shape)})"
            refuse(f"invalid size of output tensor at index {i} {shapes}")
        if output.dtype is not tensor.dtype:
            refuse(f"invalid tensor type at index {i} (expected {type_name(tensor)}, got {type_name(output)})")
