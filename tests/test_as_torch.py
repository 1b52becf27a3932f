"""What a program and its libraries see under `readtorch run`: names, versions, distributions, errors, pickles."""

import importlib
import io
import json
import os
import pickle
import pkgutil
import subprocess
import sys
import textwrap
import types
import warnings

import pytest
import torch
from packaging.version import Version
from torch.torch_version import TorchVersion

import readtorch
from tests.test_run import run_script


def printed(tmp_path, text):
    """What a script prints under `readtorch run`, line by line."""
    done = run_script(tmp_path, text)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# -- versions and distributions ------------------------------------------------------------------


OPERANDS = [
    "2.13.0",
    "2.13",
    "2.9",
    "2.14.1",
    "2.13.0+cpu",
    "2.13.0a0",
    "10",
    "parrot",
    "",
    (2, 13),
    (2, 9, 1),
    [2, 14],
    (2,),
    (),
    ("a", "b"),
    2,
    2.13,
    None,
    b"2.0",
    {},
]
COMPARISONS = ["__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"]


def test_the_version_compares_as_pytorchs():
    ours, theirs = readtorch.__version__, TorchVersion("2.13.0")
    assert ours == "2.13.0" == TorchVersion(torch.__version__).split("+")[0] and type(ours).__name__ == "TorchVersion"
    assert hash(ours) == hash(theirs) and {ours: 1}["2.13.0"] == 1 and repr(ours) == repr(theirs)
    for comparison in COMPARISONS:
        for operand in OPERANDS:
            assert getattr(ours, comparison)(operand) == getattr(theirs, comparison)(operand), (comparison, operand)
    for version in (ours, theirs):
        with pytest.raises(TypeError):
            version < 2
    assert ours > Version("2.12") and not ours > Version("3")  # PyTorch's knows only its own copy of this class


def test_both_versions_are_named():
    names = set(torch.version.__all__)
    assert names <= set(dir(readtorch.version))
    for name in names - {"__version__"}:
        assert getattr(readtorch.version, name) == getattr(torch.version, name), name
    from importlib.metadata import version

    assert readtorch.version.readtorch == version("readtorch")


def test_a_distribution_named_torch_is_found_and_no_other(tmp_path):
    """In the environment of the tests PyTorch is installed, too."""
    assert printed(
        tmp_path,
        """
        import importlib.metadata as metadata, torch
        distribution = metadata.distribution("torch")
        print(metadata.version("torch"), distribution.name, distribution.files, distribution.metadata["Name"])
        print(metadata.requires("torch"), list(distribution.entry_points))
        print(metadata.packages_distributions()["torch"], metadata.packages_distributions()["numpy"])
        print([found.version for found in metadata.distributions() if found.name == "torch"])
        print({found.name: found.version for found in metadata.distributions()}["torch"] == torch.__version__)
        print([e.value for e in metadata.entry_points(group="console_scripts") if e.value.startswith("torch.")])
        print(len(list(metadata.distributions())) > 20, metadata.version("numpy"), metadata.version("readtorch"))
        print([found.version for found in metadata.distributions(path=[torch.__path__[0] + "/none"])])
        try:
            metadata.version("torchvision_that_nobody_has")
        except metadata.PackageNotFoundError as error:
            print(error)
    """,
    ) == [
        "2.13.0 torch None torch",
        f"['readtorch=={readtorch.version.readtorch}'] []",
        "['torch'] ['numpy']",
        "['2.13.0']",
        "True",
        "[]",
        f"True {importlib.import_module('numpy').__version__} {readtorch.version.readtorch}",
        "[]",
        "No package metadata was found for torchvision_that_nobody_has",
    ]


# -- names ---------------------------------------------------------------------------------------


# Their __module__ or __qualname__ differs from PyTorch's.
DIFFERENT = {
    "settings that are C++ there, or of a module of their own here": [
        "torch.set_warn_always",
        "torch.is_warn_always_enabled",
        "torch.autograd.is_multithreading_enabled",
        "torch.autograd.is_view_replay_enabled",
        "torch.autograd.variable.ImperativeEngine",
        "torch.autograd.SavedTensor",
    ],
    "of a file of their own there": [f"torch.xpu.{name}" for name in ("empty_cache", "manual_seed", "manual_seed_all")],
    "of a file of their own here": [
        *(f"torch.cuda.{name}" for name in ("clock_rate", "device_memory_used", "memory_usage", "power_draw")),
        *(f"torch.cuda.{name}" for name in ("temperature", "utilization")),
        "torch.jit.strict_fusion",
    ],
    "C++ there, a class or function here that stands in another module": [
        "torch.PyTorchFileReader",
        "torch.Event",
        "torch.Stream",
        "torch.profiler.kineto_available",
        *(f"torch.sparse.{name}" for name in ("addmm", "log_softmax", "mm", "sampled_addmm", "softmax")),
        "torch.to_dlpack",
        "torch.nn.functional.bilinear",
        "torch.nested.to_padded_tensor",
        *(f"torch.distributed.{name}" for name in ("FileStore", "GradBucket", "HashStore", "Reducer", "TCPStore")),
        "torch.fx.graph.map_arg",
        "torch.fx.proxy.map_arg",
        "torch.jit.CompilationUnit",
        "torch.jit.ScriptFunction",
        "torch.nn.attention.SDPBackend",
        *(f"torch.onnx.{name}" for name in ("OperatorExportTypes", "TensorProtoDataType", "TrainingMode")),
    ],
    "options and settings of process groups, which are C++ there": [
        *(
            f"torch.distributed.{name}"
            for name in (
                *("AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions"),
                *("BroadcastOptions", "BuiltinCommHookType", "GatherOptions", "ProcessGroupGloo", "ReduceOptions"),
                *(
                    "ReduceScatterOptions",
                    "ScatterOptions",
                    "get_debug_level",
                    "set_debug_level",
                    "set_debug_level_from_env",
                ),
            )
        ),
        "torch.distributed.distributed_c10d.AllgatherOptions",
    ],
    "shown under the package's name there": [
        *(
            f"torch.distributed.fsdp.{name}"
            for name in (
                *("CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle"),
                *("fully_shard", "register_fsdp_forward_method"),
            )
        )
    ],
    "of a module of their own there": [
        "torch.distributed.checkpoint.filesystem.narrow_tensor_by_index",
        "torch.distributed.checkpoint.stateful.Protocol",
        "torch.distributed.checkpoint.stateful.runtime_checkable",
        "torch.distributed.elastic.multiprocessing.errors.get_error_handler",
        "torch.fx.tensor_type.Var",
    ],
    "rules that a function makes here": [
        *(
            f"torch.fx.experimental.graph_gradual_typechecker.{name}"
            for name in (
                *("adaptiveavgpool2d_inference_rule", "linear_inference_rule", "maxpool2d_inference_rule"),
                *("register_algebraic_expressions_inference_rule", "register_inference_rule"),
                *("register_refinement_rule", "relu_inference_rule"),
            )
        )
    ],
    "the class of futures, which PyTorch calls torch.jit.Future": ["torch.futures.Future", "torch.jit.Future"],
    "the types of TorchScript, which PyTorch shows as torch.AnyType …, names that it does not have": [
        f"torch.jit.annotations.{name}Type"
        for name in (
            "Any",
            "Bool",
            "Complex",
            "DeviceObj",
            "Dict",
            "Float",
            "Future",
            "Int",
            "List",
            "None",
            "String",
            "Tensor",
            "Tuple",
        )
    ],
    "one function with two names": [
        "torch.compiler.is_dynamo_compiling",
        "torch.distributed.all_gather_into_tensor",
        "torch.distributed.reduce_scatter_tensor",
    ],
    "a file of its own there": [
        "torch.onnx.symbolic_helper.parse_args",
        *(f"torch.signal.windows.{name}" for name in readtorch.signal.windows.__all__),
        *(f"torch.onnx.{name}" for name in ("register_custom_op_symbolic", "unregister_custom_op_symbolic")),
    ],
    "another file here": ["torch.jit.script_if_tracing"],
    "another function there under the same name, for the device and the generator of Python": [
        "torch.cuda.random.device_count",
        "torch.random.Generator",
    ],
}


def modules_of_both():
    """The public modules that both libraries have."""
    inner = ("torch.aten", "torch.c10", "torch.csrc", "torch.viz", "torch.show")
    ours = {"torch"} | {
        m.name.replace("readtorch", "torch", 1)
        for m in pkgutil.walk_packages(readtorch.__path__, "readtorch.", onerror=lambda name: None)
    }
    public = [name for name in ours if not name.startswith(inner) and "._" not in name]
    return sorted(name for name in public if importable(name))


def importable(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name) is not None
        except ImportError:
            return False


def their_names(modules):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            for key in dir(importlib.import_module(name)):
                value = getattr(importlib.import_module(name), key)
                replaced = str(getattr(value, "__module__", "")).startswith(
                    "tests."
                )  # by another test's file, to be quick
                if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) and not (
                    key.startswith("_") or replaced
                ):
                    yield f"{name}.{key}", value


def test_modules_classes_and_functions_say_what_pytorchs_say(tmp_path):
    modules = modules_of_both()
    assert len(modules) > 100
    [line] = printed(
        tmp_path,
        f"""
        import importlib, json, types, warnings
        warnings.simplefilter("ignore")
        found = {{}}
        for name in {modules!r}:
            module = importlib.import_module(name)
            assert module.__name__ == module.__spec__.name == name
            for key in dir(module):
                value = getattr(module, key)
                if isinstance(value, (type, types.FunctionType)) and not key.startswith("_"):
                    found[f"{{name}}.{{key}}"] = value.__module__, value.__qualname__
        print(json.dumps(found))
    """,
    )
    ours, seen, wrong = json.loads(line), set(), []
    for name, value in their_names(modules):
        if name not in ours:
            continue
        seen.add(name)
        module, qualname = value.__module__, value.__qualname__
        qualname = qualname.removeprefix("_VariableFunctionsClass.")
        for operators in ("fft", "linalg", "special"):  # there: torch._C._fft.fft_fft
            if module == f"torch._C._{operators}":
                qualname = qualname.removeprefix(f"{operators}_")
        if "<locals>" in qualname or qualname in ("_threshold",):  # functions that PyTorch makes by a decorator
            qualname = ours[name][1]
        if [module, qualname] != ours[name]:
            wrong.append(name)
    listed = {name for names in DIFFERENT.values() for name in names}
    of_their_own = {name for name in wrong if not any(ours[name] == ours[other] for other in listed if other in ours)}
    assert len(seen) > 2000
    assert of_their_own == set()
    assert (listed & seen) - set(wrong) == set()


def test_programs_see_torch_only(tmp_path):
    assert printed(
        tmp_path,
        """
        import torch, sys
        from torch import nn
        import readtorch
        print(torch.__name__, torch is readtorch is torch.torch, repr(torch.nn).startswith("<module 'torch.nn' from"))
        print(type(torch.ones(2)), type(torch.ones(2)).__module__, type(nn.Parameter(torch.ones(2))), nn.Linear)
        print(type(torch.float32), torch.Size, type(torch.ones(1).max(0)), type(torch.ones(1, requires_grad=True).exp().grad_fn))
        print(nn.Linear.forward.__module__, nn.Module.state_dict.__module__, nn.functional.max_pool2d.__module__, torch.randn.__module__)
        class Net(nn.Linear): pass
        print(Net, Net.__mro__[1], [type(m) for m in nn.Sequential(nn.ReLU()).modules()])
        try:
            nn.Linear(2, 2)(3)
        except TypeError as error:
            print(error)
    """,
    )[:5] == [
        "torch True True",
        "<class 'torch.Tensor'> torch <class 'torch.nn.parameter.Parameter'> <class 'torch.nn.modules.linear.Linear'>",
        "<class 'torch.dtype'> <class 'torch.Size'> <class 'torch.return_types.max'> <class 'ExpBackward0'>",
        "torch.nn.modules.linear torch.nn.modules.module torch.nn.functional torch",
        "<class '__main__.Net'> <class 'torch.nn.modules.linear.Linear'> [<class 'torch.nn.modules.container.Sequential'>, "
        "<class 'torch.nn.modules.activation.ReLU'>]",
    ]


def test_the_library_says_where_its_source_stands():
    """Beside PyTorch, in one process: see Note [ Two names of one package ]."""
    assert readtorch.__name__ == "readtorch" and readtorch.nn.Linear.__module__ == "readtorch.nn.modules.linear"
    for thing in (
        readtorch.nn.Linear,
        readtorch.add,
        readtorch.randn,
        readtorch.nn.functional.gelu,
        readtorch.fft.fft,
        readtorch.Size,
        readtorch.optim.lr_scheduler.StepLR,
        readtorch.einsum,
        readtorch.__version__,
    ):
        data = pickle.dumps(thing)
        assert b"readtorch" in data
        assert pickle.loads(data) is thing or pickle.loads(data) == thing


# -- pickles and processes -----------------------------------------------------------------------


def test_plain_pickles_name_what_pytorchs_name(tmp_path):
    things = (
        "torch.nn.Linear",
        "torch.nn.MultiheadAttention",
        "torch.nn.functional.relu",
        "torch.nn.functional.gelu",
        "torch.Size([2])",
        "torch.float32",
        "torch.optim.lr_scheduler.StepLR",
        "torch.optim.SGD",
        "torch.nn.Module.state_dict",
        "torch.save",
        "torch.nn.utils.rnn.pad_sequence",
        "torch.return_types.max",
        "torch.return_types.sort((1, 2))",
        "torch.device('cpu')",
        "torch.utils.data.DataLoader",
        "torch.no_grad",
        "torch.fft.fftn",
    )
    lines = printed(
        tmp_path,
        f"""
        import pickle, torch
        for thing in ({", ".join(things)}):
            data = pickle.dumps(thing)
            again = pickle.loads(data)
            assert again is thing or again == thing
            print(data.hex())
        torch.save([torch.nn.LSTM(2, 3), torch.optim.lr_scheduler.ExponentialLR, torch.ones(2)], {str(tmp_path / "ours.pt")!r})
    """,
    )
    for line, name in zip(lines, things, strict=True):
        data = bytes.fromhex(line)
        assert b"readtorch" not in data
        assert name == "torch.fft.fftn" or pickle.loads(data) == eval(name), name
    lstm, schedule, tensor = torch.load(tmp_path / "ours.pt", weights_only=False)
    assert (
        type(lstm) is torch.nn.LSTM and schedule is torch.optim.lr_scheduler.ExponentialLR and tensor.tolist() == [1, 1]
    )


def test_checkpoints_of_pytorch_are_read(tmp_path):
    torch.save(
        [torch.nn.GRU(2, 3), torch.optim.lr_scheduler.StepLR, torch.nn.functional.relu, torch.__version__],
        tmp_path / "theirs.pt",
    )
    assert printed(
        tmp_path,
        f"""
        import torch
        gru, schedule, relu, version = torch.load({str(tmp_path / "theirs.pt")!r}, weights_only=False)
        print(type(gru), schedule is torch.optim.lr_scheduler.StepLR, relu is torch.nn.functional.relu, type(version), version)
    """,
    ) == [
        f"<class 'torch.nn.modules.rnn.GRU'> True True <class 'torch.torch_version.TorchVersion'> {torch.__version__}"
    ]


def test_processes_started_anew_see_the_same_torch(tmp_path):
    assert printed(
        tmp_path,
        """
        import torch
        import torch.multiprocessing as mp
        from torch.utils.data import DataLoader, Dataset

        class Squares(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return torch.tensor(i * i), torch.__version__

        def work(queue, net):
            queue.put((torch.__name__, type(net).__module__, torch.torch is torch, net(torch.ones(1, 3)).sum().item(), mp.current_process().name))

        if __name__ == "__main__":
            for method in ("spawn", "forkserver"):
                context = mp.get_context(method)
                queue, net = context.Queue(), torch.nn.Linear(3, 1)
                process = context.Process(target=work, args=(queue, net), name="worker of mine")
                process.start()
                name, module, same, value, named = queue.get()
                process.join()
                print(name, module, same, value == net(torch.ones(1, 3)).sum().item(), named)
                for batch, version in DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context=context):
                    print(batch.tolist(), version[0])
    """,
    ) == 2 * ["torch torch.nn.modules.linear True True worker of mine", "[0, 1, 4, 9] 2.13.0"]


def test_scripts_traces_and_compiled_functions(tmp_path):
    """They ask whose a class or function is."""
    assert printed(
        tmp_path,
        """
        import torch, io
        from torch import nn
        @torch.jit.script
        def f(x, size: int):
            return nn.functional.max_pool2d(nn.functional.relu(x), size)
        print(f(torch.ones(1, 1, 2, 2), 2).shape, "_max_pool2d" in str(f.graph))
        net = torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
        print(net(torch.ones(4, 2)).shape, "__torch__.torch.nn.modules.linear" in str(net.graph))
        file = io.BytesIO()
        torch.jit.save(torch.jit.trace(nn.Linear(2, 3), torch.ones(1, 2)), file)
        file.seek(0)
        print(torch.jit.load(file)(torch.ones(1, 2)).shape)
        print(torch.compile(lambda x: nn.functional.gelu(x) * 2)(torch.zeros(2)))
        @torch.jit.script
        def g(x):
            # type: (torch.Tensor) -> torch.Tensor
            later: torch.jit.Future[torch.Tensor] = torch.jit.fork(torch.neg, x)
            return torch.jit.wait(later)
        print(g(torch.ones(1)))
    """,
    ) == [
        "torch.Size([1, 1, 1, 1]) True",
        "torch.Size([4, 3]) True",
        "torch.Size([1, 3])",
        "tensor([0., 0.])",
        "tensor([-1.])",
    ]


# -- modules and what they are called like -------------------------------------------------------


def submodules_that_are_not_modules(package):
    """Names of submodules under which the package has a function or a class: torch.autograd.gradcheck."""
    return [
        name
        for _, name, _ in pkgutil.iter_modules(package.__path__)
        if not isinstance(getattr(package, name, types), types.ModuleType)
    ]


def pairs():
    """(package, name) of all such in ours, and in PyTorch's where we have the package."""
    for name in ["torch", *modules_of_both()]:
        package = importlib.import_module(name.replace("torch", "readtorch", 1))
        if hasattr(package, "__path__"):
            theirs = importlib.import_module(name)
            found = submodules_that_are_not_modules(package)
            found += submodules_that_are_not_modules(theirs) if hasattr(theirs, "__path__") else []
            yield from ((name, submodule) for submodule in found if hasattr(package, submodule))


@pytest.mark.parametrize("library", ["torch", "readtorch"])
def test_a_submodule_imported_by_name_does_not_replace_a_function(tmp_path, library):
    found = sorted(set(pairs()))
    assert ("torch.autograd", "gradcheck") in found and ("torch.multiprocessing", "spawn") in found and len(found) > 10
    lines = ["import importlib, types, " + library]
    for package, name in found:
        package = package.replace("torch", library, 1)
        lines += [
            f"before = importlib.import_module('{package}').{name}",
            "try:",
            f"    import {package}.{name}",
            f"    from {package}.{name} import __name__ as _",
            "except ImportError:",
            "    pass",
            f"assert {package}.{name} is before and not isinstance(before, types.ModuleType), '{package}.{name}'",
        ]
    if library == "torch":
        printed(tmp_path, "\n".join(lines))
    else:
        done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_gradcheck_by_both_names(tmp_path):
    assert printed(
        tmp_path,
        """
        from torch.autograd.gradcheck import gradcheck
        import torch
        print(torch.autograd.gradcheck is gradcheck, gradcheck(torch.exp, (torch.ones(2, dtype=torch.double, requires_grad=True),)))
        from torch.nn.utils.weight_norm import WeightNorm
        print(callable(torch.nn.utils.weight_norm))
    """,
    ) == ["True True", "True"]


# -- what is missing -----------------------------------------------------------------------------


MISSING = {
    "torch.nothing": "AttributeError: readtorch has no 'torch.nothing'",
    "torch.__nothing__": "AttributeError: readtorch has no 'torch.__nothing__'",
    "torch.nn.functional.nothing": "AttributeError: readtorch has no 'torch.nn.functional.nothing'",
    "torch.jit.nothing": "AttributeError: readtorch has no 'torch.jit.nothing'",
    "torch._C._nothing": "AttributeError: readtorch has no 'torch._C._nothing'",
    "torch._C._nn.nothing": "AttributeError: readtorch has no 'torch._C._nn.nothing'",
    "from torch import nothing": "ImportError: readtorch has no 'torch.nothing'",
    "from torch import ones, nothing": "ImportError: readtorch has no 'torch.nothing'",
    "from torch.nn.functional import nothing": "ImportError: readtorch has no 'torch.nn.functional.nothing'",
    "from torch._tensor import nothing": "ImportError: readtorch has no 'torch._tensor.nothing'",
    "from torch.onnx import nothing": "ImportError: readtorch has no 'torch.onnx.nothing'",
    "import torch.nothing": "ModuleNotFoundError: readtorch has no module 'torch.nothing'",
    "import torch.nothing.within": "ModuleNotFoundError: readtorch has no module 'torch.nothing'",
    "import torch.nn.nothing": "ModuleNotFoundError: readtorch has no module 'torch.nn.nothing'",
    "from torch.nothing import x": "ModuleNotFoundError: readtorch has no module 'torch.nothing'",
    "from torch.linalg.det import x": "ModuleNotFoundError: No module named 'torch.linalg.det'; 'torch.linalg' is not a package",
}


def test_what_is_missing_is_said_to_be_readtorchs_lack(tmp_path):
    lines = printed(
        tmp_path,
        f"""
        import torch
        for line in {list(MISSING)}:
            try:
                exec(line)
            except Exception as error:
                print(f"{{type(error).__name__}}: {{error}}")
    """,
    )
    assert dict(zip(MISSING, lines, strict=True)) == MISSING


LACKING = {
    "torch.ones(2).nothing_here": ["readtorch has no 'torch.Tensor.nothing_here'"],
    "torch.Tensor.nothing_here": ["readtorch has no 'torch.Tensor.nothing_here'"],
    "torch.optim.SGD.nothing_here": ["readtorch has no 'torch.optim.sgd.SGD.nothing_here'"],
    "Mine().nothing_here": [],
}


def test_an_attribute_that_a_class_lacks_is_told_of(tmp_path):
    assert printed(
        tmp_path,
        f"""
        import torch
        from readtorch._as_torch import tell_of_missing
        class Mine: pass
        for line in {list(LACKING)}:
            try:
                exec(line)
            except AttributeError as error:
                tell_of_missing(error)
                print(getattr(error, "__notes__", []))
    """,
    ) == [str(notes) for notes in LACKING.values()]


def test_an_error_that_ends_the_program_tells_of_it(tmp_path):
    done = run_script(tmp_path, "import torch\ntorch.ones(2).nothing_here")
    assert done.returncode == 1
    assert "AttributeError: " in done.stderr.splitlines()[-2]
    assert done.stderr.splitlines()[-1] == "readtorch has no 'torch.Tensor.nothing_here'"


def test_asking_is_no_error(tmp_path):
    assert printed(
        tmp_path,
        """
        import copy, doctest, importlib.util, inspect, pickle, types, torch
        import torch.nn.functional as F
        print(hasattr(torch, "nothing"), getattr(torch, "__wrapped__", 3), hasattr(torch, "__nothing__"), getattr(F, "__path__", None) is None)
        for name in ("torch.nothing", "torch.nn.nothing", "torch.monitor"):
            print(importlib.util.find_spec(name))
        print(importlib.util.find_spec("torch.nn").name, importlib.util.find_spec("torch.jit").name, importlib.util.find_spec("torch").name)
        print(importlib.util.find_spec("torch.onnx").origin.endswith("onnx/__init__.py"))
        print(inspect.getmodule(torch.nn.Linear) is torch.nn.modules.linear, inspect.unwrap(F.relu) is F.relu)
        print(len(inspect.getmembers(torch.nn)) > 100, inspect.getsource(torch.nn.Linear).startswith("class Linear"))
        print(len(doctest.DocTestFinder().find(torch.nn.modules.linear)) > 3, inspect.getdoc(torch) is not None)
        print(copy.copy(torch.nn.Linear) is torch.nn.Linear, isinstance(torch, types.ModuleType))
        try:
            from torch import nothing
        except ImportError as error:
            print(error.name)
    """,
    ) == [
        "False 3 False False",
        "None",
        "None",
        "None",
        "torch.nn torch.jit torch",
        "True",
        "True True",
        "True True",
        "True True",
        "True True",
        "torch",
    ]


def test_sources_are_found_where_they_stand(tmp_path):
    """In another file than the one that `__module__` names."""
    assert printed(
        tmp_path,
        """
        import inspect, torch
        for thing in (torch.optim.lr_scheduler.StepLR, torch.nn.MultiheadAttention, torch.jit.ScriptModule, torch.nn.LSTM,
                      torch.Tensor, torch.optim.lr_scheduler.StepLR.step):
            print(inspect.getsource(thing).split("(")[0].strip())
        class Mine(torch.nn.Module): pass
        print(inspect.getsource(Mine))
    """,
    )[:7] == [
        "class StepLR",
        "class MultiheadAttention",
        "class ScriptModule",
        "class LSTM",
        "class Tensor",
        "def step",
        "class Mine(torch.nn.Module): pass",
    ]


def test_a_module_loaded_again_is_the_same(tmp_path):
    assert printed(
        tmp_path,
        """
        import importlib, torch
        for module in (torch.nn.modules.linear, torch.nn.functional):
            before, spec = dict(vars(module)), module.__spec__
            assert importlib.reload(module) is module and module.__spec__ is spec
            print(spec.name, vars(module).keys() == before.keys())
    """,
    ) == ["torch.nn.modules.linear True", "torch.nn.functional True"]


def test_all_names_at_once():
    """`from torch import *` leaves Python's modules alone: a program may have imported `random` and `types` before."""
    ours, theirs = {}, {}
    exec("from readtorch import *", ours)
    exec("from torch import *", theirs)
    modules = {"export"}  # the one on PyTorch's list; here it is loaded when it is asked for, and on no list
    assert {name for name in set(theirs) - set(ours) if hasattr(readtorch, name)} == modules
    assert "ones" in ours and "float32" in ours
    assert [name for name, value in ours.items() if isinstance(value, types.ModuleType)] == []


# -- replaced builtins, and names that stood in nobody's way --------------------------------------


REPLACED = """
    import builtins, {0} as torch
    own = builtins.print
    def print(*arguments, **options):
        own("rank 0:", *arguments, **options)
    builtins.print = print
    x = torch.randn(4, 5, requires_grad=True)
    torch.nn.functional.cross_entropy(torch.nn.Linear(5, 3)(x), torch.tensor([0, 1, 2, 0])).backward()
    print(x.grad.shape, builtins.print is print)

    import numba
    loop = {{}}
    exec("def f(n):\\n  s = 0\\n  for i in range(n): s += i\\n  return s", loop)
    builtins.range = lambda n: own("not this")
    print(numba.njit(loop["f"])(5), builtins.range is range)
"""


def test_kernels_compile_when_builtins_are_replaced(tmp_path):
    """The idiom of programs that train on several ranks: the others' `print` is silent."""
    expected = "rank 0: torch.Size([4, 5]) True\nrank 0: 10 True\n"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(REPLACED).format("readtorch")], capture_output=True, text=True
    )
    assert done.stdout == expected, done.stderr
    assert run_script(tmp_path, REPLACED.format("torch")).stdout == expected


def test_small_doors():
    assert readtorch.futures.Future[int].__args__ == torch.futures.Future[int].__args__ == (int,)
    assert readtorch.jit.Future is readtorch.futures.Future and torch.jit.Future is torch.futures.Future
    for library in (readtorch, torch):
        assert issubclass(library.futures.Future, library.Future)
        assert isinstance(library.jit.fork(lambda: 1), library.Future)
        future = library.futures.Future[int]()
        future.set_result(3)
        assert future.then(lambda f: f.value() + 1).wait() == 4
        with pytest.raises(TypeError, match="Too many arguments"):
            library.futures.Future[int, str]
        names = library.distributed.Backend
        assert (names.NCCL, names.UCC, names.XCCL, names.GLOO, names.MPI) == ("nccl", "ucc", "xccl", "gloo", "mpi")
        assert not (library.distributed.is_ucc_available() or library.distributed.is_xccl_available())
        constants = importlib.import_module(f"{library.__name__}.distributed.constants")
        assert (constants.default_pg_timeout.total_seconds(), constants.default_pg_nccl_timeout) == (1800, None)
        assert library.nn.modules.module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
        assert library.types._Number == (int, float, bool) and library.types.Number == int | float | bool
        assert isinstance(library.Size([1]), library.types._size) is True and library.types._dtype is library.dtype
    assert readtorch.types.FileLike == torch.types.FileLike


@pytest.mark.parametrize("library", [readtorch, torch])
def test_notes_of_what_is_used(library, capfd):
    code = f"import {library.__name__} as T; print([T._C._log_api_usage_once('a.program') for _ in '12'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTORCH_API_USAGE_STDERR": "1"}
    )
    assert done.stdout == "[None, None]\n" and done.stderr.count("PYTORCH_API_USAGE a.program\n") == 1
    assert not os.environ.get("PYTORCH_API_USAGE_STDERR") and library._C._log_api_usage_once("a.program") is None
    assert "PYTORCH_API_USAGE" not in capfd.readouterr().err
    with pytest.raises(TypeError, match="bad argument type for built-in operation"):
        library._C._log_api_usage_once(3)


def test_everything_of_several_ranks_stands_in_distributed_c10d_too():
    for library in (readtorch, torch):
        module = library.distributed.distributed_c10d
        for name in ("all_reduce", "broadcast_object_list", "P2POp", "ReduceOp", "Work", "ProcessGroup", "send"):
            assert getattr(module, name) is getattr(library.distributed, name), name


def test_a_pickled_version_of_either_library_is_a_text():
    file = io.BytesIO()
    torch.save(torch.__version__, file)
    file.seek(0)
    assert readtorch.load(file, weights_only=False) == torch.__version__
