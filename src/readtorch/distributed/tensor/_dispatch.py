"""An operator on DTensors: propagate the placements, redistribute what has to be, run it on local tensors, wrap what comes out.

In PyTorch: `torch/distributed/tensor/_dispatch.py`, and `dispatchDTensorOp` in `torch/csrc/autograd/python_variable.cpp`, to which a
part of it has moved to be faster.
"""

import threading
import warnings

import readtorch
from readtorch import Tensor
from readtorch.distributed import distributed_c10d as c10d
from readtorch.utils._python_dispatch import return_and_correct_aliasing
from readtorch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from ._dtensor_spec import DTensorSpec, TensorMeta
from ._op_schema import OpSchema, _is_spec
from ._redistribute import redistribute_local_tensor
from ._sharding_prop import ShardingPropagator
from .placement_types import Replicate

aten = readtorch.ops.aten


class _Settings(threading.local):
    allow_implicit_replication = False


class OpDispatcher:
    """Runs operators on DTensors. There is one: `DTensor._op_dispatcher`.

    _custom_op_handlers: OpOverload -> function of (class of DTensors, operator, args, kwargs) that runs it in another way. Those of a
    `with` block are kept for each world: ranks that are threads are not in a block together, and a rank's devices have threads of their own.
    """

    def __init__(self):
        self.sharding_propagator = ShardingPropagator()
        self._custom_op_handlers = {aten.as_strided.default: _as_strided_handler}
        self._handlers_of_blocks = {}  # number of a world -> the handlers of each `with` block that it is in
        self._regions = {}  # OpOverload -> what makes the `with` block in which it draws random numbers
        self._settings = _Settings()

    @property
    def _allow_implicit_replication(self):
        """Whether plain tensors beside DTensors are taken for replicated ones, in this thread."""
        return self._settings.allow_implicit_replication

    @_allow_implicit_replication.setter
    def _allow_implicit_replication(self, value):
        self._settings.allow_implicit_replication = value

    def draws_in(self, op_call, region):
        """Run an operator within `region(schema, local kwargs)`: it draws random numbers."""
        self._regions[op_call] = region

    def push_handlers(self, world, handlers):
        """At the begin of a `with` block: let them run operators on meshes of this world."""
        self._handlers_of_blocks.setdefault(world, []).append(handlers)

    def pop_handlers(self, world):
        """At its end."""
        blocks = self._handlers_of_blocks[world]
        blocks.pop()
        if not blocks:
            del self._handlers_of_blocks[world]

    def _handler(self, cls, op_call, args, kwargs):
        """What runs an operator in another way than its rule; None, as of most."""
        if op_call in self._custom_op_handlers or not self._handlers_of_blocks:
            return self._custom_op_handlers.get(op_call)
        blocks = self._handlers_of_blocks.get(_mesh_of(cls, op_call, args, kwargs)._world_number, ())
        return next((handlers[op_call] for handlers in blocks if op_call in handlers), None)

    def dispatch(self, cls, op_call, args, kwargs):
        """Run an operator of which an argument is a DTensor (a `cls`)."""
        if handler := self._handler(cls, op_call, args, kwargs):
            return handler(cls, op_call, args, kwargs)
        if op_call._opname.startswith("_foreach_"):
            return _one_by_one(op_call, args, kwargs)
        schema, local_args, local_kwargs = self.unwrap(cls, op_call, args, kwargs)
        try:
            sharding = self.sharding_propagator.propagate_op_sharding(schema)
        except NotImplementedError:
            if not op_call._can_decompose():
                raise
            return op_call.decompose(*args, **kwargs)
        except Exception as error:
            raise RuntimeError(f"{error}\n\nSharding propagation failed for {schema}") from error
        mesh = (*schema.args_spec, *schema.kwargs_spec)[0].mesh
        if not mesh._is_current_rank_part_of_mesh():
            return self._wrap_nothing(cls, op_call, sharding)
        if sharding.redistribute_schema is not None:
            op_call, local_args = self.redistribute_local_args(schema, sharding.redistribute_schema, local_args)
        local = self._run(op_call, schema, local_args, local_kwargs)
        return self._finish(cls, schema.op, args, kwargs, local, sharding, mesh)

    def unwrap(self, cls, op_call, args, kwargs):
        """(the call as an OpSchema, positional arguments with local tensors, the same by name)"""
        mesh = _mesh_of(cls, op_call, args, kwargs)
        if not op_call._schema.is_mutable:
            args, kwargs = tree_map_only(cls, _without_masks, (args, kwargs))

        def spec_of(tensor):
            return tensor._spec if isinstance(tensor, cls) else self._replicated(op_call, tensor, mesh)

        specs = tree_map_only(Tensor, spec_of, (args, kwargs))
        local = tree_map_only(cls, lambda t: t._local_tensor, (args, kwargs))
        return OpSchema(op_call, *specs), *local

    def _replicated(self, op_call, tensor, mesh):
        """The spec of a plain tensor: one number is the same on all ranks."""
        if tensor.numel() == 1 and tensor.ndim == 1:
            warnings.warn(
                "Found a non-scalar tensor with numel=1 and ndim!=0, we are implicitly creating a replicated DTensor for it. "
                "However, please consider changing it to a scalar tensor or explicitly create a DTensor under distributed environment.",
                stacklevel=6,
            )
        if tensor.numel() != 1 and not self._allow_implicit_replication:
            raise RuntimeError(
                f"{op_call} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
                "distributed operators!"
            )
        meta = TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)
        return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta)

    def redistribute_local_args(self, schema, wanted, local_args):
        """(the operator to call, its positional arguments): tensors are redistributed, everything else is as `wanted` has it."""
        specs, _ = tree_flatten(schema.args_schema, is_leaf=_is_spec)
        tensors = [t for t in tree_flatten(local_args)[0] if isinstance(t, Tensor)]
        given = iter(zip([s for s in specs if _is_spec(s)], tensors, strict=True))
        leaves, structure = tree_flatten(wanted.args_schema, is_leaf=_is_spec)
        made = []
        for leaf in leaves:
            if _is_spec(leaf):
                spec, tensor = next(given)
                leaf = tensor if spec.placements == leaf.placements else redistribute_local_tensor(tensor, spec, leaf)
            made.append(leaf)
        return wanted.op, tree_unflatten(made, structure)

    def _run(self, op_call, schema, args, kwargs):
        if op_call in self._regions:
            with self._regions[op_call](schema, kwargs):
                return op_call(*args, **kwargs)
        return op_call(*args, **kwargs)

    def _finish(self, cls, op_call, args, kwargs, local, sharding, mesh):
        """What the operator returns, of what it has returned for local tensors."""
        specs = sharding.output_spec
        if op_call is aten.equal.default:
            return _on_all_ranks(local, mesh)
        if op_call._schema.is_mutable and _writes_first(op_call):
            if args[0]._spec.placements != specs.placements:
                args[0]._spec = specs
                return return_and_correct_aliasing(op_call, args, kwargs, args[0])
            if tuple(args[0].shape) != tuple(specs.shape):
                args[0]._spec = specs
                return return_and_correct_aliasing(op_call, args, kwargs, args[0])
            return args[0]
        if any(argument.is_out for argument in op_call._schema.arguments):
            return _outs(op_call, kwargs, specs)
        result = self.wrap(cls, local, specs)
        return return_and_correct_aliasing(op_call, args, kwargs, result) if op_call.is_view else result

    @staticmethod
    def wrap(cls, result, spec):
        """Local tensors as DTensors of these specs; what is no tensor stays."""
        if isinstance(result, Tensor):
            if spec is None:
                if result.ndim != 0:
                    raise AssertionError("output tensor should be scalar!")
                return result
            spec = DTensorSpec(spec.mesh, [p.of_result() for p in spec.placements], spec.tensor_meta)
            return cls(result, spec, requires_grad=result.requires_grad)
        if isinstance(result, list | tuple):
            kind = list if isinstance(result, list) else tuple
            return kind(OpDispatcher.wrap(cls, r, s) for r, s in zip(result, spec, strict=True))
        return result

    def _wrap_nothing(self, cls, op_call, sharding):
        """What a rank gets that has no part of the mesh: empty tensors."""
        if op_call is aten.equal.default:
            return True

        def empty(spec):
            shape = (0,) if spec.ndim else ()
            return readtorch.empty(shape, dtype=spec.tensor_meta.dtype, device=spec.mesh.device_type)

        specs = sharding.output_spec
        if specs is None:
            return None
        local = empty(specs) if _is_spec(specs) else [None if s is None else empty(s) for s in specs]
        return self.wrap(cls, local, specs)


_BY_ANOTHER_NAME = {"_foreach_norm": aten.linalg_vector_norm, "_foreach_max": aten.max, "_foreach_clone": aten.clone}


def _one_by_one(op_call, args, kwargs):
    """An operator on lists of tensors: the operator on each of them. The meshes of two elements may differ."""
    name = op_call._opname
    single = _BY_ANOTHER_NAME.get(name) or getattr(aten, name.removeprefix("_foreach_"))
    named = {argument.name: value for argument, value in zip(op_call._schema.arguments, args, strict=False)} | kwargs
    results = []
    for i in range(len(named["self"])):
        own = {k: v[i] if isinstance(v, list | tuple) else v for k, v in named.items()}
        by_name = {k: own.pop(k) for k in ("alpha", "value") if k in own}
        if name.startswith("_foreach_addc") and "scalars" in own:
            by_name["value"] = own.pop("scalars")
        results.append(single(*own.values(), **by_name))
    return None if name.endswith("_") else results


def _mesh_of(cls, op_call, args, kwargs):
    leaves, _ = tree_flatten((args, kwargs))
    for leaf in leaves:
        if isinstance(leaf, cls):
            return leaf._spec.mesh
    raise AssertionError(f"found no DeviceMesh from dtensor args for {op_call}!")


def _without_masks(tensor):
    """The rows that were looked up, summed over the ranks. In PyTorch they wait, with a mask that fits the first operator alone."""
    if not any(p.needs_rows for p in tensor.placements):
        return tensor
    return tensor.redistribute(placements=[Replicate() if p.needs_rows else p for p in tensor.placements])


def _writes_first(op_call):
    first = op_call._schema.arguments[0]
    return first.alias_info is not None and first.alias_info.is_write


def _outs(op_call, kwargs, specs):
    specs = (specs,) if _is_spec(specs) else specs
    outs = [kwargs[argument.name] for argument in op_call._schema.arguments if argument.is_out]
    for out, spec in zip(outs, specs, strict=True):
        out._spec = spec
    return outs[0] if len(outs) == 1 else tuple(outs)


def _on_all_ranks(result, mesh):
    """Whether all ranks' parts are equal."""
    agreed = readtorch.tensor(int(result), device=mesh.device_type)
    c10d.all_reduce(agreed, op=c10d.ReduceOp.MIN)
    return bool(agreed.item())


def _as_strided_handler(cls, op_call, args, kwargs):
    tensor, size, stride, *rest = args
    offset = rest[0] if rest else kwargs.get("storage_offset")
    same = tuple(tensor.shape) == tuple(size) and tensor.stride() == tuple(stride)
    if same and (offset is None or tensor.storage_offset() == offset):
        return aten.alias.default(tensor)
    raise RuntimeError("as_strided not supported with DTensor")
