"""What `export` takes, what it writes, and what it refuses."""

import io
import subprocess
import sys
import warnings

import onnx
import onnxruntime
import pytest
import torch

import readtorch
from readtorch.onnx.symbolic_helper import parse_args
from tests.onnx.running import exported, graph_of, module, run
from tests.reference import to_readtorch, to_torch

X = torch.randn(3, 4)


def export(function, *inputs, **settings):
    return exported(module(readtorch, function), to_readtorch(inputs), **settings)


def error_of(T, function, inputs, **settings):
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        T.onnx.export(module(T, function).eval(), inputs, io.BytesIO(), dynamo=False, **settings)
    return type(caught.value).__name__, str(caught.value)


def same_error(function, *inputs, **settings):
    assert error_of(readtorch, function, to_readtorch(inputs), **settings) == error_of(
        torch, function, inputs, **settings
    )


def test_a_path_and_a_file(tmp_path):
    path, file = tmp_path / "relu.onnx", io.BytesIO()
    for f in (path, str(path), file):
        readtorch.onnx.export(readtorch.nn.ReLU(), readtorch.randn(2), f, dynamo=False)
    assert path.read_bytes() == file.getvalue()


def test_names():
    graph = graph_of(export(lambda T, x, y: (x + y, x), X, X, input_names=["a", "b"], output_names=["sum", "same"]))
    assert [i.name for i in graph.input] == ["a", "b"] and [o.name for o in graph.output] == ["sum", "same"]
    same_error(lambda T, x: x + 1, X, input_names=["a", "b"])
    same_error(lambda T, x: x + 1, X, output_names=["a", "b"])


def test_nodes_are_called_after_modules():
    class Block(readtorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = readtorch.nn.Sequential(readtorch.nn.Linear(4, 4), readtorch.nn.ReLU())

        def forward(self, x):
            return readtorch.relu(x + self.layers(x)) + readtorch.relu(x)

    graph = graph_of(exported(Block(), (readtorch.randn(3, 4),)))
    assert [n.name for n in graph.node] == [
        "/layers/layers.0/Gemm",
        "/layers/layers.1/Relu",
        "/Add",
        "/Relu",
        "/Relu_1",
        "/Add_1",
    ]
    assert graph.node[0].output == ["/layers/layers.0/Gemm_output_0"]


def test_arguments_by_name_and_fixed_ones():
    class Scaled(readtorch.nn.Module):
        def forward(self, x, factor=1.0, shift=None):
            return x * factor if shift is None else x * factor + shift

    x, shift = to_readtorch((X, X[0]))
    for args, kwargs in [
        ((x, 2.0, shift), None),
        ((x, {"factor": 2.0, "shift": shift}), None),
        ((x,), dict(shift=shift, factor=2.0)),
    ]:
        (result,) = run(exported(Scaled(), args, kwargs=kwargs), X, X[0])
        torch.testing.assert_close(result, X * 2 + X[0])


def test_nested_inputs_and_outputs():
    message = export(
        lambda T, pair, more: {"sum": pair[0] + pair[1], "all": [more["z"], (pair[0] * 2,)]}, (X, X), {"z": X}, {}
    )
    assert len(graph_of(message).input) == 3
    for result, expected in zip(run(message, X, X + 1, X + 2), (2 * X + 1, X + 2, 2 * X)):
        torch.testing.assert_close(result, expected)


def test_automatic_names_of_axes():
    with pytest.warns(UserWarning, match="Automatically generated names"):
        graph = graph_of(export(lambda T, x: x.relu(), X, input_names=["x"], dynamic_axes={"x": [0, 1]}))
    assert [d.dim_param for d in graph.input[0].type.tensor_type.shape.dim] == ["x_dynamic_axes_1", "x_dynamic_axes_2"]
    with pytest.warns(UserWarning, match="Provided key z for dynamic axes is not a valid input/output name"):
        export(lambda T, x: x.relu(), X, input_names=["x"], dynamic_axes={"z": {0: "n"}})
    same_error(lambda T, x: x.relu(), X, input_names=["x"], dynamic_axes={"x": ["a"]})


def test_sizes_of_the_run_are_followed():
    """Through views made of numbers and sizes: what is a number stays known."""

    def heads(T, x):
        n, length, width = x.shape
        q, k = x.view(n, length, 2, width // 2).transpose(1, 2).chunk(2, -1)
        return q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + T.ones(n, 1, length, length).tril()

    message = export(heads, torch.randn(2, 3, 8), input_names=["x"], dynamic_axes={"x": {0: "n", 1: "t"}})
    for x in (torch.randn(2, 3, 8), torch.randn(5, 7, 8)):
        torch.testing.assert_close(run(message, x)[0], heads(torch, x), rtol=1e-5, atol=1e-5)


def test_weights_left_out_or_given_by_the_caller():
    layer = readtorch.nn.Linear(4, 2)
    without = graph_of(exported(layer, (readtorch.randn(3, 4),), export_params=False))
    assert [i.name for i in without.input][1:] == ["weight", "bias"] and not without.initializer
    both = exported(layer, (readtorch.randn(3, 4),), keep_initializers_as_inputs=True)
    assert [i.name for i in graph_of(both).input][1:] == ["weight", "bias"] and len(graph_of(both).initializer) == 2
    weight, bias = torch.randn(2, 4), torch.randn(2)
    session = onnxruntime.InferenceSession(both, providers=["CPUExecutionProvider"])
    values = [X, weight, bias]
    (result,) = session.run(None, {i.name: x.numpy() for i, x in zip(graph_of(both).input, values)})
    torch.testing.assert_close(torch.from_numpy(result), X @ weight.t() + bias)


def test_a_shared_weight_is_stored_once():
    class Tied(readtorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = readtorch.nn.Embedding(5, 4)
            self.head = readtorch.nn.Linear(4, 5, bias=False)
            self.head.weight = self.table.weight

        def forward(self, i):
            return self.head(self.table(i)) + readtorch.nn.functional.linear(self.table(i)[0], self.head.weight)

    graph = graph_of(exported(Tied(), (readtorch.tensor([[1, 2]]),), do_constant_folding=False))
    assert [i.name for i in graph.initializer] == ["table.weight"]


def test_constant_folding_and_batch_norm():
    net = readtorch.nn.Sequential(readtorch.nn.Conv2d(1, 2, 3, bias=False), readtorch.nn.BatchNorm2d(2))
    kinds = [
        [
            n.op_type
            for n in graph_of(exported(net, (readtorch.randn(1, 1, 5, 5),), do_constant_folding=folding)).node
            if n.op_type != "Identity"
        ]  # running variance and weight are both 1: stored once
        for folding in (True, False)
    ]
    assert kinds == [["Conv"], ["Conv", "BatchNormalization"]]
    assert net.training, "each module is in its own mode again"


def test_the_mode_of_the_model():
    TrainingMode = readtorch.onnx.TrainingMode
    net = readtorch.nn.Sequential(readtorch.nn.Linear(4, 4), readtorch.nn.Dropout())
    x = readtorch.randn(3, 4)
    kinds = {mode: [n.op_type for n in graph_of(exported(net, (x,), training=mode)).node] for mode in TrainingMode}
    assert "Dropout" not in kinds[TrainingMode.EVAL]
    assert "Dropout" in kinds[TrainingMode.TRAINING] and "Dropout" in kinds[TrainingMode.PRESERVE]
    assert not readtorch.onnx.is_in_onnx_export()


class Scripted(readtorch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = readtorch.nn.Conv2d(1, 2, 3), readtorch.nn.BatchNorm2d(2)

    def forward(self, x):
        x = readtorch.relu(self.norm(self.conv(x)))
        for i in range(2):
            x = x + i
        return x.view(x.size(0), -1)


@pytest.mark.parametrize("prepared", ["script", "trace"])
def test_scripted_and_traced_modules(prepared):
    """They have a graph already; sizes of the run are followed in it, too."""
    net, x = Scripted().eval(), readtorch.randn(2, 1, 5, 5)
    made = readtorch.jit.script(net) if prepared == "script" else readtorch.jit.trace(net, (x,))
    message = exported(made, (x,), input_names=["x"], dynamic_axes={"x": {0: "n"}})
    for batch in (2, 3):
        x = readtorch.randn(batch, 1, 5, 5)
        torch.testing.assert_close(run(message, to_torch(x))[0], to_torch(net(x).detach()), rtol=1e-5, atol=1e-5)


class Scaled(readtorch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * 100, None


def test_an_autograd_function_is_exported_by_its_operators():
    made = export(lambda T, x: Scaled.apply(x, 3.0) + 1, X)
    torch.testing.assert_close(run(made, X)[0], X * 3 + 1)


def test_a_scripted_function():
    made = readtorch.jit.script(affine)
    torch.testing.assert_close(run(exported(made, to_readtorch((X, X))), X, X)[0], X * 2 + X)


def affine(x, y):
    return x * 2 + y


def test_scripted_branches_are_refused():
    with pytest.raises(readtorch.onnx.errors.UnsupportedOperatorError, match="prim::If"):
        exported(readtorch.jit.script(sign), to_readtorch((X,)))


def sign(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def test_verbose(capsys):
    message = export(lambda T, x: T.relu(x + 1), X, verbose=True)
    text = capsys.readouterr().out
    assert "Exported graph: graph(" in text and 'onnx::Add[onnx_name="/Add"]' in text
    assert "test_export.py" in graph_of(message).node[-1].doc_string


def test_the_header():
    model = onnx.load_from_string(export(lambda T, x: x + 1, X, opset_version=17))
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    assert (model.producer_name, model.producer_version) == ("readtorch", readtorch.version.readtorch)
    assert model.graph.name == "main_graph"


# ------------------------------------------------------------------------------------------- what cannot be


def test_unsupported_operators():
    same_error(lambda T, x: T.linalg.inv(x), torch.eye(3))
    same_error(lambda T, x: T.linalg.inv(x) + x, torch.eye(3), opset_version=17)
    kind, text = error_of(readtorch, lambda T, x: x.tril(), (readtorch.randn(3, 3),), opset_version=13)
    assert (kind, text) == error_of(torch, lambda T, x: x.tril(), (torch.randn(3, 3),), opset_version=13)
    assert issubclass(readtorch.onnx.errors.UnsupportedOperatorError, readtorch.onnx.OnnxExporterError)


def test_what_has_to_be_constant():
    with pytest.raises(
        readtorch.onnx.errors.SymbolicValueError, match="chunk along dimension 0, whose size only a run tells"
    ):
        export(lambda T, x: x.chunk(2), X, input_names=["x"], dynamic_axes={"x": {0: "n"}})


def write_to_a_view(T, x):
    y = x * 2
    y[0].mul_(3)
    return y


def read_an_older_view(T, x):
    y = x * 2
    row = y[0]
    y.mul_(3)
    return row


@pytest.mark.parametrize("function", [write_to_a_view, read_an_older_view])
def test_writes_that_a_view_sees_are_refused(function):
    with pytest.raises(RuntimeError, match=r"'aten::mul_' is not supported where a view"):
        export(function, X)


def test_writes_to_whole_tensors_become_values():
    def write(T, x):
        y = x * 2
        z = y.add_(1)
        return y + z

    torch.testing.assert_close(run(export(write, X), X)[0], write(torch, X))


@pytest.mark.parametrize("opset", [12, 21])
def test_versions_that_are_not_known(opset):
    with pytest.raises(ValueError, match=f"Unsupported ONNX opset version: {opset}"):
        export(lambda T, x: x, X, opset_version=opset)


# ---------------------------------------------------------------------------------------- one's own operators


def test_ones_own_symbolic_function():
    @parse_args("v", "i", "i")
    def hypot(g, self, diagonal, *more):
        return g.op("com.example::Triangle", self, diagonal_i=diagonal)

    register, unregister = (readtorch.onnx.register_custom_op_symbolic, readtorch.onnx.unregister_custom_op_symbolic)
    register("aten::tril", hypot, 18)
    try:
        file = io.BytesIO()
        readtorch.onnx.export(
            module(readtorch, lambda T, x: x.tril(-1)),
            to_readtorch((X,)),
            file,
            dynamo=False,
            custom_opsets={"com.example": 3},
        )
        model = onnx.load_from_string(file.getvalue())
        assert [(o.domain, o.version) for o in model.opset_import] == [("", 20), ("com.example", 3)]
        assert (model.graph.node[0].domain, model.graph.node[0].op_type) == ("com.example", "Triangle")
        assert model.graph.node[0].attribute[0].i == -1
    finally:
        unregister("aten::tril", 18)
    assert [n.op_type for n in graph_of(export(lambda T, x: x.tril(-1), X)).node][-1] == "Trilu"


@pytest.mark.parametrize("name", ["nonsense", "my::op?", "onnx::Add"])
def test_names_of_operators(name):
    errors = []
    for T in (torch, readtorch):
        with pytest.raises(Exception) as caught:
            T.onnx.register_custom_op_symbolic(name, None, 9)
        errors.append((type(caught.value).__name__, str(caught.value)))
    assert errors[0] == errors[1]


def test_the_package_loads_without_onnx():
    program = """
import sys
sys.modules["onnx"] = None
import readtorch
assert "readtorch.onnx" not in sys.modules
try:
    readtorch.onnx.export(readtorch.nn.ReLU(), readtorch.randn(2), "never.onnx")
except ModuleNotFoundError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Module onnx is not installed!" in result.stdout, result.stderr
