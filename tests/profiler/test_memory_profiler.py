"""The memory timeline: the same program's tensors have PyTorch's categories, and its files PyTorch's form."""

import gzip
import json
import sys
import warnings
from base64 import b64decode
from collections import Counter

import pytest
import torch

import readtorch as rt
from readtorch.profiler import _memory_profiler
from tests.profiler.memory_programs import PROGRAMS, mlp
from tests.profiler.test_profiler import CPU, both_errors

DETAILED = {"profile_memory": True, "record_shapes": True, "with_stack": True}
# Below this, kernels' statistics, which are one buffer here and two there, and numbers beside tensors, which are made elsewhere.
LARGE = 257


def profiled(T, program, steps=2):
    """(the profiler, the program's tensors)"""
    T.manual_seed(0)
    step, kept = program(T)
    with T.profiler.profile(activities=[CPU[T]], **DETAILED) as prof:
        for _ in range(steps):
            step()
    return prof, kept()


def address(key):
    return key.storage_data_ptr if hasattr(key, "storage_data_ptr") else key.storage.ptr


def categories(prof, kept):
    """{name: categories of the versions of its tensor}"""
    snapshot = prof._memory_profile()._category_snapshot()
    last = {address(key): key.id for key, _ in sorted(snapshot)}  # of several that had an address
    found = {name: set() for name in kept}
    for (key, _), category in snapshot.items():
        for name, tensor in kept.items():
            if address(key) == tensor.untyped_storage().data_ptr() and last[address(key)] == key.id:
                found[name].add(category and category.name)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_categories_are_those_of_pytorch(program):
    ours, theirs = [categories(*profiled(T, program)) for T in (rt, torch)]
    assert ours == theirs
    assert any(theirs.values())


def large_changes(prof):
    """How often memory of that many bytes came, was written into, and went as what. Memory of kernels alone is not compared, nor are sums of
    gradients that meet, which are new tensors here and written into old ones there."""
    profile = prof._memory_profile()
    changes = [
        (action.name, profile._categories.get(key, version), nbytes)
        for _, action, (key, version), nbytes in profile.timeline
        if nbytes >= LARGE
    ]
    return Counter(
        (action, category.name, nbytes)
        for action, category, nbytes in changes
        if category is not None
        and category.name != "TEMPORARY"
        and (action, category.name) != ("INCREMENT_VERSION", "AUTOGRAD_DETAIL")
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_memory_comes_and_goes_as_in_pytorch(program):
    ours, theirs = [large_changes(profiled(T, program)[0]) for T in (rt, torch)]
    assert ours == theirs


def test_names_of_categories_and_actions():
    theirs = torch.profiler._memory_profiler
    for name in ("Category", "Action"):
        assert {e.name: e.value for e in getattr(_memory_profiler, name)} == {
            e.name: e.value for e in getattr(theirs, name)
        }
    for name in ("_CATEGORY_TO_COLORS", "_CATEGORY_TO_INDEX"):
        ours = {category and category.name: value for category, value in getattr(_memory_profiler, name).items()}
        assert ours == {category and category.name: value for category, value in getattr(theirs, name).items()}


def written_files(T, folder):
    prof, _ = profiled(T, mlp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for name in ("plain.json", "packed.json.gz", "all.raw.json.gz"):
            prof.export_memory_timeline(str(folder / name), device="cpu")
    plain = json.loads((folder / "plain.json").read_text())
    assert json.loads(gzip.open(folder / "packed.json.gz").read()) == plain
    return plain, json.loads(gzip.open(folder / "all.raw.json.gz").read())


def test_files(tmp_path):
    (ours, our_raw), (theirs, their_raw) = [written_files(T, tmp_path) for T in (rt, torch)]
    for times, sizes in (ours, theirs):
        assert len(times) == len(sizes) and {len(row) for row in sizes} == {9}
        assert times[1:] == sorted(times[1:])
    hour = 3600 * 10**6
    assert abs(ours[0][0] - theirs[0][0]) < hour and abs(our_raw[-1][0] - their_raw[-1][0]) < hour * 1000

    def large(raw):
        return Counter(tuple(entry[1:]) for entry in raw if abs(entry[2]) >= LARGE)

    assert large(our_raw) == large(their_raw)
    of_categories = [[max(column) for column in zip(*sizes)] for _, sizes in (ours, theirs)]
    for our, their in zip(*of_categories):
        assert our == pytest.approx(their, rel=0.01, abs=LARGE)


def test_a_picture(tmp_path, capsys, monkeypatch):
    pages = []
    for T in (rt, torch):
        with pytest.warns(FutureWarning, match="`export_memory_timeline` is deprecated"):
            profiled(T, mlp)[0].export_memory_timeline(str(tmp_path / "page.html"), device="cpu")
        before, picture = (tmp_path / "page.html").read_text().split("base64,")
        data, after = picture.split("'")
        pages.append((before, b64decode(data)[:8], after))
    assert pages[0] == pages[1]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for T in (rt, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            profiled(T, mlp)[0].export_memory_timeline(str(tmp_path / "no.html"), device="cpu")
        assert capsys.readouterr().out == "export_memory_timeline_html failed because matplotlib was not found.\n"
    assert not (tmp_path / "no.html").exists()


def test_memory_of_a_simulated_device():
    """There is no such device in the reference here: what is compared with is the same program on the CPU."""
    rt.cuda.simulate(1)
    try:
        found = []
        for device in ("cpu", "cuda"):
            net, x = rt.nn.Linear(64, 32, device=device), rt.ones(8, 64, device=device)
            optimizer = rt.optim.SGD(net.parameters(), 0.1, momentum=0.9, foreach=False)
            with rt.profiler.profile(**DETAILED) as prof:
                net(x).sum().backward()
                optimizer.step()
            timeline = _memory_profiler.MemoryProfileTimeline(prof._memory_profile())
            place = str(x.device)
            found.append(Counter(tuple(change) for _, *change in timeline._changes(place)))
    finally:
        rt.cuda.simulate(0)
    assert found[0] == found[1]


def test_errors():
    both_errors(lambda T: T.profiler.profile(profile_memory=True)._memory_profile())
    both_errors(lambda T: T.profiler.profile(**DETAILED)._memory_profile())
