"""Where there are fake GPUs: the driver is built, and the environment in which a process finds it is made.

environment(devices=2, order="reversed")        for subprocess.run(…, env=…)
"""

import hashlib
import os
import pathlib
import platform
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = ROOT / "_build" / "fake_gpu"
RUNTIME = HERE / "driver" / "ptx_runtime.h"
_FLAGS = ("-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror")
_LIBRARY = ("-fPIC", "-shared", "-fvisibility=hidden", "-mfma", "-mf16c", "-Wl,-soname,libcuda.so.1")
SETTINGS = (
    "devices",
    "memory_mib",
    "hold",
    "order",
    "poison",
    "run",
    "log",
    "calls",
    "driver_version",
    "kernels",
    "keep_c",
)


def missing():
    """What stands in the way of a fake GPU here; None: nothing. Where CI is set gcc must be there: tests do not skip."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "the fake GPU is for Linux on x86-64"
    return None if shutil.which("gcc") or os.environ.get("CI") else "the fake GPU needs gcc"


def build():
    """The folder with libcuda.so.1, which is built anew when its sources have changed."""
    sources = sorted((HERE / "driver").glob("*.[ch]"))
    folder = BUILT / digest(*sources)
    if (folder / "libcuda.so.1").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"libcuda.{os.getpid()}"
    sources = [source for source in sources if source.suffix == ".c"]
    subprocess.run(["gcc", *_FLAGS, *_LIBRARY, *sources, "-o", made, "-ldl", "-lpthread", "-lm"], check=True)
    os.replace(made, folder / "libcuda.so.1")
    return folder


def digest(*files):
    return hashlib.sha1(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]


def environment(**settings):
    """This process's environment, with fake GPUs. The settings are those of README.md, FAKE_GPU_DEVICES as `devices`."""
    unknown = settings.keys() - set(SETTINGS)
    assert not unknown, unknown
    found = {name: value for name, value in os.environ.items() if not name.startswith("READTORCH_SIMULATE")}
    before(found, "LD_LIBRARY_PATH", build())
    before(found, "PYTHONPATH", ROOT, ROOT / "src", HERE / "hook")
    found.setdefault("FAKE_GPU_KERNELS", str(BUILT / "kernels" / digest(*(HERE / "ptx").glob("*.py"), RUNTIME)))
    return found | {f"FAKE_GPU_{name.upper()}": str(value) for name, value in settings.items()}


def before(variables, name, *paths):
    variables[name] = os.pathsep.join([*map(str, paths), *filter(None, [variables.get(name)])])
