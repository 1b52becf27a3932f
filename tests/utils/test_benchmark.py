"""`torch.utils.benchmark`: measurements, tables and fuzzed tensors as PyTorch's, with a clock that the test sets."""

import math

import pytest
import torch
import torch.utils.benchmark
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
import readtorch.utils.benchmark
from tests.programs import same
from tests.reference import assert_close

LIBRARIES = torch, rt


def clock(seconds):
    """A clock that goes on by the next of these at every second look, and then by the last: looks are in pairs."""
    now, looks, left = [0.0], [0], list(seconds)

    def time():
        looks[0] += 1
        if looks[0] % 2 == 0:
            now[0] += left.pop(0) if len(left) > 1 else left[0]
        return now[0]

    return time


def facts(m):
    assert math.isclose(m.mean, sum(m.times) / len(m.times))
    return m.number_per_run, m.raw_times, m.median, m.iqr, m.times, m.has_warnings, repr(m).partition("\n")[2]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.floats(1e-7, 1e-6),
    st.lists(st.floats(1e-5, 0.3), max_size=3),
    st.lists(st.floats(0.02, 0.3), min_size=1, max_size=30),
    st.sampled_from(["timeit", "blocked", "adaptive", "short"]),
)
def test_timers_measure_alike(overhead, first, then, how):
    """The clock's own time, five times; a few measurements for the block size, which runs the statement up to 1,000 times; and then."""
    found, seconds = [], [overhead] * 5 + first + then
    for T in LIBRARIES:
        seen = []
        timer = T.utils.benchmark.Timer("x + 1", globals={"x": 1}, timer=clock(seconds), label="l", num_threads=2)
        callback = lambda number, time: seen.append((number, time))  # noqa: E731
        m = {
            "timeit": lambda: timer.timeit(250),
            "blocked": lambda: timer.blocked_autorange(callback, min_run_time=0.5),
            "adaptive": lambda: timer.adaptive_autorange(0.3, max_run_time=2.0, callback=callback),
            "short": lambda: timer.adaptive_autorange(0.0, min_run_time=0.1, max_run_time=0.2),
        }[how]()
        found.append((facts(m), seen))
    assert found[0] == found[1]


def test_threads_and_globals():
    def program(T, show):
        before = T.get_num_threads()
        seen = []
        T.utils.benchmark.Timer(
            "seen.append((torch.get_num_threads(), torch.__name__, a))", "a = 3", globals={"seen": seen}, num_threads=2
        ).timeit(1)
        show(
            {(threads, name.removeprefix("read"), a) for threads, name, a in seen},
            len(seen),
            T.get_num_threads() == before,
        )
        given = {"x": 1}
        timer = T.utils.benchmark.Timer("\n    y = x\n    z = y\n", globals=given)
        show(given, [timer._task_spec.stmt], timer.timeit(1).title)

    same(program)


WRONG = [
    lambda B: B.Timer(3),
    lambda B: B.Timer("1", language="rust"),
    lambda B: B.Timer("1", global_setup="#include"),
    lambda B: B.Timer("1").repeat(),
    lambda B: B.Timer("1").autorange(),
    lambda B: B.Timer("no_such_name").timeit(1),
    lambda B: B.Timer("1 +").timeit(1),
    lambda B: B.Compare([3]),
    lambda B: B.trim_sigfig(3.0, 1.5),
    lambda B: B.Measurement(1, [1.0], B.TaskSpec("a", "")).nothing,
    lambda B: B.FuzzedParameter("x", distribution="normal"),
    lambda B: B.FuzzedParameter("x", distribution={1: -0.5, 2: 1.5}),
    lambda B: B.Fuzzer([B.FuzzedParameter("x", 1, 2, "uniform")], [B.FuzzedTensor("x", (1,))]),
    lambda B: list(B.Fuzzer([B.FuzzedParameter("x", 1, 2, "uniform")], [], [lambda params: False]).take(1)),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_errors(wrong):
    same(lambda T, show: show.error(lambda: wrong(T.utils.benchmark)))


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="readtorch has no C\\+\\+ to be timed"):
        rt.utils.benchmark.Timer("auto x = 1;", language="cpp")
    with pytest.raises(NotImplementedError, match="counts no instructions"):
        rt.utils.benchmark.Timer("1").collect_callgrind()
    with pytest.raises(AssertionError, match="not normalized"):
        rt.utils.benchmark.FuzzedParameter("x", distribution={1: 0.5})


TIMES = st.lists(st.floats(1e-8, 50.0), min_size=1, max_size=8)
NAMES = st.sampled_from([None, "", "add", "a longer name"])


@st.composite
def measurements(draw):
    """(times, number, fields of the TaskSpec), of which some are repetitions."""
    environments = draw(st.sampled_from([["fresh"], ["main", "branch-x"], [None]]))
    labels = draw(st.sampled_from([[None], ["label"], ["one", "another label"]]))
    return [
        (
            draw(TIMES),
            draw(st.integers(1, 100)),
            dict(
                stmt=draw(st.sampled_from(["x + y", "f(x)\ng(x)", ""])),
                setup=draw(st.sampled_from(["pass", "", "x = 1", "x = 1\ny = 2"])),
                label=draw(st.sampled_from(labels)),
                sub_label=draw(NAMES),
                description=draw(st.sampled_from(["before", "after", ""])),
                env=draw(st.sampled_from(environments)),
                num_threads=draw(st.sampled_from([1, 4])),
            ),
        )
        for _ in range(draw(st.integers(1, 6)))
    ]


def made(T, specification):
    B = T.utils.benchmark
    return [B.Measurement(number, times, B.TaskSpec(**fields)) for times, number, fields in specification]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(measurements(), st.booleans(), st.sampled_from([None, False, True]), st.booleans())
def test_tables(specification, trim, rowwise, highlight):
    found = []
    for T in LIBRARIES:
        compare = T.utils.benchmark.Compare(made(T, specification))
        if trim:
            compare.trim_significant_figures()
        if rowwise is not None:
            compare.colorize(rowwise)
        if highlight:
            compare.highlight_warnings()
        found.append(str(compare))
    assert found[0] == found[1]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(measurements())
def test_measurements(specification):
    theirs, ours = (made(T, specification) for T in LIBRARIES)
    for a, b in zip(theirs, ours):
        assert facts(a) == facts(b) and a.significant_figures == b.significant_figures
        assert (a.title, a.as_row_name, a.env, a.stmt, a.task_spec.setup_str()) == (
            b.title,
            b.as_row_name,
            b.env,
            b.stmt,
            b.task_spec.setup_str(),
        )
        assert a.task_spec.summarize() == b.task_spec.summarize()
    merged = [
        [(m.number_per_run, m.raw_times, m.title) for m in T.utils.benchmark.Measurement.merge(ms)]
        for T, ms in zip(LIBRARIES, (theirs, ours))
    ]
    assert merged[0] == merged[1]


@given(st.floats(1e-9, 1e4), st.integers(1, 5))
def test_numbers_for_people(x, n):
    theirs, ours = (T.utils.benchmark for T in LIBRARIES)
    assert theirs.select_unit(x) == ours.select_unit(x)
    assert theirs.unit_to_english(theirs.select_unit(x)[0]) == ours.unit_to_english(ours.select_unit(x)[0])
    assert math.isclose(theirs.trim_sigfig(x, n), ours.trim_sigfig(x, n), rel_tol=1e-6)
    assert theirs.ordered_unique([3, 1, 3, 2]) == ours.ordered_unique([3, 1, 3, 2])


def fuzzer(T, seed):
    B = T.utils.benchmark
    return B.Fuzzer(
        [
            B.FuzzedParameter("dim", 1, 4, "uniform", strict=True),
            [B.FuzzedParameter(f"k{i}", 1, 64, "loguniform") for i in range(4)],
            B.FuzzedParameter("step", 1, 3, "uniform"),
            B.FuzzedParameter("share", 0.0, 1.0, "uniform"),
        ],
        [
            B.FuzzedTensor("x", ("k0", "k1", "k2", "k3"), ("step", 1, 2), 0.5, 4, 4096, 40000, dim_parameter="dim"),
            [B.FuzzedTensor("y", ("k0", 3), dtype=T.int64, probability_contiguous=0.1)],
            B.FuzzedTensor(
                "z", (2, "k1"), tensor_constructor=lambda size, dtype, share, **_: T.full(size, share, dtype=dtype)
            ),
        ],
        [lambda params: params["k0"] != 7],
        seed,
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_fuzzed_tensors(seed):
    theirs, ours = (fuzzer(T, seed) for T in LIBRARIES)
    for (tensors, properties, params), (our_tensors, our_properties, our_params) in zip(
        theirs.take(3), ours.take(3), strict=True
    ):
        assert params == our_params
        for name, t in tensors.items():
            assert_close(our_tensors[name], t, exact=True)
            assert t.stride() == our_tensors[name].stride()
            assert {k: str(v) for k, v in properties[name].items()} == {
                k: str(v) for k, v in our_properties[name].items()
            }
    assert theirs.rejection_rate == ours.rejection_rate


def test_aliases():
    """With values that PyTorch's check of a dict lets through: none that add up to 1 are."""
    B = rt.utils.benchmark
    parameters = [
        B.FuzzedParameter("a", 2, 9, "uniform"),
        B.FuzzedParameter("b", distribution={1: 0.5, B.ParameterAlias("a"): 0.5}),
        B.FuzzedParameter("c", distribution={B.ParameterAlias("b"): 1.0}),
    ]
    found = [params for _, _, params in B.Fuzzer(parameters, [], seed=3).take(40)]
    assert all(p["b"] in (1, p["a"]) and p["c"] == p["b"] for p in found)
    assert {p["b"] == 1 for p in found} == {True, False}
    circle = [B.FuzzedParameter(x, distribution={B.ParameterAlias(y): 1.0}) for x, y in ("ab", "ba")]
    with pytest.raises(ValueError, match="ParameterAlias cycle detected"):
        next(B.Fuzzer(circle, []).take(1))
    assert repr(B.ParameterAlias("a")) == repr(torch.utils.benchmark.ParameterAlias("a"))
