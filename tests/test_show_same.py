"""`show.same`: cells written for PyTorch, run once more with readtorch."""

import pytest

from readtorch.show import _same


@pytest.fixture(autouse=True)
def fresh_sides():
    _same._sides.clear()
    yield
    _same._sides.clear()


def test_what_is_printed_returned_and_raised():
    cell = "import torch\nx = torch.ones(2, 3)\nprint(x.shape, torch.nn.Linear)\nx + 1"
    assert _same.compare([cell]) == (
        "torch.Size([2, 3]) <class 'torch.nn.modules.linear.Linear'>\ntensor([[2., 2., 2.],\n        [2., 2., 2.]])\n"
    )
    assert _same.compare(["x + torch.ones(4)"]).startswith("RuntimeError: The size of tensor a (3)")


@pytest.mark.parametrize(
    "cell",
    [
        "import torch.nn.functional as F\nF.relu(torch.tensor(-1.0))",
        "import torch.nn\ntorch.nn.ReLU()",
        "from torch import nn, optim\nnn.Tanh(), optim.SGD",
        "from torch.nn.functional import relu\nrelu(torch.tensor(-1.0))",
        "import math, torch as t\nt.tensor(math.pi)",
    ],
)
def test_ways_to_import(cell):
    assert _same.compare([cell])
    package = next(v for k, v in _same._sides[1].namespace.items() if k in ("t", "torch"))
    assert package.__name__ == "readtorch"


def test_random_numbers_and_variables_of_earlier_cells():
    shown = _same.compare(["torch.manual_seed(3)\nx = torch.randn(4)", "x, torch.rand(2)"])
    assert shown.startswith("(tensor([")


def test_a_difference_is_an_error():
    with pytest.raises(AssertionError, match="PyTorch shows(.|\n)*and readtorch"):
        _same.compare(["torch.__file__"])
    with pytest.raises(AssertionError):
        _same.compare(["len(torch.__path__[0])"])


def test_outside_a_notebook_it_says_so():
    with pytest.raises(RuntimeError, match="in a notebook"):
        _same.cells_before(1)


def test_in_a_notebook():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.run_cell("import torch\nfrom readtorch import show", store_history=True)
        shell.run_cell("torch.arange(3) * 2", store_history=True)
        done = shell.run_cell("show.same('values')", store_history=True)
        assert done.success and repr(done.result) == "✓ the same in readtorch: values"
        assert "✓ the same in readtorch: values" in done.result._repr_html_()
        assert "The cell above has run once more" in done.result._repr_html_()
        done = shell.run_cell("assert 1 < 2\nshow.same('order', cells=0)", store_history=True)
        assert repr(done.result) == "✓ the same in readtorch: order" and "asserted" in done.result._repr_html_()
        shell.run_cell("torch.__file__", store_history=True)
        assert not shell.run_cell("show.same()", store_history=True).success
    finally:
        InteractiveShell.clear_instance()
