"""Programs that every rank runs, written over `api`: the module `readtorch` or the module `torch`.

    python -m tests.distributed.programs NAME API BACKEND FOLDER

runs one as a rank of a launcher and leaves what it returns in FOLDER, pickled, in a file a rank. With threads as ranks the
tests call the functions themselves.
"""

import importlib
import pickle
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np

DTYPES = ("float32", "float64", "int64", "uint8", "bool", "bfloat16", "complex64")


def arrays(seed, *shape):
    """The same random numbers in both libraries."""
    return np.random.default_rng(seed).standard_normal(shape)


def plain(value):
    """Tensors as arrays, in lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        value = value.detach()
        return (value.float() if "bfloat16" in str(value.dtype) else value).numpy().copy()
    return value


def collectives(api, rank):
    """Every collective once, with values that tell the ranks apart."""
    dist = api.distributed
    size, seen = dist.get_world_size(), {}
    for name in DTYPES:
        t = (api.arange(5) + rank).to(getattr(api, name))
        dist.all_reduce(t)
        seen[f"sum of {name}"] = t
    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
        t = api.tensor(arrays(rank, 3, 4))
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        seen[op] = t
    for op in ("BAND", "BOR", "BXOR"):
        t = api.arange(6) * (rank + 3)
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        seen[op] = t
    mine = api.tensor(arrays(10 + rank, 2, 3))
    for name, t in (
        ("large", api.tensor(arrays(20 + rank, 7001))),
        ("none", api.zeros(0)),
        ("scalar", api.tensor(rank + 1.0)),
        ("not contiguous", api.tensor(arrays(30 + rank, 4, 6)).t()),
    ):
        dist.all_reduce(t)
        seen[name] = t
    t = mine.clone()
    dist.broadcast(t, src=size - 1)
    seen["broadcast"] = t
    t = mine.clone()
    dist.reduce(t, dst=1)
    seen["reduce"] = t if rank == 1 else None  # elsewhere the value is undefined
    lists = [api.zeros_like(mine) for _ in range(size)]
    dist.all_gather(lists, mine)
    seen["all_gather"] = lists
    whole = api.zeros(2 * size, 3, dtype=api.float64)
    dist.all_gather_single(whole, mine)
    seen["all_gather_single"] = whole
    lists = [api.zeros_like(mine) for _ in range(size)] if rank == 1 else None
    dist.gather(mine, lists, dst=1)
    seen["gather"] = lists
    t = api.zeros(2, 3, dtype=api.float64)
    dist.scatter(t, [mine * (i + 1) for i in range(size)] if rank == 0 else None, src=0)
    seen["scatter"] = t
    t = api.zeros(2, 3, dtype=api.float64)
    dist.reduce_scatter(t, [mine * (i + 1) for i in range(size)])
    seen["reduce_scatter"] = t
    t = api.zeros(2, dtype=api.float64)
    dist.reduce_scatter_single(t, api.tensor(arrays(40 + rank, 2 * size)))
    seen["reduce_scatter_single"] = t
    t = api.zeros(3 * size)
    dist.all_to_all_single(t, api.arange(3.0 * size) + 100 * rank)
    seen["all_to_all_single"] = t
    t = api.zeros(sum(range(1, size + 1)), 2)  # rank i sends j + 1 rows to rank j
    uneven = api.zeros(size * (rank + 1), 2)
    dist.all_to_all_single(
        uneven, t + rank, output_split_sizes=[rank + 1] * size, input_split_sizes=list(range(1, size + 1))
    )
    seen["uneven all_to_all_single"] = uneven
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    seen["all_gather_object"] = objects
    objects = [rank, "from", rank * 2]
    dist.broadcast_object_list(objects, src=1)
    seen["broadcast_object_list"] = objects
    objects = [None]
    dist.scatter_object_list(objects, ["a", 2, (3,), 4][:size] if rank == 0 else None, src=0)
    seen["scatter_object_list"] = objects
    objects = [None] * size if rank == 1 else None
    dist.gather_object("r" * rank, objects, dst=1)
    seen["gather_object"] = objects
    seen.update(groups(api, rank, size))
    seen.update(messages(api, rank, size))
    dist.barrier()
    return plain(seen)


def groups(api, rank, size):
    """Groups of some ranks."""
    dist = api.distributed
    ends = dist.new_group([0, size - 1])
    alone = dist.new_group([1])
    t, seen = (
        api.ones(2) * (rank + 1),
        {"ranks": [dist.get_rank(ends), dist.get_world_size(ends), dist.get_rank(alone)]},
    )
    if rank in (0, size - 1):
        dist.all_reduce(t, group=ends)
        dist.broadcast(t, src=size - 1, group=ends)
        seen["of the group"] = (
            dist.get_process_group_ranks(ends),
            dist.get_global_rank(ends, 1),
            dist.get_group_rank(ends, 0),
        )
    return seen | {"in a group": t, "not in it": dist.get_rank(alone) == -1}


def messages(api, rank, size):
    """One rank to another: blocking, not blocking, in a batch, with tags, from anyone."""
    dist = api.distributed
    left, right = (rank - 1) % size, (rank + 1) % size
    came, seen = [api.zeros(3) for _ in range(4)], {}
    works = [dist.isend(api.ones(3) * rank, right), dist.irecv(came[0], left)]
    for work in works:
        work.wait()
    batch = [dist.P2POp(dist.isend, api.ones(3) * (rank + 10), right), dist.P2POp(dist.irecv, came[1], left)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    works = [dist.isend(api.ones(3) * 7, right, tag=7), dist.isend(api.ones(3) * 8, right, tag=8)]
    dist.recv(came[3], left, tag=8)
    dist.recv(came[2], left, tag=7)
    for work in works:
        work.wait()
    dist.barrier()
    if rank == 0:
        senders = []
        for _ in range(size - 1):
            senders.append(dist.recv(api.zeros(2)))
        seen["from anyone"] = sorted(senders)
    else:
        dist.send(api.ones(2), 0)
    objects = [None, None]
    if rank == 0:
        dist.send_object_list(["one", 2], dst=1)
    if rank == 1:
        dist.recv_object_list(objects, src=0)
    return seen | {"came": came, "objects": objects}


STEPS, BATCH = 20, 12


def make_model(api):
    """Some layers with numbers that both libraries share."""
    nn = api.nn
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8, bias=False), nn.ReLU(), nn.Linear(8, 3)).double()
    with api.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(api.tensor(arrays(100 + i, *p.shape) / 3))
    return model


OPTIMIZERS = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.01}}


def train(api, model, optimizer, part):
    """20 steps with a part of each batch: (losses, parameters at the end)"""
    step = getattr(api.optim, optimizer)(model.parameters(), **OPTIMIZERS[optimizer])
    losses = []
    for i in range(STEPS):
        x, y = api.tensor(arrays(2 * i, BATCH, 6)), api.tensor(arrays(2 * i + 1, BATCH, 3))
        step.zero_grad()
        loss = ((model(x[part]) - y[part]) ** 2).mean()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses, plain(list(model.parameters()))


def data_parallel(api, rank):
    """DistributedDataParallel, each rank with its part of the batch, for both optimizers."""
    size = api.distributed.get_world_size()
    part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    results = {}
    for optimizer in OPTIMIZERS:
        model = make_model(api)
        if rank:
            with api.no_grad():
                for p in model.parameters():
                    p.zero_()  # rank 0's values must come
        wrapped = api.nn.parallel.DistributedDataParallel(model)
        results[optimizer] = train(api, wrapped, optimizer, part)[1]
    return results


def sync_batch_norm(api, rank):
    """See tests/distributed/test_sync_batch_norm.py."""
    from tests.distributed.test_sync_batch_norm import SIZES, all_cases

    return all_cases(rank, SIZES[api.distributed.get_world_size()])


def fully_sharded(api, rank):
    """See tests/distributed/sharded_programs.py."""
    from tests.distributed import sharded_programs

    return {
        "cases": sharded_programs.all_cases(api, rank),
        "exchange": sharded_programs.exchange(api, rank, "ours", "theirs"),
    }


def main(name, api, backend, folder):
    api = importlib.import_module(api)
    api.distributed.init_process_group(backend, timeout=timedelta(seconds=200))
    rank = api.distributed.get_rank()
    result = globals()[name](api, rank)
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(result))
    api.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
