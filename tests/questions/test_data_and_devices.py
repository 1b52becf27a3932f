"""Answers about loading data, devices, graphs and the installation. Devices are readtorch's simulated ones: their allocator
makes PyTorch's decisions."""

import gc
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset, get_worker_info

import readtorch as rt

MIB = 2**20


# -- loading data -------------------------------------------------------------------------------------


class Processes(Dataset):
    """Where each sample was fetched, and what NumPy draws there."""

    def __init__(self):
        self.own = np.random.default_rng(0)

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return os.getpid(), int(np.random.randint(2**31)), int(self.own.integers(2**31))


class Numbers(IterableDataset):
    def __init__(self, shared):
        self.shared = shared

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 4, info.num_workers) if self.shared else range(4))


def fetched(**options):
    return zip(*DataLoader(Processes(), batch_size=None, **options))


def test_what_does_num_workers_do():
    assert set(next(fetched())) == {os.getpid()}
    here, *_ = fetched(num_workers=2)
    assert len(set(here)) == 2 and os.getpid() not in here


def test_what_does_pin_memory_do():
    data = TensorDataset(torch.ones(2))
    with pytest.warns(UserWarning, match="no accelerator is found, then device pinned memory won't be used"):
        list(DataLoader(data, pin_memory=True))


def test_what_does_prefetch_factor_do():
    data = TensorDataset(torch.ones(2))
    assert DataLoader(data, num_workers=1).prefetch_factor == 2 and DataLoader(data).prefetch_factor is None


def test_do_workers_repeat_each_other_s_random_numbers():
    _, drawn, own = fetched(num_workers=2)
    assert len(set(drawn)) == 4 and len(set(own)) == 2, "the generator that was copied draws the same in each worker"


@pytest.mark.parametrize(("shared", "times"), [(False, 2), (True, 1)])
def test_why_does_every_sample_come_twice_from_my_iterabledataset(shared, times):
    loader = DataLoader(Numbers(shared), batch_size=None, num_workers=2)
    assert sorted(loader) == sorted(list(range(4)) * times)


@pytest.mark.parametrize("persistent", [False, True])
def test_what_does_persistent_workers_do(persistent):
    loader = DataLoader(Processes(), batch_size=None, num_workers=1, persistent_workers=persistent)
    first, second = ({process for process, *_ in loader} for _ in range(2))
    assert (first == second) == persistent


def test_what_does_stack_expects_each_tensor_to_be_equal_size_mean():
    data = [torch.ones(2), torch.ones(3)]
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(DataLoader(data, batch_size=2))
    pad = lambda samples: nn.utils.rnn.pad_sequence(samples, batch_first=True)  # noqa: E731
    [batch] = DataLoader(data, batch_size=2, collate_fn=pad)
    assert batch.shape == (2, 3)


def test_why_must_a_script_with_workers_say_if_name_main():
    """Python 3.14 changed the default on Linux."""
    if sys.platform == "linux":
        assert multiprocessing.get_start_method() == ("forkserver" if sys.version_info >= (3, 14) else "fork")


def test_how_do_i_resume_in_the_middle_of_an_epoch():
    class Counting(torch.utils.data.Sampler):
        given = 0

        def __iter__(self):
            for index in range(40):
                self.given += 1
                yield index

    sampler = Counting()
    steps = iter(DataLoader(range(40), 2, sampler=sampler, num_workers=2))
    assert [next(steps).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    assert sampler.given == 14


def test_what_does_too_many_open_files_mean_in_a_dataloader():
    def descriptors():
        gc.collect()  # what earlier tests have left is closed now, and not in between
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    kept = list(DataLoader(range(64), num_workers=1))
    during = descriptors()
    del kept[:]
    assert during - before >= 64 > 32 > descriptors() - before


def test_what_does_set_epoch_do():
    sampler = DistributedSampler(range(100), num_replicas=2, rank=0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    other = DistributedSampler(range(100), num_replicas=2, rank=1)
    assert set(first).isdisjoint(other) and len({*first, *other}) == 100


# -- the GPU and its memory ---------------------------------------------------------------------------


@pytest.fixture
def device():
    rt.cuda.simulate(memory=64 * MIB)
    yield rt.device("cuda")
    rt.cuda.simulate(0)


def test_why_is_my_gpu_memory_not_freed(device):
    x = rt.ones(4 * MIB // 4, device=device)
    view = x[:1]
    reserved = rt.cuda.memory_reserved()
    del x
    assert rt.cuda.memory_allocated() == 4 * MIB, "a view holds it"
    del view
    assert rt.cuda.memory_allocated() == 0 and rt.cuda.memory_reserved() == reserved > 0


def test_what_does_torch_cuda_empty_cache_do(device):
    kept, freed = rt.ones(1, device=device), rt.ones(20 * MIB // 4, device=device)
    del freed
    rt.cuda.empty_cache()
    assert rt.cuda.memory_reserved() == 2 * MIB, "the segment of the small tensor stays"
    assert kept.item() == 1


def test_what_is_the_difference_between_allocated_and_reserved_memory(device):
    x = rt.ones(1, device=device)
    assert rt.cuda.memory_allocated() == 512 and rt.cuda.memory_reserved() == 2 * MIB
    assert x.item() == 1


def test_why_am_i_out_of_memory_although_enough_is_free(device):
    parts = [rt.ones(4 * MIB // 4, device=device) for _ in range(15)]
    del parts[::2]
    assert 64 * MIB - rt.cuda.memory_allocated() > 32 * MIB
    with pytest.raises(rt.OutOfMemoryError):
        rt.ones(8 * MIB // 4, device=device)


def test_why_does_nvidia_smi_show_more_than_memory_allocated(device):
    x = rt.ones(1, device=device)
    free, total = rt.cuda.mem_get_info()
    assert total - free >= rt.cuda.memory_reserved() == 2 * MIB > rt.cuda.memory_allocated() == 512
    assert x.item() == 1


def test_what_do_the_numbers_of_cuda_out_of_memory_mean(device):
    parts = [rt.ones(4 * MIB // 4, device=device) for _ in range(15)]
    del parts[::2]
    with pytest.raises(rt.OutOfMemoryError) as caught:
        rt.ones(8 * MIB // 4, device=device)
    message = str(caught.value)
    free, total = rt.cuda.mem_get_info()
    holes = rt.cuda.memory_reserved() - rt.cuda.memory_allocated()
    for words in (
        "Tried to allocate 20.00 MiB",  # a segment: what is asked of the driver
        f"total capacity of {total / MIB:.2f} MiB of which {free / MIB:.2f} MiB is free",
        f"{rt.cuda.memory_allocated() / MIB:.2f} MiB is allocated by PyTorch",
        f"{holes / MIB:.2f} MiB is reserved by PyTorch but unallocated",
    ):
        assert words in message


def test_how_do_i_find_out_what_uses_the_memory(device):
    rt.cuda.memory._record_memory_history()
    x = rt.ones(1000, device=device)
    [block] = [
        b for s in rt.cuda.memory._snapshot()["segments"] for b in s["blocks"] if b["state"] == "active_allocated"
    ]
    assert any(frame["filename"] == __file__ for frame in block["frames"]) and x.numel() == 1000
    rt.cuda.memory._record_memory_history(enabled=None)
    assert callable(torch.cuda.memory._record_memory_history) and callable(torch.cuda.memory._dump_snapshot)


def test_what_is_device_side_assert_triggered():
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        nn.functional.cross_entropy(torch.randn(1, 3), torch.tensor([3]))
    with pytest.raises(IndexError, match="index out of range in self"):
        nn.Embedding(2, 1)(torch.tensor([2]))


def test_what_is_tf32():
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32


def test_what_does_cudnn_benchmark_do():
    assert torch.backends.cudnn.benchmark is False


# -- several devices ----------------------------------------------------------------------------------


def test_when_do_i_need_syncbatchnorm():
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2)))
    assert isinstance(net[0], nn.SyncBatchNorm)


def doubled(queue, done):
    queue.get().mul_(2)
    done.set()


def test_how_do_i_share_a_tensor_between_processes():
    context = torch.multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    queue, done, x = context.Queue(), context.Event(), torch.ones(2)
    child = context.Process(target=doubled, args=(queue, done))
    child.start()
    queue.put(x)
    assert done.wait(60) and x.is_shared() and x.tolist() == [2, 2]
    child.join()


# -- graphs and compilers -----------------------------------------------------------------------------


class Backend:
    """A backend of `torch.compile` that notes the graphs it gets."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        return graph.forward


@pytest.fixture
def backend():
    torch._dynamo.reset()
    yield Backend()
    torch._dynamo.reset()


def test_what_does_torch_compile_do_at_the_first_call(backend):
    compiled = torch.compile(lambda x: x.sin() + 1, backend=backend)
    assert backend.graphs == []
    for _ in range(3):
        compiled(torch.ones(2))
    assert len(backend.graphs) == 1


def test_why_does_torch_compile_compile_again(backend):
    scale = 2

    def f(x):
        return x * scale

    compiled, counts = torch.compile(f, backend=backend), []
    for x in (torch.ones(2), torch.ones(2), torch.ones(2).double(), torch.ones(2, 2), torch.ones(5), torch.ones(6)):
        compiled(x)
        counts.append(len(backend.graphs))
    assert counts == [1, 1, 2, 3, 4, 4], "the last two have one graph for any size"
    scale = 3
    assert compiled(torch.ones(6)).tolist() == [3] * 6 and len(backend.graphs) == 5


def test_what_is_a_graph_break(backend, capsys):
    def f(x):
        y = x.sin()
        print("between")
        return y + 1

    torch.compile(f, backend=backend)(torch.ones(2))
    assert len(backend.graphs) == 2 and "between" in capsys.readouterr().out
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="print"):
        torch.compile(f, backend=backend, fullgraph=True)(torch.ones(2))
    with pytest.raises(torch._dynamo.exc.TorchDynamoException):
        torch.compile(lambda x: x if x[0] > 0 else -x, backend=backend, fullgraph=True)(torch.ones(2))


def flips(x):
    if x.sum() > 0:
        return x
    return -x


@pytest.mark.filterwarnings("ignore:`torch.jit.trace` is deprecated")
def test_why_does_my_traced_model_ignore_an_if():
    with pytest.warns(torch.jit.TracerWarning, match="Converting a tensor to a Python boolean"):
        traced = torch.jit.trace(flips, torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [-1, -1] != flips(-torch.ones(2)).tolist()


def test_is_torchscript_deprecated():
    for make in (lambda: torch.jit.script(nn.ReLU()), lambda: torch.jit.trace(nn.ReLU(), torch.ones(1))):
        with pytest.warns(DeprecationWarning, match=r"deprecated.*torch\.compile.*torch\.export"):
            make()


def test_how_do_i_run_a_model_without_python():
    program = torch.export.export(nn.Linear(2, 1), (torch.ones(1, 2),))
    assert "linear" in program.graph_module.code


def test_why_is_my_exported_program_wrong_for_one_row():
    class Branches(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] == 1 else x * 3

    sizes = {"x": {0: torch.export.Dim("rows")}}
    program = torch.export.export(Branches(), (torch.ones(4, 1),), dynamic_shapes=sizes).module()
    assert Branches()(torch.ones(1, 1)).item() == 2 and program(torch.ones(1, 1)).item() == 3


# -- the installation ---------------------------------------------------------------------------------


def test_why_does_import_torch_fail_with_partially_initialized_module(tmp_path):
    (tmp_path / "torch.py").write_text("import torch\ntorch.ones(2)\n")
    done = subprocess.run([sys.executable, tmp_path / "torch.py"], capture_output=True, text=True)
    assert "has no attribute 'ones'" in done.stderr and "partially initialized module 'torch'" in done.stderr


def test_how_do_i_see_whether_pytorch_can_use_my_gpu():
    assert torch.cuda.is_available() or torch.version.cuda is None or torch.cuda.device_count() == 0


def test_what_is_a_dtensor():
    """The parameters of a model after fully_shard: the whole one's sizes, and a part of its rows."""
    from readtorch import distributed as dist
    from readtorch.distributed.fsdp import fully_shard
    from readtorch.distributed.tensor import DTensor

    whole = rt.arange(8.0).reshape(4, 2)

    def run(rank):
        net = rt.nn.Linear(2, 4, bias=False)
        with rt.no_grad():
            net.weight.copy_(whole)
        fully_shard(net, mesh=dist.init_device_mesh("cpu", (2,)))
        w = net.weight
        assert isinstance(w, DTensor) and w.shape == (4, 2)
        return w.to_local().tolist(), w.full_tensor().tolist()

    rows = whole.tolist()
    assert dist.run_threads(run, 2) == [(rows[:2], rows), (rows[2:], rows)]


def test_where_is_pytorch_s_c_source():
    home = Path(torch.__file__).parent
    assert (home / "include/ATen/core/Tensor.h").exists() and not list(home.rglob("engine.cpp"))
