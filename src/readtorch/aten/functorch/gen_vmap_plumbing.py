"""Writes what stands between an operator call under vmap and the operator's batching rule.

Note [ Batching rules ]
A batching rule gets the operator's arguments. Behind each tensor stands its batch dimension, or None if this vmap does not hide
one of its dimensions; behind a list of tensors stands a list of these. It calls operators on the whole batch, outside of its vmap,
and returns the result and its batch dimension; for several results `(a, a's, b, b's)`, for a list of them `(list, dimension)`.
A batch dimension of None says that the result is the same for all examples. A rule in place returns nothing.

    @batch_rule("aten::trace")
    def trace_batch_rule(self, self_bdim):
        return at.sum(at.diagonal(self_to_front, 0, 1, 2), 1), 0

In PyTorch: `torchgen/gen_vmap_plumbing.py` writes `VmapGeneratedPlumbing.h` before the compiler runs. Here the text is made when an
operator first meets a batched tensor. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.codegen import compile_function
from readtorch.aten.register_dispatch_key import returned
from readtorch.c10.dispatch_key import BATCHED
from readtorch.c10.local_dispatch_key_set import tls

from .batched_tensor_impl import make_batched, refresh_metadata


def plumbed(operator, rule):
    """The kernel of `operator` at the key FuncTorchBatched that its batching rule makes."""
    schema = operator.schema
    outs = [a.name for a in schema.arguments if a.type.writes and a.keyword_only]
    names = {
        "tls": tls,
        "BATCHED": BATCHED,
        "escaped": escaped,
        "make_batched": make_batched,
        "refresh_metadata": refresh_metadata,
        "rule": rule,
        "call": operator.call,
        "unwrap_list": unwrap_list,
        "wrap_list": wrap_list,
        "returned": returned,
        "operator": operator,
    }
    assert not outs, f"{operator.name}: vmap knows no out= forms"
    return compile_function(f"{schema.name}_batched", plumbing_source(operator), names)


def plumbing_source(operator):
    """The text of a kernel at FuncTorchBatched. For `mul.Tensor` it returns:

    def mul_batched(self, other):
        if not tls.functorch: escaped()
        layer = tls.functorch[-1]
        whole_self, self_bdim = self, None
        if self._keys & BATCHED and self._storage_impl.layer is layer:
            whole_self, self_bdim = self._storage_impl.value, self._storage_impl.bdim
        whole_other, other_bdim = other, None
        if other._keys & BATCHED and other._storage_impl.layer is layer:
            whole_other, other_bdim = other._storage_impl.value, other._storage_impl.bdim
        if self_bdim is None and other_bdim is None: return layer.send_below(call, (self, other,))
        result, bdim = layer.send_below(rule, (whole_self, self_bdim, whole_other, other_bdim,))
        return result if bdim is None else make_batched(result, bdim, layer)
    """
    schema = operator.schema
    lines = ["if not tls.functorch: escaped()", "layer = tls.functorch[-1]"]
    given, unbatched = [], []
    for a in schema.arguments:
        if not a.type.is_tensor:
            given.append(a.name)
            continue
        lines += _unwrap_lines(a)
        given += [f"whole_{a.name}", f"{a.name}_bdim"]
        unbatched.append(f"{a.name}_batched" if a.type.is_list else f"{a.name}_bdim is not None")
    parameters = "".join(f"{a.name}, " for a in schema.arguments)
    lines.append(f"if not ({' or '.join(unbatched)}): return layer.send_below(call, ({parameters}))")
    lines += _call_lines(schema, f"layer.send_below(rule, ({', '.join(given)},))")
    return f"def {schema.name}_batched({parameters.rstrip(', ')}):\n    " + "\n    ".join(lines) + "\n"


def _unwrap_lines(a):
    name = a.name
    if a.type.is_list:
        return [f"whole_{name}, {name}_bdim, {name}_batched = unwrap_list({name}, layer)"]
    there = f"{name} is not None and " if a.type.optional else ""
    return [
        f"whole_{name}, {name}_bdim = {name}, None",
        f"if {there}{name}._keys & BATCHED and {name}._storage_impl.layer is layer:",
        f"    whole_{name}, {name}_bdim = {name}._storage_impl.value, {name}._storage_impl.bdim",
    ]


def _call_lines(schema, call):
    """Lines that call the rule and wrap what it returns."""
    if schema.is_inplace:
        first = schema.arguments[0]
        refresh = (
            [f"if {first.name}_bdim is not None: refresh_metadata({first.name})"] if not first.type.is_list else []
        )
        return [call, *refresh, f"return {first.name}" if schema.returns else "return None"]
    if len(schema.returns) == 1:
        if schema.returns[0].type.is_list:
            return [f"results, bdim = {call}", "return wrap_list(results, bdim, layer)"]
        if not schema.returns[0].type.is_tensor:
            return [f"return {call}"]
        return [f"result, bdim = {call}", "return result if bdim is None else make_batched(result, bdim, layer)"]
    return [
        f"results = {call}",
        "pairs = zip(results[::2], results[1::2])",
        "return returned(operator, [t if b is None or t is None else make_batched(t, b, layer) for t, b in pairs])",
    ]


def unwrap_list(tensors, layer):
    """(the tensors with what this vmap has wrapped unwrapped, their batch dimensions, whether there is one)"""
    if tensors is None:
        return None, None, False
    whole, bdims = [], []
    for t in tensors:
        if t is not None and t._keys & BATCHED and t._storage_impl.layer is layer:
            whole.append(t._storage_impl.value)
            bdims.append(t._storage_impl.bdim)
        else:
            whole.append(t)
            bdims.append(None)
    return whole, bdims, any([b is not None for b in bdims])


def wrap_list(tensors, bdim, layer):
    if bdim is None:
        return tensors
    return type(tensors)([make_batched(t, bdim, layer) for t in tensors])


def escaped():
    raise RuntimeError(
        "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
        "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
        "`gen_vmap_plumbing` Please file an issue if it looks like the latter"
    )
