"""use_deterministic_algorithms: which operators raise or warn, what is filled, and that nothing stays when it is off."""

import warnings

import pytest
import torch

import readtorch
from readtorch.aten import context
from readtorch.aten.dispatcher import registry

BOTH = (torch, readtorch)
CALLER = {  # on CUDA; read in PyTorch's kernels, which need a GPU to run
    "AvgPool3d": "avg_pool3d_backward_cuda",
    "AdaptiveAvgPool2d": "adaptive_avg_pool2d_backward_cuda",
    "AdaptiveAvgPool3d": "adaptive_avg_pool3d_backward_cuda",
    "AdaptiveMaxPool2d": "adaptive_max_pool2d_backward_cuda",
    "ReflectionPad1d": "reflection_pad1d_backward_out_cuda",
    "ReflectionPad2d": "reflection_pad2d_backward_cuda",
    "ReflectionPad3d": "reflection_pad3d_backward_out_cuda",
    "linear": "upsample_linear1d_backward_out_cuda",
    "bicubic": "upsample_bicubic2d_backward_out_cuda",
    "grid_sample": "grid_sampler_2d_backward_cuda",
    "NLLLoss": "nll_loss2d_forward_out_cuda_template",
    "CTCLoss": "ctc_loss_backward_gpu",
    "EmbeddingBag": "embedding_bag_backward_cuda_max",
    "put_": "put_",
    "put_ accumulate": "put_",
    "histc": "_histc_cuda",
    "bincount": "_bincount_cuda",
    "median": "median CUDA with indices output",
    "nanmedian": "median CUDA with indices output",
    "kthvalue": "kthvalue CUDA",
    "scatter_reduce": "scatter_reduce_cuda_prod_",
    "scatter multiply": "scatter_reduce_cuda_kernel",
    "index_reduce": "index_reduce_cuda",
    "max_unpool1d": "max_unpooling2d_forward_out",
    "max_unpool2d": "max_unpooling2d_forward_out",
    "max_unpool3d": "max_unpooling3d_forward_out",
}
QUIET = (
    "scatter",
    "scatter_add",
    "scatter_reduce sum",
    "scatter add",
    "index_add",
    "index_put",
    "cumsum",
    "median of all",
    "bincount unweighted",
    "nll_loss of a matrix",
    "replicate",
    "bilinear",
    "MaxPool3d",
    "gather",
)


@pytest.fixture(autouse=True)
def off_again():
    yield
    for T in BOTH:
        T.use_deterministic_algorithms(False)
        T.utils.deterministic.fill_uninitialized_memory = True


def grad_of(function, x):
    x = x.clone().requires_grad_()
    function(x).sum().backward()


def calls(T, device="cpu"):
    """{name: a call} of the operators that PyTorch's list names, on this device"""
    nn, F = T.nn, T.nn.functional
    f32 = dict(dtype=T.float32, device=device)
    x1, x2, x3 = (T.arange(4.0**n, **f32).view(1, 1, *[4] * n) for n in (1, 2, 3))
    three, two, at = T.zeros(3, **f32), T.ones(2, **f32), T.tensor([0, 1], device=device)
    grid = T.zeros(1, 2, 2, 2, **f32)
    log_probs = T.zeros(4, 1, 3, **f32).log_softmax(2)
    planes = T.zeros(1, 3, 2, 2, **f32)
    labels = T.zeros(1, 2, 2, dtype=T.int64, device=device)
    windows = {n: T.arange(2**n, device=device).view(1, 1, *[2] * n) for n in (1, 2, 3)}
    half = {n: T.ones(1, 1, *[2] * n, **f32) for n in (1, 2, 3)}
    return {
        "AvgPool3d": lambda: grad_of(nn.AvgPool3d(2), x3),
        "AdaptiveAvgPool2d": lambda: grad_of(nn.AdaptiveAvgPool2d(2), x2),
        "AdaptiveAvgPool3d": lambda: grad_of(nn.AdaptiveAvgPool3d(2), x3),
        "AdaptiveMaxPool2d": lambda: grad_of(nn.AdaptiveMaxPool2d(2), x2),
        "ReflectionPad1d": lambda: grad_of(nn.ReflectionPad1d(1), x1),
        "ReflectionPad2d": lambda: grad_of(nn.ReflectionPad2d(1), x2),
        "ReflectionPad3d": lambda: grad_of(nn.ReflectionPad3d(1), x3),
        "linear": lambda: grad_of(lambda x: F.interpolate(x, 3, mode="linear"), x1),
        "bicubic": lambda: grad_of(lambda x: F.interpolate(x, 3, mode="bicubic"), x2),
        "grid_sample": lambda: grad_of(lambda x: F.grid_sample(x, grid, align_corners=False), x2),
        "NLLLoss": lambda: F.nll_loss(planes, labels),
        "CTCLoss": lambda: grad_of(lambda x: F.ctc_loss(x, at[1:].view(1, 1), (4,), (1,)), log_probs),
        "EmbeddingBag": lambda: grad_of(lambda w: F.embedding_bag(at.view(1, 2), w, mode="max"), T.ones(3, 2, **f32)),
        "put_": lambda: three.put_(at, two),
        "put_ accumulate": lambda: three.put_(at, two, accumulate=True),
        "histc": lambda: three.histc(2),
        "bincount": lambda: at.bincount(two),
        "median": lambda: three.median(0),
        "nanmedian": lambda: three.nanmedian(0),
        "kthvalue": lambda: three.kthvalue(1),
        "scatter_reduce": lambda: three.scatter_reduce_(0, at, two, "prod"),
        "scatter multiply": lambda: three.scatter_(0, at, two, reduce="multiply"),
        "index_reduce": lambda: three.index_reduce_(0, at, two, "prod"),
        "max_unpool1d": lambda: F.max_unpool1d(half[1], windows[1], 2),
        "max_unpool2d": lambda: F.max_unpool2d(half[2], windows[2], 2),
        "max_unpool3d": lambda: F.max_unpool3d(half[3], windows[3], 2),
        "scatter": lambda: three.scatter(0, at, two),
        "scatter_add": lambda: three.scatter_add(0, at, two),
        "scatter_reduce sum": lambda: three.scatter_reduce(0, at, two, "sum"),
        "scatter add": lambda: three.scatter(0, at, two, reduce="add"),
        "index_add": lambda: three.index_add(0, at, two),
        "index_put": lambda: three.index_put((at,), two, accumulate=True),
        "cumsum": lambda: two.cumsum(0),
        "median of all": lambda: three.median(),
        "bincount unweighted": lambda: at.bincount(),
        "nll_loss of a matrix": lambda: F.nll_loss(planes[0, :, 0].t().contiguous(), at),
        "replicate": lambda: grad_of(nn.ReplicationPad2d(1), x2),
        "bilinear": lambda: grad_of(lambda x: F.interpolate(x, 3, mode="bilinear"), x2),
        "MaxPool3d": lambda: grad_of(nn.MaxPool3d(2), x3),
        "gather": lambda: grad_of(lambda x: x.gather(0, at), three),
    }


def told(T, call):
    """What a call raises or warns, without the place in PyTorch's source"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except RuntimeError as error:
            return [str(error)]
    texts = [str(w.message).partition(" (Triggered")[0] for w in caught]
    return [text for text in texts if "deterministic" in text]


@pytest.mark.parametrize("warn_only", [False, True])
@pytest.mark.parametrize("name", [*CALLER, *QUIET])
def test_the_same_operators_raise_on_the_cpu(name, warn_only):
    said = []
    for T in BOTH:
        call = calls(T)[name]
        T.use_deterministic_algorithms(True, warn_only=warn_only)
        said.append(told(T, call))
        T.use_deterministic_algorithms(False)
        assert told(T, call) == []
    assert said[0] == said[1]
    assert bool(said[0]) == (name == "put_" or "unpool" in name)


@pytest.fixture(params=[False, True], ids=["simulated device", "simulated kernels"])
def simulated(request):
    readtorch.cuda.simulate(1, kernels=request.param)
    yield "cuda"
    readtorch.use_deterministic_algorithms(False)
    readtorch.cuda.simulate(0)


@pytest.mark.parametrize("name", CALLER)
def test_operators_of_the_list_raise_on_a_device(simulated, name):
    call = calls(readtorch, simulated)[name]
    readtorch.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError) as raised:
        call()
    on_cpu = told_of_put(torch)
    assert str(raised.value) == on_cpu.replace("put_ ", f"{CALLER[name]} ", 1)
    readtorch.use_deterministic_algorithms(True, warn_only=True)
    assert len(told(readtorch, call)) == 1
    readtorch.use_deterministic_algorithms(False)
    assert told(readtorch, call) == []


@pytest.mark.parametrize("name", QUIET)
def test_operators_that_have_a_deterministic_kernel_do_not_raise(simulated, name):
    call = calls(readtorch, simulated)[name]
    readtorch.use_deterministic_algorithms(True)
    assert told(readtorch, call) == []


def told_of_put(T):
    T.use_deterministic_algorithms(True)
    (text,) = told(T, calls(T)["put_"])
    return text


def test_the_meta_device():
    def unpool(T):
        pooled, places = T.ones(1, 1, 2, 2, device="meta"), T.zeros(1, 1, 2, 2, dtype=T.int64, device="meta")
        return lambda: T.nn.functional.max_unpool2d(pooled, places, 2)

    for T in BOTH:
        T.use_deterministic_algorithms(True)
    assert told(torch, unpool(torch)) == told(readtorch, unpool(readtorch)) != []


# -- uninitialized memory ---------------------------------------------------------------------------

DTYPES = (
    "float32 float64 float16 bfloat16 complex64 complex128 int8 uint8 int16 int32 int64 bool uint16 uint32 uint64 "
    "float8_e4m3fn float8_e5m2"
).split()


def uninitialized(T, dtype):
    kind = dict(dtype=getattr(T, dtype))
    like = T.zeros(2, 3, **kind)
    resized = T.zeros(3, **kind)
    resized.resize_(2)
    resized.resize_(2, 3)
    as_other = T.zeros(1, **kind).resize_as_(like)
    return [
        T.empty(2, 3, **kind),
        T.empty(1, 2, 2, 2, memory_format=T.channels_last, **kind),
        T.empty_like(like),
        T.empty_like(like.t()),
        T.empty_strided((2, 2), (3, 1), **kind),
        T.empty_strided((2, 2), (0, 1), **kind),
        T.empty_permuted((2, 3), (1, 0), **kind),
        T.empty(3, out=T.zeros(0, **kind)),
        like.new_empty(3),
        like.new_empty_strided((2,), (2,)),
        resized,
        as_other,
        T.empty(0, 3, **kind),
        T.empty((), **kind),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_filled(dtype):
    for T in BOTH:
        T.use_deterministic_algorithms(True)
    for theirs, ours in zip(uninitialized(torch, dtype), uninitialized(readtorch, dtype), strict=True):
        assert repr(theirs.double() if theirs.dtype.is_floating_point else theirs) == repr(
            ours.double() if ours.dtype.is_floating_point else ours
        )
        assert (theirs.stride(), theirs.shape) == (ours.stride(), tuple(ours.shape))
    assert torch.empty(2)._version == readtorch.empty(2)._version == 0


def test_other_ways_to_empty():
    shown = []
    for T in BOTH:
        T.use_deterministic_algorithms(True)
        linear = T.nn.Linear(2, 2, bias=False, device="meta").to_empty(device="cpu")
        made = [
            T.Tensor(2),
            T.FloatTensor(2),
            T.zeros(2).new(3),
            linear.weight.detach(),
            T.empty(2, device="meta").shape,
        ]
        shown.append([str(t) for t in made])
    assert shown[0] == shown[1]


def test_resizing_keeps_what_was_there_and_fills_what_is_hidden():
    shown = []
    for T in BOTH:
        T.use_deterministic_algorithms(True)
        x = T.arange(2.0)
        x[1:].resize_(3)  # the storage grows by 2 elements
        shown.append((x.tolist(), T.empty(0).set_(x.untyped_storage(), 0, (4,), (1,)).tolist().__repr__()))
    assert shown[0] == shown[1]


def test_fill_uninitialized_memory_is_a_setting():
    for T in BOTH:
        T.use_deterministic_algorithms(True)
        assert T.utils.deterministic.fill_uninitialized_memory is True
        with pytest.raises(RuntimeError, match="^expected a bool, but got int$"):
            T.utils.deterministic.fill_uninitialized_memory = 1
        T.utils.deterministic.fill_uninitialized_memory = False
        assert T.utils.deterministic.fill_uninitialized_memory is False
        x = T.zeros(4).resize_(0)
        assert x.resize_(4).tolist() == [0] * 4


def test_on_a_device(simulated):
    readtorch.use_deterministic_algorithms(True)
    assert readtorch.empty(2, device="cuda").isnan().all()
    assert readtorch.empty_like(readtorch.zeros(2, device="cuda", dtype=readtorch.int8)).tolist() == [127, 127]
    x = readtorch.arange(2.0, device="cuda")
    assert str(x.resize_(3).tolist()) == "[0.0, 1.0, nan]" and x.device.type == "cuda"
    assert readtorch.empty(2, device="cuda")._version == 0


# -- off ---------------------------------------------------------------------------------------------


def test_nothing_is_in_the_way_when_it_is_off():
    x = readtorch.zeros(3)
    empty = registry["aten::empty.memory_format"]
    readtorch.empty(2)
    before = dict(empty.table)
    readtorch.use_deterministic_algorithms(True)
    assert readtorch.empty(2).isnan().all()
    assert all(kernel not in before.values() for kernel in empty.table.values())
    readtorch.use_deterministic_algorithms(False)
    readtorch.empty(2)
    assert set(empty.table.values()) <= set(before.values())
    assert context.context.deterministic is False and x.tolist() == [0] * 3
