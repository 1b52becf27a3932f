"""Answers about tensors, operators and autograd."""

import inspect
import io
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
import torchgen
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode


def address(x):
    return x.untyped_storage().data_ptr()


class Seen(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def leaf(*numbers):
    return torch.tensor(numbers or (1.0, 2.0), requires_grad=True)


# -- tensors and memory -------------------------------------------------------------------------------


def test_why_does_writing_into_one_tensor_change_another():
    x, array = torch.zeros(2, 3), np.zeros(2)
    assert {address(x[0]), address(x.t()), address(x.view(6)), address(x.detach())} == {address(x)}
    torch.from_numpy(array)[0] = 7
    assert array[0] == 7
    assert address(x.clone()) != address(x)


def test_what_is_a_strided_tensor():
    x = torch.arange(12).view(3, 4)
    for view in (x, x.t(), x[1:, ::2], x[:, 1:2].expand(3, 5)):
        assert view.layout == torch.strided and address(view) == address(x)
        i, j = 1, 1
        place = view.storage_offset() + i * view.stride(0) + j * view.stride(1)
        assert view[i, j] == x.flatten()[place]


def test_what_is_the_difference_between_view_and_reshape():
    x = torch.arange(6).view(2, 3)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(6)
    assert address(x.reshape(3, 2)) == address(x)
    assert address(x.t().reshape(6)) != address(x)


def test_what_does_contiguous_do():
    x = torch.ones(2, 3)
    assert x.contiguous() is x
    assert not x.t().is_contiguous() and x.t().contiguous().stride() == (2, 1)


def test_when_does_indexing_copy():
    x = torch.arange(6.0).view(2, 3)
    assert all(address(view) == address(x) for view in (x[1], x[:, 1:], x[None], x[..., 0]))
    assert all(address(copy) != address(x) for copy in (x[[0, 1]], x[torch.tensor(1), [1]], x[x > 2]))
    x[x > 2] = -1
    assert x.min() == -1


def test_what_is_the_difference_between_expand_and_repeat():
    x = torch.ones(3, 1)
    assert x.expand(3, 4).stride() == (1, 0) and address(x.expand(3, 4)) == address(x)
    assert x.repeat(1, 4).untyped_storage().nbytes() == 4 * x.untyped_storage().nbytes()


def test_what_is_the_difference_between_torch_tensor_as_tensor_and_from_numpy():
    array = np.zeros(2, np.float32)
    copy, shared, also = torch.tensor(array), torch.as_tensor(array), torch.from_numpy(array)
    converted = torch.as_tensor(array, dtype=torch.float64)
    array[0] = 1
    assert [x[0].item() for x in (copy, shared, also, converted)] == [0, 1, 1, 0]


def test_why_is_my_tensor_from_numpy_float64():
    assert torch.from_numpy(np.array([1.0])).dtype == torch.float64
    assert torch.tensor([1.0]).dtype == torch.get_default_dtype() == torch.float32


def test_why_does_numpy_ask_for_detach():
    x = leaf()
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\) instead"):
        x.numpy()
    assert x.detach().numpy().__array_interface__["data"][0] == x.data_ptr()


def test_what_is_the_difference_between_detach_clone_and_data():
    x = leaf()
    assert x.clone().requires_grad and not x.detach().requires_grad
    assert address(x) == address(x.detach()) == address(x.data) != address(x.clone())
    x.data.add_(1)
    assert x._version == 0
    x.detach().add_(1)
    assert x._version == 1


def test_what_does_the_underscore_in_add_mean():
    x = torch.ones(2)
    view = x[:1]
    assert x.add_(1) is x and x.add(1) is not x
    assert view._version == x._version == 1


def test_is_x_1_the_same_as_x_x_1():
    x = y = torch.ones(1)
    x += 1
    assert y.item() == 2
    x = x + 1
    assert y.item() == 2 and x.item() == 3
    w = leaf()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w += 1


def test_why_does_a_small_slice_keep_a_large_tensor_alive():
    x = torch.ones(1000)
    assert x[:10].untyped_storage().nbytes() == 4000
    assert x[:10].clone().untyped_storage().nbytes() == 40


def test_does_del_x_free_the_memory():
    w, x = leaf(), leaf().detach()
    y, alive = w * x, weakref.ref(x)
    del x
    assert alive() is not None, "the node has saved it"
    del y
    assert alive() is None


def size_of_file(x):
    file = io.BytesIO()
    torch.save(x, file)
    return file.tell()


def test_why_is_the_file_of_a_small_slice_so_large():
    x = torch.ones(100_000)
    assert size_of_file(x[:10]) > 400_000
    assert size_of_file(x[:10].clone()) < 4_000


def test_what_does_adding_a_python_number_do_to_the_dtype():
    assert (torch.ones(1, dtype=torch.int64) + 1.5).dtype == torch.float32
    assert (torch.ones(1, dtype=torch.float16) + 1.5).dtype == torch.float16
    assert (torch.ones(1, dtype=torch.float16) + torch.tensor(1.5, dtype=torch.float64)).dtype == torch.float16


def test_what_is_in_torch_empty():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_why_does_if_x_y_raise_an_error():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(x == x)
    assert torch.equal(x, x) and torch.allclose(x, x + 1e-7)


def test_why_do_two_ways_to_compute_the_same_sum_differ_in_the_last_digits():
    big, one = torch.tensor(2.0**24), torch.tensor(1.0)
    assert (big + one) + one != big + (one + one)


def test_why_did_squeeze_break_my_code_for_a_batch_of_one():
    x = torch.ones(1, 1, 5)
    assert x.squeeze().shape == (5,) and x.squeeze(1).shape == (1, 5)
    assert torch.ones(1, 2, 5).squeeze(1).shape == (1, 2, 5)


def test_what_is_the_difference_between_cat_and_stack():
    x, y = torch.ones(2, 3), torch.zeros(2, 3)
    assert torch.cat([x, y]).shape == (4, 3) and torch.stack([x, y]).shape == (2, 2, 3)
    assert torch.equal(torch.stack([x, y]), torch.cat([x[None], y[None]]))
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        torch.stack([x, y[:1]])


def test_why_is_my_image_scrambled_after_reshape():
    image = torch.arange(24).view(2, 4, 3)  # height, width, channels
    assert torch.equal(image.permute(2, 0, 1)[0], image[:, :, 0])
    assert not torch.equal(image.reshape(3, 2, 4)[0], image[:, :, 0])


def test_what_is_channels_last():
    x = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert x.shape == (2, 3, 4, 5) and x.stride() == (60, 1, 15, 3)


def test_why_does_x_conj_take_no_time():
    x = torch.tensor([1 + 2j])
    assert address(x.conj()) == address(x) and x.conj().is_conj()
    copy = x.conj().resolve_conj()
    assert address(copy) != address(x) and not copy.is_conj() and copy.item() == 1 - 2j


def test_what_is_a_meta_tensor():
    x = torch.empty(10**6, 10**6, device="meta")
    assert (x @ x).shape == x.shape
    with torch.device("meta"):
        assert nn.Linear(10**6, 10**6).weight.is_meta


def test_what_does_item_do_and_why_is_it_slow_on_a_gpu():
    assert type(torch.tensor([1.5]).item()) is float
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2).item()


# -- operators ----------------------------------------------------------------------------------------


def test_what_do_the_letters_in_tensor_a_mean():
    letters = {argument.name: argument.alias_info for argument in torch.ops.aten.add_.Tensor._schema.arguments}
    assert letters["self"].is_write and letters["other"] is None
    [back] = torch.ops.aten.transpose.int._schema.returns
    assert back.alias_info.before_set == {"a"} and not back.alias_info.is_write


def test_where_is_the_source_of_variabletype_0_cpp():
    packaged = Path(torchgen.__file__).parent / "packaged"
    assert (packaged / "autograd/templates/VariableType.cpp").exists()
    assert (packaged / "autograd/gen_variable_type.py").exists()
    assert "VariableType_0.cpp" in torch._C._dispatch_dump_table("aten::mul.Tensor")


def test_where_is_torch_add_written():
    with pytest.raises(TypeError):
        inspect.getsource(torch.add)


def test_is_x_add_y_the_same_as_x_y_and_torch_add_x_y():
    x = torch.ones(2)
    with Seen() as seen:
        x.add(x), x + x, torch.add(x, x)
    assert seen.names == ["aten.add.Tensor"] * 3


def test_what_does_the_size_of_tensor_a_3_must_match_the_size_of_tensor_b_4_mean():
    assert (torch.ones(5, 1, 3) + torch.ones(2, 1)).shape == (5, 2, 3)
    with pytest.raises(RuntimeError, match="must match the size of tensor b .4. at non-singleton dimension 2"):
        torch.ones(7, 2, 3) + torch.ones(6, 2, 4)


def test_what_does_could_not_run_aten_with_arguments_from_the_backend_mean():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::cumsum' with arguments from the 'SparseCPU'"):
        torch.eye(2).to_sparse().cumsum(0)


def test_how_can_i_see_which_operators_my_program_runs():
    with Seen() as seen, torch.no_grad():
        nn.Linear(2, 3)(torch.ones(1, 2))
    assert "aten.addmm.default" in seen.names
    with torch.profiler.profile() as profile:
        torch.ones(2).exp()
    assert {"aten::exp", "aten::ones"} <= {event.key for event in profile.key_averages()}


def test_what_does_out_do():
    x = torch.empty(0)
    assert torch.add(torch.ones(2), 1, out=x) is x and x.tolist() == [2, 2]
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(torch.ones(3), 1, out=x)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(leaf(), 1, out=torch.empty(2))


def test_how_many_threads_does_an_operator_on_the_cpu_use():
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    assert torch.get_num_threads() == before + 1
    torch.set_num_threads(before)


# -- autograd -----------------------------------------------------------------------------------------


def test_what_is_grad_fn():
    x = leaf()
    y = (x * 2).exp()
    assert x.grad_fn is None and y.grad_fn.name() == "ExpBackward0"
    assert y.grad_fn.next_functions[0][0].name() == "MulBackward0"


def test_what_is_a_leaf():
    assert leaf().is_leaf and torch.ones(2).exp().is_leaf
    x = torch.ones(2, requires_grad=True).double()
    assert not x.is_leaf
    x.sum().backward()
    with pytest.warns(UserWarning, match="not a leaf"):
        assert x.grad is None


def test_why_is_grad_none():
    x, unused = leaf(), leaf()
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [2, 2] and unused.grad is None


def test_why_do_gradients_add_up():
    x = leaf()
    for _ in range(2):
        (x + x).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_what_does_retain_graph_keep():
    y = leaf().exp()
    y.sum().backward(retain_graph=True)
    assert torch.equal(y.grad_fn._saved_result, y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result


def test_what_does_trying_to_backward_through_the_graph_a_second_time_mean():
    w, state = leaf(1.0), torch.ones(1)
    (w * state).tanh().sum().backward()
    state = (w * state).tanh()
    state.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        (w * state).tanh().sum().backward()
    (w * state.detach()).tanh().sum().backward()


def test_what_does_create_graph_true_do():
    x = leaf(3.0)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    assert first.grad_fn is not None
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27, 18)


def test_what_does_modified_by_an_inplace_operation_mean():
    x = leaf()
    y = x.exp()
    y += 1
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        y.sum().backward()
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match=r"forward call[\s\S]*\.exp\(\)"):
        y = x.exp()
        y += 1
        with pytest.raises(RuntimeError):
            y.sum().backward()


def test_what_does_a_leaf_variable_that_requires_grad_is_being_used_in_an_in_place_operation_mean():
    w = leaf()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        w.add_(1)
    with torch.no_grad():
        w.add_(1)
    assert w.requires_grad and w.is_leaf


def test_what_does_element_0_of_tensors_does_not_require_grad_and_does_not_have_a_grad_fn_mean():
    x = leaf()
    for lost in (torch.ones(2), x.detach(), torch.tensor(x.sum().item()), torch.from_numpy(x.detach().numpy())):
        with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
            lost.sum().backward()


def test_what_does_grad_can_be_implicitly_created_only_for_scalar_outputs_mean():
    x = leaf()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(torch.ones_like(x))
    (x[:1] * 2).backward()


def test_what_is_the_difference_between_no_grad_and_inference_mode():
    w = leaf()
    with torch.no_grad():
        plain = torch.ones(2).add_(1)
    with torch.inference_mode():
        inference = torch.ones(2).add_(1)
    assert plain._version == 1
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        inference._version
    (w * plain).sum().backward()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        w * inference


def test_does_eval_switch_off_gradients():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).eval()
    assert not any(module.training for module in net.modules())
    assert net(torch.ones(1, 2)).requires_grad


def test_what_is_the_difference_between_detach_and_no_grad():
    x = leaf()
    assert (x.detach() * x).requires_grad
    with torch.no_grad():
        assert not (x * x).requires_grad


def test_why_does_memory_grow_when_i_add_up_the_losses():
    def graph_lives(read):
        activation = leaf().exp()
        loss, alive = activation.sum(), weakref.ref(activation)
        total = 0 + read(loss)
        saved = loss.grad_fn.next_functions[0][0]
        del activation, loss
        assert total is not None
        return alive() is not None or getattr(total, "grad_fn", None) is not None, saved

    assert graph_lives(lambda loss: loss)[0]
    assert not graph_lives(torch.Tensor.item)[0] and not graph_lives(torch.Tensor.detach)[0]


def test_what_does_autograd_save_during_the_forward_pass():
    x, y = leaf(), leaf()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t), lambda t: t):
        x + y
        assert packed == []
        x * y
        assert len(packed) == 2
        x.exp()
    assert len(packed) == 3
    y = x.exp()
    assert torch.equal(y.grad_fn._saved_result, y)


def test_why_is_my_gradient_nan_although_where_leaves_that_branch_out():
    x = leaf(0.0)
    torch.where(x > 0, x.sqrt(), 0.0).backward()
    assert x.grad.isnan()
    x = leaf(0.0)
    torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0).backward()
    assert x.grad.item() == 0


def test_what_is_the_gradient_of_relu_or_abs_at_0():
    def gradient(f, *at):
        (result,) = torch.autograd.grad(f(x := leaf(*at)).sum(), x)
        return result.tolist()

    assert gradient(torch.relu, 0.0) == gradient(torch.abs, 0.0) == [0]
    assert gradient(torch.amax, 3.0, 3.0) == gradient(torch.max, 3.0, 3.0) == [0.5, 0.5]
    assert gradient(lambda x: x.max(0).values, 3.0, 3.0) == [1, 0]


def test_does_the_order_of_backward_follow_my_code():
    x, order = leaf(), []
    a, b, c = x.sin(), x.cos(), x.exp()
    for name, y in zip("abc", (a, b, c)):
        y.register_hook(lambda grad, name=name: order.append(name))
    (c * b * a).sum().backward()
    assert order == ["c", "b", "a"]


def test_which_thread_runs_backward():
    class Where(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            threads.append(threading.get_ident())
            return grad

    threads = []
    Where.apply(leaf()).sum().backward()
    assert threads == [threading.get_ident()]


def test_how_much_more_than_forward_does_backward_compute():
    x, w = torch.ones(4, 5, requires_grad=True), torch.ones(5, 6, requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        y = x @ w
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    assert backward.get_total_flops() == 2 * forward.get_total_flops()


def test_how_do_i_freeze_some_layers():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
    net[0].requires_grad_(False)
    before, mean = net[0].weight.clone(), net[0].running_mean.clone()
    optimizer = torch.optim.SGD(net.parameters(), lr=1, weight_decay=1)
    net(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    assert net[0].weight.grad is None and torch.equal(net[0].weight, before)
    assert not torch.equal(net[0].running_mean, mean)
    mean = net[0].running_mean.clone()
    net.eval()(torch.randn(4, 2))
    assert torch.equal(net[0].running_mean, mean)


def test_why_can_t_an_integer_tensor_require_a_gradient():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.ones(2, dtype=torch.int64, requires_grad=True)


def test_how_do_i_write_a_derivative_of_my_own():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    assert torch.autograd.gradcheck(Square.apply, leaf().detach().double().requires_grad_())


def test_what_does_activation_checkpointing_save_and_what_does_it_cost():
    calls, packed = [], []

    def piece(x):
        calls.append(x)
        return x.exp().sin().cos()

    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = checkpoint(piece, x := leaf(), use_reentrant=False)
    assert len(calls) == 1 and packed == [x]
    y.sum().backward()
    assert len(calls) == 2


def test_how_do_i_get_a_jacobian_or_a_hessian():
    x = torch.tensor([1.0, 2.0])
    f = lambda x: (x**3).sum()  # noqa: E731
    assert torch.func.jacrev(f)(x).tolist() == [3, 12]
    assert torch.func.hessian(f)(x).tolist() == [[6, 0], [0, 12]]
    assert torch.autograd.functional.jacobian(f, x).tolist() == [3, 12]


def test_what_is_forward_mode_differentiation():
    value, slope = torch.func.jvp(lambda x: x**2, (torch.tensor(3.0),), (torch.tensor(1.0),))
    assert (value.item(), slope.item()) == (9, 6) and slope.grad_fn is None


def test_what_does_zero_grad_set_to_none_true_change():
    def moved(set_to_none):
        w = nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        w.sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none)
        assert (w.grad is None) == set_to_none
        before = w.item()
        optimizer.step()
        return w.item() != before

    assert not moved(True) and moved(False)
    assert inspect.signature(nn.Module.zero_grad).parameters["set_to_none"].default is True
