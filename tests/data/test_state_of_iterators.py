"""After each batch the loader's iterator has PyTorch's attributes, by name: what was sent, what came, who has how much to do."""

import pytest

from tests.data.test_dataloader import datasets, plain, same

ATTRIBUTES = (
    "_send_idx",
    "_rcvd_idx",
    "_num_yielded",
    "_workers_status",
    "_workers_num_tasks",
    "_base_seed",
    "_IterableDataset_len_called",
    "_num_workers",
    "_prefetch_factor",
    "_in_order",
    "_persistent_workers",
    "_drop_last",
    "_auto_collation",
    "_timeout",
    "_pin_memory",
    "_dataset_kind",
)
LOADER = (
    "batch_size",
    "drop_last",
    "num_workers",
    "prefetch_factor",
    "timeout",
    "pin_memory",
    "pin_memory_device",
    "worker_init_fn",
    "generator",
    "persistent_workers",
    "in_order",
    "_IterableDataset_len_called",
    "_auto_collation",
    "_dataset_kind",
    "multiprocessing_context",
)


def seen(iterator):
    return [plain(getattr(iterator, name, "none")) for name in ATTRIBUTES], len(iterator._task_info) if hasattr(
        iterator, "_task_info"
    ) else None


OPTIONS = [
    {"num_workers": workers, "batch_size": size, **more}
    for workers in (0, 1, 2, 3)
    for size in (None, 1, 4)
    for more in (
        {},
        {"drop_last": True},
        {"shuffle": True},
        {"prefetch_factor": 1},
        {"prefetch_factor": 3, "persistent_workers": True},
        {"timeout": 30},
    )
    if not (size is None and "drop_last" in more)
    and not (workers == 0 and more.keys() & {"prefetch_factor", "persistent_workers", "timeout"})
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_map_style(options):
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[0](11), **options)
        facts = [
            [getattr(loader, name) for name in LOADER],
            len(loader),
            type(loader.sampler).__name__,
            type(loader.batch_sampler).__name__,
            loader.collate_fn.__name__,
        ]
        for _ in range(2):
            iterator = iter(loader)
            facts.append(seen(iterator))
            for batch in iterator:
                facts += [plain(batch), seen(iterator)]
            facts.append((iterator is iter(loader), len(iterator)))
        return facts

    same(run)


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": w, "batch_size": b, **more}
        for w in (0, 1, 2)
        for b in (None, 3)
        for more in ({}, {"drop_last": True}, {"persistent_workers": True})
        if not (b is None and "drop_last" in more) and (w or "persistent_workers" not in more)
    ],
    ids=str,
)
def test_streams(options):
    def run(T):
        loader = T.utils.data.DataLoader(datasets(T)[1](10), **options)
        facts = [
            [getattr(loader, name) for name in LOADER],
            len(loader),
            loader._IterableDataset_len_called,
            type(loader.sampler).__name__,
        ]
        for _ in range(2):
            iterator = iter(loader)
            for batch in iterator:
                facts += [
                    plain(batch),
                    iterator._num_yielded,
                    getattr(iterator, "_rcvd_idx", None),
                    iterator._IterableDataset_len_called,
                ]
            facts.append(getattr(iterator, "_workers_status", None))
        return facts

    same(run)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("asked", [(), (0,), (1,), (0, 1, 2)])
def test_what_a_stream_was_said_to_hold(workers, persistent, asked):
    """The warning of a stream longer than it says comes in the passes after somebody asked, with how much it said then."""

    def run(T):
        stream = datasets(T)[1](4)
        stream.__class__.__len__ = lambda self: self.said
        stream.__class__.__repr__ = lambda self: "Stream"
        loader = T.utils.data.DataLoader(
            stream, num_workers=workers, batch_size=None, persistent_workers=persistent and workers > 0
        )
        facts = []
        for epoch in range(3):
            stream.said = epoch + 1
            if epoch in asked:
                facts.append(len(loader))
            facts.append(list(loader))
        return facts

    same(run)


def test_iterators_made_by_hand_refuse_what_loaders_do_not_ask_for():
    def run(T):
        module, facts = T.utils.data.dataloader, []
        for kind in (module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter):
            for changed in (
                {},
                {"num_workers": 1},
                {"timeout": 1},
                {"num_workers": 1, "timeout": 1},
                {"num_workers": 1, "prefetch_factor": 0},
                {"num_workers": -1},
            ):
                loader = T.utils.data.DataLoader(datasets(T)[0](2))
                vars(loader).update({"prefetch_factor": 2} | changed)
                try:
                    facts.append(
                        list(kind(loader))
                        if changed != {} or kind is module._SingleProcessDataLoaderIter
                        else kind(loader) and None
                    )
                except AssertionError as error:
                    facts.append(str(error))
        base = module._BaseDataLoaderIter(T.utils.data.DataLoader(datasets(T)[0](2)))
        for wrong in (base._next_data, base.__getstate__):
            try:
                facts.append(wrong())
            except NotImplementedError as error:
                facts.append(error.args)
        return facts

    same(run)
