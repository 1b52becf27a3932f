"""Names of placeholders, and the checks of inputs. In PyTorch: `torch/_export/utils.py`."""

import inspect
import math
import re
from collections import defaultdict

from readtorch._subclasses.fake_tensor import FakeTensor
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymInt, hint_of
from readtorch.export.graph_signature import InputKind, OutputKind
from readtorch.utils._pytree import GetAttrKey, MappingKey, SequenceKey, keystr, tree_flatten_with_path

placeholder_prefixes = {
    InputKind.USER_INPUT: "",
    InputKind.PARAMETER: "p_",
    InputKind.BUFFER: "b_",
    InputKind.CONSTANT_TENSOR: "c_",
    InputKind.CUSTOM_OBJ: "obj_",
    InputKind.TOKEN: "token",
}


# ------------------------------------------------------------------------------------------------------------- names


class _Names:
    """New names for the nodes of a graph. One that is taken gets the next number behind it."""

    def __init__(self):
        self.new = {}  # name -> new name
        self.numbers = defaultdict(int)  # what stands before a number -> the highest one
        self.used = set()

    def rename(self, name, wanted, is_placeholder=False):
        numbered = None if is_placeholder else re.match(r"(.*)_(\d+)", wanted)
        stem, new = numbered.group(1) if numbered else wanted, wanted
        if new in self.used:
            new = f"{stem}_{self.numbers[stem] + 1}"
        numbered = re.match(r"(.*)_(\d+)", new)
        if numbered:
            stem, number = numbered.group(1), int(numbered.group(2))
            self.numbers[stem] = max(self.numbers[stem], number)
        self.new[name] = new
        self.used.add(new)


def placeholder_naming_pass(gm, signature, mod, fake_args, fake_kwargs):
    """Name the placeholders after what they stand for, and change names of other nodes that are in the way:

    x_a_0               the user's input x["a"][0]
    p_layer_weight      the parameter layer.weight; b_ a buffer, c_ a constant
    """
    names = _Names()
    user_inputs = [spec.arg.name for spec in signature.input_specs if spec.kind == InputKind.USER_INPUT]
    paths, _ = tree_flatten_with_path(_bind_signature_to_inputs(mod, fake_args, fake_kwargs))
    for (path, _), name in zip(paths, user_inputs):
        if name:
            names.rename(name, "_".join(_extract_pytree_key(key).lower() for key in path), is_placeholder=True)
    for spec in signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            base = re.sub(r"[^a-zA-Z0-9]", "_", spec.target).lower()
            names.rename(spec.arg.name, placeholder_prefixes[spec.kind] + base, is_placeholder=True)
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            names.rename(node.name, node.name)
    for node in gm.graph.nodes:
        node.name = names.new[node.name]
        if node.op == "placeholder":
            node.target = node.name
    gm.recompile()
    _rename_in_signature(signature, names.new)


def _rename_in_signature(signature, new):
    for spec in (*signature.input_specs, *signature.output_specs):
        spec.arg.name = new.get(spec.arg.name, spec.arg.name)
        if getattr(spec, "kind", None) == OutputKind.USER_INPUT_MUTATION:
            spec.target = new.get(spec.target, spec.target)


def _bind_signature_to_inputs(mod, fake_args, fake_kwargs):
    """{name of a parameter of forward: argument}. Keyword arguments stay in the order in which they were given."""
    return {**inspect.signature(mod.forward).bind_partial(*fake_args).arguments, **fake_kwargs}


def _extract_pytree_key(key):
    if isinstance(key, MappingKey):
        return re.sub(r"[^a-zA-Z0-9]", "_", str(key.key))
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, GetAttrKey):
        return key.name
    raise RuntimeError(f"Pytree key of type {type(key)} not handled for {key}")


# ----------------------------------------------------------------------------------------------- checks of inputs


def get_keystr(key_path):
    """How a program would write a leaf of (args, kwargs): *args[0]['a'], or name['a'] of a keyword argument."""
    if key_path[0].idx == 0:
        return f"*args{keystr(key_path[1:])}"
    return f"{str(key_path[1])[1:-1]}{keystr(key_path[2:])}"


def _check_input_constraints_for_graph(input_placeholders, flat_args_with_path, range_constraints):
    """That arguments are what the graph was made for: tensors of these sizes, and the very numbers and strings. Raises RuntimeError."""
    if len(flat_args_with_path) != len(input_placeholders):
        raise RuntimeError(
            f"Unexpected number of inputs (expected {len(input_placeholders)}, got {len(flat_args_with_path)})"
        )
    known = {}  # symbol -> the size that it has in this call
    for (path, arg), node in zip(flat_args_with_path, input_placeholders):
        val = node.meta.get("val")
        if isinstance(val, FakeTensor):
            _check_tensor(val, arg, get_keystr(path), range_constraints, known)
        elif isinstance(val, SymInt):
            _check_symint(val, arg, get_keystr(path), range_constraints, known)
        elif isinstance(val, int | float | str):
            _check_constant(val, arg, get_keystr(path))


def _check_symint(expected, size, where, range_constraints, known):
    """That a size that may change is within its range, and what it is elsewhere."""
    expr = expected.node.expr
    if expr.symbol is not None:
        wanted = known.setdefault(expr.symbol, size)
    else:
        wanted = expr.value(known) if expr.symbols() <= known.keys() else size
    if wanted != size:
        raise RuntimeError(f"Expected input at {where} to be equal to {wanted}, but got {size}")
    low, high = range_constraints.get(expr, (0, math.inf))
    if low > 2 and size < low:
        raise RuntimeError(f"Expected input at {where} to be >= {low}, but got {size}")
    if size > high:
        raise RuntimeError(f"Expected input at {where} to be <= {high}, but got {size}")


def _check_tensor(val, arg, where, range_constraints, known):
    if not isinstance(arg, Tensor):
        raise RuntimeError(f"Expected input at {where} to be a tensor, but got {type(arg)}")
    if len(val.shape) != len(arg.shape):
        raise RuntimeError(
            f"Unexpected number of dimensions in input at {where}.shape (expected {val.shape}, got {arg.shape})"
        )
    for i, (size, expected) in enumerate(zip(arg.shape, val.shape)):
        if isinstance(expected, SymInt) and expected.node.expr.number is None:
            _check_symint(expected, size, f"{where}.shape[{i}]", range_constraints, known)
        elif size != hint_of(expected):
            raise RuntimeError(
                f"Expected input at {where}.shape[{i}] to be equal to {expected}, but got {size}. "
                "If you meant for this dimension to be dynamic, please re-export and specify dynamic_shapes "
                "(e.g. with Dim.DYNAMIC)"
            )


def _check_constant(val, arg, where):
    if isinstance(val, float) and math.isnan(val) and type(arg) is float:
        if not math.isnan(arg):
            raise RuntimeError(f"Expected input at {where} to be nan, but got {arg}")
    elif type(arg) is not type(val) or arg != val:
        raise RuntimeError(f"Expected input at {where} to be equal to {val}, but got {arg}")
