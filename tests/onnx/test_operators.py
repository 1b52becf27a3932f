"""Every operator that can be exported: onnxruntime computes from our file what the reference computes."""

import pytest

from tests.onnx.operators import LAYERS, OPERATORS
from tests.onnx.running import check, module


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name):
    function, *inputs = OPERATORS[name]
    check(lambda T: module(T, function), *inputs)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, *inputs = LAYERS[name]
    check(lambda T: make(T.nn), *inputs)
