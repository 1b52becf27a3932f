"""What random operators do under vmap: draw for each example, draw once for all, or refuse.

These rules are asked even if no argument is batched, since each example may be meant to get numbers of its own.

In PyTorch: `aten/src/ATen/functorch/BatchRulesRandomness.cpp`, at the key FuncTorchVmapMode. Explained in the chapter "Forward mode,
vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.aten.operator_entry import set_fallback
from readtorch.c10.dispatch_key import VMAP_MODE
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.memory_format import contiguous_format

from .batch_rules_binary_ops import aligned
from .batch_rules_helper import logical_rank, reshape_dim_into, reshape_dim_outof, to_front, with_bdim
from .batched_fallback import incompatible_inplace
from .batched_tensor_impl import make_batched, unwrap_at
from .interpreter import RandomnessType
from .vmap_interpreter import interposed

SAME, DIFFERENT = RandomnessType.Same, RandomnessType.Different
kernels = {}  # full name of a random operator -> function(operator) that makes its kernel


def make_vmap_mode_kernel(operator, keys):
    """The kernel at FuncTorchVmapMode: None but for random operators."""
    make = kernels.get(operator.name)
    return make and make(operator)


set_fallback(VMAP_MODE, make_vmap_mode_kernel, written=True)


def random(make, names):
    for name in names.split():
        operator = registry.get(f"aten::{name}")
        if operator is not None:
            kernels[operator.name] = make
            interposed.add(operator)


def check_randomness(randomness, any_batched=False):
    """RuntimeError if this vmap draws no numbers, or one for all examples where each has its own parameters."""
    if tls.functorch[-1].legacy:
        raise RuntimeError(
            "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside of vmap as "
            "a workaround"
        )
    if randomness == RandomnessType.Error:
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
            "flags on vmap or perform the randomness operation out of vmap"
        )
    if randomness == SAME and any_batched:
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
        )


def factory(operator):
    """For what makes random numbers of a given size."""
    place = [a.name for a in operator.schema.arguments].index("size")

    def kernel(*arguments):
        layer = tls.functorch[-1]
        check_randomness(layer.randomness)
        if layer.randomness == SAME:
            return layer.send_below(operator.call, arguments)
        sizes = (layer.batch_size, *arguments[place])
        arguments = (*arguments[:place], sizes, *arguments[place + 1 :])
        return make_batched(layer.send_below(operator.call, arguments), 0, layer)

    return kernel


def permutation(operator):
    """For `randperm`: one after the other."""

    def kernel(*arguments):
        layer = tls.functorch[-1]
        check_randomness(layer.randomness)
        if layer.randomness == SAME:
            return layer.send_below(operator.call, arguments)
        drawn = [layer.send_below(operator.call, arguments) for _ in range(layer.batch_size)]
        return make_batched(layer.send_below(at.stack, (drawn,)), 0, layer)

    return kernel


def in_place(operator):
    """For what fills a tensor with random numbers."""

    def kernel(self, *arguments):
        layer = tls.functorch[-1]
        value, bdim = unwrap_at(self, layer.level)
        check_randomness(layer.randomness)
        refuse_unbatched(layer, bdim)
        if layer.randomness == SAME and bdim is not None:
            drawn = at.empty_like(layer.send_below(at.select, (value, bdim, 0)), memory_format=contiguous_format)
            operator.call(drawn, *arguments)
            return at.copy_(self, drawn)
        layer.send_below(operator.call, (layer.send_below(to_front, (value, bdim)), *arguments))
        return self

    return kernel


def refuse_unbatched(layer, bdim):
    if layer.randomness == DIFFERENT and bdim is None:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this "
            "is necessary for your usage, please file an issue with functorch."
        )


def bernoulli_of_tensor(operator):
    """For `bernoulli_(self, Tensor p)`."""

    def kernel(self, p, generator):
        layer = tls.functorch[-1]
        (value, bdim), (other, other_bdim) = unwrap_at(self, layer.level), unwrap_at(p, layer.level)
        check_randomness(layer.randomness, other_bdim is not None)
        if bdim is None and other_bdim is not None:
            raise RuntimeError(incompatible_inplace("inplace bernoulli"))
        refuse_unbatched(layer, bdim)
        if layer.randomness == SAME and bdim is not None:
            drawn = at.empty_like(layer.send_below(at.select, (value, bdim, 0)), memory_format=contiguous_format)
            return at.copy_(self, operator.call(drawn, p, generator))
        value, other = layer.send_below(aligned, ((value, bdim, other, other_bdim), (0, 2)))
        layer.send_below(operator.call, (value, other, generator))
        return self

    return kernel


def pointwise(operator):
    """For what draws a number for each element, by this element."""
    place = next(i for i, a in enumerate(operator.schema.arguments) if a.type.is_tensor)

    def kernel(*arguments):
        layer = tls.functorch[-1]
        value, bdim = unwrap_at(arguments[place], layer.level)
        check_randomness(layer.randomness, bdim is not None)
        if layer.randomness == SAME:
            return layer.send_below(operator.call, arguments)
        value = layer.send_below(with_bdim, (value, bdim, layer.batch_size))
        arguments = (*arguments[:place], value, *arguments[place + 1 :])
        return make_batched(layer.send_below(operator.call, arguments), 0, layer)

    return kernel


def of_two(operator):
    """For `normal(Tensor mean, Tensor std)`. In PyTorch: it is composed of `normal` and arithmetic."""

    def kernel(mean, std, generator):
        layer = tls.functorch[-1]
        (a, a_bdim), (b, b_bdim) = unwrap_at(mean, layer.level), unwrap_at(std, layer.level)
        check_randomness(layer.randomness, a_bdim is not None or b_bdim is not None)
        if layer.randomness == SAME:
            return layer.send_below(operator.call, (mean, std, generator))
        a, b = layer.send_below(_both_with_bdim, (a, a_bdim, b, b_bdim, layer.batch_size))
        return make_batched(layer.send_below(operator.call, (a, b, generator)), 0, layer)

    return kernel


def _both_with_bdim(a, a_bdim, b, b_bdim, batch_size):
    return aligned((with_bdim(a, a_bdim, batch_size), 0, with_bdim(b, b_bdim, batch_size), 0), (0, 2))


def like(operator):
    """For `rand_like` and its like, which look at nothing but the size."""

    def kernel(self, *arguments):
        layer = tls.functorch[-1]
        check_randomness(layer.randomness)
        value, bdim = unwrap_at(self, layer.level)
        if layer.randomness == SAME:
            value = value if bdim is None else layer.send_below(at.select, (value, bdim, 0))
            return layer.send_below(operator.call, (value, *arguments))
        value = layer.send_below(with_bdim, (value, bdim, layer.batch_size))
        return make_batched(layer.send_below(operator.call, (value, *arguments)), 0, layer)

    return kernel


def native_dropout(operator):
    def kernel(self, p, train):
        layer = tls.functorch[-1]
        value, bdim = unwrap_at(self, layer.level)
        training = train is None or train
        if training:
            check_randomness(layer.randomness)
        if not training or layer.randomness == DIFFERENT:
            value = layer.send_below(with_bdim, (value, bdim, layer.batch_size))
            output, mask = layer.send_below(operator.call, (value, p, train))
            return make_batched(output, 0, layer), make_batched(mask, 0, layer)
        scale = 0.0 if p == 1 else 1.0 / (1 - p)
        mask = at.bernoulli_(at.empty_like(self, memory_format=contiguous_format), 1 - p)
        return at.mul_(at.mul(self, mask), scale), mask

    return kernel


def multinomial(operator):
    def kernel(self, num_samples, replacement, generator):
        layer = tls.functorch[-1]
        value, bdim = unwrap_at(self, layer.level)
        check_randomness(layer.randomness, bdim is not None)
        if layer.randomness == SAME:
            return layer.send_below(operator.call, (self, num_samples, replacement, generator))
        return make_batched(
            layer.send_below(drawn, (value, bdim, layer.batch_size, num_samples, replacement, generator)), 0, layer
        )

    def drawn(value, bdim, batch_size, *arguments):
        is_matrix = logical_rank(value, bdim) == 2
        value = with_bdim(value, bdim, batch_size)
        if not is_matrix:
            return operator.call(value, *arguments)
        return reshape_dim_outof(0, batch_size, operator.call(reshape_dim_into(0, 0, value), *arguments))

    return kernel


random(
    factory,
    "rand rand.generator randn randn.generator randint randint.generator randint.low randint.low_generator normal.float_float",
)
random(permutation, "randperm randperm.generator")
random(
    in_place,
    "uniform_ normal_ log_normal_ exponential_ geometric_ cauchy_ random_ random_.from random_.to bernoulli_.float",
)
random(bernoulli_of_tensor, "bernoulli_.Tensor")
random(
    pointwise, "bernoulli bernoulli.p poisson _standard_gamma _sample_dirichlet normal.Tensor_float normal.float_Tensor"
)
random(of_two, "normal.Tensor_Tensor binomial")
random(
    like,
    "rand_like rand_like.generator randn_like randn_like.generator randint_like randint_like.generator randint_like.low_dtype "
    "randint_like.low_generator_dtype",
)
random(native_dropout, "native_dropout")
random(multinomial, "multinomial")
