"""Files that nobody saved: each is refused with an error that says what is wrong, and nothing that it names is run."""

import io
import json
import os
import pickle
import random
import subprocess
import zipfile

import pytest
import torch

import readtorch as rt
import readtorch.export
from readtorch._export.serde.schema import SerializeError
from readtorch.serialization._inline_container import ZipWriter


@pytest.fixture(scope="module")
def records():
    """{name: bytes} of a good file."""
    model = rt.nn.Sequential(rt.nn.Linear(2, 2), rt.nn.Dropout())
    buffer = io.BytesIO()
    rt.export.save(rt.export.export(model, (rt.ones(1, 2),), {}), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def archive_of(records):
    buffer = io.BytesIO()
    writer = ZipWriter(buffer.write, None, "archive")
    for name, data in records.items():
        if name != ".data/serialization_id":
            writer.write_record(name, data)
    writer.write_end_of_file()
    buffer.seek(0)
    return buffer


MODEL, WEIGHTS, INPUTS = "models/model.json", "data/weights/model_weights_config.json", "data/sample_inputs/model.pt"


def changed(records, name, change):
    """A file whose json was changed."""
    data = json.loads(records[name])
    change(data)
    return archive_of({**records, name: json.dumps(data).encode()})


def graph(program):
    return program["graph_module"]["graph"]


def first_node(program):
    return graph(program)["nodes"][0]


def root_signature(program):
    return program["graph_module"]["module_call_graph"][0]["signature"]


def spec_of(kind, context, children=()):
    leaf = {"type": None, "context": None, "children_spec": []}
    return json.dumps([1, {"type": kind, "context": context, "children_spec": list(children) or [leaf]}])


def rename(program, old, new):
    text = json.dumps(program).replace(json.dumps(old), json.dumps(new))
    program.clear()
    program.update(json.loads(text))


ATTACKS = {
    "operator that is none": (MODEL, lambda p: first_node(p).update(target="os.system"), "is no operator"),
    "attribute of the library": (MODEL, lambda p: first_node(p).update(target="torch.hub.load"), "is no operator"),
    "attribute of ops": (MODEL, lambda p: first_node(p).update(target="torch.ops.load_library"), "is no operator"),
    "dunder": (MODEL, lambda p: first_node(p).update(target="torch.ops.aten.linear.__class__"), "is no operator"),
    "operator as argument": (
        MODEL,
        lambda p: first_node(p)["inputs"][0].update(arg={"as_operator": "builtins.eval"}),
        "is no operator",
    ),
    "name that is code": (MODEL, lambda p: rename(p, "linear", "x);import os;os.system('x')#"), "is no name"),
    "input that is code": (MODEL, lambda p: rename(p, "input", "x=print('!')"), "is no name"),
    "keyword as name": (MODEL, lambda p: rename(p, "linear", "lambda"), "is no name"),
    "argument name that is code": (
        MODEL,
        lambda p: root_signature(p).update(forward_arg_names=["x=print('!')"]),
        "is no name",
    ),
    "keyword argument that is code": (
        MODEL,
        lambda p: root_signature(p).update(
            in_spec=json.dumps(
                [
                    1,
                    {
                        "type": "builtins.tuple",
                        "context": "null",
                        "children_spec": [
                            json.loads(spec_of("builtins.tuple", "null"))[1],
                            {"type": "builtins.dict", "context": json.dumps(["'+print(1)+'"]), "children_spec": []},
                        ],
                    },
                ]
            )
        ),
        "is no name",
    ),
    "parameter name that is code": (MODEL, lambda p: rename(p, "0.weight", "0.weight = print(1)"), "is no name"),
    "enumeration": (
        MODEL,
        lambda p: root_signature(p).update(
            out_spec=spec_of("builtins.dict", json.dumps([{"__enum__": True, "fqn": "antigravity:X", "name": "Y"}]))
        ),
        "would have to be imported",
    ),
    "factory": (
        MODEL,
        lambda p: root_signature(p).update(
            out_spec=spec_of(
                "collections.defaultdict",
                {"default_factory_module": "antigravity", "default_factory_name": "x", "dict_context": ["a"]},
            )
        ),
        "would have to be imported",
    ),
    "unknown container": (MODEL, lambda p: root_signature(p).update(out_spec=spec_of("os.x", "null")), "not known"),
    "two nodes of a name": (MODEL, lambda p: rename(p, "dropout", "linear"), "two nodes are called"),
    "use before definition": (MODEL, lambda p: graph(p)["nodes"].reverse(), "before there is such a node"),
    "missing key": (MODEL, lambda p: p.pop("graph_module"), "has no key 'graph_module'"),
    "wrong type": (MODEL, lambda p: graph(p).update(nodes={}), "must be a list"),
    "two keys of a union": (
        MODEL,
        lambda p: first_node(p)["inputs"][0]["arg"].update(as_int=1),
        "must have one of the keys of Argument",
    ),
    "later schema": (MODEL, lambda p: p["schema_version"].update(major=9), "does not match"),
    "later operators": (MODEL, lambda p: p["opset_version"].update(aten=99), "version 99 of aten"),
    "size that may change": (
        MODEL,
        lambda p: graph(p)["tensor_values"]["input"].update(sizes=[{"as_expr": {"expr_str": "s0"}}, {"as_int": 2}]),
        "is no expression of sizes",
    ),
    "negative size": (
        MODEL,
        lambda p: graph(p)["tensor_values"]["linear"].update(sizes=[{"as_int": -1}, {"as_int": 2}]),
        "impossible sizes",
    ),
    "wrong place": (MODEL, lambda p: first_node(p)["inputs"].reverse(), "has no argument"),
    "signature of other names": (
        MODEL,
        lambda p: p["graph_module"]["signature"]["input_specs"].pop(),
        "do not fit each other",
    ),
    "no such parameter": (WEIGHTS, lambda p: p["config"].pop("0.bias"), "do not fit each other"),
    "beyond the bytes": (
        WEIGHTS,
        lambda p: p["config"]["0.bias"]["tensor_meta"].update(sizes=[{"as_int": 10**9}]),
        "reaches beyond",
    ),
    "offset beyond the bytes": (
        WEIGHTS,
        lambda p: p["config"]["0.bias"]["tensor_meta"].update(storage_offset={"as_int": 2**40}),
        "reaches beyond",
    ),
    "pickled weight": (WEIGHTS, lambda p: p["config"]["0.bias"].update(use_pickle=True), "is pickled"),
    "unknown dtype": (WEIGHTS, lambda p: p["config"]["0.bias"]["tensor_meta"].update(dtype=99), "is no dtype"),
    "odd bytes": (
        WEIGHTS,
        lambda p: p["config"]["0.bias"]["tensor_meta"].update(dtype=11),
        "not a multiple of element size|reaches beyond",
    ),
    "integer that requires grad": (
        WEIGHTS,
        lambda p: p["config"]["0.bias"]["tensor_meta"].update(dtype=4),
        "cannot require grad",
    ),
    "path out of the archive": (
        WEIGHTS,
        lambda p: p["config"]["0.bias"].update(path_name="../../../../etc/passwd"),
        "file not found",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_refused(name, records, monkeypatch):
    record, change, message = ATTACKS[name]
    for module, function in ((os, "system"), (subprocess, "Popen"), (torch.hub, "load")):
        monkeypatch.setattr(module, function, lambda *_, **__: pytest.fail("something was run"))
    with pytest.raises(RuntimeError, match=message):
        rt.export.load(changed(records, record, change))


def test_pickles_are_not_run(records):
    class Payload:
        def __reduce__(self):
            return print, ("run",)

    inputs = io.BytesIO()
    torch.save(((Payload(),), {}), inputs)
    with pytest.raises(pickle.UnpicklingError):
        rt.export.load(archive_of({**records, INPUTS: inputs.getvalue()}))


def test_example_inputs_are_inputs(records):
    inputs = io.BytesIO()
    torch.save([1, 2], inputs)
    with pytest.raises(SerializeError, match="example inputs"):
        rt.export.load(archive_of({**records, INPUTS: inputs.getvalue()}))


@pytest.mark.parametrize("data", [b"", b"[", b"[" * 100_000, b"\xff\xfe", b"null", b'{"a": NaN}'])
def test_no_json(records, data):
    with pytest.raises(SerializeError):
        rt.export.load(archive_of({**records, MODEL: data}))


@pytest.mark.parametrize("name", [MODEL, WEIGHTS, INPUTS, "archive_format", "data/weights/weight_0"])
def test_missing_records(records, name):
    with pytest.raises(RuntimeError):
        rt.export.load(archive_of({key: value for key, value in records.items() if key != name}))


def test_what_is_no_archive(tmp_path):
    for data in (b"", b"no archive", b"PK\x05\x06" + bytes(18)):
        with pytest.raises(RuntimeError):
            rt.export.load(io.BytesIO(data))
    with pytest.raises(FileNotFoundError):
        rt.export.load(tmp_path / "nothing.pt2")


def test_good_file(records):
    assert len(rt.export.load(archive_of(records)).state_dict) == 2


def test_values_by_chance(records):
    """Whatever stands in the json: a program, or a RuntimeError."""
    values = [None, True, -1, 2**70, 1.5, "x", "torch.ops.aten.add.Tensor", [], [1], {}, {"as_int": 1}, {"name": "x"}]
    draw = random.Random(0)
    for _ in range(150):
        program = json.loads(records[MODEL])
        place = program
        while True:
            key = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
            if not isinstance(place[key], dict | list) or not place[key] or draw.random() < 0.1:
                break
            place = place[key]
        place[key] = draw.choice(values)
        try:
            rt.export.load(archive_of({**records, MODEL: json.dumps(program).encode()})).module()
        except RuntimeError:
            pass


# ------------------------------------------------------------------------------------------- sizes that may change


@pytest.fixture(scope="module")
def dynamic_records():
    """{name: bytes} of a good file with sizes that may change, and guards."""
    model = rt.nn.Sequential(rt.nn.Linear(2, 2), rt.nn.Dropout())
    buffer = io.BytesIO()
    shapes = ({0: rt.export.Dim("batch")},)
    rt.export.save(rt.export.export(model, (rt.ones(3, 2),), {}, dynamic_shapes=shapes), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


S = "Symbol('s1', integer=True)"
HOSTILE_EXPRESSIONS = {
    "call": ("__import__('os').system('touch hacked')", "stands where a function must"),
    "function that is none": ("eval(Integer(1))", "no function of sizes"),
    "attribute": (f"{S}.__class__", "stands where a function must"),
    "lambda": ("(lambda: 1)()", "stands where a function must"),
    "comprehension": ("[x for x in (1,)]", "stands where a function must"),
    "text in an integer": ("Integer('os')", "Integer is not written"),
    "large integer": (f"Integer({10**30})", "Integer is not written"),
    "name that is code": ("Symbol('s1);print(1', integer=True)", "no name of a size"),
    "size that depends on elements": ("Symbol('u0', integer=True)", "no name of a size"),
    "keyword that is code": ("Symbol('s1', integer=print(1))", "a symbol is not written"),
    "length": ("Add(" + "Integer(1), " * 1000 + "Integer(1))", "more than 10000"),
    "depth": ("Add(" * 300 + S + ")" * 300, "nested"),
    "power": (f"Pow({S}, Integer(1000000))", "a power is not"),
    "many terms": (
        f"Pow(Add({', '.join(f'Symbol({chr(39)}s{i}{chr(39)}, integer=True)' for i in range(30))}), Integer(8))",
        "more than 200 terms",
    ),
    "division by zero": (f"FloorDiv({S}, Integer(0))", "zero"),
    "too few arguments": ("FloorDiv(Integer(1))", "argument"),
    "Max of nothing": ("Max()", "argument"),
    "no syntax": ("Add(", "never closed"),
    "comment": (f"{S} # 1", "characters that no expression has"),
    "value that is not noted": (f"FloorDiv({S}, Integer(2))", "is not noted"),
}


@pytest.mark.parametrize("name", HOSTILE_EXPRESSIONS)
def test_hostile_expressions(name, dynamic_records, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, message = HOSTILE_EXPRESSIONS[name]

    def change(program):
        graph(program)["tensor_values"]["linear"]["sizes"][0]["as_expr"]["expr_str"] = text

    with pytest.raises(SerializeError, match=message):
        rt.export.load(changed(dynamic_records, MODEL, change))
    assert os.listdir(tmp_path) == []


HOSTILE_GUARDS = [
    "__import__('os').system('touch hacked')",
    "L.__class__",
    "L['x'].__class__ == 1",
    "L['x'].size().__len__() == 2",
    "L['x'].size()[0] == 2) or print(1",
    "True, 'x') or print(1) #",
    "9**9**9 == 1",
    "max(*L['x']) == 1",
    "(lambda: 1)() == 1",
    "[1 for _ in L] == 1",
    "math.factorial(1000) == 1",
    "L[\"L['x']\"] == 1",
    "(y := 1) == 1",
    "'a' == 'a'",
]


@pytest.mark.parametrize("guard", HOSTILE_GUARDS)
def test_hostile_guards(guard, dynamic_records):
    with pytest.raises(SerializeError, match="is no expression of sizes"):
        rt.export.load(changed(dynamic_records, MODEL, lambda p: p.update(guards_code=[guard])))


def test_hostile_ranges(dynamic_records):
    def change(program):
        for record in program["range_constraints"].values():
            record.update(min_val=9, max_val=3)

    with pytest.raises(SerializeError, match="is empty: from 9 to 3"):
        rt.export.load(changed(dynamic_records, MODEL, change))
