"""`ProcessGroup`: some ranks and the collectives that they can run together.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroup.hpp`, `torch/csrc/distributed/c10d/Backend.hpp`. There a ProcessGroup holds one Backend
for each type of device; here it is the backend. Every collective comes down to one `Collective` with at most
two contiguous arrays, which a backend's `start` carries out.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import CONJUGATE, CPU, MATH_BITS

from .device_streams import stream_of
from .exception import DistBackendError
from .process_group_wrapper import Collective
from .types import RedOpType, check_reduce_op
from .work import Work


class ProcessGroup:
    """Some of the ranks, numbered from 0 inside the group.

    ranks: the global rank of each; timeout: seconds that a collective may take.
    """

    backend_name = "undefined"
    # whether nobody can have taken a rank's place: Note [ The secret of a group ]
    knows_its_peers = True

    def __init__(self, rank, ranks, name, timeout, store=None, desc="undefined"):
        self._rank = rank
        self.ranks = list(ranks)
        self.group_name = name
        self.group_desc = desc
        self._timeout = timeout
        self.store = store
        self.sequence = 0  # collectives begun so far: Note [ Do all ranks mean the same? ]

    def rank(self):
        """This rank's number in the group."""
        return self._rank

    def size(self):
        """How many ranks the group has."""
        return len(self.ranks)

    def name(self):
        """The backend's name."""
        return self.backend_name

    _get_backend_name = name

    def get_group_store(self):
        """The store through which the group's ranks found one another."""
        return self.store

    def _get_sequence_number_for_group(self):
        return self.sequence

    def set_timeout(self, timeout):
        """How long a collective may take, as a timedelta."""
        self._timeout = timeout.total_seconds()

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

    def allreduce(self, tensors, op=RedOpType.SUM, timeout=None):
        """Reduce a tensor over all ranks, in place on all."""
        (tensor,) = _several(tensors)
        check_reduce_op(op, tensor)
        buffer, copies = _in_place(tensor)
        return self._run(Collective("all_reduce", buffer, buffer, buffer, op=op), copies, [tensor], timeout)

    def reduce(self, tensors, root=0, op=RedOpType.SUM, timeout=None):
        """Reduce a tensor over all ranks, in place on `root` only."""
        (tensor,) = _several(tensors)
        self._check_root("reduce", root)
        check_reduce_op(op, tensor)
        buffer, copies = _in_place(tensor)
        at_root = root == self._rank
        collective = Collective("reduce", buffer, buffer if at_root else None, buffer, op=op, root=root)
        return self._run(collective, copies if at_root else [], [tensor], timeout)

    def broadcast(self, tensors, root=0, timeout=None):
        """Copy the tensor of `root` into that of every rank."""
        (tensor,) = _several(tensors)
        self._check_root("broadcast", root)
        buffer, copies = _in_place(tensor)
        return self._run(Collective("broadcast", buffer, buffer, buffer, root=root), copies, [tensor], timeout)

    def allgather(self, output_lists, inputs, timeout=None):
        """Copy the tensor of every rank into a list of tensors on every rank."""
        (outputs,), (tensor,) = output_lists, _several(inputs)
        self._check_list("allgather", outputs, tensor)
        source = _contiguous(tensor)
        target = np.empty((self.size(), *source.shape), source.dtype)
        copies = [(array_of(output), part) for output, part in zip(outputs, target)]
        return self._run(Collective("all_gather", source, target, source), copies, outputs, timeout)

    def all_gather_single(self, output, tensor, timeout=None):
        """Copy the tensors of all ranks one behind the other into `output`."""
        source, (target, copies) = _contiguous(tensor), _in_place(output)
        if target.size != source.size * self.size():
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        rows = target.reshape(self.size(), *source.shape)
        return self._run(Collective("all_gather", source, rows, source), copies, [output], timeout)

    _allgather_base = all_gather_single

    def gather(self, output_lists, inputs, root=0, timeout=None):
        """Copy the tensor of every rank into a list of tensors on `root`."""
        (tensor,) = _several(inputs)
        self._check_root("gather", root)
        source, target, copies, outputs = _contiguous(tensor), None, [], []
        if root == self._rank:
            (outputs,) = output_lists
            self._check_list("gather", outputs, tensor)
            target = np.empty((self.size(), *source.shape), source.dtype)
            copies = [(array_of(output), part) for output, part in zip(outputs, target)]
        return self._run(Collective("gather", source, target, source, root=root), copies, outputs, timeout)

    def scatter(self, outputs, input_lists, root=0, timeout=None):
        """Copy the i-th of a list of tensors on `root` into the tensor of rank i."""
        (output,) = _several(outputs)
        self._check_root("scatter", root)
        target, copies = _in_place(output)
        source = None
        if root == self._rank:
            (tensors,) = input_lists
            self._check_list("scatter", tensors, output)
            source = np.stack([array_of(t) for t in tensors])
        return self._run(Collective("scatter", source, target, target, root=root), copies, [output], timeout)

    def reduce_scatter(self, outputs, input_lists, op=RedOpType.SUM, timeout=None):
        """Reduce a list of tensors over all ranks; rank i gets the i-th."""
        (output,), (tensors,) = _several(outputs), input_lists
        self._check_list("reduce_scatter", tensors, output)
        check_reduce_op(op, output)
        target, copies = _in_place(output)
        source = np.stack([array_of(t) for t in tensors])
        return self._run(Collective("reduce_scatter", source, target, target, op=op), copies, [output], timeout)

    def reduce_scatter_single(self, output, tensor, op=RedOpType.SUM, timeout=None):
        """Reduce a tensor over all ranks; rank i gets the i-th of its equal parts."""
        check_reduce_op(op, output)
        source, (target, copies) = _contiguous(tensor), _in_place(output)
        if source.size != target.size * self.size():
            raise RuntimeError("input tensor must be the same size as output size times world size")
        rows = source.reshape(self.size(), *target.shape)
        return self._run(Collective("reduce_scatter", rows, target, target, op=op), copies, [output], timeout)

    _reduce_scatter_base = reduce_scatter_single

    def all_to_all_single(self, output, tensor, output_split_sizes=(), input_split_sizes=(), timeout=None):
        """Send part i of `tensor` to rank i, fill part i of `output` from rank i.

        The split sizes count along dimension 0; without them the parts are equal.
        """
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
        return self._run(collective, copies, [output], timeout)

    def alltoall(self, outputs, inputs, timeout=None):
        """Send tensor i of `inputs` to rank i, fill tensor i of `outputs` from rank i."""
        for tensors in (outputs, inputs):
            if len(tensors) != self.size():
                raise RuntimeError("Number of tensors must be the same as the number of ranks")
        counts = [[array_of(t).size for t in tensors] for tensors in (inputs, outputs)]
        source = np.concatenate([array_of(t).reshape(-1) for t in inputs])
        target = np.empty(sum(counts[1]), source.dtype)
        ends = np.cumsum(counts[1])
        copies = [(array_of(t), target[end - n : end].reshape(t.shape)) for t, n, end in zip(outputs, counts[1], ends)]
        collective = Collective("all_to_all", source, target, source, source_counts=counts[0], target_counts=counts[1])
        collective.finger = collective.finger._replace(shape=())
        return self._run(collective, copies, outputs, timeout)

    def barrier(self, timeout=None):
        """Complete when all ranks have come here."""
        return self._run(Collective("barrier", None, None, None), [], [], timeout)

    # ------------------------------------------------------------------------- one rank to another

    def send(self, tensors, peer, tag=0):
        """Begin to send a tensor to group rank `peer`."""
        (tensor,) = _several(tensors)
        self._check_root("send", peer)
        work = Work(self.describe(f"send to rank {self.ranks[peer]}"), [tensor], self._timeout)
        self.start_send(_contiguous(tensor), peer, tag, work)
        return work

    def recv(self, tensors, peer, tag=0):
        """Begin to receive a tensor from group rank `peer`."""
        self._check_root("recv", peer)
        return self._receive(tensors, peer, tag, f"recv from rank {self.ranks[peer]}")

    def recv_anysource(self, tensors, tag=0):
        """Begin to receive a tensor from whichever rank sends first."""
        return self._receive(tensors, None, tag, "recv from any rank")

    def _receive(self, tensors, peer, tag, name):
        (tensor,) = _several(tensors)
        buffer, copies = _in_place(tensor)
        work = Work(self.describe(name), [tensor], self._timeout, source=peer)
        work.copies = copies
        self.start_recv(buffer, peer, tag, work)
        return work

    # ------------------------------------------------------------------------- shared by all of them

    def _run(self, collective, copies, tensors, timeout):
        """Number the collective and let the backend begin it."""
        self.sequence += 1
        collective.finger = collective.finger._replace(number=self.sequence)
        collective.copies = copies
        collective.stream = stream_of(tensors)
        allowed = self._timeout if timeout is None else timeout.total_seconds()
        work = Work(self.what(collective.finger), tensors, allowed)
        self.start(collective, work)
        return work

    def what(self, finger):
        """How messages name a collective of this rank."""
        return self.describe(f"{finger.name} no. {finger.number}")

    def describe(self, name):
        """How messages name what this rank does."""
        return f"Rank {self.ranks[self._rank]}: {name} of group {self.group_desc}"

    def _check_root(self, name, root):
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroup::{name}: invalid root rank: {root}")

    def _check_list(self, name, tensors, like):
        """A tensor for every rank, each of the size and type of `like`."""
        if len(tensors) != self.size():
            raise RuntimeError(
                f"ProcessGroup::{name}: invalid output tensor list at index 0 (expected "
                "length "
                f"{self.size()}, got {len(tensors)})"
            )
        for i, t in enumerate(tensors):
            if t.shape != like.shape:
                raise RuntimeError(
                    f"ProcessGroup::{name}: invalid tensor size at index {i} (expected {_sizes(like)}, got {_sizes(t)})"
                )
            if t.dtype is not like.dtype:
                raise RuntimeError(
                    f"ProcessGroup::{name}: invalid tensor type at index {i} (expected {like.dtype}, got {t.dtype})"
                )

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


ProcessGroup.__module__ = "readtorch.distributed"


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


def _sizes(tensor):
    return f"({', '.join(map(str, tensor.shape))})"
