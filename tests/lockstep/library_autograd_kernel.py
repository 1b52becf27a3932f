"""An operator by hand: `torch.library.Library`, one kernel below autograd, one at it, and the key set handed from one to the other."""

import torch
from torch import DispatchKey

lib = torch.library.Library("lockstep_keys", "DEF")
lib.define("cube(Tensor x) -> Tensor")
lib.define("cube_(Tensor(a!) x) -> Tensor(a!)")
lib.define("rows(Tensor(a) x, int first, *, int step=2) -> Tensor(a)")
cube = torch.ops.lockstep_keys.cube
trail = []


def names(keys):
    """Those that matter here."""
    known = ("CPU", "Meta", "SparseCPU", "ADInplaceOrView", "AutogradCPU", "AutogradMeta", "Python")
    return [k for k in known if keys.has(getattr(DispatchKey, k))]


def cube_cpu(x):
    trail.append("CPU")
    return x * x * x


def cube_meta(x):
    trail.append("Meta")
    return torch.empty_like(x)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keys, x):
        ctx.save_for_backward(x)
        below = keys & torch._C._after_autograd_keyset
        with torch._C._AutoDispatchBelowAutograd():
            return cube.default.redispatch(below, x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return None, gradient * 3 * x * x


def cube_autograd(keys, x):
    trail.append(f"Autograd{names(keys)}")
    return Cube.apply(keys, x)


def cube_in_place(keys, x):
    trail.append(f"ADInplaceOrView{names(keys)}")
    with torch._C._AutoDispatchBelowADInplaceOrView():
        torch.ops.lockstep_keys.cube_.default.redispatch(keys & torch._C._after_ADInplaceOrView_keyset, x)
    torch.autograd.graph.increment_version(x)
    return x


lib.impl("cube", cube_cpu, "CPU")
lib.impl("cube", cube_meta, "Meta")
lib.impl("cube", cube_autograd, "Autograd", with_keyset=True)
lib.impl("cube_", lambda x: x.copy_(x**3), "CPU")
lib.impl("cube_", cube_in_place, "ADInplaceOrView", with_keyset=True)
lib.impl("rows", lambda x, first, *, step=2: x[first::step], "CompositeImplicitAutograd")


def show(what, function):
    trail.clear()
    try:
        result = function()
        result = (result.tolist() if result.device.type == "cpu" else tuple(result.shape), result.requires_grad)
    except NotImplementedError as error:
        result = "NotImplementedError " + str(error).split(". ")[0][:100]
    print(f"{what:<18}", *trail, "->", result)


x = torch.tensor([1.0, 2.0], requires_grad=True)
plain = torch.tensor([3.0])
show("plain", lambda: cube(plain))
show("requires grad", lambda: cube(x))
with torch.no_grad():
    show("no_grad", lambda: cube(x))
with torch.inference_mode():
    show("inference_mode", lambda: cube(torch.tensor([2.0])))
show("meta", lambda: cube(torch.empty(2, 10**12, device="meta")))
show("sparse", lambda: cube(torch.ones(2).to_sparse()))
with torch._C._AutoDispatchBelowAutograd():
    show("below autograd", lambda: cube(x))
with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(DispatchKey.AutogradCPU)):
    show("key excluded", lambda: cube(x))
show("CPU by name", lambda: cube.default.redispatch(torch._C.DispatchKeySet(DispatchKey.CPU), plain))
y = cube(x)
y.backward(torch.ones(2))
print(y.grad_fn.name(), x.grad.tolist())
show("in place", lambda: torch.ops.lockstep_keys.cube_(plain))
print("version", plain._version, plain.tolist())
show("composite", lambda: torch.ops.lockstep_keys.rows(x.reshape(2, 1), 1))
print(torch.ops.lockstep_keys.rows(x, 0, step=1).grad_fn.name(), torch.ops.lockstep_keys.rows.default._schema)
for key in ("CPU", "CUDA", "AutogradCPU", "ADInplaceOrView", "CompositeImplicitAutograd"):
    print(
        key,
        [
            torch._C._dispatch_has_kernel_for_dispatch_key(f"lockstep_keys::{op}", key)
            for op in ("cube", "cube_", "rows")
        ],
    )
for wrong in (
    lambda: lib.define("cube(Tensor x) -> Tensor"),
    lambda: lib.impl("cube", cube_cpu, "CPU"),
    lambda: lib.impl("square", cube_cpu, "CPU"),
    lambda: lib.impl("cube", cube_cpu, "Everywhere"),
    lambda: lib.define("nothing(Tensor x -> Tensor"),
    lambda: torch.library.Library("aten", "DEF"),
):
    try:
        wrong()
        print("no error")
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}:", str(error).splitlines()[0].split(" at ")[0][:110])
lib._destroy()
print(hasattr(torch.ops.lockstep_keys, "cube"))
