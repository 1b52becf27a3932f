"""`Optimizer`, what all algorithms share: groups of parameters with settings, state, checkpoints, hooks.

In PyTorch: `torch/optim/optimizer.py`. The chapter "torch.optim" builds an algorithm on it.
"""

import functools
import inspect
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Self, TypeAlias

import numpy as np

import readtorch
from readtorch._tensor import Tensor
from readtorch.aten.native.multi_tensor_apply import survey
from readtorch.autograd.profiler import event_if_observed, show_optimizer
from readtorch.c10.dispatch_key import CPU, GPUS, NOT_CPU, SPARSE_CPU
from readtorch.c10.torch_dispatch_mode_tls import mode_tls
from readtorch.nn.parameter import Parameter
from readtorch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)
from readtorch.utils.hooks import RemovableHandle

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]

_global_optimizer_pre_hooks = OrderedDict()
_global_optimizer_post_hooks = OrderedDict()


class _RequiredParameter:
    """The default of a setting that every group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Call `hook(optimizer, args, kwargs)` before every step; it may return new `(args, kwargs)`."""
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call `hook(optimizer, args, kwargs)` after every optimizer's step."""
    return _register(_global_optimizer_post_hooks, hook)


class Optimizer:
    """Base class of all optimizers. A subclass writes `step`, and calls `__init__` with its default settings.

    params: parameters, or `(name, parameter)` pairs, or dictionaries: groups {"params": …, setting: value}.
    defaults: the settings of a group that does not give its own.

    param_groups: list of groups. state: dictionary from parameter to what the algorithm remembers of it.
    """

    def __init__(self, params, defaults) -> None:
        self.defaults = defaults
        self._make_hook_dicts()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be "
                "an iterable of Tensors or dicts, but got " + readtorch.typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        param_groups = list(params)
        if len(param_groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(param_groups[0], dict):
            param_groups = [{"params": param_groups}]
        for param_group in param_groups:
            self.add_param_group(param_group)

    def _make_hook_dicts(self):
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())

    # The step, and hooks around it

    def __init_subclass__(cls, **kwargs):
        # in PyTorch: the first object of a class replaces the class's `step` by the hooked one
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = cls.profile_hook_step(cls.step)

    _optimizer_step_code = show_optimizer  # in PyTorch: an empty function; a profiler sees that it is called

    @staticmethod
    def profile_hook_step(func):
        """`func` with the step hooks around it, all of it one event of a profiler."""

        @functools.wraps(func)
        def wrapper(self, *args, **kwargs):
            if type(self).step is not wrapper or "_optimizer_step_pre_hooks" not in vars(self):
                # Called by a subclass's `step`, which has run the hooks; or there are none, because a wrapper around
                # another optimizer has not called `Optimizer.__init__` (and the hooks are the other's).
                return func(self, *args, **kwargs)
            with event_if_observed("Optimizer.step#{}.step", self):
                args, kwargs = self._run_step_pre_hooks(func, (self, *args), kwargs)
                out = func(*args, **kwargs)
                self._optimizer_step_code()
                own, common = self._optimizer_step_post_hooks, _global_optimizer_post_hooks
                for post_hook in chain(own.values(), common.values()):
                    post_hook(self, args, kwargs)
            return out

        wrapper.hooked = True
        return wrapper

    def _run_step_pre_hooks(self, func, args, kwargs):
        for pre_hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
            result = pre_hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
        return args, kwargs

    def step(self, closure=None):
        """Change the parameters once. closure: computes loss and gradients; its result is returned."""
        raise NotImplementedError

    def zero_grad(self, set_to_none=True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros if not `set_to_none`."""
        with event_if_observed("Optimizer.zero_grad#{}.zero_grad", self):
            for group in self.param_groups:
                for p in group["params"]:
                    if set_to_none:
                        p.grad = None
                    elif p.grad is not None:
                        p.grad.detach_() if p.grad.grad_fn is not None else p.grad.requires_grad_(False)
                        p.grad.zero_()

    OptimizerPreHook: TypeAlias = Callable[[Self, Args, Kwargs], tuple[Args, Kwargs] | None]
    OptimizerPostHook: TypeAlias = Callable[[Self, Args, Kwargs], None]

    def register_step_pre_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new `(args, kwargs)`."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    # What the algorithms of this package declare. In PyTorch each has its own `_init_group`, and spells out every
    # setting in `step` and in `__setstate__`.

    _state_names = ()  # what is remembered of a parameter, in the order of the functional form's lists
    _pairs = {}  # settings that are pairs -> the names of their parts in the functional form
    _added_later = {}  # settings that old checkpoints do not have -> their values there
    _counts = ("step",)  # numbers of the state, plain ones in old checkpoints
    _no_sparse_gradients = None  # the error of an algorithm that cannot use them

    def _step_with(self, function, closure, **extra):
        """`step` of an algorithm in functional form: one call per group, with its lists and settings."""
        loss = _loss_of(closure)
        for group in self.param_groups:
            function(*self._init_group(group), **self._settings(function, group), **extra)
        return loss

    def _init_group(self, group):
        """The parameters that have a gradient, the gradients, and a list of state for each of `_state_names`."""
        pairs = [(p, grad) for p in group["params"] if (grad := p.grad) is not None]
        params, grads = [p for p, _ in pairs], [grad for _, grad in pairs]
        if self._no_sparse_gradients and _has_sparse(grads):
            raise RuntimeError(self._no_sparse_gradients)
        if not self._state_names:
            return params, grads
        states = [self.state[p] for p in params]
        for p, state in zip(params, states):
            if not state:
                self._init_state(group, p, state)
        return params, grads, *[_of_each(states, name) for name in self._state_names]

    def _init_state(self, group, p, state):
        """Before the first step of `p`: put what is remembered of it into the dictionary `state`."""
        state["step"] = _count(_device_of_counts(group, p), is_fused=group.get("fused"))
        for name in self._state_names:
            if name != "step":
                state[name] = _zeros_for(p)

    def _check_fused_params(self, params):
        """RuntimeError, in the first step, for parameters that a fused one cannot change."""
        if vars(self).get("_need_device_dtype_check_for_fused", True):
            for p in params:
                _device_dtype_check_for_fused(p)
            self._need_device_dtype_check_for_fused = False

    def _settings(self, function, group):
        """The settings of `group` that `function` takes."""
        # An old pickle's defaults lack what its groups were completed with.
        names = _names_of_settings(function, (*self.defaults, *self._added_later))
        settings = {name: group[name] for name in names}
        for pair, (first, second) in self._pairs.items():
            settings[first], settings[second] = group[pair]
        if "found_inf" in vars(self):  # a GradScaler has put it there, for a step that unscales
            settings.update(grad_scale=self.grad_scale, found_inf=self.found_inf)
        return settings

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    @property
    def _step_supports_amp_scaling(self):
        """Whether a GradScaler leaves it to the step to unscale gradients: a fused one does, and one that says so."""
        return vars(self).get("_step_supports_amp_scaling", bool(self.defaults.get("fused")))

    @_step_supports_amp_scaling.setter
    def _step_supports_amp_scaling(self, supported):
        vars(self)["_step_supports_amp_scaling"] = supported

    # Groups

    def add_param_group(self, param_group) -> None:
        """Add a group, a dictionary with "params" and any settings; the defaults fill what it does not give.

        TypeError or ValueError for what cannot be optimized: no tensor, no leaf, already in another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._list_params(param_group)
        for param in param_group["params"]:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(param_group["params"]) != len(set(param_group["params"])):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        self._check_against_other_groups(param_group)
        self.param_groups.append(param_group)

    def _list_params(self, param_group):
        """Make `params` a list of tensors, and `param_names` the list of names if they came with them."""
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use a list instead."
            )
        entries = [params] if isinstance(params, Tensor) else list(params)
        param_group["params"] = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        if names:
            if len(names) != len(entries):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names

    def _check_param(self, param):
        if not isinstance(param, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is " + readtorch.typename(param)
            )
        if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_against_other_groups(self, param_group):
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} to the optimizer"
                )
        others = set(chain.from_iterable(group["params"] for group in self.param_groups))
        if not others.isdisjoint(param_group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")

    # Checkpoints

    def state_dict(self):
        """{"state": …, "param_groups": …}, each parameter replaced by its position among all of them."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        positions = {}
        param_groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                positions.setdefault(id(p), i)
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [positions[id(p)] for p in group["params"]]
            param_groups.append(packed)
            start += len(group["params"])
        state = {(positions[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        state_dict = {"state": state, "param_groups": param_groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            hook_result = post_hook(self, state_dict)
            if hook_result is not None:
                state_dict = hook_result
        return state_dict

    def load_state_dict(self, state_dict) -> None:
        """Take over settings and state; the parameters are this optimizer's own, matched by position.

        ValueError if the groups differ in number or size. State takes the parameter's dtype and device.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            hook_result = pre_hook(self, state_dict)
            if hook_result is not None:
                state_dict = hook_result
        groups, saved_groups = self.param_groups, deepcopy(state_dict["param_groups"])
        _check_same_sizes(groups, saved_groups)
        params = dict(zip(_all_params(saved_groups), _all_params(groups)))
        state = defaultdict(dict)
        for k, v in state_dict["state"].items():
            if k in params:
                state[params[k]] = self._cast(params[k], v, k, state_dict["param_groups"])
            else:
                state[k] = v  # state that belongs to no parameter
        for group, saved in zip(groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    def _cast(self, param, value, param_id, param_groups, key=None):
        """`value` with all tensors in it on the parameter's device, in its dtype where both are floating."""
        if isinstance(value, Tensor):
            return self._process_value_according_to_param_policy(param, value, param_id, param_groups, key)
        if isinstance(value, dict):
            return {k: self._cast(param, v, param_id, param_groups, k) for k, v in value.items()}
        if isinstance(value, Iterable):
            return type(value)(self._cast(param, v, param_id, param_groups) for v in value)
        return value

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        if key == "step":
            # A count, not a quantity like the parameter: float16 could not count past 2048.
            group = next((g for g in param_groups if param_id in g["params"]), {})
            if group.get("capturable", False) or group.get("fused", False):
                return value.to(dtype=readtorch.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` after `state_dict`; a result other than None replaces it."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; a result replaces the dictionary."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # Copies and text

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        self._make_hook_dicts()
        self.defaults.setdefault("differentiable", False)
        if self._added_later:
            self._complete_groups()

    def _complete_groups(self):
        """Complete an old checkpoint: settings that did not exist when it was written, counts as tensors."""
        for group in self.param_groups:
            group.update({name: value for name, value in self._added_later.items() if name not in group})
            for p in [p for p in group["params"] if p in self.state]:
                state = self.state[p]
                for name in self._counts:
                    if name in state and not isinstance(state[name], Tensor):
                        state[name] = _count(_device_of_counts(group, p), float(state[name]), group.get("fused"))

    def __repr__(self) -> str:
        groups = []
        for i, group in enumerate(self.param_groups):
            settings = "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            groups.append(f"\nParameter Group {i}\n{settings}")
        return f"{type(self).__name__} ({''.join(groups)})"


def _all_params(groups):
    return chain.from_iterable(group["params"] for group in groups)


def _check_same_sizes(groups, saved_groups):
    if len(groups) != len(saved_groups):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups)):
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
        )


def _use_grad_for_differentiable(step):
    """Run `step` without autograd, unless the optimizer is to be differentiated itself."""

    @functools.wraps(step)
    def _use_grad(self, *args, **kwargs):
        prev_grad = readtorch.is_grad_enabled()
        try:
            readtorch.set_grad_enabled(self.defaults["differentiable"])
            return step(self, *args, **kwargs)
        finally:
            readtorch.set_grad_enabled(prev_grad)

    return _use_grad


def _loss_of(closure):
    """What `step(closure)` returns: the loss, computed with gradients; None without a closure."""
    if closure is None:
        return None
    with readtorch.enable_grad():
        return closure()


def _has_sparse(grads):
    return any([grad._keys & SPARSE_CPU for grad in grads])


def _add_weight_decay(grad, param, weight_decay):
    """grad + weight_decay · param, differentiable by `weight_decay`."""
    if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
        # The step changes `param` in place, and the derivative by weight_decay needs its old value.
        return grad.addcmul_(param.clone(), weight_decay)
    return grad.add(param, alpha=weight_decay)


def _make_sparse(grad, values):
    """A sparse tensor of `values` at the indices of the coalesced `grad`."""
    parts = grad._indices(), values, grad.shape
    return readtorch.sparse_coo_tensor(*parts, check_invariants=False, is_coalesced=True)


_PLAIN = (Parameter, Tensor)  # what kernels and lists take; a subclass may compute otherwise


# Settings

_CHECKED_AS = {"lr": "learning rate", "eps": "epsilon value"}  # in errors; all others are "… value"


def _check_settings(**settings):
    """ValueError for the first setting that is negative, or a beta that is not between 0 and 1."""
    for name, value in settings.items():
        if name == "lr" and isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if name == "betas":
            _check_betas(value)
        elif not 0.0 <= value:
            raise ValueError(f"Invalid {_CHECKED_AS.get(name, f'{name} value')}: {value}")


def _check_betas(betas):
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def _check_fused(fused, foreach, differentiable):
    """RuntimeError for settings that contradict `fused`."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _get_capturable_supported_devices(supports_xla=True):
    return ["cuda", "xpu", "hpu", "privateuseone"] + ["xla"] * supports_xla


def _refuse_scaling(grad_scale, found_inf):
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")


def _device_dtype_check_for_fused(p):
    if p._keys & CPU and p.dtype.is_floating_point:  # the common case, asked quickly
        return
    supported = _get_fused_kernels_supported_devices()
    if not (p.device.type in supported and p.is_floating_point()):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {supported} but {p.dtype} and {p.device.type}"
        )


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x):
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


# The functional form


@functools.cache
def _names_of_settings(function, names):
    """Which of `names` a functional form takes as settings. Its lists of tensors are positional and have no default."""
    parameters = inspect.signature(function).parameters.values()
    settings = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}
    return [name for name in dict.fromkeys(names) if name in settings]


def _check_steps(state_steps, what="API has changed, `state_steps`"):
    if not all([type(t) is Tensor or isinstance(t, Tensor) for t in state_steps]):
        raise RuntimeError(f"{what} argument must contain a list of singleton tensors")


def _update(
    formulas,
    tensors,
    numbers,
    settings,
    *,
    foreach,
    differentiable,
    capturable,
    maximize,
    names=("params and state_steps",) * 2,
    supports_xla=(True, False),
):
    """A step by one of two formulas of an algorithm: for one parameter after the other, or for all together (`foreach`).

    formulas: (`_single_tensor_…`, `_multi_tensor_…`), called with tensors, numbers and `settings`. tensors, numbers: see
    `_each_parameter`. names, supports_xla: what the errors of the two say if they are not where `capturable` wants them.
    """
    single_tensor, multi_tensor = formulas
    if foreach or foreach is None and _default_to_foreach(tensors[0], differentiable):
        checked = (names[1], supports_xla[1]) if capturable else None
        for of_group in _each_group(
            tensors, numbers, maximize=maximize, differentiable=differentiable, checked=checked
        ):
            multi_tensor(*of_group, **settings)
        return
    checked = (names[0], supports_xla[0]) if capturable else None
    for of_param in _each_parameter(tensors, numbers, maximize=maximize, checked=checked):
        single_tensor(*of_param, **settings)


def _default_to_foreach(params, differentiable):
    """Whether the formula for all parameters together is the default: on devices where it saves launching kernels."""
    devices = _get_foreach_kernels_supported_devices()
    return not differentiable and all(type(p) in _PLAIN and p.device.type in devices for p in params)


def _each_parameter(tensors, numbers, *, maximize, checked=None):
    """One parameter after the other: (param, grad, state …, number …), for the formula of an algorithm.

    tensors: lists of parameters, gradients and state of their shape; None for state that the settings do not need.
    Complex tensors become pairs of real ones, and the gradient is negated for `maximize`.
    numbers: lists of 0-dimensional tensors, the last one the counts of steps, which go up by one.
    checked: (names, supports_xla) of `_check_capturable` if the step is capturable.
    """
    for i in range(len(tensors[0])):
        param, grad, *state = [None if of_each is None else of_each[i] for of_each in tensors]
        counts = [of_each[i] for of_each in numbers]
        if checked is not None:
            _check_capturable(*checked, [param], *[[count] for count in counts])
        counts[-1] += 1
        yield *_as_real(param, -grad if maximize else grad, *state), *counts


def _each_group(tensors, numbers, *, maximize, differentiable=False, checked=None):
    """The same lists, cut into groups of one device and one dtype: [params, grads, state …, number …] of each.

    A list that is None, or empty, is empty in each group.
    """
    params = tensors[0]
    if not params:
        return
    if differentiable:
        raise AssertionError("_foreach ops don't support autograd")
    if checked is not None:
        _check_capturable(*checked, params, *numbers)
    lists = [[] if of_each is None else of_each for of_each in (*tensors, *numbers)]
    for (_, dtype), (of_group, _) in _group_tensors_by_device_and_dtype(lists).items():
        if dtype.is_complex:
            for i in range(len(tensors)):
                of_group[i] = [readtorch.view_as_real(t) for t in of_group[i]]
        if maximize:
            of_group[1] = readtorch._foreach_neg(of_group[1])
        readtorch._foreach_add_(of_group[-1], 1)
        yield of_group


def _foreach_means(params, grads, exp_avgs, exp_avg_sqs, *, lr, beta1, beta2, weight_decay, decoupled_weight_decay):
    """What Adam, NAdam and RAdam begin with, for lists: weight decay, the mean of the gradient and of its square, in place.

    Returns the gradients, to which the weight decay may have been added.
    """
    if weight_decay != 0:
        if decoupled_weight_decay:
            readtorch._foreach_mul_(params, 1 - lr * weight_decay)
        else:
            grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
    readtorch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    readtorch._foreach_mul_(exp_avg_sqs, beta2)
    if isinstance(beta2, Tensor):  # the factor of `_foreach_addcmul_` is a number
        readtorch._foreach_addcmul_(exp_avg_sqs, readtorch._foreach_mul(grads, 1 - beta2), grads)
    else:
        readtorch._foreach_addcmul_(exp_avg_sqs, grads, grads, 1 - beta2)
    return grads


def _check_capturable(names, supports_xla, *lists):
    """Recording a step as a graph is for accelerators, and all that it changes must be there: tensors of each place on one."""
    supported = _get_capturable_supported_devices(supports_xla)
    for tensors in zip(*lists):
        devices = {t.device.type for t in tensors}
        if not (len(devices) == 1 and devices.issubset(supported)):
            raise AssertionError(f"If capturable=True, {names} must be on supported devices: {supported}.")


# State


def _count(device=None, value=0.0, is_fused=None):
    """A number of the state, such as the count of steps, as a 0-dimensional tensor."""
    return readtorch.tensor(value, dtype=_get_scalar_dtype(is_fused), device=device)


def _of_each(states, name):
    """The entry `name` of each state; None where the settings do not need it."""
    try:
        return [state[name] for state in states]
    except KeyError:
        return [state.get(name) for state in states]


def _device_of_counts(group, p):
    """Counts lie on the host, where the formulas need them; a graph that is recorded, or a kernel, changes them on its device."""
    return p.device if group.get("capturable") or group.get("fused") else None


def _get_scalar_dtype(is_fused=None):
    """The dtype in which steps are counted."""
    is_double = not is_fused and readtorch.get_default_dtype() == readtorch.float64
    return readtorch.float64 if is_double else readtorch.float32


def _zeros_for(p):
    return readtorch.zeros_like(p, memory_format=readtorch.preserve_format)


def _as_real(*tensors):
    """Complex numbers are optimized as pairs of real ones. The first tensors are the parameter and its gradient."""
    if not tensors[0].is_complex() or tensors[1].is_sparse:
        return tensors
    return tuple(t if t is None else readtorch.view_as_real(t) for t in tensors)


# Compiled kernels


def _kernel_serves(params, numbers, *others):
    """Whether a compiled kernel (`aten/native/fused_*.py`) can do it: plain tensors and numbers, no graph.

    others: lists of gradients and state. A parameter may have another dtype or shape by now; then the loop says what does not fit.
    """
    if mode_tls.modes or readtorch.is_grad_enabled() or any([isinstance(number, Tensor) for number in numbers]):
        return False
    if not all([type(p) in _PLAIN and p._keys & CPU and not p._keys & NOT_CPU for p in params]):
        return False
    arrays = [[t._array for t in tensors] for tensors in (params, *others)]
    return survey(arrays) is not None or all(
        [
            a.dtype in _KERNEL_TYPES and a.dtype == t.dtype and a.shape == t.shape
            for each in arrays
            for a, t in zip(arrays[0], each)
        ]
    )


def _fused_groups(lists, grad_scale, found_inf):
    """[(lists, grad_scale, found_inf), …] of parameters on one device: a kernel runs there, and reads the scale there."""
    params = lists[0]
    if not any([p._keys & GPUS for p in params]) or len({p.device for p in params}) == 1:
        groups = [(params[0].device, lists)]  # of several dtypes, too: a kernel sorts them itself
    else:
        groups = [(device, of) for (device, _), (of, _) in _group_tensors_by_device_and_dtype(lists).items()]
    scaling = grad_scale, found_inf
    return [(of, *[t if t is None else t.to(device, non_blocking=True) for t in scaling]) for device, of in groups]


_KERNEL_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
