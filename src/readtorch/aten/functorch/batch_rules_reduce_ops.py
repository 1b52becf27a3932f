"""Batching rules of reductions: the batch goes to the front, and the dimensions to reduce are counted behind it.

In PyTorch: `aten/src/ATen/functorch/BatchRulesReduceOps.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.c10.wrap_dim import wrap_dim

from .batch_rules_helper import batch_rule, decomposition, rule_for, to_front
from .gen_vmap_plumbing import plumbed


def reducing(operator):
    """The kernel of an operator `f(self, …, dim, …, keepdim, …)`, of one tensor; dim: a number, or several, none of which means all."""
    call, names = operator.call, [a.name for a in operator.schema.arguments]
    at_dim = names.index("dim")
    at_keepdim = names.index("keepdim") if "keepdim" in names else None
    takes_list = operator.schema.arguments[at_dim].type.is_list
    none_means_nothing = operator.schema.name in _NEEDS_DIMS
    several = len(operator.schema.returns) > 1

    def rule(self, self_bdim, *others):
        arguments = [to_front(self, self_bdim), *others]
        rank = self._array.ndim - 1
        dim = arguments[at_dim]
        if rank == 0:
            arguments[0] = at.unsqueeze(arguments[0], 1)
        keepdim = at_keepdim is not None and arguments[at_keepdim]
        arguments[at_dim] = _shifted(dim, rank, takes_list and not none_means_nothing)
        result = call(*arguments)
        results = list(result) if several else [result]
        if rank == 0 and results[0]._array.ndim > 1:  # kept by keepdim, or no reduction at all
            results = [at.squeeze(r, 1) for r in results]
        elif dim is None and keepdim and not takes_list:
            results = [at.reshape(r, (r._array.shape[0], *[1] * rank)) for r in results]
        return [part for r in results for part in (r, 0)] if several else (results[0], 0)

    return plumbed(operator, rule)


_NEEDS_DIMS = {"flip", "roll", "squeeze"}


def _shifted(dim, rank, none_means_all):
    if isinstance(dim, int):
        return wrap_dim(dim, rank) + 1
    if not dim and none_means_all:
        return list(range(1, (rank or 1) + 1))
    return None if dim is None else [wrap_dim(d, rank) + 1 for d in dim]


rule_for(
    reducing,
    "sum.dim_IntList mean.dim prod.dim_int nansum all.dim all.dims any.dim any.dims count_nonzero.dim_IntList amax amin "
    "cumsum cumprod cummax cummin logcumsumexp max.dim min.dim logsumexp var.correction std.correction var_mean.correction "
    "std_mean.correction linalg_vector_norm _softmax _log_softmax _safe_softmax sort sort.stable topk kthvalue median.dim "
    "nanmedian.dim mode norm.ScalarOpt_dim argsort argsort.stable aminmax.dim _fft_c2c _fft_r2c _fft_c2r",
)


def reducing_all(name_of_dim_form, *extra):
    """For an operator without `dim`: the examples are made vectors, and the form with `dim` reduces these. extra: behind the dim."""

    def make(operator):
        call = registry[f"aten::{name_of_dim_form}"].call

        def rule(self, self_bdim, *others):
            return call(flattened(self, self_bdim), *extra_before(extra, others)), 0

        return plumbed(operator, rule)

    return make


def extra_before(extra, others):
    return [*extra, *others]


def flattened(self, bdim):
    """The batch in front, and each example as a vector."""
    self = to_front(self, bdim)
    return at.reshape(self, (self._array.shape[0], -1)) if self._array.size else at.flatten(at.unsqueeze(self, -1), 1)


rule_for(reducing_all("sum.dim_IntList", [1], False), "sum")
rule_for(reducing_all("mean.dim", [1], False), "mean")
rule_for(reducing_all("prod.dim_int", 1, False), "prod")
rule_for(reducing_all("all.dim", 1, False), "all")
rule_for(reducing_all("any.dim", 1, False), "any")


def _over_the_batch(operator):
    """For a question to the whole batch, whose answer a program may branch on: it has no batch dimension."""
    return plumbed(operator, lambda self, self_bdim: (operator.call(self), None))


rule_for(_over_the_batch, "_is_all_true _is_any_true")


@batch_rule("max")
def max_batch_rule(self, self_bdim):
    return at.amax(flattened(self, self_bdim), 1), 0


@batch_rule("min")
def min_batch_rule(self, self_bdim):
    return at.amin(flattened(self, self_bdim), 1), 0


@batch_rule("median")
def median_batch_rule(self, self_bdim):
    return at.median(flattened(self, self_bdim), 1)[0], 0


@batch_rule("nanmedian")
def nanmedian_batch_rule(self, self_bdim):
    return at.nanmedian(flattened(self, self_bdim), 1)[0], 0


@batch_rule("count_nonzero")
def count_nonzero_batch_rule(self, self_bdim, dim):
    if dim is None or self._array.ndim == 1:  # of numbers, of which dimension 0 is a dimension, too
        return at.count_nonzero(flattened(self, self_bdim), [1]), 0
    self = to_front(self, self_bdim)
    return at.count_nonzero(self, [wrap_dim(dim, self._array.ndim - 1) + 1]), 0


def _arg_extreme(operator):
    def rule(self, self_bdim, dim, keepdim):
        rank = self._array.ndim - 1
        if dim is None or rank == 0:
            result = operator.call(flattened(self, self_bdim), 1, False)
            shape = (result._array.shape[0], *[1] * rank)
            return (at.reshape(result, shape) if keepdim else result), 0
        return operator.call(to_front(self, self_bdim), wrap_dim(dim, rank) + 1, keepdim), 0

    return plumbed(operator, rule)


rule_for(_arg_extreme, "argmax argmin")


@batch_rule("aminmax")
def aminmax_batch_rule(self, self_bdim, dim, keepdim):
    rank = self._array.ndim - 1
    if dim is None or rank == 0:
        low, high = at.aminmax(flattened(self, self_bdim), dim=1)
        if keepdim:
            shape = (low._array.shape[0], *[1] * rank)
            low, high = at.reshape(low, shape), at.reshape(high, shape)
        return low, 0, high, 0
    low, high = at.aminmax(to_front(self, self_bdim), dim=wrap_dim(dim, rank) + 1, keepdim=keepdim)
    return low, 0, high, 0


@decomposition("dist")
def dist_decomposition(self, other, p):
    return at.linalg_vector_norm(at.sub(self, other), p)


def _softmax_backward(operator):
    def rule(grad, grad_bdim, output, output_bdim, dim, input_dtype):
        from .batch_rules_binary_ops import aligned

        rank = grad._array.ndim - (grad_bdim is not None)
        grad, output = aligned((grad, grad_bdim, output, output_bdim), (0, 2))
        if rank == 0:
            grad, output = at.unsqueeze(grad, -1), at.unsqueeze(output, -1)
        if grad._array.shape != output._array.shape:
            grad, output = at.broadcast_tensors([grad, output])
        result = operator.call(grad, output, wrap_dim(dim, rank) + 1, input_dtype)
        return (at.squeeze(result, -1) if rank == 0 else result), 0

    return plumbed(operator, rule)


rule_for(_softmax_backward, "_softmax_backward_data _log_softmax_backward_data")


@batch_rule("isin.Tensor_Tensor")
def isin_batch_rule(elements, elements_bdim, test, test_bdim, assume_unique, invert):
    """Every element with every one that is looked for: in PyTorch a loop over the examples."""
    elements = to_front(elements, elements_bdim)
    test = flattened(test, test_bdim) if test_bdim is not None else at.reshape(test, (1, -1))
    if elements_bdim is None:
        elements = at.unsqueeze(elements, 0)
    rank = elements._array.ndim - 1
    wide = at.reshape(test, (test._array.shape[0], *[1] * rank, test._array.shape[1]))
    found = at.any(at.eq(at.unsqueeze(elements, -1), wide), -1)
    return (at.logical_not(found) if invert else found), 0
