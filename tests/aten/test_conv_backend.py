"""`_C._select_conv_backend`: the algorithm that PyTorch takes on the CPU, for random calls and settings."""

import random

import pytest
import torch

import readtorch as rt

BFLOAT16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()


def drawn(random):
    """Shapes and settings of a call, mostly one that fits."""
    dim = random.choice([1, 2, 2, 2, 3])
    groups = random.choice([1, 1, 1, 2, 3])
    inner, outer = random.choice([0, 1, 2, 5]), random.choice([1, 2])
    transposed = random.random() < 0.25
    kernel = [random.choice([1, 1, 2, 3, 4, 5, 17]) for _ in range(dim)]
    size = [random.choice([1, 3, 8, 20, 64, 65]) for _ in range(dim)]
    stride = [random.choice([1, 1, 2, 3]) for _ in range(random.choice([1, dim]))]
    padding = [random.choice([0, 0, 1, 2, 9]) for _ in range(random.choice([1, dim]))]
    dilation = [random.choice([1, 1, 1, 2]) for _ in range(random.choice([1, dim]))]
    output_padding = [random.choice([0, 0, 1]) for _ in range(dim)] if transposed else [0] * dim
    images = random.choice([0, 1, 1, 1, 2, 15, 16])
    weight = [inner * groups, outer, *kernel] if transposed else [outer * groups, inner, *kernel]
    if random.random() < 0.05:
        weight[0] += 1
    dtype = random.choice(["float32"] * 5 + ["float64", "int64"] + ["bfloat16"] * BFLOAT16)
    shapes = [images, inner * groups, *size], weight
    return dtype, shapes, (stride, padding, dilation, transposed, output_padding, groups)


def choice(T, dtype, shapes, settings):
    x, w = (T.empty(shape, dtype=getattr(T, dtype)) for shape in shapes)
    try:
        return int(T._C._select_conv_backend(x, w, None, *settings))
    except RuntimeError as error:
        return str(error).splitlines()[0]


@pytest.fixture
def one_thread():
    before = torch.get_num_threads(), rt.get_num_threads()
    yield
    torch.set_num_threads(before[0])
    rt.set_num_threads(before[1])


def test_random_calls(one_thread):
    generator, seen = random.Random(3), set()
    for _ in range(3000):
        call, threads = drawn(generator), generator.choice([1, 1, 2])
        mkldnn, nnpack = generator.random() < 0.6, generator.random() < 0.8
        found = []
        for T in (torch, rt):
            T.set_num_threads(threads)
            with T.backends.mkldnn.flags(enabled=mkldnn), T.backends.nnpack.flags(enabled=nnpack):
                found.append(choice(T, *call))
        if found[0] == 11 and not torch.backends.nnpack.is_available():
            continue
        assert found[0] == found[1], (call, threads, mkldnn, nnpack)
        seen.add(found[0])
    wanted = {"Empty", "Mkldnn", "NnpackSpatial", "Slow2d", "Slow3d", "SlowDilated2d", "SlowDilated3d"}
    assert {rt._C._ConvBackend[name].value for name in wanted} <= seen
    assert {9, 17, 18} <= seen and any(isinstance(one, str) for one in seen)


def test_names_and_numbers():
    theirs = {name.rstrip(","): int(one) for name, one in torch._C._ConvBackend.__members__.items()}
    ours = {one.name: one.value for one in rt._C._ConvBackend}
    assert theirs == {name: number for name, number in ours.items() if name != "MkldnnTranspose"}


def test_meta_tensors_belong_to_nobody():
    for T in (torch, rt):
        x, w = T.empty(2, 3, 8, 8, device="meta"), T.empty(4, 3, 3, 3, device="meta")
        assert T._C._select_conv_backend(x, w, None, [1], [0], [1], False, [0], 1).name == "Overrideable"
