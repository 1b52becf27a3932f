"""Exporting a model of ours, running the file, and comparing with what the reference computes."""

import io

import onnx
import onnxruntime
import torch

import readtorch
from tests.reference import to_readtorch


def exported(model, args, dynamo=False, **settings):
    """The bytes of the file, after ONNX's own checker has been through it."""
    file = io.BytesIO()
    readtorch.onnx.export(model, args, file, dynamo=dynamo, **settings)
    onnx.checker.check_model(file.getvalue(), full_check=True)
    return file.getvalue()


def run(message, *inputs):
    """What onnxruntime computes, as tensors of the reference."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(message, options, providers=["CPUExecutionProvider"])
    given = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs)}
    return [torch.from_numpy(y) for y in session.run(None, given)]


def graph_of(message):
    return onnx.load_from_string(message).graph


def module(T, function):
    """A module of the library T that calls `function(T, *inputs)`."""

    class Program(T.nn.Module):
        def forward(self, *inputs):
            return function(T, *inputs)

    return Program()


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [tensor for part in result for tensor in flat(part)]


def check(make, *inputs, tolerance=1e-5, also=(), **settings):
    """`make(T)` makes a module, with the same weights in both libraries: the file computes what the reference
    does.

    also: other inputs for the same file.
    """
    models = []
    for T in (torch, readtorch):
        T.manual_seed(0)
        models.append(make(T).eval())
    theirs, ours = models
    message = exported(ours, to_readtorch(inputs), **settings)
    for each in (inputs, *also):
        with torch.no_grad():
            expected = flat(theirs(*each))
        results = run(message, *each)
        assert len(results) == len(expected)
        for mine, reference in zip(results, expected):
            assert mine.dtype == reference.dtype, (mine.dtype, reference.dtype)
            torch.testing.assert_close(mine, reference, rtol=tolerance, atol=tolerance, equal_nan=True)
    return graph_of(message)
