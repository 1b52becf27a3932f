"""What kernels are made of, piece by piece: the simulator's arithmetic and atomics, the geometry of a reduction, a Jacobi rotation, streams."""

import math

import numpy as np
import pytest
from numba import cuda as cuda_  # as kernels have it: the simulator puts its own in its place

import readtorch as rt
from readtorch import cuda
from readtorch.aten.native.cuda import batch_linear_algebra_lib, reduce
from readtorch.c10.cuda import runtime, simulator
from tests.cuda.test_operator_table import device  # noqa: F401  a fixture


def atomics(kind):
    """The kernel of one thread that applies each value in turn to element 0, and writes down what was there."""

    def apply(array, values, old):
        for i in range(len(values)):
            old[i] = getattr(cuda_.atomic, kind)(array, 0, values[i])

    return apply


INTEGERS = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "and_": lambda old, value: old & value,
    "or_": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "max": max,
    "min": min,
    "inc": lambda old, top: old + 1 if old < top else 0,
    "dec": lambda old, top: top if old == 0 or old > top else old - 1,
}


def applied(kind, start, values, dtype):
    array, values = np.array([start], dtype), np.array(values, dtype)
    old = np.zeros_like(values)
    simulator.launch(atomics(kind), 1, 1, array, values, old)
    return [*old, array[0]]


@pytest.mark.parametrize("kind", INTEGERS)
def test_atomics(kind):
    values = [3, 0, 7, 7, 1, 9, 2, 2, 12]
    expected = [6]
    for value in values:
        expected.append(INTEGERS[kind](expected[-1], value) % 2**32)
    assert applied(kind, 6, values, np.uint32) == expected


@pytest.mark.parametrize(("kind", "last"), [("max", 4), ("min", -3), ("nanmax", 4), ("nanmin", -3)])
def test_atomics_and_nan(kind, last):
    nan = math.nan
    assert applied(kind, 1, [nan, 4, -3], np.float32)[-1] == last
    kept = applied(kind, nan, [2], np.float64)[-1]
    assert kept == 2 if kind.startswith("nan") else math.isnan(kept)


LIBDEVICE = {
    "exp10": lambda x: 10.0**x,
    "sinpi": lambda x: math.sin(math.pi * x),
    "cospi": lambda x: math.cos(math.pi * x),
    "rsqrt": lambda x: x**-0.5,
    "rcbrt": lambda x: x ** (-1 / 3),
    "normcdf": lambda x: (1 + math.erf(x / math.sqrt(2))) / 2,
    "saturate": lambda x: min(max(x, 0), 1),
    "expf": math.exp,
    "fast_expf": math.exp,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "rint": round,
    "nearbyint": round,
    "cbrt": math.cbrt,
    "erfc": math.erfc,
    "lgamma": math.lgamma,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LIBDEVICE)
def test_functions_of_one_number(name, dtype):
    for x in (0.3, 0.5, 1.5, 2.5, 0.75):
        ours = getattr(simulator.arithmetic.LibDevice(), name)(dtype(x))
        assert float(ours) == pytest.approx(LIBDEVICE[name](x), rel=1e-6, abs=1e-6)
        assert name in ("floor", "ceil", "trunc", "rint", "nearbyint") or type(ours) is dtype


def test_functions_of_several_numbers_and_of_bits():
    lib, f4, i4, u4 = simulator.arithmetic.LibDevice(), np.float32, np.int32, np.uint32
    assert lib.fdivide(f4(1), f4(4)) == f4(0.25)
    sine, cosine = lib.sincosf(f4(0.5))
    assert (sine, cosine) == (np.sin(f4(0.5)), np.cos(f4(0.5)))
    assert lib.mulhi(i4(1 << 30), i4(-12)) == -3 and lib.umulhi(u4(1 << 31), u4(6)) == 3
    assert lib.mul64hi(np.int64(1 << 62), np.int64(-12)) == -3 and lib.umul64hi(np.uint64(1 << 63), np.uint64(6)) == 3
    assert (
        lib.fmin(f4(1), f4("nan")) == 1 == lib.fmax(f4("nan"), f4(1))
        and lib.fmax(f4(2), f4(3)) == 3
        and lib.fmin(f4(2), f4(3)) == 2
    )
    for value, words in (
        (f4(1.5), lib.float_as_int),
        (f4(1.5), lib.float_as_uint),
        (np.float64(1.5), lib.double_as_longlong),
    ):
        bits = words(value)
        assert bits == value.view(bits.dtype) and bits.dtype.itemsize == value.itemsize
    assert lib.int_as_float(i4(0x3FC00000)) == 1.5 == lib.uint_as_float(u4(0x3FC00000))
    assert lib.longlong_as_double(np.float64(1.5).view(np.int64)) == 1.5
    assert [f(u4(0b1011000)) for f in (lib.popc, lib.clz, lib.ffs)] == [3, 25, 4] and lib.brev(
        u4(0b1011)
    ) == 0b1101 << 28
    assert lib.ffs(i4(0)) == 0 and lib.clz(i4(-1)) == 0 and lib.popc(i4(-1)) == 32
    with pytest.raises(AttributeError, match="no libdevice.nothing"):
        lib.nothing


def lanes(out):
    t = cuda_.threadIdx.x
    cuda_.threadfence()
    out[0, t] = cuda_.lanemask_lt()
    out[1, t] = cuda_.selp(t < 3, 10, 20)
    out[2, t] = cuda_.popc(np.uint32(t))


def test_lanes():
    out = np.zeros((3, 8), np.int64)
    simulator.launch(lanes, 1, 8, out)
    assert out.tolist() == [[2**t - 1 for t in range(8)], [10] * 3 + [20] * 5, [t.bit_count() for t in range(8)]]


# ------------------------------------------------------------------------------------------------ in the kernels


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 3, 4), (2, 1, 1), (1, 1, 1), (2, 3, 1), (2, 0, 4)])
def test_a_reduction_s_three_dimensions(shape, dims, device):  # noqa: F811
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    kept = [d for d in range(3) if d not in dims]
    if 0 in [shape[d] for d in kept]:
        return
    on_device = rt.from_numpy(x).cuda()
    seen = reduce.as_outer_n_inner(on_device._array, dims)
    moved = x.transpose(*kept, *dims).reshape(math.prod(shape[d] for d in kept), -1)
    assert seen.shape[0] * seen.shape[2] == len(moved) and seen.shape[1] == moved.shape[1]
    if x.size:
        copied = rt.from_numpy(x).cuda().sum(dims).cpu().numpy()
        np.testing.assert_allclose(copied.reshape(-1), moved.sum(1))


@pytest.mark.parametrize(
    ("p", "q", "between"), [(1, 1.1, 3), (1.1, 1, 3), (1, 1, 2), (1, 1, -2), (5, -5, 0.1), (-5, 5, 0.1), (0, 1, 0)]
)
def test_a_rotation_leaves_zero_between_and_turns_by_less_than_an_eighth(p, q, between):
    c, s = map(float, batch_linear_algebra_lib.rotation(np.float64)(*map(np.float64, (p, q, between))))
    assert c * c + s * s == pytest.approx(1) and abs(s) <= c * (1 + 1e-12)
    assert c * s * (p - q) + (c * c - s * s) * between == pytest.approx(0, abs=1e-12)


def test_streams_and_generators(device):  # noqa: F811
    assert (
        cuda.default_stream().stream_id == 0 == cuda.current_stream().stream_id
        and cuda.default_stream().cuda_stream == 0
    )
    assert cuda.default_stream().priority == 0 == cuda.Stream().priority and cuda.Stream(priority=-1).priority == -1
    stream = cuda.Stream()
    again = cuda.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
    assert again == stream != cuda.default_stream()
    assert cuda.Stream(stream_id=0, device_index=0, device_type=stream.device_type) == cuda.default_stream()
    with pytest.raises(RuntimeError, match="Unrecognized stream 12345 on device 0"):
        cuda.Stream(stream_id=12345, device_index=0, device_type=stream.device_type)
    generator = rt.Generator("cuda")
    generator.manual_seed(7)
    state = generator.get_state()
    first = rt.rand(5, device="cuda", generator=generator)
    copied = generator.clone_state()
    assert generator.get_offset() % 4 == 0 < generator.get_offset() == copied.get_offset()
    generator.set_offset(0)
    assert rt.equal(rt.rand(5, device="cuda", generator=generator), first) and rt.equal(
        copied.get_state()[:8], state[:8]
    )
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
        generator.set_offset(2)
    assert generator.seed() == generator.initial_seed() != 7 and generator.get_offset() == 0


NOTHING = {
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "mean": lambda x: x.double().mean(),
    "any": lambda x: x.any(),
    "all": lambda x: x.all(),
    "median": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(),
    "norm": lambda x: x.double().norm(),
    "var": lambda x: x.double().var(),
    "sort": lambda x: x.sort(),
    "argsort": lambda x: x.argsort(),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(0),
    "unique": lambda x: x.unique(),
    "nonzero": lambda x: x.nonzero(),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "cat": lambda x: rt.cat([x, x]),
    "where": lambda x: rt.where(x > 0, x, x),
    "masked_select": lambda x: x[x > 0],
    "index": lambda x: x[x.long()],
    "add": lambda x: x + x,
    "dot": lambda x: rt.dot(x, x),
    "mm": lambda x: x.double().reshape(0, 2) @ x.double().reshape(2, 0),
    "inner": lambda x: x.double().reshape(2, 0) @ x.double().reshape(0, 3),
    "softmax": lambda x: x.double().softmax(0),
    "log_softmax": lambda x: x.double().reshape(2, 0).log_softmax(0),
    "sums of rows": lambda x: x.reshape(3, 0).sum(1),
    "sums of columns": lambda x: x.reshape(3, 0).sum(0),
    "topk": lambda x: x.topk(0),
    "repeat": lambda x: x.repeat(3),
    "repeat_interleave": lambda x: x.repeat_interleave(2),
    "gather": lambda x: x.gather(0, x.long()),
    "bincount": lambda x: x.long().bincount(),
    "histc": lambda x: x.double().histc(4),
    "take": lambda x: rt.take(x, x.long()),
    "tril": lambda x: x.reshape(0, 3).tril(),
    "cdist": lambda x: rt.cdist(x.double().reshape(2, 0), x.double().reshape(3, 0)),
    "kron": lambda x: rt.kron(x, x),
    "embedding": lambda x: rt.nn.functional.embedding(x.long(), rt.ones(2, 3, device=x.device)),
    "det": lambda x: rt.linalg.det(x.double().reshape(0, 0)),
}


@pytest.mark.parametrize("dtype", [rt.float32, rt.float64, rt.int64, rt.int32, rt.uint8])
@pytest.mark.parametrize("name", NOTHING)
def test_of_nothing(name, dtype, device):  # noqa: F811
    results = []
    for place in ("cpu", "cuda"):
        found = NOTHING[name](rt.zeros(0, dtype=dtype, device=place))
        found = found if isinstance(found, tuple) else (found,)
        results.append([(str(t.dtype), tuple(t.shape), str(t.cpu().tolist())) for t in found])
        assert {t.device.type for t in found} == {place}
    assert results[0] == results[1]


NUMBERS = {
    "argmax": lambda x: x.argmax(),
    "argmax along": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(0),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(-1),
    "amax": lambda x: x.amax(()),
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(-1),
    "all": lambda x: x.all(0),
    "any": lambda x: x.any(),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(-1),
    "cummax": lambda x: x.cummax(0),
    "sort": lambda x: x.sort(),
    "topk": lambda x: x.topk(1),
    "kthvalue": lambda x: x.kthvalue(1),
    "median": lambda x: x.median(0),
    "mode": lambda x: x.mode(0),
    "nonzero": lambda x: x.nonzero(),
    "flip": lambda x: x.flip(()),
    "unique": lambda x: x.unique(),
    "softmax": lambda x: x.double().softmax(0),
    "logsumexp": lambda x: x.double().logsumexp(0),
    "norm": lambda x: x.double().norm(),
    "gather": lambda x: x.gather(0, rt.tensor([0], device=x.device)),
    "index_select": lambda x: x.index_select(0, rt.tensor([0], device=x.device)),
    "repeat": lambda x: x.repeat(2),
    "var": lambda x: x.double().var(correction=0),
    "aminmax": lambda x: x.aminmax(),
    "take": lambda x: rt.take(x, rt.tensor([0, 0], device=x.device)),
    "masked_select": lambda x: x[x > 0],
    "where": lambda x: rt.where(x > 0, x, x),
    "clamp": lambda x: x.clamp(0, 3),
    "logcumsumexp": lambda x: x.double().logcumsumexp(0),
    "roll": lambda x: x.roll(1),
    "count_nonzero": lambda x: x.count_nonzero(),
    "trapezoid": lambda x: (x + 1).expand(3).cumsum(0),
}


@pytest.mark.parametrize("dtype", [rt.float32, rt.float64, rt.int64])
@pytest.mark.parametrize("name", NUMBERS)
def test_of_a_number(name, dtype, device):  # noqa: F811
    results = []
    for place in ("cpu", "cuda"):
        found = NUMBERS[name](rt.tensor(5, dtype=dtype, device=place))
        results.append(
            [
                (str(t.dtype), tuple(t.shape), str(t.cpu().tolist()))
                for t in (found if isinstance(found, tuple) else (found,))
            ]
        )
    assert results[0] == results[1]


def too_many_indices(x):
    x[0, 0, 0] = 1


def too_many_to_read(x):
    x[0, 0] = x[0, 0, 0]


@pytest.mark.parametrize("kernel", [too_many_indices, too_many_to_read])
@pytest.mark.parametrize("run", [simulator.launch, simulator.check])
def test_more_indices_than_dimensions(run, kernel):
    with pytest.raises(simulator.OutOfBounds, match="x has 2 dimensions, and 3 indices were given"):
        run(kernel, 1, 1, np.zeros((2, 2)))


def test_a_new_machine_has_no_settings_of_the_old_one(device):  # noqa: F811
    fresh = vars(runtime.config()).copy()
    cuda.memory._set_allocator_settings("max_split_size_mb:100,garbage_collection_threshold:0.5")
    assert vars(runtime.config()) != fresh
    cuda.simulate(1)
    assert (
        runtime.config().max_split_size == fresh["max_split_size"]
        and runtime.config().last_settings == fresh["last_settings"]
    )
