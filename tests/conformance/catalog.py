"""Which operators are compared: the names of core_ops.txt by group, and op_db's variants of each name."""

import collections
import functools
import pathlib

import torch

HERE = pathlib.Path(__file__).parent


@functools.cache
def groups():
    """Group name -> operator names, in the order of core_ops.txt (its group titles are the comments)."""
    found, title = collections.defaultdict(list), None
    for line in (HERE / "core_ops.txt").read_text().splitlines():
        if line.startswith("#"):
            title = line.removeprefix("#").strip()
        elif line.strip():
            found[title].append(line.strip())
    return dict(found)


def group_of(name):
    return next((group for group, names in groups().items() if name in names), "")


def core_names():
    return [name for names in groups().values() for name in names]


def all_names():
    """All of op_db: those of core_ops.txt first."""
    core = core_names()
    return [*core, *(name for name in variants() if name not in set(core))]


def passing_names():
    """The operators that must not regress: passing.txt, which only grows."""
    return (HERE / "passing.txt").read_text().split()


def add_passing(names):
    keep = {*passing_names(), *names}
    (HERE / "passing.txt").write_text("".join(f"{name}\n" for name in all_names() if name in keep))


def _make_samples_cheap():
    """Without this, most of the time goes into looking at the stack: for a TestCase that is not there, at every sample,
    and at every seed for devices that are not there, to be told should they come."""
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    core.extract_test_fn = common_utils.extract_test_fn = lambda: None
    for module in (torch.cuda, torch.mtia, torch.xpu):
        module.manual_seed_all = lambda seed: None


@functools.cache
def variants():
    """Operator name -> its OpInfos. Importing op_db takes some seconds."""
    from torch.testing._internal.common_methods_invocations import op_db

    _make_samples_cheap()
    found = collections.defaultdict(list)
    for info in op_db:
        found[info.name].append(info)
    return dict(found)


# Modules: "Conv2d" stands for torch.nn.Conv2d.


@functools.cache
def module_infos():
    """Name -> ModuleInfo of module_db."""
    from torch.testing._internal.common_modules import module_db

    return {info.module_cls.__name__: info for info in module_db}


@functools.cache
def more_module_infos():
    """Name -> ModuleInfo of the classes that module_db lacks."""
    from tests.conformance import more_modules

    return more_modules.infos()


def module_names():
    """Every public class of torch.nn: those of module_db in its order, then the others."""
    others = sorted(set(torch.nn.modules.__all__) - set(module_infos()))
    return [*module_infos(), *others]


def passing_modules():
    """The modules that must not regress: passing_modules.txt, which only grows."""
    return (HERE / "passing_modules.txt").read_text().split()


def add_passing_modules(names):
    keep = {*passing_modules(), *names}
    (HERE / "passing_modules.txt").write_text("".join(f"{name}\n" for name in module_names() if name in keep))


# Optimizers


@functools.cache
def optimizer_infos():
    """Name -> OptimizerInfo of optim_db."""
    from torch.testing._internal.common_optimizers import optim_db

    return {info.optim_cls.__name__: info for info in optim_db}
