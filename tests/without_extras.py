"""python -m tests.without_extras: what readtorch says where only its dependencies are installed, an entry point a line, as JSON.

Other packages are hidden by an import hook. `True`: it works. Otherwise the error's type and text.
"""

import io
import json
import sys
import tempfile
import warnings

EXTRAS = (
    "greenlet pygments anywidget ipywidgets matplotlib contourpy torch mpi4py onnx onnxruntime tensorboard PIL safetensors "
    "numba_cuda cuda IPython traitlets"
).split()


class Hidden:
    """A finder that knows nothing of the extras' packages."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def jit_script(rt):
    import readtorch.jit

    def f(x):
        return x * 2 + 1

    assert readtorch.jit.trace(f, (rt.ones(2),))(rt.ones(2)).tolist() == [3, 3]
    readtorch.jit.script(rt.nn.Linear(2, 2))


def compile(rt):
    f = rt.compile(lambda x: rt.tanh(x * 2) + 1, fullgraph=True)
    assert [f(rt.zeros(2)).tolist() for _ in range(3)] == [[1, 1]] * 3


def onnx_export(rt):
    import readtorch.onnx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readtorch.onnx.export(rt.nn.Linear(2, 2), (rt.ones(2),), io.BytesIO())


def is_available(rt):
    assert rt.cuda.is_available() in (True, False) and rt.cuda.device_count() >= 0


def simulated_device(rt):
    rt.cuda.simulate(devices=1, memory="64MiB")
    assert (rt.ones(2, device="cuda") * 2).tolist() == [2, 2]


def kernel_simulator(rt):
    from readtorch.c10.cuda import simulator

    def kernel(x):
        x[cuda.threadIdx.x] = 1  # noqa: F821

    import numpy as np

    simulator.launch(kernel, 1, 2, np.zeros(2))


def show_source(rt):
    from readtorch import show

    show.source("readtorch.nn.Module.compile")


def show_module(rt):
    import runpy

    sys.argv = ["readtorch.show", "readtorch.nn.Module.compile"]
    runpy.run_module("readtorch.show", run_name="__main__")


def summary_writer(rt):
    from readtorch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        writer.add_scalar("a", 1.0)


def summary_image(rt):
    from readtorch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        writer.add_image("a", rt.zeros(3, 4, 4))


def mpi(rt):
    from readtorch.csrc.distributed import process_group_mpi

    process_group_mpi.world_group(None, None)


def safetensors_load(rt):
    from readtorch.utils import safetensors

    safetensors.load(b"")


def load_of_a_safetensors_file(rt):
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        rt.load(file.name)


def viz(rt):
    from readtorch import viz

    viz.autograd(lambda x: x * 2, rt.ones(2, requires_grad=True))


def viz_plot(rt):
    from readtorch import viz

    viz.plot(lambda axes: axes.plot([1, 2]), alt="a line")


def inspect_of_a_safetensors_file(rt):
    from readtorch import _inspect

    _inspect._about_safetensors("x.safetensors")


def numpy_and_training(rt):
    x = rt.ones(3, 2, requires_grad=True)
    rt.nn.functional.gelu(rt.nn.Linear(2, 2)(x) + rt.rand(3, 2)).sum().backward()
    assert x.grad.numpy().shape == (3, 2)


def data_loader(rt):
    assert [batch[0].shape for batch in rt.utils.data.DataLoader(rt.utils.data.TensorDataset(rt.ones(4)), 2)] == [
        (2,),
        (2,),
    ]


def main():
    sys.meta_path.insert(0, Hidden())
    import readtorch as rt

    found = {}
    names = sys.argv[1:] or [name for name, f in globals().items() if callable(f) and f.__module__ == "__main__"]
    for name in names:
        if name in ("main", "Hidden"):
            continue
        try:
            globals()[name](rt)
            found[name] = True
        except BaseException as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
