"""add_graph and add_onnx_graph draw what PyTorch's draw."""

import warnings

import pytest
import torch
from tensorboard.compat.proto.graph_pb2 import GraphDef
from torch.utils.tensorboard import _onnx_graph as their_onnx_graph

import readtorch
from readtorch.utils.tensorboard import _onnx_graph as our_onnx_graph
from readtorch.utils.tensorboard._pytorch_graph import graph
from tests.programs import same
from tests.utils_tensorboard.events import same_events, written


def drawn(events):
    return [GraphDef.FromString(event.graph_def) for event in events["."] if event.graph_def]


def two_branches(T):
    class Branches(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.left = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh())
            self.right = T.nn.Linear(3, 4)
            self.scale = T.nn.Parameter(T.ones(4))
            self.register_buffer("shift", T.zeros(4))

        def forward(self, x, unused, y):
            output = self.left(x) * self.scale + self.shift
            return output, self.right(y), x.reshape(x.shape[0], 1, -1)

    return Branches()


def named_output(T):
    class Named(T.nn.Module):
        def forward(self, x):
            output = x + 1
            output = output * 2
            return output.relu(), output

    return Named()


def deeper(T):
    nn = T.nn
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout()),
        nn.Flatten(),
        nn.Sequential(nn.Linear(64, 5), nn.LogSoftmax(1)),
    )


MODELS = {
    "linear": (lambda T: T.nn.Linear(3, 2), lambda T: T.ones(4, 3)),
    "branches": (two_branches, lambda T: (T.ones(2, 3), T.ones(1), T.ones(5, 3))),
    "named output": (named_output, lambda T: T.ones(2)),
    "deeper": (deeper, lambda T: T.ones(2, 3, 6, 6)),
    "words": (lambda T: T.nn.Sequential(T.nn.Embedding(9, 4), T.nn.LayerNorm(4), T.nn.GELU()), lambda T: T.arange(4)),
    "the input": (lambda T: T.nn.Identity(), lambda T: T.ones(2)),
}


@pytest.mark.parametrize("name", MODELS)
def test_graphs(tmp_path, name):
    model, inputs = MODELS[name]

    def program(T, writer):
        T.manual_seed(0)
        net = model(T)
        writer.add_graph(net, inputs(T))
        assert net.training

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (drawing,) = drawn(same_events(program, tmp_path))
    assert len(drawing.node) >= 2


def test_names_of_variables_aside_an_lstm(tmp_path):
    """Its forward has variables of other names here: they are in the names of nodes."""

    def program(T, writer):
        writer.add_graph(T.nn.LSTM(3, 4, num_layers=2), T.ones(5, 2, 3))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs = [drawn(written(program, T, tmp_path))[0] for T in (readtorch, torch)]
    ours, theirs = ([(node.op, node.attr, len(node.input)) for node in graph.node] for graph in graphs)
    assert len(ours) == 44
    assert ours == theirs


def test_containers_need_a_trace_that_is_not_strict(tmp_path, capsys):
    class Lists(torch.nn.Module):
        def forward(self, x):
            return {"a": x, "b": x + 1}

    class Ours(readtorch.nn.Module):
        forward = Lists.forward

    def program(T, writer):
        net, x = (Lists() if T is torch else Ours()), T.ones(2)
        net.__class__.__name__ = "Lists"
        with pytest.raises(RuntimeError, match="Encountering a dict at the output"):
            writer.add_graph(net, x)
        writer.add_graph(net, x, use_strict_trace=False)

    same_events(program, tmp_path)
    assert capsys.readouterr().out.count("Error occurs, No graph saved") == 2


def test_verbose_prints_the_graph(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        graph(readtorch.nn.ReLU(), readtorch.ones(2), verbose=True)
    assert "aten::relu" in capsys.readouterr().out


def test_a_missing_forward(tmp_path):
    def program(T, show):
        with T.utils.tensorboard.SummaryWriter(tmp_path / T.__name__) as writer:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                show.error(lambda: writer.add_graph(T.nn.Module(), T.ones(2)))

    same(program)


def test_onnx_graphs(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    floats = onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1, alpha=0.5), helper.make_node("Relu", ["y"], ["z"])]
    file = str(tmp_path / "model.onnx")
    onnx.save(
        helper.make_model(
            helper.make_graph(
                nodes,
                "net",
                [helper.make_tensor_value_info("x", floats, [2, 3])],
                [helper.make_tensor_value_info("z", floats, ["batch", 4])],
            )
        ),
        file,
    )

    def program(T, writer):
        writer.add_onnx_graph(file)

    (drawing,) = drawn(same_events(program, tmp_path))
    assert [node.op for node in drawing.node] == ["Variable", "Variable", "Gemm", "Relu"]
    assert our_onnx_graph.load_onnx_graph(file) == their_onnx_graph.load_onnx_graph(file)
