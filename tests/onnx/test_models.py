"""Whole models: ResNet-18, an LSTM and a GPT, with the reference's weights, run by onnxruntime.

Each is also compared with the file that PyTorch's own exporter writes: the inputs, the weights' names, the
operators in order.
"""

import io
import warnings

import onnx
import pytest
import torch

import readtorch
from tests.onnx.running import check, exported, graph_of, run
from tests.reference import to_readtorch
from tests.training import models


def tokens(n, length, vocabulary=65):
    return torch.arange(n * length).reshape(n, length) * 7 % vocabulary


# name -> (model, example, the same for another batch)
MODELS = {
    "MLP": (lambda T: models.mlp(T), torch.randn(2, 784), torch.randn(5, 784)),
    "CNN": (lambda T: models.mnist_cnn(T, channels=4), torch.randn(2, 1, 28, 28), torch.randn(1, 1, 28, 28)),
    "ResNet-18": (lambda T: models.resnet18(T, width=16), torch.randn(2, 3, 32, 32), torch.randn(3, 3, 32, 32)),
    "VGG": (lambda T: models.vgg(T), torch.randn(1, 3, 32, 32), torch.randn(2, 3, 32, 32)),
    "MobileNet": (lambda T: models.mobilenet(T, width=8), torch.randn(2, 3, 32, 32), torch.randn(3, 3, 32, 32)),
    "LSTM": (lambda T: models.lstm_language_model(T, layers=2), tokens(2, 5), tokens(4, 5)),
    "GPT": (lambda T: models.gpt(T, layers=2), tokens(2, 8), tokens(3, 8)),
}


def with_reference_weights(make, T):
    """The model of T, with statistics and weights as the reference has them after one step of training."""
    torch.manual_seed(0)
    theirs = make(torch)
    for name, buffer in theirs.named_buffers():  # batch norms that have seen data
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    if T is torch:
        return theirs
    ours = make(T)
    ours.load_state_dict(to_readtorch(dict(theirs.state_dict())))
    return ours


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_computes_what_the_reference_does(name):
    make, example, _ = MODELS[name]
    check(lambda T: with_reference_weights(make, T), example)


@pytest.mark.parametrize("name", MODELS)
def test_another_batch_size_at_run_time(name):
    make, example, other = MODELS[name]
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    graph = check(
        lambda T: with_reference_weights(make, T),
        example,
        also=[(other,)],
        input_names=["x"],
        output_names=["y"],
        dynamic_axes=axes,
    )
    for value in (*graph.input, *graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("name", ["LSTM", "GPT"])
def test_another_length_at_run_time(name):
    make, example, _ = MODELS[name]
    check(
        lambda T: with_reference_weights(make, T),
        example,
        also=[(tokens(1, 3),), (tokens(4, 11),)],
        input_names=["x"],
        dynamic_axes={"x": {0: "batch", 1: "length"}},
    )


@pytest.mark.parametrize("opset", [13, 14, 16, 17, 18, 19])
def test_older_versions_of_onnx(opset):
    """Normalization, GELU and means are said in other words there."""

    def make(T):
        nn = T.nn
        return nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Hardswish(), nn.GLU())

    check(make, torch.randn(3, 4), opset_version=opset)


def test_random_numbers_are_the_runtimes():
    """A VAE draws while it runs: other numbers than PyTorch's, but the mean is the same."""
    make = lambda T: models.vae(T, hidden=8, latent=4)
    x = torch.rand(2, 784)
    message = exported(with_reference_weights(make, readtorch), to_readtorch((x,)))
    assert "RandomNormalLike" in [n.op_type for n in graph_of(message).node]
    _, expected, _ = with_reference_weights(make, torch)(x)
    torch.testing.assert_close(run(message, x)[1], expected, rtol=1e-5, atol=1e-5)


def by_pytorch(model, example, **settings):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), (example,), file, dynamo=False, **settings)
    return onnx.load_from_string(file.getvalue()).graph


def outline(graph):
    """What does not depend on how values without a name are counted."""
    return {
        "inputs": [i.name for i in graph.input],
        "outputs": [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in graph.output],
        "weights": [(i.name.rpartition("_")[0] if "::" in i.name else i.name, list(i.dims)) for i in graph.initializer],
        "nodes": [(n.op_type, _module(n.name)) for n in graph.node],
        "attributes": [
            sorted((a.name, onnx.helper.get_attribute_value(a)) for a in n.attribute)
            for n in graph.node
            if n.op_type in ("Conv", "Gemm", "MaxPool", "LayerNormalization", "LSTM")
        ],
    }


def _module(name):
    """/layer1/layer1.0/conv1/Conv: what is before the last slash; nodes without a module have a bare name."""
    return "" if name.rpartition("/")[2].startswith("Constant") else name.rpartition("/")[0]


@pytest.mark.parametrize("name", ["MLP", "CNN", "ResNet-18", "VGG"])
def test_the_file_is_made_like_pytorchs(name):
    make, example, _ = MODELS[name]
    theirs = by_pytorch(with_reference_weights(make, torch), example, input_names=["x"])
    ours = graph_of(
        exported(with_reference_weights(make, readtorch).eval(), to_readtorch((example,)), input_names=["x"])
    )
    assert outline(ours) == outline(theirs)


def test_the_lstm_is_made_like_pytorchs():
    """With dynamic axes, where PyTorch does not work with sizes that it knows: the same operators and
    rearranged weights.
    """
    make = lambda T: models.lstm_language_model(T)
    settings = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n", 1: "t"}}}
    theirs = by_pytorch(with_reference_weights(make, torch), tokens(2, 5), **settings)
    message = exported(with_reference_weights(make, readtorch), to_readtorch((tokens(2, 5),)), **settings)
    assert outline(graph_of(message)) == outline(theirs)
    ours, theirs = (
        {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer} for graph in (graph_of(message), theirs)
    )
    for (_, mine), (_, reference) in zip(ours.items(), theirs.items()):
        assert (mine == reference).all()


def test_both_exporters_files_compute_the_same():
    make, example, _ = MODELS["ResNet-18"]
    theirs = by_pytorch(with_reference_weights(make, torch), example)
    ours = exported(with_reference_weights(make, readtorch).eval(), to_readtorch((example,)))
    model = onnx.helper.make_model(theirs, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    torch.testing.assert_close(run(ours, example), run(model.SerializeToString(), example), rtol=1e-5, atol=1e-5)
