"""What `fully_shard` does, as programs that both libraries run: `api` is the module `readtorch` or the module `torch`."""

import importlib
import os
import warnings
from pathlib import Path

from tests.distributed.programs import arrays, plain

VOCABULARY, WIDTH, LENGTH, BATCH = 13, 6, 5, 8
FOLDER = "READTORCH_TEST_CHECKPOINTS"  # where ranks leave checkpoints for one another


def make_gpt(api, width=WIDTH, vocabulary=VOCABULARY, layers=2, checkpointed=False):
    nn, functional = api.nn, api.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width, bias=False)
            self.mlp = nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
            )

        def forward(self, x):
            if checkpointed:
                return api.utils.checkpoint.checkpoint(self.compute, x, use_reentrant=False)
            return self.compute(x)

        def compute(self, x):
            q, k, v = self.qkv(self.norm(x)).unsqueeze(1).chunk(3, dim=-1)
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(1))
            return x + self.mlp(x)

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.head = nn.Linear(width, vocabulary)

        def forward(self, ids):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    model = GPT().double()
    with api.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(api.tensor(arrays(100 + i, *parameter.shape)) / 3)
    return model


def texts(api, step, rank=0, size=1):
    """A part of a batch of texts."""
    ids = (arrays(step, BATCH, LENGTH + 1) * 1000).astype("int64") % VOCABULARY
    return api.tensor(ids[rank * BATCH // size : (rank + 1) * BATCH // size])


def loss_of(api, model, ids):
    return api.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1).double(), ids[:, 1:].flatten())


def optimizer_of(api, model):
    return api.optim.AdamW(model.parameters(), lr=0.05)


def train(api, model, optimizer, steps, rank=0, size=1):
    losses = []
    for step in steps:
        loss = loss_of(api, model, texts(api, step, rank, size))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def shards(model):
    """What this rank has of each parameter."""
    return {name: plain(parameter.to_local()) for name, parameter in model.named_parameters()}


def mesh_of(api, shape):
    names = ("rows", "columns")[: len(shape)]
    make = importlib.import_module(f"{api.__name__}.distributed.device_mesh").init_device_mesh
    return make("cpu", shape, mesh_dim_names=names)


def fsdp_of(api):
    return importlib.import_module(f"{api.__name__}.distributed.fsdp")


def sharded_gpt(api, checkpointed=False, **settings):
    fsdp, model = fsdp_of(api), make_gpt(api, checkpointed=checkpointed)
    size = api.distributed.get_world_size()
    settings.setdefault("mesh", mesh_of(api, (size,)))
    for block in model.blocks:
        fsdp.fully_shard(block, **settings)
    return fsdp.fully_shard(model, **settings)


def trained(api, rank, prepare=lambda model: None, steps=3, **settings):
    model, size = sharded_gpt(api, **settings), api.distributed.get_world_size()
    prepare(model)
    losses = train(api, model, optimizer_of(api, model), range(steps), rank, size)
    return {"losses": losses, "shards": shards(model)}


def placements(api):
    """Every weight of two dimensions that can be cut along the second one is."""
    shard = importlib.import_module(f"{api.__name__}.distributed.tensor").Shard
    return lambda parameter: shard(1) if parameter.ndim == 2 and parameter.size(1) % 4 == 0 else None


def tensor_parallel_gpt(api, mesh, **settings):
    """Columns and rows over the last dimension of the mesh, all parameters over the others."""
    model, parallel = make_gpt(api), importlib.import_module(f"{api.__name__}.distributed.tensor.parallel")
    replicated = importlib.import_module(f"{api.__name__}.distributed.tensor").Replicate()
    plan = {
        "embedding": parallel.RowwiseParallel(input_layouts=replicated),
        "blocks.*.mlp.1": parallel.ColwiseParallel(),
        "blocks.*.mlp.3": parallel.RowwiseParallel(),
        "head": parallel.ColwiseParallel(output_layouts=replicated),
    }
    parallel.parallelize_module(model, mesh[mesh.mesh_dim_names[-1]], plan)
    rest = mesh[mesh.mesh_dim_names[:-1]]
    for block in model.blocks:
        fsdp_of(api).fully_shard(block, mesh=rest, **settings)
    return fsdp_of(api).fully_shard(model, mesh=rest, **settings)


def tensor_parallel(api, rank, steps=3):
    """The whole parameters, too, and how they are placed: those of a step that adds up two backward passes, the last one."""
    size = api.distributed.get_world_size() // 2
    model = tensor_parallel_gpt(api, mesh_of(api, (size, 2)))
    optimizer = optimizer_of(api, model)
    losses = train(api, model, optimizer, range(steps - 1), rank // 2, size)
    for piece in range(2):
        model.set_requires_gradient_sync(piece == 1)
        (loss_of(api, model, texts(api, steps - 1, rank // 2, size)) / 2).backward()
    optimizer.step()
    return {
        "losses": losses,
        "shards": shards(model),
        "placed": {
            name: (repr(value.placements), repr(value.device_mesh)) for name, value in model.state_dict().items()
        },
        "whole": {name: plain(value.full_tensor()) for name, value in model.named_parameters()},
    }


def accumulated(api, rank):
    """Two pieces of the batch, of which only the second one's backward pass reduces."""
    model, size = sharded_gpt(api), api.distributed.get_world_size()
    optimizer, seen = optimizer_of(api, model), []
    for step in range(2):
        for piece in range(2):
            last = piece == 1
            model.set_requires_gradient_sync(last)
            model.set_reshard_after_backward(last)
            model.set_is_last_backward(last)
            (loss_of(api, model, texts(api, 2 * step + piece, rank, size)) / 2).backward()
            seen.append([p.grad is not None for p in model.blocks[0].parameters()])
        optimizer.step()
        optimizer.zero_grad()
    return {"shards": shards(model), "seen": seen}


def own_collectives(api, rank):
    """An all-gather and a reduce-scatter of the program's own, a hook, a group and two buffers for reductions."""
    policies = importlib.import_module(f"{api.__name__}.distributed.fsdp._fully_shard._fsdp_api")
    seen = []

    class Buffers:
        def allocate(self, size, *, dtype, device):
            seen.append(("allocate", tuple(size)))
            return api.empty(*size, dtype=dtype, device=device)

    class Gather(Buffers, policies.AllGather):
        def __call__(self, output_tensor, input_tensor, group, async_op=False):
            return api.distributed.all_gather_into_tensor(output_tensor, input_tensor, group=group, async_op=async_op)

    class Scatter(Buffers, policies.ReduceScatter):
        def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
            seen.append(("reduce", group.group_name == api.distributed.group.WORLD.group_name))
            return api.distributed.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op)

    def prepare(model):
        model.blocks[0].set_custom_all_gather(Gather())
        model.blocks[1].set_custom_reduce_scatter(Scatter())
        model.set_all_reduce_hook(lambda reduced: seen.append(("hook", reduced.mul_(0.5).numel())))
        model.set_reduce_scatter_max_input_buffers(2)
        model.blocks[0].set_force_sum_reduction_for_comms(True)
        model.blocks[1].set_separate_reduce_scatter_group()

    return {**trained(api, rank, prepare, steps=2), "seen": seen}


def unused(api, rank):
    """Each rank uses one of two layers of a group."""
    nn = api.nn
    model = nn.ModuleList([nn.Linear(3, 4), nn.Linear(3, 4)]).double()
    model.forward = lambda x: model[rank % 2](x)
    for i, parameter in enumerate(model.parameters()):
        parameter.data.copy_(api.tensor(arrays(i, *parameter.shape)))
    net = nn.Sequential(model)
    fsdp_of(api).fully_shard(net, mesh=mesh_of(api, (api.distributed.get_world_size(),)))
    net.set_reduce_scatter_unused_params(True)
    net(api.tensor(arrays(60 + rank, 5, 3))).square().mean().backward()
    return {name: plain(parameter.grad.to_local()) for name, parameter in net.named_parameters()}


def precision(api, rank):
    """Computed in bfloat16, reduced in float32: compared coarsely."""
    policy = fsdp_of(api).MixedPrecisionPolicy(api.bfloat16, api.float32)
    model = sharded_gpt(api, mp_policy=policy)
    seen = []
    model.blocks[0].mlp[1].register_forward_pre_hook(
        lambda module, args: seen.append((str(module.weight.dtype).split(".")[-1], str(args[0].dtype).split(".")[-1]))
    )
    loss = loss_of(api, model, texts(api, 0, rank, api.distributed.get_world_size()))
    loss.backward()
    grads = {name: plain(p.grad.to_local()) for name, p in model.named_parameters()}
    kinds = {str(p.grad.dtype).split(".")[-1] for p in model.parameters()}
    return {"coarse": grads, "seen": seen, "kinds": sorted(kinds)}


def groups(api, rank):
    """Two modules of one group, a frozen parameter, an ignored one, and a part that no loss reaches."""
    fsdp, nn, size = fsdp_of(api), api.nn, api.distributed.get_world_size()
    model = nn.ModuleDict({name: nn.Linear(4, 4) for name in ("a", "b", "c", "unused")}).double()
    with api.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(api.tensor(arrays(i, *parameter.shape)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts, self.scale = model, nn.Parameter(api.ones(1, dtype=api.float64))

        def forward(self, x):
            return self.parts["c"](self.parts["b"](self.parts["a"](x)).tanh()) * self.scale

    net, mesh = Net(), mesh_of(api, (size,))
    model["a"].weight.requires_grad_(False)
    fsdp.fully_shard([model["a"], model["b"]], mesh=mesh)
    fsdp.fully_shard(net, mesh=mesh, ignored_params={net.scale})
    net(api.tensor(arrays(50 + rank, 3, 4))).square().mean().backward()
    grads = {
        n: None if p.grad is None else plain(getattr(p.grad, "_local_tensor", p.grad))
        for n, p in net.named_parameters()
    }
    return {"grads": grads, "names": [type(m).__name__ for m in net.modules()], "plain": type(net.scale).__name__}


def states(api, rank):
    """What the module holds, and in which class, at each point."""
    model, seen = sharded_gpt(api), []

    def look(where):
        seen.append((where, [type(p).__name__ for p in (model.head.weight, model.blocks[1].out.weight)]))

    look("made")
    model.blocks[1].out.register_forward_hook(lambda *args: look("in forward"))
    loss = loss_of(api, model, texts(api, 0))
    look("after forward")
    model.blocks[1].reshard()
    loss.backward()
    look("after backward")
    handle = model.blocks[1].unshard(async_op=True)
    handle.wait()
    look("unshard")
    names = sorted(model.state_dict())
    look("state_dict")
    return {"seen": seen, "names": names, "class": type(model).__name__, "head": repr(model.head.weight.placements)}


def exchange(api, rank, source, target):
    """Go on from another's checkpoint, and leave one's own."""
    dcp = importlib.import_module(f"{api.__name__}.distributed.checkpoint")
    names = importlib.import_module(f"{api.__name__}.distributed.checkpoint.state_dict")
    folder, size = Path(os.environ[FOLDER]), api.distributed.get_world_size()
    model = sharded_gpt(api)
    optimizer = optimizer_of(api, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if source is not None:
            state = dict(zip(("model", "optimizer"), names.get_state_dict(model, optimizer)))
            dcp.load(state, checkpoint_id=folder / source)
            names.set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        losses = train(api, model, optimizer, range(2), rank, size)
        if target is not None:
            state = dict(zip(("model", "optimizer"), names.get_state_dict(model, optimizer)))
            dcp.save(state, checkpoint_id=folder / target)
    whole = names.get_model_state_dict(model, options=names.StateDictOptions(full_state_dict=True, cpu_offload=True))
    return {"losses": losses, "whole": plain(whole)}


def prefetching(model):
    first, second = model.blocks
    model.set_modules_to_forward_prefetch([first, second])
    second.set_modules_to_backward_prefetch([first])


def all_cases(api, rank):
    fsdp, size = fsdp_of(api), api.distributed.get_world_size()
    return {
        "default": trained(api, rank),
        "whole after forward": trained(api, rank, reshard_after_forward=False),
        "two ranks after forward": trained(api, rank, reshard_after_forward=2),
        "copies": trained(api, rank, mesh=mesh_of(api, (2, size // 2))),
        "columns": trained(api, rank, shard_placement_fn=placements(api)),
        "prefetch": trained(api, rank, prefetching),
        "checkpointed": trained(api, rank, checkpointed=True),
        "divided": trained(api, rank, lambda model: model.set_gradient_divide_factor(2.0)),
        "on the CPU": trained(api, rank, offload_policy=fsdp.CPUOffloadPolicy(pin_memory=False)),
        "accumulated": accumulated(api, rank),
        "tensor parallel": tensor_parallel(api, rank),
        "own collectives": own_collectives(api, rank),
        "unused": unused(api, rank),
        "precision": precision(api, rank),
        "groups": groups(api, rank),
        "states": states(api, rank),
    }
