"""Spectral normalization by a hook, without parametrizations.

In PyTorch: `torch/nn/utils/spectral_norm.py`.
"""

import readtorch
from readtorch.nn import functional as F
from readtorch.nn.modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from readtorch.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "spectral_norm",
    "remove_spectral_norm",
]


class SpectralNorm:
    """Before every forward: weight = weight_orig / (uᵀ weight_orig v), in training after a power iteration.

    Version 1 of what it saves has v as a buffer; before, v was computed and the divided weight was a buffer.
    """

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        weight = getattr(module, self.name + "_orig")
        u = getattr(module, self.name + "_u")
        v = getattr(module, self.name + "_v")
        weight_mat = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            u, v = self._power_iteration(weight_mat, u, v)
        return weight / readtorch.dot(u, readtorch.mv(weight_mat, v))

    @readtorch.no_grad()
    def _power_iteration(self, weight_mat, u, v):
        """Improves the buffers in place; the graph gets clones, which a second forward does not change."""
        for _ in range(self.n_power_iterations):
            v = F.normalize(readtorch.mv(weight_mat.t(), u), dim=0, eps=self.eps, out=v)
            u = F.normalize(readtorch.mv(weight_mat, v), dim=0, eps=self.eps, out=u)
        return (u.clone(memory_format=readtorch.contiguous_format), v.clone(memory_format=readtorch.contiguous_format))

    def remove(self, module):
        with readtorch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight_mat, u, target_sigma):
        """The v with normalize(W v) = u and uᵀ W v = target_sigma."""
        pseudo_inverse = weight_mat.t().mm(weight_mat).pinverse()
        v = readtorch.linalg.multi_dot([pseudo_inverse, weight_mat.t(), u.unsqueeze(1)]).squeeze(1)
        return v.mul_(target_sigma / readtorch.dot(u, readtorch.mv(weight_mat, v)))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying spectral normalization"
            )
        u, v = fn._first_vectors(weight)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # a plain attribute, for who reads it before the first forward
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(SpectralNormStateDictHook(fn))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(fn))
        return fn

    @readtorch.no_grad()
    def _first_vectors(self, weight):
        h, w = self.reshape_weight_to_matrix(weight).size()
        return [F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=self.eps) for size in (h, w)]


class SpectralNormLoadStateDictPreHook:
    """Computes v for a state dict that was saved before version 1."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version", None)
        if version is not None and version >= 1:
            return
        weight_key = prefix + self.fn.name
        if version is None and _looks_new(state_dict, weight_key):
            return
        missing = [weight_key + s for s in ("_orig", "", "_u") if weight_key + s not in state_dict]
        if not missing:
            self._add_v(state_dict, weight_key)
        elif strict:
            missing_keys.extend(missing)

    @readtorch.no_grad()
    def _add_v(self, state_dict, weight_key):
        """Solves W_orig x = u for x; the divided weight says how long v must be."""
        weight_orig = state_dict[weight_key + "_orig"]
        weight = state_dict.pop(weight_key)
        sigma = (weight_orig / weight).mean()
        weight_mat = self.fn.reshape_weight_to_matrix(weight_orig)
        v = self.fn._solve_v_and_rescale(weight_mat, state_dict[weight_key + "_u"], sigma)
        state_dict[weight_key + "_v"] = v


def _looks_new(state_dict, weight_key):
    """Whether only the version is missing: somebody made this state dict by hand."""
    return all(weight_key + s in state_dict for s in ("_orig", "_u", "_v")) and weight_key not in state_dict


class SpectralNormStateDictHook:
    """Saves the version."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its spectral norm before every forward. Returns the module.

    dim: the outputs' dimension, by default 0, and 1 for transposed convolutions. Raises ValueError if the
    weight is None. `parametrizations.spectral_norm` does it whenever the weight is read.
    """
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Make the weight a parameter again, with its value now. Raises ValueError if it is not normalized."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    _remove_hook(module._state_dict_hooks, SpectralNormStateDictHook, name)
    _remove_hook(module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook, name)
    return module


def _remove_hook(hooks, kind, name):
    for key, hook in hooks.items():
        hook = getattr(hook, "hook", hook)  # in PyTorch: overlooked in its wrapper, it spoils later loads
        if isinstance(hook, kind) and hook.fn.name == name:
            del hooks[key]
            return
