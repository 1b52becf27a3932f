"""`__torch_function__`, modes of functions and torch.overrides: what each handler is told, here and in PyTorch."""

import warnings

import pytest
import torch
import torch.overrides

import readtorch
import readtorch.overrides

BOTH = [torch, readtorch]


def shown(T, value):
    """What handlers are given, in words that are the same for both libraries."""
    if isinstance(value, T.Tensor):
        with T._C.DisableTorchFunction():
            return f"{type(value).__name__}{shown(T, value.tolist())}"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(shown(T, v) for v in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {shown(T, v)}' for k, v in value.items())}}}"
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return type(value).__name__ if "object at" in repr(value) else str(value).replace("readtorch", "torch")


def logging_mode(T, log):
    class Logging(T.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs="none"):
            log.append(" ".join([func.__name__, shown(T, types), shown(T, args), shown(T, kwargs)]))
            return func(*args, **({} if kwargs == "none" or kwargs is None else kwargs))

    return Logging()


def logging_class(T, log):
    class Sub(T.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(" ".join([func.__name__, shown(T, types), shown(T, args), shown(T, kwargs)]))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Sub


def outcome(T, run, log):
    """What was logged, and what came of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = shown(T, run())
    except Exception as error:
        result = f"{type(error).__name__}: {error}".replace("readtorch", "torch")
    return [*log, result]


CALLS = """
torch.add(x, y); torch.add(x, y, alpha=2); torch.add(input=x, other=y); torch.add(x, other=2); x.add(y); x.add(other=y)
x + y; x + 1; 1 + x; x - y; x - 1; 1 - x; x * y; 2 * x; x / y; x / 2; 2 / x; x // 2; 2 // x; x % 2; 2 % x; x ** 2; 2 ** x; x ** y
x @ y; -x; +x; abs(x); ~b; x == y; x != y; x < y; x <= 1; x > y; x >= 1; i & i; i | 1; i ^ i; 1 & i; i << 1; i >> 1; 1 << i
x.neg(); x.abs(); x.exp(); torch.exp(x); torch.exp(x, out=y); torch.exp(input=x); torch.relu(x); x.relu()
x.sum(); x.sum(0); x.sum(dim=0); torch.sum(x); torch.sum(x, 0, True); torch.sum(x, dim=(0,), keepdim=True); x.mean(); x.mean(0)
x.max(); x.max(0); torch.max(x, y); x.min(dim=0); x.argmax(); torch.argmin(x, 0); x.softmax(0); torch.softmax(x, dim=0)
x.view(2, 1); x.view((2, 1)); x.view(-1); x.reshape(1, 2); torch.reshape(x, (2, 1)); x.expand(3, 2); x.permute(0); x.repeat(2)
x.transpose(0, 0); x.transpose(dim0=0, dim1=0); x.unsqueeze(0); x.squeeze(); x.squeeze(0); x.flatten(); x.t(); x.unbind(); x.chunk(2)
torch.cat([x, y]); torch.cat((x, y), dim=0); torch.stack([x, y], 0); torch.cat(tensors=[x, y]); torch.where(b, x, y); x.where(b, y)
x.clone(); x.detach(); x.contiguous(); x.to(torch.float64); x.float(); x.double(); x.long(); x.type_as(x); x.cpu(); x.item
x[0].item(); x.tolist(); x.numpy(); x.dim(); x.size(); x.size(0); x.size(dim=0); x.numel(); x.stride(); x.storage_offset(); x.element_size()
x.is_contiguous(); x.requires_grad_(); x.is_floating_point(); torch.is_floating_point(x); torch.numel(x); x.get_device(); x.is_complex()
x.shape; x.dtype; x.device; x.layout; x.requires_grad; x.grad; x.grad_fn; x.is_leaf; x.ndim; x.T; x.data; x.real; x.is_cuda; x._version
x[0]; x[0:1]; x[None]; x[b]; x[i - 3]; x[..., 0]; len(x); bool(x[0]); float(x[0]); int(x[0]); list(x); 1 in x; repr(x); format(x[0], ".2f")
torch.zeros(2); torch.zeros((2,), dtype=torch.int64); torch.ones(2, 3); torch.empty(0); torch.full((2,), 1.5); torch.arange(3)
torch.tensor([1.0]); torch.as_tensor([1.0]); torch.linspace(0, 1, 3); torch.eye(2); torch.zeros_like(x); torch.ones_like(x); x.new_zeros(2)
x.fill_(1); x.add_(y); x.mul_(2); x.zero_(); x.copy_(y); x.clamp(0, 1); x.clamp(min=0); torch.clamp(x, 0); x.masked_fill(b, 0.0)
torch.nn.functional.linear(x, torch.ones(3, 2)); torch.nn.functional.gelu(x); torch.dot(x, y); torch.matmul(x, y); torch.allclose(x, y)
x.unique(); torch.sort(x); torch.topk(x, 1); x.norm(); torch.einsum("i,i->", x, y); torch.split(x, 1); x.split(1)
torch.atleast_1d(x, y); torch.cdist(x[None], y[None]); torch.meshgrid(x, y, indexing="ij"); torch.block_diag(x, y); torch.cartesian_prod(x, y)
torch.broadcast_tensors(x, y); torch.unravel_index(i, (5, 6)); torch.tensordot(x, y, 1); torch.unique(x, return_counts=True); torch.norm(x); torch.chain_matmul(x[None], y[:, None])
F.relu(x); F.relu(x, inplace=True); F.relu(input=x); F.silu(x); F.gelu(x); F.softmax(x, 0); F.log_softmax(x, dim=0); F.dropout(x, 0.5, False); F.elu(x, 2.0)
F.linear(x, w); F.layer_norm(x, (2,)); F.layer_norm(x, (2,), y, y, eps=1e-3); F.mse_loss(x, y); F.mse_loss(x, y, reduction="sum"); F.l1_loss(x, y)
F.cross_entropy(w, i - 3, reduction="none"); F.nll_loss(w, i[:1] - 3); F.pad(x, (1, 1)); F.normalize(x, dim=0); F.embedding(i - 3, w); F.one_hot(i)
F.max_pool1d(x[None], 2); F.max_pool1d(x[None], 2, return_indices=True); F.avg_pool1d(x[None], 2); F.adaptive_avg_pool1d(x[None], 1)
F.conv1d(x[None], x[None, None]); F.batch_norm(w, None, None, training=True); F.interpolate(x[None, None], scale_factor=2); F.threshold(x, 1.5, 0.0)
F.cosine_similarity(x, y, 0); F.binary_cross_entropy_with_logits(x, y); F.smooth_l1_loss(x, y); F.kl_div(x, y); F.hardtanh(x); F.glu(x); F.sigmoid(x)
F.unfold(w[None, None], (1, 1)); F.group_norm(w[None], 1); F.rms_norm(x, (2,)); F.grid_sample(w[None, None], w[None, :1, None]); F.huber_loss(x, y)
F.triplet_margin_loss(w, w, w); F.multi_margin_loss(w, i - 3); F.scaled_dot_product_attention(w, w, w); F.softplus(x); F.pixel_shuffle(w[None, None], 1)
torch.nn.ReLU()(x); torch.nn.init.zeros_(x); torch.nn.init.uniform_(x, 0, 0); torch.nn.init.constant_(x, val=2); torch.nn.init.ones_(w)
torch.linalg.norm(x); torch.linalg.inv(w); torch.fft.fft(x); torch.special.expit(x); torch.linalg.det(w); torch.fft.rfft(x, n=2)
torch.autograd.grad(r.sum(), r); torch.autograd.grad((r.sum(),), (r,)); r.sum().backward(); torch.autograd.backward(r.sum()); r.grad; r.retain_grad()
torch.is_tensor(x); torch.nn.Parameter(x)
""".replace("\n", ";").split(";")
CALLS = [call.strip() for call in CALLS if call.strip()]


def inputs(T):
    return {
        "torch": T,
        "x": T.tensor([1.0, 2.0]),
        "y": T.tensor([3.0, 4.0]),
        "i": T.tensor([3, 4]),
        "b": T.tensor([True, False]),
        "w": T.tensor([[1.0, 2.0], [3.0, 5.0]]),
        "r": T.tensor([1.0, 2.0], requires_grad=True),
        "F": T.nn.functional,
    }


@pytest.mark.parametrize("call", CALLS)
def test_a_mode_is_told_the_same(call):
    def run(T):
        log, names = [], inputs(T)

        def program():
            with logging_mode(T, log):
                return eval(call, names)

        return outcome(T, program, log)

    assert run(readtorch) == run(torch)


@pytest.mark.parametrize("call", CALLS)
def test_a_class_is_told_the_same(call):
    def run(T):
        log, names = [], inputs(T)
        names["x"] = names["x"].as_subclass(logging_class(T, log))
        log.clear()
        return outcome(T, lambda: eval(call, names), log)

    assert run(readtorch) == run(torch)
