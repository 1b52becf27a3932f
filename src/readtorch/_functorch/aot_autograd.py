"""AOTAutograd: a function becomes a graph of operators, its backward another, before either runs.

    run once on fake tensors      what does it write to, which outputs are views?
    trace                         forward and backward as one graph without writes: the joint graph
    cut                           `partition_fn` says what the forward keeps for the backward
    compile                       whatever is given: a function from a graph to something that runs

In PyTorch: `torch/_functorch/aot_autograd.py`; the parts are in `_aot_autograd`.

Left out: inputs that are tensors of subclasses with tensors in them.
"""

import functools

import readtorch
from readtorch._subclasses import FakeTensor, FakeTensorMode
from readtorch._tensor import Tensor
from readtorch.c10.python_dispatcher_tls import enable_python_dispatcher
from readtorch.fx.experimental.symbolic_shapes import ShapeEnv
from readtorch.nn import Module
from readtorch.utils._pytree import arg_tree_leaves, tree_flatten, tree_unflatten

from ._aot_autograd.collect_metadata_analysis import run_functionalized_fw_and_collect_metadata
from ._aot_autograd.graph_compile import aot_dispatch_autograd, aot_dispatch_base
from ._aot_autograd.input_output_analysis import (
    AOTDedupeWrapper,
    is_written,
    leafified,
    refuse_writes_to_shared_memory,
    repeated,
)
from ._aot_autograd.schemas import AOTConfig, OutputType
from ._aot_autograd.utils import make_boxed_func
from .partitioners import default_partition

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_func", "make_boxed_compiler"]


def aot_function(
    fn,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
    num_params_buffers=0,
    keep_inference_input_mutations=False,
    inference_compiler=None,
    *,
    dynamic=False,
):
    """A function that does what `fn` does, by compiled graphs. They are made at the first call, for arguments of its kind.

    fw_compiler, bw_compiler: (GraphModule, list of fake tensors) -> a function of tensors that returns a list of them. inference_compiler:
    the same, where nothing requires grad. partition_fn: (joint graph, its inputs, num_fwd_outputs=) -> (forward, backward).
    decompositions: operator -> a function that is traced in its place. keep_inference_input_mutations: a graph without a
    backward may write to inputs at its end. num_params_buffers: how many arguments are parameters and buffers, which makes no difference
    here. dynamic: sizes are left open, and ints are. No guard is checked: who calls it with other sizes must know that the graph is theirs, too.
    """
    aot_config = AOTConfig(
        fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions, keep_inference_input_mutations
    )
    shape_env = ShapeEnv() if dynamic else None
    compiled = out_spec = None

    @functools.wraps(fn)
    def returned_function(*args, **kwargs):
        nonlocal compiled, out_spec
        flat_args = arg_tree_leaves(*args, **kwargs)
        if compiled is None:
            flat_fn, out_spec = create_tree_flattened_fn(fn, args, kwargs)
            compiled = create_aot_dispatcher_function(flat_fn, flat_args, aot_config, shape_env)
        return tree_unflatten(compiled(flat_args), out_spec[0])

    return returned_function


def create_tree_flattened_fn(fn, args, kwargs):
    """(A function of the leaves of (args, kwargs) that returns the leaves of fn's result, a list that will hold the result's form)."""
    _, spec = tree_flatten((args, kwargs))
    out_spec = [None]

    def flat_fn(*flat_args):
        args, kwargs = tree_unflatten(list(flat_args), spec)
        flat_outs, out_spec[0] = tree_flatten(fn(*args, **kwargs))
        for i, out in enumerate(flat_outs):
            if not isinstance(out, Tensor | int | float | bool | str | bytes | None):
                raise RuntimeError(
                    f"Found {type(out)} in output, which is not a known type. If this type holds tensors, you need to register "
                    "a pytree for it. See https://github.com/pytorch/functorch/issues/475 for a brief explanation why. If you "
                    f"don't need to register a pytree, please leave a comment explaining your use case and we'll make this more "
                    f"ergonomic to deal with. (output {i})"
                )
        return flat_outs

    return flat_fn, out_spec


def create_aot_dispatcher_function(flat_fn, flat_args, aot_config, shape_env=None):
    """Compile: a function of the list of arguments. flat_args: those of the first call. shape_env: where their sizes are symbols, if any are."""
    fake_mode, fakes = process_inputs(flat_args, shape_env)
    with fake_mode, enable_python_dispatcher():
        meta = analyse(flat_fn, fakes, aot_config)
        refuse_writes_to_shared_memory(flat_args, meta.input_info)
        places = repeated(fakes)
        if not any(is_written(meta.input_info[i]) for i in places):
            return dispatch(flat_fn, leafified(fakes, places), meta, aot_config)
        dedupe = AOTDedupeWrapper(fakes)
        flat_fn, fakes = dedupe.wrap(flat_fn), dedupe.remove_dupe_args(fakes)
        compiled = dispatch(flat_fn, fakes, analyse(flat_fn, fakes, aot_config), aot_config)
    return lambda args: compiled(dedupe.remove_dupe_args(args))


def analyse(flat_fn, fakes, aot_config):
    return run_functionalized_fw_and_collect_metadata(flat_fn, aot_config.keep_inference_input_mutations)(*fakes)


def dispatch(flat_fn, fakes, meta, aot_config):
    """Compile, with a backward if there is something to have one for."""
    requires_grad = any(isinstance(a, Tensor) and a.requires_grad for a in fakes)
    if requires_grad and readtorch.is_grad_enabled() and not nothing_requires_grad(meta):
        return aot_dispatch_autograd(flat_fn, fakes, meta, aot_config)
    return aot_dispatch_base(flat_fn, fakes, meta, aot_config)


def nothing_requires_grad(meta):
    """Whether there is nothing to have a backward for: outputs that require grad are views of inputs, which get their history from these."""
    of_inputs = (OutputType.alias_of_input, OutputType.is_input)
    for info in meta.output_info:
        is_replayed = info.output_type in of_inputs and meta.input_info[info.base_idx].requires_grad
        if info.requires_grad and not is_replayed:
            return False
    return not any(
        info.requires_grad and info.mutates_data and not info.mutations_under_no_grad_or_inference_mode
        for info in meta.input_info
    )


def process_inputs(flat_args, shape_env):
    """(A FakeTensorMode, the arguments with fake tensors in place of tensors)."""
    given = [a for a in flat_args if isinstance(a, FakeTensor)]
    mode = given[0].fake_mode if given else FakeTensorMode(allow_non_fake_inputs=True, shape_env=shape_env)

    def convert(i, a):
        if type(a) is int and shape_env is not None:
            return shape_env.create_symintnode(shape_env.create_symbol(a, f"sym_{i}"), hint=a)
        return mode.from_tensor(a) if isinstance(a, Tensor) and not isinstance(a, FakeTensor) else a

    return mode, [convert(i, a) for i, a in enumerate(flat_args)]


def aot_module(mod, *args, **kwargs):
    """A Module that does what `mod` does, by graphs that `aot_function(…, *args, **kwargs)` compiles. Parameters are inputs of these."""
    params = dict(mod.named_parameters(remove_duplicate=False))
    buffers = dict(mod.named_buffers(remove_duplicate=False))

    def functional_call(named_params, named_buffers, *args, **kwargs):
        return readtorch.func.functional_call(mod, {**named_params, **named_buffers}, args, kwargs)

    compiled = aot_function(functional_call, *args, num_params_buffers=len(params) + len(buffers), **kwargs)

    class AOTModule(Module):
        def __init__(self):
            super().__init__()
            self.orig_module = mod

        def forward(self, *args, **kwargs):
            return compiled(params, buffers, *args, **kwargs)

    return AOTModule()


def aot_module_simplified(
    mod,
    args,
    fw_compiler,
    bw_compiler=None,
    partition_fn=default_partition,
    decompositions=None,
    keep_inference_input_mutations=False,
    inference_compiler=None,
):
    """`aot_module` for Dynamo: `mod` takes tensors and returns a tuple of them. It is compiled at once, for `args`."""
    named = {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}
    params = list(named.values())

    def flat_fn(*flat_args):
        values = dict(zip(named, flat_args))
        outs = readtorch.func.functional_call(mod, values, tuple(flat_args[len(named) :]))
        if not isinstance(outs, tuple | list):
            raise RuntimeError(
                "Graph output must be a (). This is so that we can avoid pytree processing of the outputs. Please change the module "
                "to have tuple outputs or use aot_module instead."
            )
        return outs

    aot_config = AOTConfig(
        fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions, keep_inference_input_mutations
    )
    compiled = create_aot_dispatcher_function(flat_fn, [*params, *args], aot_config)

    def forward(*runtime_args):
        return compiled([*params, *runtime_args])

    forward.zero_grad, forward.named_parameters, forward.named_buffers = (
        mod.zero_grad,
        mod.named_parameters,
        mod.named_buffers,
    )
    return forward


def make_boxed_compiler(compiler):
    """A compiler whose results are functions of one list."""

    @functools.wraps(compiler)
    def f(fx_g, inps):
        return make_boxed_func(compiler(fx_g, inps))

    return f
