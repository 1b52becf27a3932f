"""Calls that PyTorch's own tests make: readtorch gives the same value, or the same error in the same words."""

import gc
import warnings

import pytest
import torch

import readtorch as rt

CALLS = [
    # what is written and what is read share memory
    "i.index_fill_(0, i, 0)",
    "i.index_put_((i,), i.clone())",
    "x.index_put_((i,), x[:3])",
    "x.index_put_((i,), x[0])",
    "m[1:].masked_fill_(m[:-1], False)",
    "m.masked_fill_(m, False)",
    "x.index_put((i,), x[:3])",
    "i.index_fill(0, i, 0)",
    # tensors of storages
    "T.tensor(s)",
    "T.tensor(s, dtype=T.int32)",
    "T.tensor(s.untyped())",
    "T.tensor(s.untyped(), dtype=T.float64)",
    "T.tensor(s.untyped(), dtype=T.float32).data_ptr() == x.data_ptr()",
    "T.tensor(i.storage())",
    "x.new_tensor(s.untyped())",
    "T.empty(0).set_(s)",
    "T.empty(0, dtype=T.int32).set_(s)",
    "T.empty(0, dtype=T.int32).set_(s, 0, (2,))",
    "T.empty(0, dtype=T.int64).set_(s.untyped())",
    # what does not fit
    "T.diff(T.ones(2, 3), prepend=T.ones(3, 1))",
    "T.diff(T.ones(2, 3), prepend=T.ones(3))",
    "T.ones(2, 3).diff(dim=0, append=T.ones(2, 3))",
    "T.device(-1)",
    "x[0.0:2.0]",
    "x.__setitem__(slice(0.0, 2.0), 1)",
    "x[T.tensor(1.0):]",
    "x[T.tensor(1):]",
    "T.empty(2, 2).resize_([0, 4, 2**61])",
    "T.histc(T.ones(3, dtype=T.int32), bins=4, min=5, max=1)",
    "T.histc(T.ones(3, dtype=T.int32))",
    "T._utils._element_size(3)",
    # NumPy's names of arguments
    "T.add(x1=x, x2=x)",
    "T.exp(x1=T.zeros(1))",
    "T.exp(a=T.zeros(1))",
    "T.sum(x=x, axis=0)",
    "T.max(x1=x, x2=x)",
    # what is known of a tensor's memory
    "T._C._storage_address(x) == T._C._storage_address(x[1:])",
    "T._C._storage_address(x) == T._C._storage_address(x.clone())",
    "T._C._data_address(x[1:]) == x.data_ptr()",
    "T._C._data_address(T.empty(0))",
    "T._C._storage_address(x.to_sparse())",
    "T._C._is_alias_of(x, x[2:])",
    "T._C._is_alias_of(x, x.clone())",
    "T._debug_has_internal_overlap(x)",
    "T._debug_has_internal_overlap(T.ones(1).expand(3))",
    "T._debug_has_internal_overlap(x[::2])",
    "T._C._set_deterministic_fill_uninitialized_memory(3)",
    "T._C._get_deterministic_fill_uninitialized_memory()",
    "T._C.has_lapack",
    "T._C.is_grad_enabled()",
    "T._VF.add(x, x)",
    "[T._utils._element_size(d) for d in (T.bool, T.complex64, T.uint64, T.bfloat16)]",
    "T.GradScaler is T.amp.GradScaler",
]


def outcome(library, call):
    names = {"T": library, "x": library.arange(4.0), "i": library.tensor([2, 1, 0])}
    names["m"] = library.tensor([True, False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names["s"] = names["x"].storage()
        try:
            result = eval(call, names)
        except Exception as error:
            return type(error).__name__, str(error)
    return result.tolist() if isinstance(result, library.Tensor) else result


@pytest.mark.parametrize("call", CALLS)
def test_the_same_value_or_error(call):
    assert outcome(rt, call) == outcome(torch, call)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "sum", "prod"])
@pytest.mark.parametrize("of_input", ["int32", "float32"])
@pytest.mark.parametrize("of_out", ["int64", "int16", "float64", "float32"])
@pytest.mark.parametrize("asked", [None, "int32", "float32", "the same"])
def test_the_type_of_out(name, of_input, of_out, asked):
    """It is computed in the type of `out`, which is the only one that `dtype` may ask for."""

    def reduced(library):
        asked_for = getattr(library, of_out if asked == "the same" else asked) if asked else None
        x = (library.arange(1.0, 5.0) * 1.7).to(getattr(library, of_input))
        out = library.empty(4 if "cum" in name else (), dtype=getattr(library, of_out))
        try:
            return getattr(library, name)(x, 0, out=out, dtype=asked_for).tolist()
        except RuntimeError as error:
            return str(error)

    theirs = reduced(torch)
    assert reduced(rt) == (theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-6))


@pytest.mark.parametrize("library", [torch, rt], ids=["torch", "readtorch"])
def test_weak_references_to_tensors(library):
    x = library.ones(2)
    ref = library._C._WeakTensorRef(x)
    assert not ref.expired()
    del x
    gc.collect()
    assert ref.expired()


@pytest.mark.parametrize("library", [torch, rt], ids=["torch", "readtorch"])
def test_memory_is_filled_or_not(library):
    try:
        library._C._set_deterministic_fill_uninitialized_memory(False)
        assert not library.utils.deterministic.fill_uninitialized_memory
    finally:
        library._C._set_deterministic_fill_uninitialized_memory(True)


# --------------------------------------------------------------------------------------------------- autograd's own nodes


@pytest.mark.parametrize("library", [torch, rt], ids=["torch", "readtorch"])
def test_nodes_that_python_puts_behind_a_tensor(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    y = library._C._functions.DelayedError("Boom!", 1)(x)
    assert y.tolist() == [1, 2] and y.grad_fn is not None
    with pytest.raises(RuntimeError, match="Boom!"):
        (y * 2).sum().backward()
    library.autograd.grad((y * 2).sum(), y)  # does not come to it
    a, b = library._C._functions.DelayedError("both", 2)(x, x * 2)
    with pytest.raises(RuntimeError, match="both"):
        b.sum().backward()
    assert not library._C._functions.DelayedError("none", 1)(x.detach()).requires_grad
    z = library._C._functions.UndefinedGrad()(x * 1)
    assert z.grad_fn.name() == "torch::autograd::UndefinedGradBackward"
    assert library.autograd.grad(z.sum(), x, allow_unused=True) == (None,)
    leaf_node = (x * 2).grad_fn.next_functions[0][0]
    assert isinstance(leaf_node, library._C._functions.AccumulateGrad)
    assert isinstance((x * x).grad_fn._raw_saved_self, library._C._autograd.SavedTensor)


def test_gradients_that_are_views_are_unscaled():
    results = []
    for library in (torch, rt):
        grads, found = [library.ones(3, 3)[:, :2], library.ones(2) * 2], library.zeros(1)
        library._amp_foreach_non_finite_check_and_unscale_(grads, found, library.tensor(0.5))
        results.append([g.tolist() for g in grads] + [found.tolist()])
    assert results[0] == results[1]


@pytest.mark.parametrize("library", [torch, rt], ids=["torch", "readtorch"])
def test_an_optimizer_may_say_that_it_unscales(library):
    class Own(library.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})
            self._step_supports_amp_scaling = True

        def step(self, closure=None):
            self.seen = self.grad_scale.item(), self.found_inf.item()

    w = library.ones(2, requires_grad=True)
    optimizer, scaler = Own([w]), library.GradScaler("cpu", init_scale=4.0)
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)
    assert optimizer.seen == (4.0, 0.0) and w.grad.tolist() == [4, 4]
