"""ZeRO's first stage: each rank keeps the optimizer state of its share of the parameters.

In PyTorch: `torch/distributed/optim/zero_redundancy_optimizer.py`.

Note [ A share of the state ]

With DistributedDataParallel every rank holds all parameters, all gradients and all of the optimizer's state, and all compute
the same step. Here each parameter belongs to one rank, which alone steps it, with an optimizer of the usual kind that knows
no others; then each rank broadcasts what it has stepped. Gradients and parameters are as large as before, the state is
1/N. The parameters are dealt out by size, the largest first, each to the rank that has the least so far.

Samyam Rajbhandari and others, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2019); the second and
the third stage, which deal out gradients and parameters, are `fully_shard`.
"""

import logging
from copy import copy, deepcopy
from itertools import chain

import readtorch
from readtorch import Tensor
from readtorch import distributed as dist
from readtorch.distributed.algorithms.join import Join, Joinable, JoinHook
from readtorch.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

logger = logging.getLogger(__name__)


class _ZeROJoinHook(JoinHook):
    """A rank without inputs steps its share for the others."""

    def __init__(self, zero):
        self.zero = zero
        super().__init__()

    def main_hook(self):
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """`optimizer_class(params, **defaults)`, of whose state each rank of `process_group` keeps a share.

    See Note [ A share of the state ]. parameters_as_bucket_view: the parameters of a rank lie one behind the other in one
    tensor, of which they become views, so that a rank broadcasts once. overlap_with_ddp: not in readtorch.
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view=False,
        overlap_with_ddp=False,
        **defaults,
    ):
        if overlap_with_ddp:
            raise NotImplementedError("readtorch's ZeroRedundancyOptimizer does not step within DDP's backward pass")
        params = self._verify_and_init_params(params)
        self._verify_same_dense_param_type()
        self.initialized = False
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self._partition = None
        self._is_trainable_mask = self._get_is_trainable_mask()
        self._default_device = self._all_params[0].device
        self.process_group = process_group if process_group is not None else dist.group.WORLD
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        self.global_rank = dist.get_global_rank(self.process_group, self.rank)
        self.optim = optimizer_class(self._partition_parameters()[self.rank], **defaults)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._buckets = []
        self._build_param_buckets()
        self._all_state_dicts = []
        self.initialized = True

    # ------------------------------------------------------------------------------------- whose is what

    def _partition_parameters(self):
        """For each rank the groups with the parameters that it steps."""
        if self._partition is None:
            self._partition = [[] for _ in range(self.world_size)]
            sizes = [0] * self.world_size
            for group in self.param_groups:
                shares = [[] for _ in range(self.world_size)]
                for param in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                    rank = sizes.index(min(sizes))
                    shares[rank].append(param)
                    sizes[rank] += param.numel()
                for groups, share in zip(self._partition, shares):
                    groups.append({**group, "params": share})
        return self._partition

    @property
    def _param_to_rank(self):
        """Whose each parameter is."""
        shares = enumerate(self._partition_parameters())
        return {param: rank for rank, groups in shares for group in groups for param in group["params"]}

    @property
    def _index_to_param(self):
        """The parameters in the order of `state_dict`."""
        return list(chain.from_iterable(group["params"] for group in self.param_groups))

    @property
    def _param_to_index(self):
        return {param: index for index, param in enumerate(self._index_to_param)}

    def add_param_group(self, param_group):
        """Add a group, on all ranks."""
        super().add_param_group(param_group)
        if self.initialized:
            self._partition = None
            self.optim.add_param_group(self._partition_parameters()[self.rank][-1])
            self._build_param_buckets()

    def _get_is_trainable_mask(self):
        return [param.requires_grad for param in self._all_params]

    # ----------------------------------------------------------------------------------------- the step

    def step(self, closure=None, **kwargs):
        """Step this rank's share, then bring all parameters up to date on all ranks."""
        loss = self._local_step(closure, **kwargs)
        self._sync_params()
        return loss

    def _local_step(self, closure=None, **kwargs):
        Join.notify_join_context(self)
        if self._get_is_trainable_mask() != self._is_trainable_mask:
            logger.warning(
                "ZeroRedundancyOptimizer detected that the trainable parameters changed; rebuilding the parameter "
                "buckets if enabled"
            )
            self._build_param_buckets()
            self._is_trainable_mask = self._get_is_trainable_mask()
        self._sync_param_groups(self.param_groups, self.optim.param_groups)  # a scheduler changes ours
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        return loss

    def _sync_params(self):
        """Every rank broadcasts its share."""
        works = [
            dist.broadcast(tensor, group=self.process_group, group_src=rank, async_op=True)
            for rank in range(self.world_size)
            for tensor in self._tensors_of(rank)
        ]
        for work in works:
            work.wait()

    def _tensors_of(self, rank):
        if self.parameters_as_bucket_view:
            return [buckets[rank] for buckets in self._buckets if buckets[rank].numel()]
        return [param.data for group in self._partition_parameters()[rank] for param in group["params"]]

    def _build_param_buckets(self):
        """Let the trainable parameters become views of one tensor a device and rank."""
        if not self.parameters_as_bucket_view:
            return
        devices = list(dict.fromkeys(param.device for param in self._all_params))
        self._buckets = [
            [self._bucket(device, chain(*(group["params"] for group in groups))) for groups in self._partition]
            for device in devices
        ]

    def _bucket(self, device, params):
        """in PyTorch: one without parameters has one element."""
        params = [param for param in params if param.device == device]
        for param in params:
            if not param.requires_grad:  # it may have been in a bucket before
                param.data = param.data.detach().clone()
        params = [param for param in params if param.requires_grad]
        if not params:
            return readtorch.empty(0, device=device)
        bucket = readtorch.cat([param.data.flatten() for param in params])
        for param, part in zip(params, bucket.split([param.numel() for param in params])):
            param.data = part.view_as(param.data)
        return bucket

    # --------------------------------------------------------------------------------- uneven inputs

    def join_hook(self, **kwargs):
        """For `Join`: a rank whose inputs have ended still steps its share."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self):
        return self._default_device

    @property
    def join_process_group(self):
        return self.process_group

    # ------------------------------------------------------------------------------------- checkpoints

    def consolidate_state_dict(self, to=0):
        """Bring the state of all ranks to rank `to`, for `state_dict()` there. All ranks call it."""
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        own = _to_device(self.optim.state_dict(), readtorch.device("cpu"))
        gathered = [None] * self.world_size if self.rank == to else None
        dist.gather_object(own, gathered, group=self.process_group, group_dst=to)
        self._all_state_dicts = gathered or []

    def state_dict(self):
        """The state of all ranks, as at the last `consolidate_state_dict`. RuntimeError on a rank that it was not brought
        to.
        """
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. "
                f"Please call `consolidate_state_dict(to={self.rank})` on "
                "all ranks beforehand if you meant to save the global state."
            )
        state_dict, index = super().state_dict(), self._param_to_index
        for groups, local in zip(self._partition_parameters(), self._all_state_dicts):
            for group, local_group in zip(groups, local["param_groups"]):
                for param, local_index in zip(group["params"], local_group["params"]):
                    if local_index in local["state"]:
                        state_dict["state"][index[param]] = local["state"][local_index]
        state_dict["state"] = dict(sorted(state_dict["state"].items()))
        return state_dict

    def load_state_dict(self, state_dict):
        """Take this rank's share of a state of all ranks. What is others' becomes None in `state_dict`."""
        owner, params = self._param_to_rank, self._index_to_param
        for index, value in state_dict["state"].items():
            param = params[index]
            if owner[param] != self.rank:
                state_dict["state"][index] = None
                continue
            self.optim.state[param] = {
                name: entry.cpu() if isinstance(entry, Tensor) and entry.dim() == 0 else entry
                for name, entry in _to_device(value, param.device).items()
            }
        super().load_state_dict(state_dict)
        self._sync_param_groups(state_dict["param_groups"], self.param_groups)
        self._sync_param_groups(self.param_groups, self.optim.param_groups)

    @staticmethod
    def _sync_param_groups(src_param_groups, dst_param_groups):
        """Copy the settings, such as rates, but not the parameters."""
        for source, target in zip(src_param_groups, dst_param_groups, strict=True):
            target.update({key: value for key, value in source.items() if key != "params"})

    # -------------------------------------------------------------------------------------------- checks

    def _verify_and_init_params(self, params):
        """The parameters or groups as a list."""
        if isinstance(params, Tensor):
            raise TypeError(f"`params` argument should be an iterable of Tensors, but got {readtorch.typename(params)}")
        try:
            all_params = list(params)
        except TypeError as error:
            raise TypeError(
                f"`params` argument should be an iterable of Tensors or dicts, but got {readtorch.typename(params)}"
            ) from error
        if not all_params:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        if all(isinstance(param, Tensor) for param in all_params):
            self._all_params = all_params
            return all_params
        if not all(isinstance(param, dict) for param in all_params):
            raise TypeError("`params` argument should be an iterable of Tensors or dicts")
        if not all("params" in group for group in all_params):
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in "
                "the group"
            )
        all_params = [{**group, "params": list(group["params"])} for group in all_params]
        self._all_params = [param for group in all_params for param in group["params"]]
        return all_params

    def _verify_same_dense_param_type(self):
        first = readtorch.typename(self._all_params[0])
        for param in self._all_params:
            if param.is_sparse:
                raise ValueError(
                    "ZeroRedundancyOptimizer only supports using "
                    "the same dense type for all parameters but got "
                    f"{readtorch.typename(param)}"
                )
            if readtorch.typename(param) != first:
                raise ValueError(
                    "ZeroRedundancyOptimizer only supports "
                    "using the same dense type for all "
                    f"parameters but got both {first} and {readtorch.typename(param)}"
                )


def _to_device(value, device):
    """A copy whose tensors are on `device`."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {copy(key): _to_device(entry, device) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_to_device(entry, device) for entry in value)
    return deepcopy(value)
