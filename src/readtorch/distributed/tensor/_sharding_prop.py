"""From the placements of an operator's inputs to those of its outputs, by the operator's rule.

In PyTorch: `torch/distributed/tensor/_sharding_prop.py`.

Note [ From a rule to a choice ]
A rule says in which ways an operator can run: for each way, how every input and output is placed. Most rules speak of one dimension of
the mesh, and `_ops/single_dim_strategy.py` makes ways over the whole mesh of theirs. Of these the propagator takes the one whose
inputs are redistributed at the lowest cost (`_redistribute_cost.py`), and first of all one that leaves them as they are. Sizes, strides and
dtypes of the outputs are not a rule's business: the operator says them itself, run on the Meta device with the whole tensors' sizes.
"""

from functools import lru_cache

import readtorch
from readtorch import Tensor

from ._dtensor_spec import DTensorSpec, TensorMeta
from ._op_schema import OutputSharding, _mapped
from ._redistribute_cost import redistribute_cost

aten = readtorch.ops.aten


class ShardingPropagator:
    """The rules of all operators that have one, and what follows from them.

    op_strategy_funcs: OpOverload -> rule. A rule takes an OpSchema, and sizes, strides and dtypes of the outputs, and returns a list of
    OpSpec. op_to_adjuster: OpOverload -> what changes the arguments of the call on local tensors: (schema with the specs that the inputs
    will have, spec of the output) -> schema.
    """

    def __init__(self):
        self.op_strategy_funcs = {}
        self.op_to_adjuster = {}
        self.tag_strategy_funcs = {}  # Tag -> rule of all operators that have it and no rule of their own

    def register_op_strategy(self, op_overload, strategy_func, adjuster=None):
        """Register the rule of an operator."""
        self.op_strategy_funcs[op_overload] = strategy_func
        if adjuster is not None:
            self.op_to_adjuster[op_overload] = adjuster

    def register_tag(self, tag, strategy_func):
        """Register the rule of all operators that have a tag and no rule of their own."""
        self.tag_strategy_funcs[tag] = strategy_func

    def rule_of(self, op):
        """The rule of an operator, or None. One that writes to its first argument has that of the operator that does not."""
        if op in self.op_strategy_funcs:
            return self.op_strategy_funcs[op]
        plain = getattr(aten, op._opname.removesuffix("_"), None) if op.namespace == "aten" else None
        same = [op] + ([getattr(plain, op._overloadname)] if plain and op._overloadname in plain.overloads() else [])
        return next((rule for tag, rule in self.tag_strategy_funcs.items() if any(tag in o.tags for o in same)), None)

    @lru_cache(maxsize=8192)  # noqa: B019
    def propagate_op_sharding(self, schema):
        """The `OutputSharding` of a call. Raises NotImplementedError where there is no rule."""
        if schema.op is aten._local_scalar_dense.default:
            return OutputSharding(None)
        rule = self.rule_of(schema.op)
        if rule is None:
            raise NotImplementedError(f"Operator {schema.op} does not have a sharding strategy registered.")
        metas = propagate_tensor_meta(schema)
        chosen = _select_min_cost_strategy(rule(schema, metas), schema)
        adjusted = self._local_call(schema, chosen, metas)
        return OutputSharding(_with_metas(schema.op, chosen.output_specs, metas), adjusted)

    def _local_call(self, schema, chosen, metas):
        """The call to be made on local tensors; None if it is the same."""
        wanted = [
            spec.shallow_copy_with_tensor_meta(own.tensor_meta)
            for spec, own in zip(chosen.input_specs, schema.args_spec, strict=False)
        ]
        local = schema.with_specs(wanted)
        if schema.op in self.op_to_adjuster:
            local = self.op_to_adjuster[schema.op](local, _with_metas(schema.op, chosen.output_specs, metas))
        return None if local == schema else local


def propagate_tensor_meta(schema):
    """Sizes, strides and dtype of an operator's outputs: a TensorMeta, a tuple or a list of them, or None."""
    if schema.op is aten.equal.default:
        return None  # its result depends on values
    args, kwargs = _mapped(_on_meta, schema.args_schema), _mapped(_on_meta, schema.kwargs_schema)
    if "device" in {argument.name for argument in schema.op._schema.arguments}:
        kwargs["device"] = "meta"
    with readtorch.no_grad():
        return _meta_of(schema.op(*args, **kwargs))


def _on_meta(spec):
    meta = spec.tensor_meta
    return readtorch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="meta")


def _meta_of(result):
    if isinstance(result, Tensor):
        return TensorMeta(result.shape, result.stride(), result.dtype)
    if isinstance(result, list | tuple):
        kind = list if isinstance(result, list) else tuple
        return kind(_meta_of(r) for r in result)
    return None


def _with_metas(op, specs, metas):
    """The rule's specs of the outputs, with the sizes, strides and dtypes that the operator says."""
    if specs is None or metas is None:
        return None
    if isinstance(metas, TensorMeta):
        if not isinstance(specs, DTensorSpec):
            raise ValueError(
                f"For the op {op.name()}, `output_specs` has {len(specs)} outputs which does not equal the number of op outputs 1."
            )
        return specs.shallow_copy_with_tensor_meta(metas)
    if isinstance(specs, DTensorSpec):
        specs = [specs] * len(metas)  # all are placed alike
    return tuple(
        None if meta is None or spec is None else spec.shallow_copy_with_tensor_meta(meta)
        for spec, meta in zip(specs, metas, strict=True)
    )


def _select_min_cost_strategy(strategies, schema):
    """The way to run an operator: one with a negative cost, else one that moves nothing, else one that costs nothing, else the cheapest."""
    if len(strategies) == 1:
        return strategies[0]
    negative = still = free = None
    for strategy in strategies:
        cost = sum(strategy.redistribute_cost)
        if cost < 0 and (negative is None or cost < sum(negative.redistribute_cost)):
            negative = strategy
        elif cost == 0:
            moves = any(
                own.placements != wanted.placements
                for own, wanted in zip(schema.args_spec, strategy.input_specs, strict=False)
            )
            if not moves:
                still = strategy
            elif free is None:
                free = strategy
    return negative or still or free or min(strategies, key=lambda s: sum(s.redistribute_cost))


def costs(schema, wanted):
    """What it costs to redistribute each input, those given by name behind the others, to the specs that are wanted."""
    given = (*schema.args_spec, *schema.kwargs_spec)
    return [redistribute_cost(own, spec) for own, spec in zip(given, wanted, strict=True)]
