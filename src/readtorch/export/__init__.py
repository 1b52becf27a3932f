"""A module as one graph, which can be saved and run without its Python code. In PyTorch: `torch/export/__init__.py`.

    ep = export(module, (x,))       trace with example inputs
    ep.module()(x)                  run
    ep.run_decompositions()         the graph in core ATen, without writes
    save(ep, "model.pt2")           a file that PyTorch loads, too; `load` reads those of PyTorch

Left out: sizes that may change, `strict=True` (a capture by Dynamo), `preserve_module_call_signature`, `draft_export`, `unflatten`.
"""

from readtorch.nn import Module
from readtorch.utils._pytree import register_dataclass as _register_dataclass

from .decomp_utils import CustomDecompTable
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "default_decompositions",
    "Dim",
    "dims",
    "export",
    "ExportBackwardSignature",
    "ExportedProgram",
    "ExportGraphSignature",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "register_dataclass",
    "ShapesCollection",
]


def export(
    mod,
    args,
    kwargs=None,
    *,
    dynamic_shapes=None,
    strict=False,
    preserve_module_call_signature=(),
    prefer_deferred_runtime_asserts_over_guards=False,
):
    """An ExportedProgram: the graph of one call of `mod`, a Module, with args and kwargs, traced by running it with fake tensors.

    args, kwargs: example inputs, a tuple and a dict: tensors, numbers, strings and None, in any nest of containers that `utils._pytree` knows. A
    call of the program must have tensors of the same sizes, and the same numbers and strings. dynamic_shapes: which sizes may
    change; all are fixed here, and others are refused with NotImplementedError. strict: NotImplementedError for True, and
    for a `preserve_module_call_signature`. prefer_deferred_runtime_asserts_over_guards: without effect.

    ValueError for a `mod` that is no Module and for inputs of other types, UserError for arguments that do not fit each other. Branches on
    elements of tensors raise what fake tensors raise.
    """
    from ._trace import _export

    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if strict or preserve_module_call_signature:
        raise NotImplementedError(
            "readtorch exports with strict=False alone, and without preserve_module_call_signature"
        )
    return _export(mod, args, kwargs, dynamic_shapes)


def register_dataclass(cls, *, serialized_type_name=None):
    """Let a dataclass be an input or output of exported programs. serialized_type_name: what it is called in saved files."""
    _register_dataclass(cls, serialized_type_name=serialized_type_name)
