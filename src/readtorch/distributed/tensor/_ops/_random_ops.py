"""Operators that draw random numbers: no sums that are not added up. In PyTorch: `torch/distributed/tensor/_ops/_random_ops.py`.

What a rank draws is the business of `_random.py`.
"""

from readtorch.distributed.tensor._api import DTensor
from readtorch.distributed.tensor._random import distribute_region

from .single_dim_strategy import Along, register_single_dim_strategy
from .utils import overloads


@register_single_dim_strategy(
    overloads("normal_ uniform_ native_dropout bernoulli_.float bernoulli log_normal_ exponential_ geometric_"),
    allow_uneven_sharding=True,
)
def as_the_input(op, args, kwargs):
    return [[Along(d)] * (len(op._schema.returns) + 1) for d in range(len(args[0].shape))]


@register_single_dim_strategy(overloads("multinomial"))
def multinomial(op, args, kwargs):
    return [[Along(d)] * 2 for d in range(len(args[0].shape) - 1)]


def _region(schema, kwargs):
    """The `with` block in which a rank draws for its shard."""
    return distribute_region(schema.args_spec[0], kwargs.pop("generator", None))


for _op in overloads(
    "native_dropout normal_ rand_like randn_like randint_like randint_like.low_dtype uniform_ bernoulli bernoulli_.float"
):
    DTensor._op_dispatcher.draws_in(_op, _region)
