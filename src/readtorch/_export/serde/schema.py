"""What the json of an exported program may hold, and the check that it does. In PyTorch: `torch/_export/serde/schema.py`.

A record is an object with these keys; a union is an object with one of them. Kinds of values:

    int, bool, float, str     float: a number, or "Infinity", "-Infinity", "NaN"
    [X]   {X}   X?            a list of X; an object whose values are X; X or null

A key that a record has beyond these is ignored, as in PyTorch: a later version has added it. A key that ends in `?` may be missing, and is
then null.
"""

from enum import IntEnum

SCHEMA_VERSION = (8, 20)
TREESPEC_VERSION = 1


class SerializeError(RuntimeError):
    """A program cannot be written, or what was read is none."""


class ArgumentKind(IntEnum):
    UNKNOWN = 0
    POSITIONAL = 1
    KEYWORD = 2


# name of a dtype -> its number
SCALAR_TYPES = dict(uint8=1, int8=2, int16=3, int32=4, int64=5, float16=6, float32=7, float64=8, complex32=9)
SCALAR_TYPES |= dict(complex64=10, complex128=11, bool=12, bfloat16=13, uint16=28, float8_e4m3fn=29, float8_e5m2=30)
SCALAR_TYPES |= dict(float8_e4m3fnuz=31, float8_e5m2fnuz=32, float8_e8m0fnu=33, uint32=34, uint64=35)
LAYOUTS = dict(sparse_coo=1, strided=7)
MEMORY_FORMATS = dict(contiguous_format=1, channels_last=2, channels_last_3d=3, preserve_format=4)


def _keys(text):
    return dict(part.split(":") for part in text.split())


_TENSOR = "arg:TensorArgument"
UNIONS = {
    "SymExprHint": _keys("as_int:int as_bool:bool as_float:float"),
    "SymInt": _keys("as_expr:SymExpr as_int:int"),
    "SymIntArgument": _keys("as_name:str as_int:int"),
    "OptionalTensorArgument": _keys("as_tensor:TensorArgument as_none:bool"),
    "Argument": _keys(
        "as_none:bool as_tensor:TensorArgument as_tensors:[TensorArgument] as_int:int as_ints:[int] as_float:float as_floats:[float] "
        "as_string:str as_strings:[str] as_sym_int:SymIntArgument as_sym_ints:[SymIntArgument] as_scalar_type:int "
        "as_memory_format:int as_layout:int as_device:Device as_bool:bool as_bools:[bool] as_graph:GraphArgument "
        "as_optional_tensors:[OptionalTensorArgument] as_operator:str as_complex:ComplexValue as_nested_tensors:[[TensorArgument]] "
        "as_int_lists:[[int]] as_float_lists:[[float]] as_string_to_argument:{Argument}"
    ),
    "ConstantValue": _keys("as_none:bool as_int:int as_float:float as_string:str as_bool:bool"),
    "InputSpec": _keys(
        "user_input:UserSpec parameter:ParameterSpec buffer:BufferSpec tensor_constant:TensorConstantSpec constant_input:ConstantInputSpec"
    ),
    "OutputSpec": _keys(
        "user_output:UserSpec loss_output:LossSpec buffer_mutation:BufferMutationSpec parameter_mutation:ParameterSpec "
        "gradient_to_parameter:ParameterSpec gradient_to_user_input:UserInputSpec user_input_mutation:UserInputSpec"
    ),
}
RECORDS = {
    "Device": _keys("type:str index?:int?"),
    "SymExpr": _keys("expr_str:str hint?:SymExprHint?"),
    "TensorMeta": _keys(
        "dtype:int sizes:[SymInt] requires_grad:bool device:Device strides:[SymInt] storage_offset:SymInt layout:int"
    ),
    "TensorArgument": _keys("name:str"),
    "GraphArgument": _keys("name:str graph:Graph"),
    "ComplexValue": _keys("real:float imag:float"),
    "NamedArgument": _keys("name:str arg:Argument kind?:int?"),
    "Node": _keys(
        "target:str inputs:[NamedArgument] outputs:[Argument] metadata:{str} is_hop_single_tensor_return?:bool? name?:str?"
    ),
    "Graph": _keys(
        "inputs:[Argument] outputs:[Argument] nodes:[Node] tensor_values:{TensorMeta} sym_int_values:{SymInt} is_single_tensor_return?:bool?"
    ),
    "UserSpec": _keys("arg:Argument"),
    "LossSpec": _keys(_TENSOR),
    "ParameterSpec": _keys(f"{_TENSOR} parameter_name:str"),
    "BufferSpec": _keys(f"{_TENSOR} buffer_name:str persistent:bool"),
    "BufferMutationSpec": _keys(f"{_TENSOR} buffer_name:str"),
    "UserInputSpec": _keys(f"{_TENSOR} user_input_name:str"),
    "TensorConstantSpec": _keys(f"{_TENSOR} tensor_constant_name:str"),
    "ConstantInputSpec": _keys("name:str value:ConstantValue"),
    "GraphSignature": _keys("input_specs:[InputSpec] output_specs:[OutputSpec]"),
    "ModuleCallSignature": _keys(
        "inputs:[Argument] outputs:[Argument] in_spec:str out_spec:str forward_arg_names?:[str]?"
    ),
    "ModuleCallEntry": _keys("fqn:str signature?:ModuleCallSignature?"),
    "GraphModule": _keys("graph:Graph signature:GraphSignature module_call_graph:[ModuleCallEntry]"),
    "SchemaVersion": _keys("major:int minor:int"),
    "RangeConstraint": _keys("min_val:int? max_val:int?"),
    "ExportedProgram": _keys(
        "graph_module:GraphModule opset_version:{int} range_constraints:{RangeConstraint} schema_version:SchemaVersion verifiers?:[str]? "
        "guards_code?:[str]?"
    ),
    "PayloadMeta": _keys("path_name:str is_param:bool use_pickle:bool tensor_meta:TensorMeta?"),
    "PayloadConfig": _keys("config:{PayloadMeta}"),
}
_PLAIN = {"int": int, "bool": bool, "str": str}
_SPECIAL_FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}


def checked(kind, data, where="the program"):
    """`data` as the schema wants it: records have all of their keys, floats are floats. Raises SerializeError that says where it does not fit."""
    if kind.endswith("?"):
        return None if data is None else checked(kind[:-1], data, where)
    if kind.startswith("["):
        _expect(isinstance(data, list), where, "a list", data)
        return [checked(kind[1:-1], value, f"{where}[{i}]") for i, value in enumerate(data)]
    if kind.startswith("{"):
        _expect(isinstance(data, dict), where, "an object", data)
        return {key: checked(kind[1:-1], value, f"{where}.{key}") for key, value in data.items()}
    if kind == "float":
        is_number = type(data) in (int, float)
        _expect(is_number or isinstance(data, str) and data in _SPECIAL_FLOATS, where, "a number", data)
        return float(data) if is_number else _SPECIAL_FLOATS[data]
    if kind in _PLAIN:
        _expect(type(data) is _PLAIN[kind], where, f"of type {kind}", data)
        return data
    return _checked_object(kind, data, where)


def _checked_object(kind, data, where):
    _expect(isinstance(data, dict), where, f"an object ({kind})", data)
    if kind in UNIONS:
        fields = UNIONS[kind]
        if len(data) != 1 or next(iter(data)) not in fields:
            raise SerializeError(f"{where} must have one of the keys of {kind}, but has {_short(list(data))}")
        return {key: checked(fields[key], value, f"{where}.{key}") for key, value in data.items()}
    record = {}
    for key, field in RECORDS[kind].items():
        name = key.removesuffix("?")
        if name not in data and name == key:
            raise SerializeError(f"{where} ({kind}) has no key {name!r}")
        record[name] = checked(field, data.get(name), f"{where}.{name}")
    return record


def _expect(holds, where, what, data):
    if not holds:
        raise SerializeError(f"{where} must be {what}, but is {_short(data)}")


def _short(data):
    text = repr(data)[:100]
    return text if len(text) < 100 else text[:97] + "..."
