"""The exporter that starts from `torch.export`: what its files compute, and what is called how in them."""

import io
import logging
import re
import warnings

import onnx
import pytest
import torch

import readtorch
from readtorch.onnx.exporter import _errors
from tests.onnx.operators import LAYERS, OPERATORS
from tests.onnx.running import check, module
from tests.onnx.test_models import MODELS, with_reference_weights
from tests.reference import to_readtorch

SIZES_THAT_DEPEND_ON_VALUES = {"masked_select", "nonzero", "index by a mask"}


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in SIZES_THAT_DEPEND_ON_VALUES])
def test_operator(name):
    function, *inputs = OPERATORS[name]
    check(lambda T: module(T, function), *inputs, dynamo=True)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, *inputs = LAYERS[name]
    check(lambda T: make(T.nn), *inputs, dynamo=True)


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_computes_what_the_reference_does(name):
    make, example, _ = MODELS[name]
    check(lambda T: with_reference_weights(make, T), example, dynamo=True)


def by_pytorch(model, args, **settings):
    pytest.importorskip("onnxscript")
    logging.disable(logging.WARNING)  # torchvision is missing, it says
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.onnx.export(model, args, verbose=False, **settings).model_proto
    finally:
        logging.disable(logging.NOTSET)


def outline(model):
    """Names, operators and attributes, as far as they do not depend on how values without a name are counted."""
    graph = model.graph
    return {
        "inputs": [i.name for i in graph.input],
        "outputs": [(o.name, [d.dim_value for d in o.type.tensor_type.shape.dim]) for o in graph.output],
        "weights": {i.name: list(i.dims) for i in graph.initializer if not i.name.startswith("val_")},
        "nodes": [(n.op_type, n.name, n.output[0]) for n in graph.node if n.op_type != "Constant"],
        "opset": [(o.domain, o.version) for o in model.opset_import],
        "ir_version": model.ir_version,
    }


@pytest.mark.parametrize("name", ["MLP", "VGG", "CNN"])
def test_the_file_is_made_like_pytorchs(name):
    make, example, _ = MODELS[name]
    theirs = by_pytorch(with_reference_weights(make, torch).eval(), (example,))
    ours = readtorch.onnx.export(with_reference_weights(make, readtorch).eval(), to_readtorch((example,))).model_proto
    assert outline(ours) == outline(theirs)


def test_names():
    function = lambda T, x, y: (x + y, y.relu(), x)
    inputs = torch.randn(2, 3), torch.randn(2, 3)
    for settings in ({}, {"input_names": ["a", "b"], "output_names": ["p", "q"]}):
        theirs = by_pytorch(module(torch, function).eval(), inputs, **settings)
        ours = readtorch.onnx.export(module(readtorch, function).eval(), to_readtorch(inputs), **settings).model_proto
        for part in ("input", "output"):
            assert [v.name for v in getattr(ours.graph, part)] == [v.name for v in getattr(theirs.graph, part)]


def test_a_program_and_its_module_give_the_same_file():
    model = readtorch.nn.Linear(3, 2).eval()
    x = readtorch.randn(4, 3)
    program = readtorch.export.export(model, (x,))
    once, again = readtorch.onnx.export(model, (x,)), readtorch.onnx.export(program)
    assert once.model_proto == again.model_proto
    readtorch.testing.assert_close(again(x)[0], model(x))
    file = io.BytesIO()
    again.save(file)
    assert onnx.load_from_string(file.getvalue()) == again.model_proto


def test_numbers_are_part_of_the_graph():
    function = lambda T, x, n: x * n
    program = readtorch.onnx.export(module(readtorch, function).eval(), (readtorch.ones(2), 3))
    assert [i.name for i in program.model_proto.graph.input] == ["inputs_0"]
    assert program(readtorch.ones(2))[0].tolist() == [3.0, 3.0]


def test_a_buffer_that_is_written_to_is_no_output():
    class Counter(readtorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", readtorch.zeros(1))

        def forward(self, x):
            self.n.add_(1)
            return x + self.n

    program = readtorch.onnx.export(Counter().eval(), (readtorch.ones(2),))
    assert [o.name for o in program.model_proto.graph.output] == ["add_1"]
    assert [program(readtorch.ones(2))[0].tolist() for _ in range(2)] == [[2.0, 2.0]] * 2


@pytest.mark.parametrize(
    "function, kind, step",
    [
        (lambda T, x: x if x.sum() > 0 else -x, "TorchExportError", 1),
        (lambda T, x: T.nextafter(x, x), "ConversionError", 3),
    ],
)
def test_errors(function, kind, step):
    x = torch.ones(3)
    with pytest.raises(getattr(_errors, kind)) as ours:
        readtorch.onnx.export(module(readtorch, function).eval(), to_readtorch((x,)))
    with pytest.raises(readtorch.onnx.OnnxExporterError):
        raise ours.value
    with pytest.raises(torch.onnx.OnnxExporterError) as theirs:
        by_pytorch(module(torch, function).eval(), (x,))
    assert type(theirs.value).__name__ == kind
    first = f"This is step {step}/3 of exporting the model to ONNX."
    plain = [re.sub("\x1b\\[[0-9]*m", "", str(error.value)) for error in (ours, theirs)]
    sentences = [text.partition(first)[:2] for text in plain]
    assert sentences[0] == sentences[1] and sentences[0][1] == first


def test_a_model_in_training_mode():
    with pytest.warns(UserWarning, match="Exporting a model while it is in training mode"):
        readtorch.onnx.export(readtorch.nn.Linear(2, 2), (readtorch.ones(1, 2),))
