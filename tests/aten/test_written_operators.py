"""Every operator that writes to an argument, in place or with out=: what it does besides computing numbers.

Version counters, gradients that cannot be followed, memory that cannot grow, memory that overlaps. The arguments
come from `tests/operator_arguments.py`, so that no operator can be forgotten.
"""

import functools
import warnings

import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch.aten.dispatcher import registry
from tests.operator_arguments import arguments_of, call_theirs, written_operators
from tests.reference import Outcome, both, own_copy, seed_both, tensors_in, to_readtorch

WRITTEN = written_operators()
OUT = [name for name in WRITTEN if registry[name].schema.is_out]
UNTESTED_DTYPES = {torch.uint64}  # readtorch's tests know no such tensors


@pytest.fixture(scope="module", autouse=True)
def without_warnings():
    """Of deprecated operators, and of outputs that are resized: what PyTorch's C++ prints is not caught here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def run(name, ours, theirs):
    """What both do with their arguments."""
    seed_both(0)
    return Outcome(registry[name].call, *ours), Outcome(call_theirs, name, theirs)


def test_there_are_arguments_for_all():
    assert len(WRITTEN) > 690 and len(OUT) > 500
    assert [name for name in WRITTEN if arguments_of(name) is None] == []


# PyTorch writes an output several times, we once (or the other way round). Any write makes a saved tensor stale.
WRITTEN_MORE_OFTEN = {
    "aten::nanmean.out",
    "aten::svd.U",
    "aten::rand.generator_out",
    "aten::randn.generator_out",
    "aten::randn.out",
    "aten::split_with_sizes_copy.out",
    "aten::unbind_copy.int_out",
}
# PyTorch changes these without counting, so that backward after them is silently wrong. Here it raises.
UNCOUNTED_IN_PYTORCH = {
    "aten::_fused_adagrad_",
    "aten::_fused_adam_",
    "aten::_fused_adamw_",
    "aten::_fused_sgd_",
    "aten::kron.out",
    "aten::_sobol_engine_scramble_",
    "aten::_sobol_engine_ff_",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_versions(name):
    theirs = own_copy(arguments_of(name))
    ours = to_readtorch(theirs)
    mine, expected = run(name, ours, theirs)
    assert expected.error is None and mine.error is None, (mine.error, expected.error)
    mine, expected = ([t._version for t in tensors_in(arguments)] for arguments in (ours, theirs))
    if name in UNCOUNTED_IN_PYTORCH:
        assert any(mine) and not any(expected)
    elif name in WRITTEN_MORE_OFTEN:
        assert mine != expected and list(map(bool, mine)) == list(map(bool, expected))
    else:
        assert mine == expected


# Gradients that cannot be followed


def floats_of(name, arguments, written):
    """The arguments that could require grad: those that are written to, or the others."""
    parameters = registry[name].schema.arguments
    found = [t for a, value in zip(parameters, arguments) if a.type.writes == written for t in tensors_in(value)]
    return [t for t in found if t.dtype.is_floating_point or t.dtype.is_complex]


@pytest.mark.parametrize("name", OUT)
def test_no_gradient_through_out(name):
    """Where PyTorch refuses, so do we, in its words; where it is silent although the result would have a graph, too."""
    for written in (False, True):
        theirs = own_copy(arguments_of(name))
        inputs = floats_of(name, theirs, written)[:1]
        for t in inputs:
            t.requires_grad_()
            ours = to_readtorch(theirs)
            mine, expected = run(name, ours, theirs)
            if expected.error is not None and name != RANKS or is_differentiable(name) or written:
                assert type(mine.error) is RuntimeError and str(mine.error).endswith(NO_GRADIENT), mine.error
                in_these_words = written or expected.error is None or str(expected.error).endswith(NO_GRADIENT)
                assert in_these_words or name in OTHER_WORDS
            else:
                assert mine.error is None and not any(o.requires_grad for o in tensors_in(mine.value))
            with rt.no_grad():
                assert Outcome(registry[name].call, *to_readtorch(own_copy(arguments_of(name)))).error is None


NO_GRADIENT = (
    "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
)


OTHER_WORDS = {"aten::inner.out", "aten::tensordot.out"}
RANKS = "aten::argsort.stable_out"  # sorts values in PyTorch, too, which could require grad


def is_differentiable(name):
    """Whether the operator without out= gives results with a graph."""
    functional, outs = registry[name].variant_of, floats_of(name, arguments_of(name), True)
    return bool(outs) and functional is not None and bool(functional.derivative or functional.composite)


# Memory that cannot grow


@functools.cache
def result_dtypes(name):
    """Of what PyTorch writes to the outputs."""
    arguments = own_copy(arguments_of(name))
    call_theirs(name, arguments)
    return [t.dtype for t in outputs_of(name, arguments)]


def outputs_of(name, arguments):
    return [t for a, v in zip(registry[name].schema.arguments, arguments) if a.type.writes for t in tensors_in(v)]


def with_outputs(name, arguments, outs):
    """The arguments with other outputs."""
    outs = iter(outs)
    return [
        ([next(outs) for _ in v] if a.type.is_list else next(outs)) if a.type.writes else v
        for a, v in zip(registry[name].schema.arguments, arguments)
    ]


STATISTICS = {"aten::_native_batch_norm_legit.out"}  # it writes to inputs, too
# Of a shape that the output need not have: PyTorch first writes there what it then adds up.
SUMMED = {
    "aten::binary_cross_entropy.out",
    "aten::huber_loss.out",
    "aten::mse_loss.out",
    "aten::smooth_l1_loss.out",
    "aten::soft_margin_loss.out",
}
COPIED = "aten::split_copy.Tensor_out"  # PyTorch does not resize its outputs


@pytest.mark.parametrize("name", sorted(set(OUT) - STATISTICS))
def test_outputs_of_another_size(name):
    dtypes = result_dtypes(name)
    if not UNTESTED_DTYPES.isdisjoint(dtypes):
        return
    one = [np.zeros([1] * 7, torch.zeros(0, dtype=d).numpy().dtype) for d in dtypes]
    theirs = with_outputs(name, own_copy(arguments_of(name)), map(torch.from_numpy, [a.copy() for a in one]))
    ours = with_outputs(name, to_readtorch(own_copy(arguments_of(name))), map(rt.from_numpy, one))
    mine, expected = run(name, ours, theirs)
    if expected.error is None or name in SUMMED:
        assert mine.error is None
    elif name == COPIED:
        assert type(mine.error) is RuntimeError
    else:  # sizes are not compared: PyTorch has changed them before it fails
        assert (type(mine.error), str(mine.error)) == (type(expected.error), str(expected.error))
    outs = [t for t in outputs_of(name, ours) if t.numel()]
    assert {t.untyped_storage().data_ptr() for t in outs} <= {array.ctypes.data for array in one}


def test_memory_that_cannot_grow():
    """NumPy's, a buffer's and another library's memory stays where it is, and so does what NumPy has been shown."""

    def resize(make):
        return lambda T: make(T).resize_(5).shape

    both(resize(lambda T: T.from_numpy(np.zeros(2))))
    both(resize(lambda T: T.from_numpy(np.zeros(2))[:1]))
    both(resize(lambda T: T.as_tensor(np.zeros(2))))
    both(resize(lambda T: T.tensor(np.zeros(2))))
    both(resize(lambda T: T.frombuffer(bytearray(8), dtype=T.float32)))
    both(resize(lambda T: T.from_dlpack(np.zeros(2))))
    both(lambda T: (lambda t: (t.numpy(), t.resize_(5)))(T.zeros(2))[1].shape)
    both(lambda T: (lambda t: (t.numpy(force=True), t.resize_(5)))(T.zeros(2))[1].shape)
    both(lambda T: T.zeros(2).set_(T.from_numpy(np.zeros(2, "f")).untyped_storage(), 0, (5,), (1,)).shape)
    both(lambda T: T.from_numpy(np.zeros(4))[:2].resize_(4).shape)


def test_the_warning_of_a_resized_output():
    def warned(T):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            T.add(T.ones(5), 1, out=T.ones(2))
            T.add(T.ones(5), 1, out=T.ones(0))
            T.sort(T.ones(5), out=(T.ones(2), T.ones(5, dtype=T.int64)))
        return [(w.category, str(w.message).partition(" (Triggered")[0]) for w in seen]

    assert len(warned(torch)) == 2 and warned(rt) == warned(torch)


# Memory that overlaps


def written_tensor(name, arguments):
    """The place of the tensor that is written to, or None if there are several."""
    places = [i for i, a in enumerate(registry[name].schema.arguments) if a.type.writes]
    return places[0] if len(places) == 1 and isinstance(arguments[places[0]], torch.Tensor) else None


def ready(name):
    """The arguments with an output of the right size, and the place of what is written to; None for what is skipped."""
    arguments = own_copy(arguments_of(name))
    at = written_tensor(name, arguments)
    if at is None or arguments[at].is_sparse:
        return None, None
    if registry[name].schema.is_out:
        call_theirs(name, arguments)
    skipped = arguments[at].numel() < 2 or arguments[at].dtype in UNTESTED_DTYPES
    return (None, None) if skipped else (arguments, at)


# PyTorch writes to an expanded tensor without a word (some of these past its end: see DIE). Here they refuse.
WRITE_TO_EXPANDED = {
    "aten::threshold.out",
    "aten::bmm.out",
    "aten::mv.out",
    "aten::addmv_",
    "aten::tril.out",
    "aten::triu.out",
    "aten::prod.int_out",
    "aten::all.out",
    "aten::any.out",
    "aten::pow.Scalar_out",
    "aten::float_power.Scalar_out",
    "aten::im2col.out",
    "aten::col2im.out",
    "aten::linalg_vecdot.out",
    "aten::max_unpool2d.out",
    "aten::multinomial.out",
    "aten::histc.out",
    "aten::narrow_copy.out",
}
# PyTorch writes outside of the expanded tensor's memory, or raises for a reason of its own.
DIE = {
    "aten::reflection_pad1d.out",
    "aten::reflection_pad2d.out",
    "aten::reflection_pad3d.out",
    "aten::replication_pad1d.out",
    "aten::replication_pad2d.out",
    "aten::replication_pad3d.out",
    "aten::_softmax.out",
    "aten::_log_softmax.out",
    "aten::avg_pool2d.out",
    "aten::avg_pool3d.out",
    "aten::adaptive_avg_pool2d.out",
    "aten::adaptive_avg_pool3d.out",
    "aten::max_unpool3d.out",
    "aten::rrelu_with_noise",
}


# Writes no elements, and refuses views: what stands for PyTorch's expanded tensor here is none.
REFUSES_VIEWS = {"aten::detach_"}


@pytest.mark.parametrize("name", sorted(set(WRITTEN) - DIE - REFUSES_VIEWS))
def test_writing_to_an_expanded_tensor(name):
    theirs, at = ready(name)
    if theirs is None:
        return
    memory = theirs[at].flatten().repeat(8)  # room behind it: where PyTorch does not look, it writes there
    theirs[at] = memory[:1].expand(theirs[at].shape)
    mine, expected = run(name, to_readtorch(theirs), theirs)
    if name in WRITE_TO_EXPANDED:
        assert expected.error is None and "more than one element" in str(mine.error)
    else:
        assert mine.describe_error() == expected.describe_error()


def test_writes_to_expanded_tensors_that_are_allowed_still():
    def program(T):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x = T.zeros(1).expand(3)
            x[T.tensor([True, False, True])] = 1
            x[T.tensor([0])] = T.tensor([2.0])
            x.index_fill_(0, T.tensor([0]), 1.0)
            x.masked_fill_(T.tensor([True, False, True]), 3.0)
            x.fill_(4)
        return x, sorted({str(w.message).partition(" (Triggered")[0] for w in seen})

    both(program)
    both(lambda T: T.ones(1, dtype=T.complex64).expand(3).conj_physical_())
    both(lambda T: T.ones(1).expand(3).conj_physical_())


# Reading one window while another one of the same memory is written. These refuse where PyTorch computes something …
REFUSE = {
    "aten::relu.out",
    "aten::threshold.out",
    "aten::bitwise_and.Scalar_Tensor_out",
    "aten::bitwise_or.Scalar_Tensor_out",
    "aten::bitwise_xor.Scalar_Tensor_out",
    "aten::bitwise_left_shift.Scalar_Tensor_out",
    "aten::bitwise_right_shift.Scalar_Tensor_out",
    "aten::addmm_",
    "aten::addmv_",
    "aten::baddbmm_",
    "aten::pow.Scalar_out",
    "aten::mvlgamma.out",
    "aten::special_ndtr.out",
    "aten::embedding_dense_backward.out",
    "aten::orgqr.out",
    "aten::_fft_c2c.out",
}
# … and these compute as if what they read had been copied before, where PyTorch refuses.
COMPUTE = {
    "aten::bitwise_not.out",
    "aten::addmm.out",
    "aten::addmv.out",
    "aten::baddbmm.out",
    "aten::addbmm.out",
    "aten::clamp.out",
    "aten::clamp_min.out",
    "aten::clamp_max.out",
    "aten::conj_physical.out",
    "aten::bernoulli_.Tensor",
    "aten::nan_to_num.out",
    "aten::_index_put_impl_",
    "aten::index_select.out",
    "aten::index_add.out",
    "aten::index_copy.out",
    "aten::index_reduce.out",
    "aten::linalg_matrix_power.out",
    "aten::matrix_power.out",
    "aten::linalg_cross.out",
    "aten::cross.out",
    "aten::where.self_out",
    "aten::heaviside.out",
    "aten::bernoulli.out",
    "aten::logcumsumexp.out",
    "aten::scatter.src_out",
    "aten::scatter.reduce_out",
    "aten::scatter.value_out",
    "aten::scatter.value_reduce_out",
    "aten::scatter_add.out",
    "aten::scatter_reduce.two_out",
    "aten::msort.out",
}


@pytest.mark.parametrize("name", sorted(set(WRITTEN) - DIE))
def test_reading_and_writing_windows_that_overlap(name):
    theirs, at = ready(name)
    read = None if theirs is None else read_beside(name, theirs, at)
    if read is None:
        return
    t = theirs[at]
    memory = torch.cat([t.flatten(), t.flatten()[:1]])
    ours, our_memory = to_readtorch([theirs, memory])
    for arguments, memory in ((theirs, memory), (ours, our_memory)):
        arguments[at], arguments[read] = memory[1:].view(*t.shape), memory[:-1].view(*t.shape)
    mine, expected = run(name, ours, theirs)
    if name in REFUSE:
        assert expected.error is None and "some elements of the input" in str(mine.error)
    elif name in COMPUTE:
        assert mine.error is None and "some elements of the input" in str(expected.error)
    else:
        assert mine.describe_error() == expected.describe_error()


def read_beside(name, arguments, at):
    """The place of a tensor that is read and that could be a window on the same memory as the one that is written."""
    t, parameters = arguments[at], registry[name].schema.arguments
    return next(
        (
            i
            for i, v in enumerate(arguments)
            if isinstance(v, torch.Tensor)
            and not parameters[i].type.writes
            and (v.shape, v.dtype) == (t.shape, t.dtype)
        ),
        None,
    )
