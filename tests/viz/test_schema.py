"""The figure of an operator's entry against PyTorch's list and its parser, and the pieces that are cut out of generated files."""

import random

import pytest
import torch
import yaml
from torchgen.model import FunctionSchema

from readtorch.mini.schema import parse_schema
from readtorch.show import _links
from readtorch.viz.figures.schema import BAD, CHANGES, ENTRIES, FIGURE, checked_schema, is_whole
from readtorch.viz.generated_pieces import pieces_of
from readtorch.viz.inputs import Refusal

PACKAGED = _links.torch_root().parent / "torchgen/packaged/ATen/native/native_functions.yaml"


def listed():
    entries = yaml.load(PACKAGED.read_text(encoding="utf8"), yaml.CSafeLoader)
    return {entry["func"].partition("(")[0]: entry for entry in entries}


LISTED = listed()


def refusal(parse, line):
    try:
        parse(line)
    except Exception as error:
        return str(error)
    return None


def test_the_program_reads_the_whole_list_and_writes_it_again():
    lines = [entry["func"] for entry in LISTED.values()]
    assert len(lines) > 2500
    for line in lines:
        assert str(parse_schema(line)) == line
        assert checked_schema(line)


def test_bad_schemas_are_refused_in_the_words_of_torchgen():
    bad = {*BAD} | {entry[0].replace(old, new) for entry in ENTRIES.values() for old, new in CHANGES}
    refused = 0
    for line in sorted(bad):
        theirs = refusal(FunctionSchema.parse, line)
        assert refusal(checked_schema, line) == theirs, line
        refused += theirs is not None
    assert refused > len(BAD)


def test_changed_schemas_of_the_whole_list():
    generator = random.Random(3)
    for entry in generator.sample(list(LISTED.values()), 400):
        old, new = generator.choice(CHANGES)
        line = entry["func"].replace(old, new)
        theirs = refusal(FunctionSchema.parse, line)
        if "tensor options" not in str(theirs):  # the figure knows no TensorOptions
            assert refusal(checked_schema, line) == theirs, line


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_pytorchs(name):
    schema, variants, _, _ = ENTRIES[name]
    assert schema == LISTED[name]["func"]
    real = LISTED[name].get("variants", "function")
    assert set(variants.split(", ")) == set(real.split(", "))


def test_derived_forms_are_in_the_list():
    derived = 0
    for schema, variants, structured, formulas in ENTRIES.values():
        if structured:
            inputs = {"schema": schema, "variants": variants, "structured": True, "formulas": formulas}
            rows = FIGURE.result(**inputs)["pieces"]["registrations"].split("\n")
            inplace, out = (row.removeprefix('define("').removesuffix('")') for row in rows[1:3])
            assert inplace == LISTED[inplace.partition("(")[0]]["func"]
            assert out == LISTED[out.partition("(")[0]]["func"]
            derived += 2
    assert derived > 20


def node_of(result):
    return result["pieces"]["node"].partition("(")[0].removeprefix("class ")


def test_nodes_are_named_and_save_as_pytorchs():
    x = torch.ones(2, requires_grad=True)
    for name, call in {"exp": torch.exp, "log1p": torch.log1p, "sqrt": torch.sqrt, "neg": torch.neg}.items():
        schema, variants, structured, formulas = ENTRIES[name]
        result = FIGURE.result(schema=schema, variants=variants, structured=structured, formulas=formulas)
        node = call(x).grad_fn
        assert node_of(result) == node.name()
        saved = [fact.removeprefix("_saved_") for fact in dir(node) if fact.startswith("_saved_")]
        assert result["saved"] == saved


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"formulas": "self grad"}, "A formula is an argument, a colon and an expression"),
        ({"formulas": "nobody: grad"}, "has no argument 'nobody'"),
        ({"formulas": "self: grad; self: grad"}, "There are two formulas for 'self'."),
        ({"schema": "mul.Tensor(Tensor x) -> Tensor", "formulas": ""}, "A method needs an argument called self."),
        ({"schema": "mul_(Tensor(a!) self) -> Tensor(a!)", "formulas": ""}, "In-place and out= forms follow"),
        ({"schema": "mul(Tensor sélf) -> Tensor"}, "without accents"),
        ({"schema": "mul(Tensor self, Tensor self) -> Tensor"}, "There are two arguments called 'self'."),
        ({"schema": "mul(Tensor self, Tensor lambda) -> Tensor"}, "'lambda' cannot be the name"),
        ({"schema": "mul(Tensor self, ) -> Tensor"}, "!= mul"),
        ({"formulas": "self: grad * (other"}, "do not match"),
        ({"formulas": "self: grad *"}, "The formula for 'self' is not a whole expression: grad \\*"),
        ({"schema": "mul(Tensor self, Tensor grad) -> Tensor", "formulas": "self: grad"}, "'grad' is a name that"),
        ({"schema": "mul(Tensor self, Tensor node) -> Tensor", "formulas": "self: grad"}, "'node' is a name that"),
        ({"schema": "mul(Tensor self, int result) -> Tensor", "formulas": "self: grad"}, "'result' is a name that"),
        ({"schema": "class(Tensor self) -> Tensor", "formulas": ""}, "'class' cannot be the name of a function"),
    ],
)
def test_what_the_figure_refuses_itself(changes, said):
    with pytest.raises(Refusal, match=said):
        FIGURE.result(**changes)


WHOLE = """grad | -grad * (n) | grad.mm(mat2.t()) * alpha | f(grad, self.shape, n=-1)[0].sum() | 1 - .5e-3 ** ~a
where(a, grad, 0) | (a > 0) | a[1:, None] | a[:2] | [a, b] | (a, b) | f(*a, **b) | a if not b else 2. | a and b | f()
a == b | f("x y") | --a | f(a).b | f (a)""".replace("\n", " | ").split(" | ")
BROKEN = "grad * | * grad | grad self | grad ** | a.b. | 2n | a, | f(a b) | f(a * ) | a == | (a)(*) b | grad * class | a $ b".split(
    " | "
)


@pytest.mark.parametrize("formula", WHOLE + BROKEN)
def test_a_formula_is_whole_where_python_says_so(formula):
    try:
        compile(formula, "", "eval")
        compiled = formula != "a,"  # a formula is one value
    except SyntaxError:
        compiled = False
    assert compiled == (formula in WHOLE)
    assert is_whole(formula) == compiled


def test_names_of_the_generator_are_free_where_it_writes_no_node():
    schema = "mul(Tensor self, Tensor grad) -> Tensor"
    assert "grad" in FIGURE.result(schema=schema, formulas="")["pieces"]["function"]


def test_the_sentence_names_what_is_no_argument():
    say = FIGURE.result(formulas="self: grad * selfie")["say"]
    assert "saves nothing. Saved for selfie: nothing" in say


def test_pieces_of_generated_files():
    pieces = pieces_of(ENTRIES["mul.Tensor"][0])
    assert "view" not in pieces and "inplace" not in pieces and "composite" not in pieces
    text = {piece: "\n".join(body for _, body in found) for piece, found in pieces.items()}
    assert text["schema"].startswith('m.def("mul.Tensor(')
    assert '"mul(Tensor input, Tensor other, *, Tensor out=None)"' in text["function"]
    assert "structured_mul_out_functional op;" in text["cpu"]
    assert "make_intrusive<MulBackward0>" in text["autograd"] and "NDEBUG" not in text["autograd"]
    assert (
        "SavedVariable other_;" in text["node"] and "mul_tensor_backward(grad, self, other_scalar_type)" in text["node"]
    )
    assert "def mul(" in text["pyi"]
    assert "as_view(" in pieces_of(ENTRIES["transpose.int"][0])["inplace"][0][1]
    assert "transpose_int::call" in pieces_of(ENTRIES["transpose.int"][0])["view"][0][1]
    assert "SumBackward1" in pieces_of(ENTRIES["sum.dim_IntList"][0])["node"][0][1]
    assert "node" not in pieces_of(ENTRIES["square"][0])
    assert "mul_Tensor_generated_plumbing" in text["vmap"] and "functionalize" not in pieces
    written = pieces_of(ENTRIES["mul_.Tensor"][0])
    assert "mul_Tensor::call" in written["functionalize"][0][1] and "def mul_(" in written["pyi"][0][1]
