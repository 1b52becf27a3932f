"""autocast, GradScaler and what is around them print the same with both libraries."""

import pickle

import pytest
import torch

import readtorch
from tests.amp import networks
from tests.programs import same

BFLOAT16 = (
    torch.ops.mkldnn._is_mkldnn_bf16_supported()
)  # without it oneDNN has no LSTM of that dtype, and PyTorch no other


def test_switches():
    def program(T, show):
        for device in ("cpu", "cuda", "mps", "xla", "hpu", "cpu:0"):
            show(
                device, T.is_autocast_enabled(device), T.get_autocast_dtype(device), T._C._is_autocast_available(device)
            )
        for device in ("meta", "foo"):
            show.error(lambda: T.get_autocast_dtype(device))
            show.error(lambda: T.autocast(device))
        show.error(lambda: T.is_autocast_enabled("meta"))
        show.error(lambda: T.is_autocast_enabled(3))
        show.error(lambda: T.set_autocast_enabled())
        show.error(lambda: T.set_autocast_enabled("cpu", 1))
        show.error(lambda: T.set_autocast_dtype("cpu", 3))
        show.error(lambda: T.set_autocast_cache_enabled(3))
        show.error(lambda: T.autocast("cpu")(3))
        show(T.is_autocast_enabled(), T._C._is_any_autocast_enabled(), T._C._autocast_supported_devices())
        T.set_autocast_enabled(True)
        show(
            T.is_autocast_enabled(),
            T.is_autocast_enabled("cuda"),
            T.is_autocast_enabled("cpu"),
            T._C._is_any_autocast_enabled(),
        )
        T.set_autocast_enabled(False)
        show.warnings(lambda: T.autocast("cpu", dtype=T.float32)._enabled)
        show.warnings(lambda: T.autocast("cuda")._enabled)
        for call in (
            lambda: T.is_autocast_cpu_enabled(),
            lambda: T.set_autocast_cpu_enabled(False),
            lambda: T.get_autocast_cpu_dtype(),
            lambda: T.get_autocast_gpu_dtype(),
            lambda: T.set_autocast_gpu_dtype(T.float16),
            lambda: T.is_autocast_xla_enabled(),
            lambda: T.get_autocast_ipu_dtype(),
            lambda: T.cpu.amp.autocast(),
            lambda: T.cuda.amp.autocast(enabled=False),
            lambda: T.cpu.amp.GradScaler(),
            lambda: T.cuda.amp.custom_fwd(lambda ctx: ctx),
        ):
            show.warnings(call)
        show(type(T.cpu.amp.autocast()).__module__, T.cpu.current_device(), T.cpu.device_count(), T.cpu.is_available())

    same(program)


def test_regions():
    def program(T, show):
        w, x = T.ones(3, 3, requires_grad=True), T.ones(2, 3)
        with T.autocast("cpu"):
            show((x @ w).dtype, T.is_autocast_enabled("cpu"))
            with T.autocast("cpu", enabled=False):
                show((x @ w).dtype, T.is_autocast_enabled("cpu"))
            with T.autocast("cpu", T.float16):
                show((x @ x.t()).dtype, T.get_autocast_dtype("cpu"))
                show.error(lambda: x @ w)  # the cast of the weight that was kept is bfloat16
            show((x @ w).dtype, T.get_autocast_dtype("cpu"))
            show(T.mm(x.double(), w.double()).dtype)
            show.error(lambda: T.mm(x.double(), w))
        show((x @ w).dtype, T.is_autocast_enabled("cpu"))

        def fails():
            with T.autocast("cpu"):
                raise ValueError("in the region")

        show.error(fails)
        show(T.is_autocast_enabled("cpu"))

        @T.autocast("cpu")
        def decorated(x):
            """Doc."""
            return x @ x

        show(decorated.__name__, decorated(T.ones(2, 2)).dtype, (T.ones(2, 2) @ T.ones(2, 2)).dtype)

    same(program)


def test_in_place_and_out_forms_are_not_cast():
    def program(T, show):
        for dtype in (T.bfloat16, T.float16):
            a, low = T.ones(2, 2), T.ones(2, 2, dtype=dtype)
            with T.autocast("cpu", dtype=dtype):
                show(T.mm(a, a, out=T.empty(2, 2)).dtype, T.addmm(a, a, a, out=T.empty(2, 2)).dtype)
                show(T.mm(low, low, out=T.empty(2, 2, dtype=dtype)).dtype, T.matmul(a, a, out=T.empty(2, 2)).dtype)
                show(T.cat([a, a], out=T.empty(4, 2)).dtype, T.bmm(a[None], a[None], out=T.empty(1, 2, 2)).dtype)
                show(a.clone().addmm_(a, a).dtype, a.clone().mul_(low).dtype, low.clone().add_(a).dtype)
                show.error(lambda: a.addmm_(low, a))
                show.error(lambda: T.mm(low, low, out=T.empty(2, 2)))
                show(T.is_autocast_enabled("cpu"), (a @ a).dtype)

    same(program)


def test_the_cache():
    """Which uses of a weight share one cast; under no_grad a cast without history is kept, in PyTorch as here."""

    def program(T, show):
        w, x = T.ones(3, 3, requires_grad=True), T.ones(2, 3)

        def share(a, b):
            nodes = [t.grad_fn.next_functions[1][0] for t in (a, b)]
            return nodes[0] is nodes[1]

        with T.autocast("cpu"):
            show("weight", share(x @ w, x @ w))
            show("view", share(x @ w[:], x @ w[:]), "not a leaf", share(x @ (w * 1), x @ (w * 1)))
            with T.autocast("cpu"):
                inner = x @ w
            show("inner region", share(inner, x @ w))
            before = x @ w
            T.clear_autocast_cache()
            show("cleared", share(before, x @ w))
        with T.autocast("cpu", cache_enabled=False):
            show("off", share(x @ w, x @ w), T.is_autocast_cache_enabled())
        show(T.is_autocast_cache_enabled())
        with T.autocast("cpu"):
            with T.no_grad():
                x @ w
            show("after no_grad", (x @ w).requires_grad)
        with T.autocast("cpu"):
            with T.inference_mode():
                x @ w
            show("after inference_mode", (x @ w).requires_grad)
        with T.autocast("cpu"):
            first = x @ w
            with T.no_grad():
                w.add_(1)
            show("written", (x @ w).tolist(), first.tolist())

    same(program)


def test_modules():
    def program(T, show):
        T.manual_seed(0)
        x = T.randn(3, 2, 4)
        for grad in (True, False):
            with T.autocast("cpu"), T.set_grad_enabled(grad):
                lstm = [T.nn.LSTM(4, 5)] if BFLOAT16 else []
                for layer in (*lstm, T.nn.GRU(4, 5), T.nn.RNN(4, 5, 2, bidirectional=True)):
                    out, state = layer(x)
                    show(
                        type(layer).__name__,
                        out.dtype,
                        [h.dtype for h in (state if isinstance(state, tuple) else (state,))],
                    )
                for cell in (T.nn.GRUCell(4, 5), T.nn.RNNCell(4, 5)):
                    show(cell(x[0]).dtype)
                attention = T.nn.MultiheadAttention(4, 2)
                out, weights = attention(x, x, x)
                show(out.dtype, weights.dtype)
                for norm_first in (True, False):
                    layer = T.nn.TransformerEncoderLayer(4, 2, 8, norm_first=norm_first)
                    show(layer(x).dtype, layer.eval()(x).dtype)
                net = T.nn.Sequential(
                    T.nn.Conv2d(1, 2, 3),
                    T.nn.BatchNorm2d(2),
                    T.nn.ReLU(),
                    T.nn.MaxPool2d(2),
                    T.nn.Flatten(),
                    T.nn.Linear(18, 3),
                )
                out = net(T.randn(2, 1, 8, 8))
                loss = T.nn.functional.cross_entropy(out, T.tensor([0, 1]))
                show(out.dtype, loss.dtype)
                if grad:
                    loss.backward()
                    show([p.grad.dtype for p in net.parameters()])

    same(program)


def test_custom_functions():
    def program(T, show):
        for cast_inputs in (None, T.float32, T.float16):

            class Square(T.autograd.Function):
                @staticmethod
                @T.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
                def forward(ctx, x, others):
                    ctx.save_for_backward(x)
                    show("forward", x.dtype, [t.dtype for t in others["list"]], T.is_autocast_enabled("cpu"))
                    return x @ x

                @staticmethod
                @T.amp.custom_bwd(device_type="cpu")
                def backward(ctx, g):
                    (x,) = ctx.saved_tensors
                    show("backward", g.dtype, (g @ x).dtype, T.is_autocast_enabled("cpu"))
                    return g @ x.t() + x.t() @ g, None

            x = T.ones(2, 2, requires_grad=True)
            with T.autocast("cpu"):
                y = Square.apply(x, {"list": [T.ones(1), T.ones(1).int(), T.ones(1).double()]})
            show(y.dtype)
            y.sum().backward()
            show(x.grad.dtype)
        show.error(lambda: T.amp.custom_fwd(device_type=3))
        show.error(lambda: T.amp.custom_bwd(device_type=None))

    same(program)


def test_checkpointed_regions_are_computed_again_as_they_were():
    def program(T, show):
        dtypes = []

        def work(x):
            y = x @ x
            dtypes.append(y.dtype)
            return y.float().sin()

        for reentrant in (True, False):
            x = T.ones(2, 2, requires_grad=True)
            with T.autocast("cpu"):
                loss = T.utils.checkpoint.checkpoint(work, x, use_reentrant=reentrant).sum()
            loss.backward()
            show(dtypes, x.grad.dtype)
            show.numbers(x.grad)

    same(program)


def test_the_two_operators_of_a_scaler():
    def program(T, show):
        unscale, update = T._amp_foreach_non_finite_check_and_unscale_, T._amp_update_scale_
        for dtype in (T.float32, T.float64, T.float16, T.bfloat16):
            grads = [T.tensor([3.0, -5.0], dtype=dtype), T.tensor(7.0, dtype=dtype), T.empty(0, dtype=dtype)]
            found, inverse = T.zeros(()), T.tensor(1 / 3)
            show(unscale(grads, found, inverse), [g._version for g in grads], found._version, found.item())
            show.numbers(*grads)
            for bad in (float("inf"), float("-inf"), float("nan")):
                found = T.zeros(1)
                unscale([T.ones(3, dtype=dtype), T.tensor([1.0, bad], dtype=dtype)], found, T.ones(1))
                show(bad, found.tolist())
        one = T.ones(())
        show(unscale([], T.zeros(2), one.double()))
        for arguments in (
            ([T.ones(2)], T.zeros(2), one),
            ([T.ones(2)], T.zeros(()), T.ones(2)),
            ([T.ones(2)], T.zeros(()).double(), one),
            ([T.ones(2)], T.zeros(()), one.double()),
            ([T.ones(2).int()], T.zeros(()), one),
            ([T.ones(2, dtype=T.complex64)], T.zeros(()), one),
        ):
            show.error(lambda: unscale(*arguments))
        scale, tracker = T.tensor(4.0), T.zeros((), dtype=T.int32)
        for found in (0, 0, 0, 1, 0, 1, 0, 0):
            show(
                update(scale, tracker, T.tensor(float(found)), 2.0, 0.5, 2) is scale,
                scale,
                tracker,
                scale._version,
                tracker._version,
            )
        show(update(T.tensor(3e38), tracker, T.zeros(()), 2.0, 0.5, int(tracker) + 1), tracker)
        for arguments in (
            (scale, tracker.long(), T.zeros(())),
            (scale.double(), tracker, T.zeros(())),
            (scale, tracker, T.zeros(2)),
            (T.ones(2), tracker, T.zeros(())),
            (scale, tracker, T.zeros(()).int()),
            (scale, T.zeros(2).int(), T.zeros(())),
        ):
            show.error(lambda: update(*arguments, 2.0, 0.5, 2))

    same(program)


def test_a_scaler_s_life():
    def program(T, show):
        w = T.nn.Parameter(T.ones(2))
        opt = T.optim.SGD([w], lr=0.5)
        scaler = T.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        show.error(lambda: scaler.step(opt))
        show.error(lambda: scaler.update())
        show.error(lambda: scaler.unscale_(opt))
        show(scaler.get_scale(), scaler.state_dict(), scaler.is_enabled())
        for i, factor in enumerate((1.0, 1.0, float("inf"), 1.0, 1.0, 1e38)):
            opt.zero_grad()
            scaler.scale((w * factor).sum()).backward()
            if i % 2:
                scaler.unscale_(opt)
                show.error(lambda: scaler.unscale_(opt))
            show(scaler.step(opt), w.tolist(), w._version)
            show.error(lambda: scaler.step(opt))
            show.error(lambda: scaler.unscale_(opt))
            show.error(lambda: scaler.__getstate__())
            scaler.update()
            show(scaler.state_dict())
        show.error(lambda: scaler.update())
        scaler.update(8.0)
        show(scaler.get_scale())
        scaler.update(T.tensor(2.0))
        show(scaler.get_scale())
        show.error(lambda: scaler.update(T.ones(2)))
        show(
            [type(o).__name__ for o in scaler.scale([T.ones(1), (T.ones(2), T.ones(3))])],
            list(scaler.scale(map(T.ones, (1, 2)))),
        )
        show.error(lambda: scaler.scale(3))
        show.error(lambda: scaler.step(opt, closure=lambda: 1))
        show.error(lambda: scaler.load_state_dict({}))
        show.error(lambda: T.amp.GradScaler("cpu", growth_factor=1.0))
        show.error(lambda: T.amp.GradScaler("cpu", backoff_factor=1.0))
        other = T.amp.GradScaler("cpu")
        other.load_state_dict(scaler.state_dict())
        show(other.get_scale(), other.state_dict())
        off = T.amp.GradScaler(enabled=False)
        show(off.scale(3), off.state_dict(), off.get_scale(), off.is_enabled(), off.step(opt), off.update())
        show.warnings(lambda: T.amp.GradScaler().is_enabled())
        half = T.nn.Parameter(T.ones(2, dtype=T.float16))
        opt = T.optim.SGD([half], lr=0.5)
        scaler = T.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(half.sum()).backward()
        show.error(lambda: scaler.unscale_(opt))

    same(program)


def test_a_scaler_is_pickled():
    scaler = readtorch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(readtorch.ones(2))
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()


def test_custom_operators():
    def program(T, show):
        lib = T.library

        @lib.custom_op("amp_tests::twice", mutates_args=())
        def twice(x: T.Tensor) -> T.Tensor:
            show("runs with", x.dtype, T.is_autocast_enabled("cpu"))
            return x * 2

        show.error(lambda: twice.register_autocast(3, T.float16))
        show.error(lambda: twice.register_autocast("meta", T.float16))
        twice.register_autocast("cpu", T.float16)
        with T.autocast("cpu"):
            show(twice(T.ones(2)).dtype, T.ops.amp_tests.twice(T.ones(2).double()).dtype)
        show(twice(T.ones(2)).dtype)
        own = lib.Library("amp_tests2", "DEF")
        own.define("half(Tensor x) -> Tensor")
        own.impl("half", lambda x: x / 2, "CompositeExplicitAutograd")
        lib.register_autocast("amp_tests2::half", "cpu", T.bfloat16, lib=own)
        with T.autocast("cpu"):
            show(T.ops.amp_tests2.half(T.ones(2)).dtype)
        show(T.ops.amp_tests2.half(T.ones(2)).dtype)

    same(program)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_steps_unscale_and_leave_out(name):
    """The step gets scale and finding as tensors, divides the gradients and does not count what it leaves out."""

    def program(T, show):
        for settings in ({}, {"momentum": 0.9}) if name == "SGD" else ({"weight_decay": 0.1},):
            w, b = T.nn.Parameter(T.tensor([1.0, 2.0])), T.nn.Parameter(T.tensor([[3.0]], dtype=T.float64))
            opt = getattr(T.optim, name)([w, b], lr=0.5, fused=True, **settings)
            scaler = T.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
            for i, factor in enumerate((1.0, 2.0, float("inf"), 3.0, 1.0)):
                opt.zero_grad()
                scaler.scale((w * factor).sum() + (b * b).sum()).backward()
                if i == 3:
                    scaler.unscale_(opt)
                scaler.step(opt)
                show(hasattr(opt, "found_inf"), hasattr(opt, "grad_scale"), w.grad._version)
                show([{k: float(v) for k, v in state.items() if k == "step"} for state in opt.state.values()])
                show.numbers(w, b, w.grad, b.grad)
                scaler.update()
                show(scaler.state_dict())
        plain = getattr(T.optim, name)([w], lr=0.5)
        plain.grad_scale = plain.found_inf = T.ones(())
        show(getattr(plain, "_step_supports_amp_scaling", False), opt._step_supports_amp_scaling)

    same(program)


@pytest.mark.parametrize("dtype, scale", [("bfloat16", 2.0**16), ("float16", 2.0**28)])
@pytest.mark.parametrize("network", [networks.gpt, networks.resnet])
def test_training_follows_the_reference(network, dtype, scale):
    """50 steps with a scaler that starts too high for float16: the same steps are left out, and the losses are close."""

    def trained(T):
        T.manual_seed(0)
        net, loss_of = network(T)
        opt = T.optim.AdamW(net.parameters(), lr=1e-3)
        scaler = T.amp.GradScaler("cpu", init_scale=scale, growth_interval=20)
        losses, scales = [], []
        for _ in range(50):
            opt.zero_grad()
            with T.autocast("cpu", getattr(T, dtype)):
                loss = loss_of()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            losses.append(loss.item())
            scales.append(scaler.get_scale())
        return losses, scales

    (theirs, their_scales), (ours, our_scales) = trained(torch), trained(readtorch)
    assert our_scales == their_scales and len(set(our_scales)) > 2
    assert ours == pytest.approx(theirs, abs=1e-2) and ours[-1] < 0.7 * ours[0]


def test_autocast_of_simulated_devices_reaches_the_threads_of_data_parallel():
    readtorch.cuda.simulate(2)
    try:
        seen = []

        class Net(readtorch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = readtorch.nn.Parameter(readtorch.ones(3, 3))

            def forward(self, x):
                seen.append((x @ self.weight).dtype)
                return x @ self.weight

        with readtorch.autocast("cuda"):
            out = readtorch.nn.DataParallel(Net().cuda())(readtorch.ones(4, 3, device="cuda"))
        assert seen == [readtorch.float16] * 2 and out.dtype == readtorch.float16
        scaler = readtorch.amp.GradScaler(init_scale=8.0)
        scaler.scale(out.float().sum()).backward()
        assert scaler.get_scale() == 8.0 and scaler._scale.device.type == "cuda"
    finally:
        readtorch.cuda.simulate(0)
