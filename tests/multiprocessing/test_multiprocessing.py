"""Tensors in messages between processes, next to the reference's; and that nothing stays behind."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing as torch_mp

import readtorch as rt
import readtorch.multiprocessing as mp
from tests.reference import both


@pytest.fixture(params=sorted(mp.get_all_sharing_strategies()))
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def segments():
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"readtorch_{os.getpid()}_")]


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# One process


def test_all_tensors_of_a_storage_move_with_it(strategy):
    x = rt.arange(12.0)
    views = [x[2:], x.view(3, 4).t(), x.detach(), rt.nn.Parameter(x)]
    x.share_memory_()
    x += 100
    for view in views:
        assert view.is_shared() and view.untyped_storage() == x.untyped_storage()
    assert [v.flatten()[0].item() for v in views] == [102, 100, 100, 100]
    assert views[1].stride() == (1, 4) and views[0].storage_offset() == 2


def test_a_storage_moves_under_one_tensor():
    x = rt.randn(5)
    before = x.tolist()
    assert x.share_memory_() is x and x.tolist() == before
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address


def test_what_was_taken_out_of_numpy_stays_where_it_is():
    import numpy as np

    array = np.arange(3.0)
    x = rt.from_numpy(array).share_memory_()
    x += 1
    assert array.tolist() == [0, 1, 2] and x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda T: T.tensor(3),
        lambda T: T.ones(2, 3).t(),
        lambda T: T.nn.Linear(2, 2).weight,
        lambda T: T.ones(2, dtype=T.bool),
        lambda T: T.ones(3, dtype=T.bfloat16),
        lambda T: T.ones(4)[1:3],
    ],
)
def test_there_and_back(make, strategy):
    def run(T):
        t = make(T)
        back = pickle.loads(ForkingPickler.dumps(t))
        return (
            back.detach(),
            back.requires_grad,
            type(back).__name__,
            back.is_shared(),
            t.is_shared(),
            back.data_ptr() == t.data_ptr(),
            back.stride(),
            back.storage_offset(),
        )

    theirs, ours = run(torch), run(rt)
    assert theirs[1:] == ours[1:] and theirs[0].tolist() == ours[0].tolist()


def test_an_empty_tensor(strategy):
    back = pickle.loads(ForkingPickler.dumps(rt.empty(0, 3)))
    assert back.shape == (0, 3) and back.dtype == rt.float32


def test_tensors_of_a_message_share_what_they_shared(strategy):
    x = rt.arange(4.0)
    a, b = pickle.loads(ForkingPickler.dumps((x, x[1:])))
    a[1] = 9
    assert b[0] == 9 and x[1] == 9


def test_a_non_leaf_is_refused():
    texts = []
    for T in (torch, rt):
        with pytest.raises(RuntimeError) as caught:
            ForkingPickler.dumps(T.ones(2, requires_grad=True) * 2)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_hooks_are_left_out_with_a_warning():
    x = rt.ones(2, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="will not be serialized"):
        ForkingPickler.dumps(x)


def test_shared_memory_does_not_grow():
    x = rt.arange(3.0).share_memory_()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.untyped_storage().resize_(100)
    assert x.resize_(2).tolist() == [0, 1]


def test_storages():
    storage = rt.UntypedStorage._new_shared(8)
    assert storage.is_shared() and storage.fill_(3).tolist() == [3] * 8
    assert pickle.loads(ForkingPickler.dumps(storage)) == storage
    typed = rt.ones(3).storage()
    assert not typed.is_shared() and typed.share_memory_().is_shared()
    assert pickle.loads(ForkingPickler.dumps(typed)).tolist() == [1, 1, 1]
    assert typed._new_shared(4).is_shared()


def test_modules():
    model = rt.nn.Sequential(rt.nn.Linear(2, 2), rt.nn.BatchNorm1d(2))
    assert model.share_memory() is model
    assert all(t.is_shared() for t in model.state_dict().values())


def test_the_same_names():
    theirs = {name for name in vars(torch_mp) if not name.startswith("_")} - {"torch", "sys", "log"}
    assert theirs <= set(vars(mp)), theirs - set(vars(mp))
    assert set(mp.__all__) == set(torch_mp.__all__)


def test_strategies():
    both(lambda T: sorted(T.multiprocessing.get_all_sharing_strategies()))
    assert mp.get_sharing_strategy() == torch_mp.get_sharing_strategy()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")


def test_nothing_stays(strategy):
    pickle.loads(ForkingPickler.dumps(rt.ones(3)))  # starts the thread that answers for descriptors
    before = descriptors()
    for _ in range(20):
        x = rt.ones(1000)
        y = pickle.loads(ForkingPickler.dumps((x, x[1:])))
    assert (strategy == "file_system") == bool(segments())
    del x, y
    assert descriptors() <= before and not segments()


# Several processes


def answer(inbox, outbox, given):
    given += 1
    tensor = inbox.get()
    tensor += 1
    outbox.put((tensor, rt.nn.Parameter(rt.ones(2)), given))
    inbox.get()  # a sender must live until its descriptors have been fetched


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_queues(method, strategy):
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    given, sent = rt.zeros(3).share_memory_(), rt.arange(4.0)
    process = context.Process(target=answer, args=(inbox, outbox, given))
    process.start()
    inbox.put(sent)
    tensor, parameter, given_back = outbox.get(timeout=60)
    assert tensor.tolist() == sent.tolist() == [1, 2, 3, 4] and given.tolist() == [1, 1, 1]
    assert isinstance(parameter, rt.nn.Parameter) and parameter.requires_grad
    # a spawned process begins with the default strategy
    if method == "fork" or strategy == "file_descriptor":
        assert tensor.data_ptr() == sent.data_ptr()
    given_back += 1
    assert given.tolist() == [2, 2, 2]
    inbox.put(None)
    process.join()
    assert process.exitcode == 0


def test_pipes_and_pools(strategy):
    ours, theirs = mp.Pipe()
    sent = rt.arange(3.0)
    ours.send(sent)
    theirs.recv().add_(1)
    assert sent.tolist() == [1, 2, 3]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(rt.neg, [sent])[0].tolist() == [-1, -2, -3]


def write(i, tensor):
    tensor[i] = i


def fail(i):
    raise ValueError(f"process {i}")


def leave(i, how):
    os.kill(os.getpid(), signal.SIGKILL) if how == "kill" else sys.exit(how)


def test_spawn():
    tensor = rt.zeros(2).share_memory_()
    assert mp.spawn(write, (tensor,), nprocs=2) is None
    assert tensor.tolist() == [0, 1]


@pytest.mark.parametrize("fn, args", [(fail, ()), (leave, ("kill",)), (leave, (3,))])
def test_processes_that_fail(fn, args):
    found = []
    for module in (torch_mp, mp):
        with pytest.raises(Exception) as caught:
            module.start_processes(fn, args, nprocs=1, start_method="fork")
        error = caught.value
        text = str(error).replace(module.__file__.removesuffix("__init__.py"), "")
        shown = [line for line in text.splitlines() if not line.startswith("  ")]
        found.append((type(error).__name__, shown, error.error_index, getattr(error, "exit_code", None)))
    assert found[0] == found[1]


def test_joining_step_by_step():
    context = mp.start_processes(wait_a_little, nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join(timeout=0.05):
        pass
    assert context.join() is True


def wait_a_little(i):
    time.sleep(0.1)


def test_names_of_threads():
    before = mp._get_thread_name()
    mp._set_thread_name("reader of torches")
    assert mp._get_thread_name() == "reader of torch"
    mp._set_thread_name(before)


def test_names_go_when_the_program_is_killed():
    program = (
        "import os, signal, readtorch as rt; rt.multiprocessing.set_sharing_strategy('file_system'); "
        "x = rt.ones(3).share_memory_(); print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    source = os.path.dirname(os.path.dirname(rt.__file__))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + 20
    while any(name.startswith(f"readtorch_{done.stdout.strip()}_") for name in os.listdir("/dev/shm")):
        assert time.monotonic() < end
        time.sleep(0.05)
