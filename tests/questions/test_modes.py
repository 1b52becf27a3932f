"""Answers about modes, subclasses, fake tensors and custom operators."""

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Functions(TorchFunctionMode):
    """Notes the functions that are called, and calls others in the place of some."""

    def __init__(self, instead=()):
        self.names, self.instead = [], dict(instead)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(resolve_name(func))
        return self.instead.get(func, func)(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    """The same for operators."""

    def __init__(self, instead=()):
        super().__init__()
        self.names, self.instead = [], dict(instead)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return self.instead.get(func, func)(*args, **(kwargs or {}))


def test_what_is_the_difference_between_torch_function_and_torch_dispatch():
    net, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    with Functions() as above, Operators() as below:
        net(x).sum().backward()
    assert above.names == ["torch.nn.functional.linear", "torch.Tensor.sum", "torch.Tensor.backward"]
    assert below.names[:3] == ["aten.t.default", "aten.addmm.default", "aten.sum.default"]
    assert "aten.mm.default" in below.names


def test_why_does_my_torchdispatchmode_not_see_linear():
    net, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    with Operators() as usual:
        net(x)
    with torch.inference_mode(), Operators() as inference:
        net(x)
    assert usual.names == ["aten.t.default", "aten.addmm.default"]
    assert inference.names == ["aten.linear.default"]


def test_why_is_the_result_of_an_operator_on_my_subclass_a_subclass():
    class Kept(torch.Tensor):
        pass

    class Dropped(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert type(torch.ones(2).as_subclass(Kept) + 1) is Kept
    assert type(torch.ones(2).as_subclass(Dropped) + 1) is torch.Tensor


def test_can_i_replace_an_operator_by_another_one_in_a_mode():
    gelu, gradients = torch.nn.functional.gelu, []
    for mode in (Functions({torch.relu: gelu}), Operators({aten.relu.default: aten.gelu.default})):
        x = torch.tensor([-1.0, 2.0], requires_grad=True)
        with mode:
            y = torch.relu(x)
        assert torch.equal(y, gelu(x))
        gradients.append(torch.autograd.grad(y.sum(), x)[0])
    right = torch.autograd.grad(gelu(x).sum(), x)[0]
    assert torch.equal(gradients[0], right)
    assert gradients[1].tolist() == [0.0, 1.0]


def test_how_do_i_write_a_tensor_that_stores_its_elements_in_its_own_way():
    class Constant(torch.Tensor):
        """One number, as often as the shape says."""

        @staticmethod
        def __new__(cls, number, shape):
            return torch.Tensor._make_wrapper_subclass(cls, shape)

        def __init__(self, number, shape):
            self.number = number

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            full = [torch.full(a.shape, a.number) if isinstance(a, cls) else a for a in args]
            return func(*full, **(kwargs or {}))

    fives = Constant(5.0, (2, 3))
    assert (fives + torch.ones(3)).tolist() == [[6.0] * 3] * 2
    assert fives.shape == (2, 3)


def test_how_do_i_find_the_shapes_in_a_model_that_does_not_fit_in_memory():
    with FakeTensorMode():
        model = torch.nn.Sequential(torch.nn.Linear(10**6, 10**6), torch.nn.ReLU(), torch.nn.Linear(10**6, 7))
        out = model(torch.empty(10**5, 10**6))
    assert out.shape == (10**5, 7) and out.device.type == "cpu"


def test_what_is_a_datadependentoutputexception():
    with FakeTensorMode():
        x = torch.ones(3)
        for ask in (lambda: x.sum().item(), lambda: bool(x.sum() > 0), x.tolist):
            with pytest.raises(DataDependentOutputException):
                ask()
        with pytest.raises(DynamicOutputShapeException):
            x.nonzero()


def test_how_do_i_add_an_operator_of_my_own():
    @torch.library.custom_op("questions::unwrap", mutates_args=())
    def unwrap(angles: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.unwrap(angles.numpy()))

    unwrap.register_fake(torch.empty_like)
    unwrap.register_autograd(lambda ctx, grad: grad)
    angles = torch.tensor([0.0, 3.0, -3.0], requires_grad=True)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    assert set(torch.library.opcheck(unwrap, (angles,), test_utils=tests).values()) == {"SUCCESS"}
    unwrap(angles).sum().backward()
    assert angles.grad.tolist() == [1.0, 1.0, 1.0]
