"""`DataLoader` next to the reference's: order, random numbers, errors, warnings; and what workers may do to
it."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch.utils.data._utils import record
from tests.reference import seed_both

BOTH = [torch, rt]


def datasets(T):
    """Map-style and iterable datasets of one implementation."""
    data = T.utils.data

    class Numbers(data.Dataset):
        def __init__(self, n=10, draw=False):
            self.n, self.draw = n, draw

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            if self.draw:
                return random.random(), float(np.random.rand()), T.rand(()).item()
            return i, {"x": T.tensor([i, i * i]), "name": str(i)}

    class Stream(data.IterableDataset):
        def __init__(self, n=10):
            self.n = n

        def __len__(self):
            return self.n

        def __iter__(self):
            info = data.get_worker_info()
            return iter(range(self.n)) if info is None else iter(range(info.id, self.n, info.num_workers))

    return Numbers, Stream


def plain(value):
    """Tensors as lists, so that both sides compare equal."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def outcome(run, T):
    """What `run(T)` gives, and its warnings; or the type and text of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(run(T))
        except Exception as error:
            result = type(error), str(error)
    return result, [
        str(w.message).replace("readtorch", "torch")
        for w in caught
        if "worker processes in total" not in str(w.message)
    ]


def same(run):
    results = []
    for T in BOTH:
        seed_both(3)
        random.seed(3)
        results.append(outcome(run, T))
    assert results[0] == results[1]
    return results[1][0]


# Order and random numbers


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": None},
        {"batch_size": 4, "shuffle": True},
        {"sampler": [3, 1, 2]},
        {"batch_sampler": [[1, 2], [0]]},
        {"shuffle": True, "batch_size": None},
    ],
)
def test_batches(options, workers):
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[0](), num_workers=workers, **options)
        return [list(loader), len(loader), T.rand(3), list(loader)]

    same(run)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}])
def test_streams(options, workers):
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[1](), num_workers=workers, **options)
        return [len(loader), list(loader)]

    same(run)


def test_a_stream_longer_than_it_says():
    def run(T):
        stream = datasets(T)[1]()
        stream.__class__.__len__ = lambda self: 3
        stream.__class__.__repr__ = lambda self: "Stream"
        loader = T.utils.data.DataLoader(stream, num_workers=1)
        return [len(loader), list(loader)]

    same(run)


@pytest.mark.parametrize("options", [{}, {"generator": 7}, {"persistent_workers": True}])
def test_workers_draw_the_same_numbers(options):
    def run(T):
        chosen = dict(options)
        if "generator" in chosen:
            chosen["generator"] = T.Generator().manual_seed(7)
        loader = T.utils.data.DataLoader(datasets(T)[0](8, draw=True), 2, num_workers=2, shuffle=True, **chosen)
        return [list(loader), list(loader), T.rand(2)]

    same(run)


def test_what_a_worker_knows():
    def run(T):
        data = T.utils.data
        said = []

        class Facts(data.Dataset):
            def __len__(self):
                return 2

            def __getitem__(self, i):
                info = data.get_worker_info()
                return [
                    info.id,
                    info.num_workers,
                    info.seed,
                    info.dataset is self,
                    len(said),
                    T.get_num_threads(),
                    info.worker_method,
                    info.rng,
                ]

        loader = data.DataLoader(Facts(), num_workers=2, worker_init_fn=said.append, collate_fn=list)
        return [list(loader), data.get_worker_info()]

    same(run)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method):
    loader = rt.utils.data.DataLoader(
        rt.utils.data.TensorDataset(rt.arange(6.0)), 2, num_workers=1, multiprocessing_context=method
    )
    assert [b.tolist() for (b,) in loader] == [[0, 1], [2, 3], [4, 5]]


def test_persistent_workers_after_a_pass_left_half_way():
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[0](), 2, num_workers=2, persistent_workers=True)
        first = next(iter(loader))
        return [first, list(loader), list(loader)]

    same(run)


def test_a_fast_worker_may_overtake():
    def collate(samples):
        time.sleep(1 if samples[0][0] == 0 else 0)
        return samples[0][0]

    loader = rt.utils.data.DataLoader(datasets(rt)[0](6), num_workers=2, collate_fn=collate, in_order=False)
    order = list(loader)
    assert sorted(order) == list(range(6)) and order[0] != 0


def test_batches_travel_in_shared_memory():
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[0](), 2, num_workers=1)
        return [[batch[1]["x"].is_shared(), batch[0].is_shared()] for batch in loader]

    same(run)


def test_a_worker_collates_into_shared_memory():
    def run(T):
        def where(samples):
            made = T.utils.data.default_collate(samples)
            flat = [made["array"], *made["pair"], made["number"], made["t"], made["nested"]["deep"][0]]
            return [(t.is_shared(), t.tolist()) for t in flat]

        class Mixed(T.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                t = T.full((2, 1), float(i))
                deep = {"deep": [T.tensor([i])]}
                return {"array": np.full(3, i), "pair": (t, t.t()), "number": i / 2, "t": t[0], "nested": deep}

        return [list(T.utils.data.DataLoader(Mixed(), 3, num_workers=n, collate_fn=where)) for n in (0, 2)]

    same(run)


def test_long_messages_and_many_tensors():
    class Long(rt.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return "x" * 100_000, np.full(50_000, i), [rt.full((2,), j) for j in range(600)]

    for text, array, tensors in rt.utils.data.DataLoader(Long(), None, num_workers=2, collate_fn=lambda sample: sample):
        assert len(text) == 100_000 and len(set(array.tolist())) == 1
        assert [t.tolist() for t in tensors] == [[j, j] for j in range(600)]


def test_indices_that_do_not_fit_into_the_socket():
    batches = [list(range(30_000))] * 40
    loader = rt.utils.data.DataLoader(
        range(30_000), batch_sampler=batches, num_workers=1, prefetch_factor=40, collate_fn=len
    )
    assert list(loader) == [30_000] * 40


# Errors and warnings


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"num_workers": 1, "prefetch_factor": -1},
        {"num_workers": 1, "prefetch_factor": 0},
        {"persistent_workers": True},
        {"sampler": [0], "shuffle": True},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_sampler": [[0]], "drop_last": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "knife"},
        {"num_workers": 1, "multiprocessing_context": 3},
        {"timeout": 1},
        {"pin_memory": True, "pin_memory_device": "cuda"},
        {"pin_memory": True},
    ],
)
def test_arguments_that_do_not_fit(options):
    same(lambda T: list(T.utils.data.DataLoader(datasets(T)[0](3), **options)))


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}, {"shuffle": False}])
def test_arguments_that_do_not_fit_a_stream(options):
    same(lambda T: list(T.utils.data.DataLoader(datasets(T)[1](3), **options)))


def test_fixed_attributes():
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[0](3))
        loader.num_workers = 0
        loader.batch_size = 2

    same(run)


def test_too_many_workers():
    many = len(os.sched_getaffinity(0)) + 1
    texts = []
    for T in BOTH:
        with pytest.warns(UserWarning) as caught:
            T.utils.data.DataLoader([1], num_workers=many)
        texts.append([str(w.message) for w in caught])
    assert texts[0] == texts[1]


def test_the_signature():
    import inspect

    theirs, ours = (inspect.signature(T.utils.data.DataLoader.__init__).parameters for T in BOTH)
    assert [(p.name, p.default, p.kind) for p in theirs.values()] == [
        (p.name, p.default, p.kind) for p in ours.values()
    ]


class Strange(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize("error", [ValueError("a"), KeyError("key"), Strange(1, 2), StopIteration(), IndexError(3)])
@pytest.mark.parametrize("where", ["dataset", "collate", "init"])
def test_exceptions_arrive(error, where):
    def fail(at):
        if at == where:
            raise error

    def run(T):
        class Failing(T.utils.data.Dataset):
            def __len__(self):
                return 2

            def __getitem__(self, i):
                fail("dataset")
                return i

        loader = T.utils.data.DataLoader(
            Failing(), num_workers=1, collate_fn=lambda batch: fail("collate"), worker_init_fn=lambda i: fail("init")
        )
        try:
            return list(loader)
        except Exception as caught:
            lines = str(caught).splitlines()
            return [type(caught).__name__, lines[:2], lines[-1]]

    same(run)


class Deadly(rt.utils.data.Dataset):
    def __init__(self, act):
        self.act = act

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 2:
            self.act()
        return i


@pytest.mark.parametrize(
    "act, cause",
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"DataLoader worker \(pid \d+\) is killed by signal: Killed. "),
        (lambda: os._exit(3), r"DataLoader worker \(pid \d+\) exited unexpectedly with exit code 3. Details are lost"),
        (lambda: os._exit(0), None),
        (
            lambda: os.kill(os.getpid(), signal.SIGBUS),
            "signal: Bus error. It is possible that dataloader's workers are out",
        ),
    ],
)
def test_a_worker_dies(act, cause):
    """Found by whoever waits, with SIGCHLD's text as cause; or by SIGCHLD's handler between two waits."""
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid(\(s\))? \d+\) (exited|is killed)") as caught:
        list(rt.utils.data.DataLoader(Deadly(act), num_workers=1))
    error = caught.value
    if "(pid(s) " in str(error):
        assert (error.__cause__ is None) == (cause is None)
        error = error.__cause__
    assert cause is None or re.search(cause, str(error))


def test_news_of_a_dead_worker_comes_while_the_consumer_is_busy():
    iterator = iter(rt.utils.data.DataLoader(Deadly(lambda: None), num_workers=2))
    next(iterator)
    pid = iterator._workers[0].pid
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {pid}\) is killed by signal: Killed. "):
        os.kill(pid, signal.SIGKILL)
        for _ in range(500):
            time.sleep(0.01)


def test_a_worker_hangs(monkeypatch):
    monkeypatch.setattr("readtorch.utils.data._utils.worker_pool.MP_STATUS_CHECK_INTERVAL", 0.2)
    loader = rt.utils.data.DataLoader(Deadly(lambda: time.sleep(1000)), num_workers=1, timeout=1)
    with pytest.raises(
        RuntimeError, match=r"^DataLoader timed out after 1 seconds \(waiting for worker pid\(s\) \d+\)$"
    ):
        list(loader)


def test_a_batch_that_cannot_be_sent():
    with pytest.raises(Exception, match="Caught .* in DataLoader worker process 0.\nOriginal Traceback"):
        list(rt.utils.data.DataLoader(Deadly(None), num_workers=1, collate_fn=lambda batch: lambda: 0))


# What is left


@pytest.mark.alone  # segments are counted for the whole machine
def test_random_faults():
    """Forty of the 300 runs of `python -m tests.data.faults`."""
    done = in_process("-m", "tests.data.faults", "--runs", "40", "--seed", "1000", "--fork-only")
    assert "40 runs, 0 failures" in done.stdout, done.stdout + done.stderr


def in_process(*arguments, **options):
    source = os.path.dirname(os.path.dirname(rt.__file__))
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    paths = os.pathsep.join([source, root, os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        **options,
    )


PROGRAM = """
import os, signal, sys, time
import readtorch
from readtorch.utils.data import DataLoader, Dataset
from readtorch.utils.data._utils import worker
worker.MP_STATUS_CHECK_INTERVAL = 0.5
class Slow(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, i):
        if i >= 2:
            time.sleep({sleep})
        return i
iterator = iter(DataLoader(Slow(), num_workers=2, persistent_workers={persistent}))
next(iterator)
print(*[p.pid for p in iterator._workers], flush=True)
{end}
"""


@pytest.mark.parametrize("sleep", [0.01, 1000])
def test_workers_end_with_their_parent(sleep):
    end = "os.kill(os.getpid(), signal.SIGKILL)"
    done = in_process("-c", PROGRAM.format(sleep=sleep, persistent=False, end=end))
    assert done.returncode == -signal.SIGKILL
    assert_gone(done)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise SystemExit"])
def test_the_interpreter_ends_in_the_middle_of_a_pass(end, persistent):
    done = in_process("-c", PROGRAM.format(sleep=0.01, persistent=persistent, end=end))
    assert (done.returncode, done.stderr) == (0, "")
    assert_gone(done)


def assert_gone(done):
    pids = done.stdout.split()
    assert len(pids) == 2
    end = time.monotonic() + 20
    while any(map(is_running, pids)):
        assert time.monotonic() < end, "a worker still runs"
        time.sleep(0.05)


def is_running(pid):
    """A zombie waits for whoever adopted it: it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.alone
def test_an_idle_loader_uses_no_processor():
    iterator = iter(rt.utils.data.DataLoader(range(100), num_workers=2))
    next(iterator)
    pids = [p.pid for p in iterator._workers]
    time.sleep(0.5)
    before = sum(map(processor_seconds, pids))
    time.sleep(3)
    assert sum(map(processor_seconds, pids)) - before <= 0.03


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_forked_program_leaves_the_workers_alone():
    iterator = iter(rt.utils.data.DataLoader(range(8), num_workers=1))
    assert next(iterator).tolist() == [0]
    pid = os.fork()
    if pid == 0:
        del iterator
        os._exit(0)
    os.waitpid(pid, 0)
    assert [b.item() for b in iterator] == list(range(1, 8))


# The record


@pytest.mark.parametrize("workers", [0, 2])
def test_the_record_tells_each_batch_s_way(workers):
    with record.recording() as events:
        list(rt.utils.data.DataLoader(range(6), 2, num_workers=workers))
    way = (
        ["send", "fetch begin", "fetch end", "put", "receive", "yield"]
        if workers
        else ["fetch begin", "fetch end", "yield"]
    )
    for task in range(3):
        mine = sorted(e for e in events if e.task == task)
        assert [e.what for e in mine] == way
    assert sum(e.what == "wait begin" for e in events) == sum(e.what == "wait end" for e in events) == 4
    first = next(e for e in events if e.index is not None)
    assert (first.task, first.index) == (0, [0, 1])
    assert record.events is None
