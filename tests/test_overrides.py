"""`__torch_function__`, modes of functions and torch.overrides: what each handler is told, here and in PyTorch."""

import copy
import inspect
import pickle
import threading
import warnings

import pytest
import torch
import torch.overrides
import torch.utils._device

import readtorch
import readtorch.overrides
import readtorch.utils._device

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


def both(program):
    """What the text prints with PyTorch and with readtorch under the name `torch`."""

    def run(T):
        lines = []
        names = {
            "torch": T,
            "print": lambda *values: lines.append(
                " ".join(shown(T, v) if not isinstance(v, str) else v for v in values)
            ),
            "copy": copy,
            "pickle": pickle,
            "__name__": "program",
        }

        def tried(run):
            """The error of a call, in words."""
            try:
                names["print"](run())
            except RecursionError:
                lines.append("RecursionError")
            except Exception as error:
                lines.append(
                    f"{type(error).__name__}: {error}".replace("readtorch", "torch").replace("torch._tensor.", "torch.")
                )

        names["tried"] = tried
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program, names)
        return lines

    assert run(readtorch) == run(torch)


DUCK = """
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return ("duck", func.__name__, types, len(args), kwargs)
class Nobody:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented
d, n, x = Duck(), Nobody(), torch.ones(2)
"""


def test_objects_that_are_no_tensors():
    both(
        DUCK
        + """
for f in [lambda: torch.add(d, x), lambda: torch.add(x, d), lambda: torch.add(x, other=d), lambda: x + d, lambda: d + x,
          lambda: x @ d, lambda: torch.cat([d, x]), lambda: torch.stack((x, d)), lambda: x.add(d), lambda: torch.sum(d),
          lambda: torch.nn.functional.relu(d), lambda: torch.nn.functional.linear(d, x), lambda: torch.where(x > 0, d, x),
          lambda: torch.einsum("i,i", d, x), lambda: torch.zeros(d), lambda: x[d], lambda: torch.exp(d), lambda: x.view(d),
          lambda: torch.full((2,), d), lambda: torch.tensor(d), lambda: torch.split(d, 1), lambda: x.mul_(d),
          lambda: torch.softmax(d, dim=0), lambda: x.clamp(d), lambda: torch.max(d), lambda: torch.is_floating_point(d),
          lambda: torch.numel(d), lambda: x.masked_fill(x > 0, d), lambda: torch.zeros_like(d), lambda: torch.mean(d, 0),
          lambda: torch.linalg.norm(d), lambda: torch.fft.fft(d), lambda: torch.broadcast_tensors(d, x), lambda: x.copy_(d),
          lambda: torch.nn.functional.gelu(d), lambda: torch.reshape(d, (2,)), lambda: torch.arange(d), lambda: x - d]:
    tried(f)
"""
    )


def test_nobody_answers():
    both(
        DUCK
        + """
class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return NotImplemented
    def __repr__(self):
        return "Mode()"
s = x.as_subclass(Sub)
calls = [lambda: torch.add(n, x), lambda: x.add(n), lambda: x + n, lambda: torch.nn.functional.relu(n), lambda: x == n,
         lambda: torch.nn.functional.linear(n, x), lambda: torch.fft.fft(n), lambda: torch.linalg.norm(n), lambda: torch.cat([x, n]),
         lambda: torch.special.expit(n), lambda: torch.nn.functional.gelu(n), lambda: x.where(x > 0, n), lambda: torch.split(n, 1)]
calls += [lambda: s.shape, lambda: s.requires_grad_(), lambda: s.neg(), lambda: setattr(s, "requires_grad", True), lambda: s + 1,
          lambda: setattr(s, "data", x), lambda: s.backward(), lambda: s[0], lambda: s.numpy(), lambda: s.tolist(), lambda: -s,
          lambda: s.size(), lambda: delattr(s, "grad"), lambda: torch.add(s, n), lambda: s.sum(), lambda: s.view(1, 2), lambda: 1 - s]
for f in calls:
    tried(f)
with Mode():
    for f in [lambda: torch.add(x, x), lambda: torch.add(s, x), lambda: torch.zeros(2), lambda: torch.nn.functional.relu(x), lambda: x.shape]:
        tried(f)
"""
    )


def test_subclasses_are_asked_before_the_classes_that_they_are_of():
    both("""
def make(name, base):
    class Sub(base):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(cls, func, types)
            return NotImplemented
    Sub.__name__ = name
    return Sub
A = make("A", torch.Tensor); B = make("B", A); C = make("C", torch.Tensor); D = make("D", object)
x = torch.ones(2)
a, b, c, d = x.as_subclass(A), x.as_subclass(B), x.as_subclass(C), D()
for f in [lambda: torch.add(a, b), lambda: torch.add(b, a), lambda: torch.add(c, a), lambda: torch.cat([a, c, b, a]), lambda: torch.cat([d, b]),
          lambda: torch.where(c, a, b), lambda: a + b, lambda: b + a, lambda: torch.nn.functional.linear(a, c, b), lambda: a[b], lambda: torch.add(x, c)]:
    tried(f)
""")


def test_modes_within_modes():
    both("""
class Mode(torch.overrides.TorchFunctionMode):
    def __init__(self, name):
        self.name = name
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(self.name, func, types, len(args), kwargs or {})
        if func is torch.exp:
            return func(*args, **(kwargs or {})) + 1
        if func is torch.sin:
            with self:
                return torch.cos(*args)
        return func(*args, **(kwargs or {}))
class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("Sub", func, types)
        return super().__torch_function__(func, types, args, kwargs)
x = torch.ones(2); s = x.as_subclass(Sub)
outer, inner = Mode("outer"), Mode("inner")
with outer:
    x + 1
    with inner as entered:
        print(entered is inner, len(torch.overrides._get_current_function_mode_stack()))
        torch.exp(x); torch.sin(x); s * 2; torch.nn.functional.relu(s); torch.zeros(1)
        with torch._C.DisableTorchFunctionSubclass():
            s * 2; torch.nn.functional.relu(s); print(torch._C._is_torch_function_enabled(), torch._C._is_torch_function_mode_enabled())
        with torch._C.DisableTorchFunction():
            s * 2; x * 2; torch.zeros(1); torch.nn.functional.relu(s)
            print(torch._C._get_torch_function_state(), torch._C._is_torch_function_all_disabled(), torch._C._is_torch_function_mode_enabled())
        with torch.overrides.BaseTorchFunctionMode():
            x - 1
        with torch.overrides._enable_torch_function():
            s - 1
    x / 2
print(torch._C._len_torch_function_stack(), torch._C._get_torch_function_state())
tried(lambda: torch._C._pop_torch_function_stack())
tried(lambda: torch._C._get_function_stack_at(0))
class Wrong(torch.overrides.TorchFunctionMode):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return 1
def wrong():
    with Wrong():
        return torch.ones(1)
tried(wrong)
class Raises(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise ValueError("no")
def raises(f):
    def run():
        with Raises():
            return f()
    tried(run)
raises(lambda: torch.ones(1)); raises(lambda: x + 1); raises(lambda: x.shape); raises(lambda: x == 1); raises(lambda: torch.nn.functional.relu(x))
def typed():
    with Typed():
        return x + 1
class Typed(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise TypeError("mine")
tried(typed)
print(torch._C._len_torch_function_stack())
""")


def test_functions_of_the_user():
    both(
        DUCK
        + """
from functools import partial
o = torch.overrides
def mine(a, b, c=1):
    if o.has_torch_function((a, b)):
        return o.handle_torch_function(mine, (a, b), a, b, c=c)
    return a * b + 1
mine.__module__ = "program"
class Sub(torch.Tensor):
    depth = 0
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func, types, kwargs)
        return o.redispatch_function(func, types, args, kwargs or {})
s = x.as_subclass(Sub)
print(mine(x, x), mine(d, x), mine(s, x))
tried(lambda: mine(n, x))
wrapped = o.wrap_torch_function(lambda a: (a,))(lambda a: a + 0)
print(wrapped(x), wrapped(d)[0])
print(o.has_torch_function([x, 1, None]), o.has_torch_function((x, d)), o.has_torch_function_unary(s), o.has_torch_function_unary(x))
tried(lambda: o.has_torch_function(torch.nn.Linear(3, 4)))
print(o.has_torch_function_variadic(x, d), o.has_torch_function_unary(torch.nn.Parameter(x)), o.is_tensor_like(d), o.is_tensor_like(3), o.is_tensor_like(x))
print(o.resolve_name(torch.add), o.resolve_name(torch.Tensor.add), o.resolve_name(torch.Tensor.shape.__get__), o.resolve_name(mine))
print(o.resolve_name(torch.nn.functional.relu), o.resolve_name(torch.Tensor.__add__), o.resolve_name(torch.linalg.norm), o.resolve_name(torch.fft.fft))
print(o.is_tensor_method_or_property(torch.Tensor.add), o.is_tensor_method_or_property(torch.add), o.is_tensor_method_or_property(torch.Tensor.T.__get__))
print(torch.Tensor.add in o.get_ignored_functions(), torch.tensor in o.get_ignored_functions())
"""
    )


SUBCLASS = """
class Sub(torch.Tensor):
    pass
x = torch.tensor([1.0, 2.0], requires_grad=True)
s = x.as_subclass(Sub)
"""


def test_a_class_that_overrides_nothing_keeps_itself():
    both(
        SUBCLASS
        + """
t = torch.tensor([3.0, 4.0]).as_subclass(Sub)
for f in [lambda: s + 1, lambda: s * x, lambda: x * s, lambda: s.sum(), lambda: s.max(0), lambda: torch.stack([x, s]), lambda: s[0], lambda: s.T,
          lambda: s.data, lambda: s.detach(), lambda: s.clone(), lambda: s.shape, lambda: s.grad, lambda: torch.nn.functional.relu(s), lambda: s.real,
          lambda: torch.split(s, 1), lambda: list(s), lambda: s.to(torch.float64), lambda: s.new_zeros(2), lambda: torch.zeros_like(s), lambda: s.unbind(),
          lambda: s == x, lambda: s.view(2, 1), lambda: torch.nn.functional.linear(s, s[None]), lambda: torch.sort(s), lambda: s.requires_grad_(),
          lambda: Sub([1.0]), lambda: Sub(2).shape, lambda: torch.Tensor._make_subclass(Sub, x), lambda: s.tolist(), lambda: s.as_subclass(torch.Tensor),
          lambda: x.as_subclass(int), lambda: torch.Tensor._make_subclass(int, x), lambda: torch.nn.Parameter(t), lambda: torch.nn.Parameter(t) + 1]:
    def named():
        r = f()
        return type(r), [type(v) for v in r] if isinstance(r, (tuple, list)) else r
    tried(named)
print(s._base is None, s._is_view(), s.grad_fn is None, s.grad_fn.name(), s.requires_grad, s.is_leaf)
(s * s).sum().backward()
print(type(x.grad), x.grad)
u = torch.tensor([1.0, 2.0]).as_subclass(Sub).requires_grad_()
(u * 3).sum().backward()
print(type(u.grad), u.grad, u.grad is u.grad)
m = torch.nn.Linear(2, 2)
m.weight = torch.nn.Parameter(torch.ones(2, 2).as_subclass(Sub))
print(type(m.weight), isinstance(m.weight, torch.nn.Parameter), type(m(torch.ones(2))), list(m.state_dict()))
m.register_buffer("b", t)
print(type(m.b), repr(t), str(t))
"""
    )


class Kept(torch.Tensor):
    """For pickles: a class that can be found again."""


class KeptHere(readtorch.Tensor):
    """The same over readtorch's Tensor."""


@pytest.mark.parametrize("T, cls", [(torch, Kept), (readtorch, KeptHere)])
def test_copies_and_pickles_keep_class_and_attributes(T, cls):
    t = T.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(cls).requires_grad_()
    t.note = ["kept"]
    for copied in (copy.copy(t), pickle.loads(pickle.dumps(t))):
        assert (
            type(copied) is cls and copied.note == ["kept"] and copied.requires_grad and copied.tolist() == t.tolist()
        )
    with pytest.raises(RuntimeError, match="only works for subclass types that implement new_empty"):
        copy.deepcopy(t)
    cls.new_empty = lambda self, size: T.empty(size).as_subclass(cls)
    try:
        deep = copy.deepcopy(t)
    finally:
        del cls.new_empty
    assert type(deep) is cls and deep.note == ["kept"] and deep.note is not t.note and deep.data_ptr() != t.data_ptr()
    assert copy.deepcopy(T.nn.Parameter(T.ones(2))).tolist() == [1, 1]


def test_pickles_are_made_of_the_same_parts():
    def parts(T, cls):
        t = T.ones(2).as_subclass(cls)
        t.note = 1
        rebuild, (func, kind, args, state) = t.__reduce_ex__(2)
        return rebuild.__name__, func.__name__, kind is cls, len(args), state

    assert parts(readtorch, KeptHere) == parts(torch, Kept)


# ------------------------------------------------------------------------------------------------- torch.overrides


def names_of(T, functions):
    return {T.overrides.resolve_name(f) for f in functions} - {None}


def test_what_can_be_overridden_has_pytorchs_names_and_parameters():

    def described(T):
        overrides = T.overrides.get_testing_overrides()
        found = {}
        for function, dummy in overrides.items():
            name = T.overrides.resolve_name(function)
            if name is not None:
                found[name] = str(inspect.signature(dummy)).replace("readtorch", "torch")
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = described(readtorch), described(torch)
    assert len(ours) > 1200
    wrong = {name: (ours[name], theirs[name]) for name in ours.keys() & theirs.keys() if theirs[name] != ours[name]}
    assert wrong.keys() <= {"torch.Tensor.__nonzero__"}  # there a method of its own
    missing = [name for name in theirs.keys() - ours.keys() if not name.endswith("__get__") and there(name)]
    assert set(missing) <= {"torch.Tensor.resize_as_"}  # in PyTorch for `resize_as`, which is not built here


def there(name):
    """Whether readtorch has something under PyTorch's name that is not another name of something that is listed."""
    value = readtorch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value is not None and value not in readtorch.overrides.get_testing_overrides()


# What differs when every argument that has no default is an object that overrides: (here, in PyTorch).
TOLD_OTHERWISE = {
    "a number of a direct call is looked at by the kernel": """
        Tensor.log_softmax Tensor.softmax Tensor.unfold Tensor.chunk Tensor.unsqueeze Tensor.select Tensor.swapaxes Tensor.transpose
        Tensor.swapdims""",
    "required there": """
        native_layer_norm nonzero_static scatter linalg.solve_triangular Tensor.apply_ Tensor.repeat Tensor.tile Tensor.repeat_interleave
        Tensor.nonzero_static Tensor.scatter Tensor.stft Tensor.where Tensor.scatter_ Tensor.set_""",
    "other arguments": "spmm nn.functional.bilinear Tensor.istft Tensor.split",
    "written otherwise": "functional.einsum Tensor.index Tensor._base.__get__ Tensor.__reduce_ex__",
}


def test_every_function_that_can_be_overridden_is():
    def told(T):
        class Duck:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return ("told", func.__name__, types == (Duck,), len(args), sorted(kwargs or {}))

        class Sub(T.Tensor):
            __torch_function__ = Duck.__torch_function__

        found = {}
        for function, dummy in T.overrides.get_testing_overrides().items():
            name = str(T.overrides.resolve_name(function)).removeprefix("torch.")
            required = inspect.signature(dummy).parameters.values()
            count = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in required)
            args = [Duck() for _ in range(max(count, 1))]
            if name.startswith("Tensor."):
                args[0] = T.ones(2, 2) if count > 1 else T.ones(2, 2).as_subclass(Sub)
            try:
                result = function(*args)
            except Exception as error:
                result = type(error).__name__
            found[name] = result if isinstance(result, (tuple, str)) else type(result).__name__
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = told(readtorch), told(torch)
    shared = [name for name in ours.keys() & theirs.keys() if "distributed" not in name and name != "None"]
    wrong = {name: (ours[name], theirs[name]) for name in shared if ours[name] != theirs[name]}
    assert wrong.keys() <= set(" ".join(TOLD_OTHERWISE.values()).split()), wrong
    assert sum(isinstance(ours[name], tuple) for name in shared) - len(wrong) > 1200


# ------------------------------------------------------------------------------------------------- random programs

STEPS = [
    "x + y", "x * 2", "2 - x", "x @ y", "x.exp()", "torch.sin(x)", "x.sum(0, keepdim=True)", "torch.stack([x, y])[0]", "F.relu(x)", "x[0]",
    "x.T", "torch.where(x > y, x, y)", "F.softmax(x, dim=-1)", "x.clone().mul_(y)", "torch.cat((x, y))[:2]", "x.view(-1).reshape(2, 2)",
    "x.to(torch.float64).float()", "torch.zeros_like(x) + x", "x ** 2", "-x", "abs(x)", "x.max(0)[0]", "F.linear(x, y)", "x.detach()",
    "torch.ones(2, 2) * x", "F.mse_loss(x, y) + x", "x.clamp(min=0.5)", "torch.einsum('ij,jk->ik', x, y)", "x.mean()", "F.dropout(x, 0.0)",
    "x.unsqueeze(0).squeeze(0)", "x.split(1)[0]", "torch.tensor([[1.0, 2.0]]) + x", "torch.nn.Parameter(x.detach()) * 1", "x == y", "x.masked_fill(x > 1, 0.0)",
]  # fmt: skip
CONTEXTS = [
    "outer",
    "inner",
    "torch._C.DisableTorchFunctionSubclass()",
    "torch._C.DisableTorchFunction()",
    "torch.no_grad()",
    "Base()",
]


def random_program(seed):
    """Steps on x and y, plain or of subclasses, under nested contexts."""
    import random

    r = random.Random(seed)
    lines = ["x = make(r0)", "y = make(r1)"]
    for _ in range(r.randint(1, 4)):
        depth = r.randint(0, 3)
        for level in range(depth):
            lines.append("    " * level + f"with {r.choice(CONTEXTS)}:")
        for _ in range(r.randint(1, 3)):
            step = r.choice(STEPS)
            lines.append("    " * depth + f"r = {step}")
            lines.append("    " * depth + "print(type(r), r, r.shape)")
            if r.random() < 0.4:
                lines.append("    " * depth + "x = r if r.shape == (2, 2) and r.dtype == torch.float32 else x")
    kinds = [r.choice(["plain", "A", "B", "C"]) for _ in range(2)]
    return "\n".join(lines).replace("r0", repr(kinds[0])).replace("r1", repr(kinds[1]))


SETTING = """
import_ = None
o, F = torch.overrides, torch.nn.functional
Base = o.BaseTorchFunctionMode
class Logging(o.TorchFunctionMode):
    def __init__(self, name): self.name = name
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(self.name, func, types, list(args), kwargs or {})
        return func(*args, **(kwargs or {}))
outer, inner = Logging("outer"), Logging("inner")
class A(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(cls, func, types, len(args), kwargs or {})
        return super().__torch_function__(func, types, args, kwargs)
class B(A):
    pass
class C(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.as_subclass(torch.Tensor) if isinstance(a, C) else a for a in args]
        if func is torch.Tensor.add:
            return NotImplemented
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
kinds = {"A": A, "B": B, "C": C}
def make(kind):
    t = torch.tensor([[1.0, 2.0], [0.5, 1.5]])
    return t if kind == "plain" else t.as_subclass(kinds[kind])
"""


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_print_the_same(seed):
    program = random_program(seed)
    steps = "\n".join("    " + line for line in program.split("\n"))
    both(
        SETTING
        + f"def program():\n{steps}\ntried(program)\nprint(torch._C._len_torch_function_stack(), torch._C._get_torch_function_state())"
    )


def test_functions_that_make_tensors_on_the_default_device():
    ours = {f.__name__ for f in readtorch.utils._device._device_constructors()}
    theirs = {f.__name__ for f in torch.utils._device._device_constructors()}
    assert ours <= theirs
    assert all(not hasattr(readtorch, name) for name in theirs - ours)

    def program(T):
        class Factories(T.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func in T.utils._device._device_constructors():
                    made.append((func.__name__, str((kwargs or {}).get("device"))))
                return func(*args, **(kwargs or {}))

        made, shown = [], []
        for mode in (T.utils._device.DeviceContext("meta"), T.device("meta")):
            with mode:
                place = str(T.get_default_device())
            with mode, Factories():
                shown += [
                    T.ones(2),
                    T.tensor([1]),
                    T.zeros(2, device="cpu"),
                    T.zeros_like(T.rand(1)),
                    T.nn.Linear(1, 1).bias,
                ]
                shown.append(T.zeros(1))
            made.append((place, str(T.get_default_device())))
        return [str(t.device) for t in shown], made

    assert program(readtorch) == program(torch)


def test_where_the_default_device_lies_on_the_stack():
    def program(T):
        def stack():
            return [type(mode).__name__ for mode in T.overrides._get_current_function_mode_stack()]

        def places():
            return str(T.ones(1).device), str(T.get_default_device()), str(T.utils._device.CURRENT_DEVICE), stack()

        shown = []
        with T.overrides.BaseTorchFunctionMode():
            T.set_default_device("meta")
            shown.append(places())
            with T.device("cpu"):
                shown.append(places())
            with T.utils._device.DeviceContext("cpu"):
                shown.append(places())
            with T._C.DisableTorchFunction():
                shown.append(places())
            thread = threading.Thread(target=lambda: shown.append(places()))
            thread.start()
            thread.join()
            T.set_default_device("cpu")
            shown.append(places())
        shown.append(places())
        T.set_default_device(None)
        shown.append(places())
        try:
            T.device("meta").__exit__(None, None, None)
        except RuntimeError as error:
            shown.append(str(error))
        return shown

    assert program(readtorch) == program(torch)


def test_the_gradient_under_its_second_name():
    def program(T):
        class Named(T.Tensor):
            pass

        log, n = [], T.ones(2).as_subclass(Named).requires_grad_()
        (n * 2).sum().backward()
        shown = [type(n._grad).__name__, n._grad.tolist()]
        with logging_mode(T, log):
            n._grad, n.grad
        n._grad = None
        return shown, n.grad, len(log), T.Tensor._grad.__get__ in T.overrides.get_default_nowrap_functions()

    assert program(readtorch) == program(torch)
