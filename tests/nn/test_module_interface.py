"""Every public name of the classes around `nn.Module`, generated from the reference: it exists here, with the same arguments."""

import importlib
import inspect

import pytest
import torch

import readtorch
from tests.programs import same

CLASSES = [f"nn.modules.module.{name}" for name in ("Module", "_IncompatibleKeys", "_WrappedHook")]
CLASSES += [
    f"nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Container")
]
CLASSES += [
    f"nn.parameter.{name}"
    for name in ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "UninitializedTensorMixin")
]
CLASSES += ["nn.modules.lazy.LazyModuleMixin", "utils.hooks.RemovableHandle", "utils.hooks.BackwardHook"]

MODULES = ["nn.modules.module", "nn.modules.container", "nn.modules.lazy", "nn.parameter", "utils.hooks", "__future__"]

# Names of Python's or of the reference's own machinery.
PRIVATE = {
    "__annotations__",
    "__class_getitem__",
    "__firstlineno__",
    "__match_args__",
    "__orig_bases__",
    "__init_subclass__",
    "__parameters__",
    "__replace__",
    "__static_attributes__",
    "__deprecated__",
    "__torch_function__",
    "___needs_generation_tag_patch",
}  # torch.compile leaves it on the class, once it has run


def of(T, path):
    for name in path.split("."):
        T = getattr(T, name)
    return T


def own_names(cls):
    """What the class adds to the tensor, if it is one, and otherwise all of its names."""
    tensor = set(dir(torch.Tensor)) if issubclass(cls, torch.Tensor) else set()
    names = set(dir(cls)) - tensor | {name for name in vars(cls) if name.startswith("__")}
    is_public = [name for name in names if not name.startswith("_") or name.startswith("__")]
    return sorted(set(is_public) - PRIVATE)


NAMES = [(path, name) for path in CLASSES for name in own_names(of(torch, path))]


def parameters_of(function):
    """Name, kind and default of each parameter; types and the texts of defaults that are types."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def test_the_list_is_long():
    assert len(NAMES) > 500 and ("nn.modules.module.Module", "register_load_state_dict_post_hook") in NAMES


def test_every_public_name_exists():
    missing = [f"{path}.{name}" for path, name in NAMES if not hasattr(of(readtorch, path), name)]
    assert not missing


def test_module_has_no_other_public_names():
    assert set(own_names(readtorch.nn.Module)) == set(own_names(torch.nn.Module))


@pytest.mark.parametrize("path", CLASSES)
def test_every_signature(path):
    theirs, ours = of(torch, path), of(readtorch, path)
    compared = 0
    for name in own_names(theirs):
        function = inspect.getattr_static(theirs, name)
        function = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
        if not inspect.isfunction(function) or hasattr(function, "__torch_function__"):
            continue
        assert parameters_of(getattr(ours, name)) == parameters_of(getattr(theirs, name)), f"{path}.{name}"
        compared += 1
    assert compared or path.endswith("_IncompatibleKeys")


@pytest.mark.parametrize("path", CLASSES)
def test_class_attributes(path):
    for name in own_names(of(torch, path)):
        value = inspect.getattr_static(of(torch, path), name)
        if isinstance(value, (bool, int, str, type(None))) and name not in ("__doc__", "__module__"):
            assert getattr(of(readtorch, path), name) == value or name == "next_id", f"{path}.{name}"


@pytest.mark.parametrize("path", MODULES)
def test_functions_of_the_files(path):
    theirs, ours = (importlib.import_module(f"{T}.{path}") for T in ("torch", "readtorch"))
    names = getattr(theirs, "__all__", [name for name in dir(theirs) if name.startswith(("get_", "set_"))])
    for name in names:
        assert hasattr(ours, name), f"{path}.{name}"
        if inspect.isfunction(getattr(theirs, name)):
            assert parameters_of(getattr(ours, name)) == parameters_of(getattr(theirs, name)), f"{path}.{name}"


def test_state_of_a_fresh_module():
    ours, theirs = readtorch.nn.Module().__dict__, torch.nn.Module().__dict__
    assert list(ours) == list(theirs)
    assert all(type(a) is type(b) for a, b in zip(ours.values(), theirs.values()))


def test_missing_devices():
    def program(T, show):
        for name in ("cuda", "ipu", "xpu", "mtia"):
            for args in ((), (0,), ("cpu",)):
                show.error(lambda: getattr(T.nn.Linear(1, 1), name)(*args))
            show(getattr(T.nn.Module(), name)())

    same(program)


def test_shared_memory_and_compiling():
    net = readtorch.nn.Linear(1, 1)
    assert net.share_memory() is net and all(p.is_shared() for p in net.parameters())
    x = readtorch.ones(2, 1)
    expected = net(x)
    net.compile()
    assert net(x).equal(expected) and list(net.state_dict()) == ["weight", "bias"]
