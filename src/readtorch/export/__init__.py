"""A module as one graph, which can be saved and run without its Python code. In PyTorch: `torch/export/__init__.py`. The chapter "export and
ONNX" reads it.

    ep = export(module, (x,))       trace with example inputs
    ep.module()(x)                  run
    ep.run_decompositions()         the graph in core ATen, without writes
    save(ep, "model.pt2")           a file that PyTorch loads, too; `load` reads those of PyTorch
    unflatten(ep)                   modules again, with the names that they had

Left out: `preserve_module_call_signature`, `draft_export`.
"""

from readtorch.nn import Module
from readtorch.utils._pytree import register_dataclass as _register_dataclass

from .decomp_utils import CustomDecompTable
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "default_decompositions",
    "Dim",
    "dims",
    "export",
    "load",
    "save",
    "ExportBackwardSignature",
    "ExportedProgram",
    "ExportGraphSignature",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "register_dataclass",
    "ShapesCollection",
    "unflatten",
    "UnflattenedModule",
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
    """An ExportedProgram: the graph of one call of `mod`, a Module, with args and kwargs.

    args, kwargs: example inputs, a tuple and a dict: tensors, numbers, strings and None, in any nest of containers that `utils._pytree` knows. A
    call of the program must have tensors of the same sizes, and the same numbers and strings. dynamic_shapes: which sizes may
    change, as `Dim`s by input and dimension; all others are fixed. strict: False, run the module with fake tensors, and record the
    operators; True, let Dynamo read its bytecode first. Then what the graph cannot hold is refused (Unsupported), no code of the module
    runs, other effects than writes to tensors are told in a warning and not done, and only what the graph reads of parameters and
    buffers is an input of it. preserve_module_call_signature: NotImplementedError. prefer_deferred_runtime_asserts_over_guards: without effect.

    ValueError for a `mod` that is no Module and for inputs of other types, UserError for arguments that do not fit each other, and for a `Dim`
    that the program fixes or narrows. Branches on elements of tensors raise what fake tensors raise, or Unsupported.
    """
    from ._trace import _export

    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if preserve_module_call_signature:
        raise NotImplementedError("readtorch exports without preserve_module_call_signature")
    return _export(mod, args, kwargs, dynamic_shapes, strict)


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write a program to a `.pt2` file that `load`, here and in PyTorch, reads.

    f: path, or a file object with `write`, which is at its beginning afterwards. extra_files: {name: text} that are written into it, too.
    opset_version: {namespace: version} to note. pickle_protocol: for the example inputs.
    Raises TypeError for other objects, SerializeError for programs with parts that files do not hold.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    from .pt2_archive._package import package_pt2

    package_pt2(f, ep, extra_files, opset_version, pickle_protocol)


def load(f, *, extra_files=None, expected_opset_version=None):
    """The ExportedProgram in a `.pt2` file that `save`, here or in PyTorch, has written.

    f: path, or a seekable file object. extra_files: a dict that is filled with the file's extra files. expected_opset_version:
    {namespace: version} that a file may have at most.

    Nothing in the file is run, but for the operators of its graph when the program is called: Note [ What a hostile program cannot do ].
    Raises RuntimeError (SerializeError) for a damaged file and for what it holds that readtorch has not, UnpicklingError for example inputs
    that are more than tensors, numbers and containers.
    """
    from .pt2_archive._package import load_pt2

    programs, extra = load_pt2(f, expected_opset_version)
    if extra_files is not None:
        extra_files.update(extra)
    if "model" not in programs:
        raise RuntimeError("the file holds no exported program")
    return programs["model"]


def register_dataclass(cls, *, serialized_type_name=None):
    """Let a dataclass be an input or output of exported programs. serialized_type_name: what it is called in saved files."""
    _register_dataclass(cls, serialized_type_name=serialized_type_name)
