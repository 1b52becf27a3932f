"""Written in the chapter "Module and __setattr__": its cells are this file, put together by `tools/mini.py`."""

import numpy as np

from .autograd import Tensor, matmul


class Parameter(Tensor):
    """A leaf that a module registers as its own."""

    def __new__(cls, t, *layout):
        # A view passes dtype, shape, strides and offset, too:
        # it is a plain tensor.
        if layout:
            return Tensor(t, *layout)
        return super().__new__(cls)

    def __init__(self, t):
        super().__init__(t.storage, t.dtype, t.shape,
                         t.strides, t.offset)
        self.requires_grad_()


class Module:
    """Registers what is assigned to it, by kind."""

    def __init__(self):
        vars(self).update(training=True, _parameters={},
                          _buffers={}, _modules={})

    def __setattr__(self, name, value):
        for kind, accepted in (("_parameters", Parameter),
                               ("_modules", Module)):
            table = vars(self).get(kind)
            if isinstance(value, accepted):
                if table is None:
                    raise AttributeError(
                        f"cannot assign {kind[1:]} before "
                        "Module.__init__() call")
                self._remove(name, table)
                table[name] = value
                return
            if table is not None and name in table:
                if value is not None:
                    raise TypeError(f"{name} is in {kind}")
                table[name] = None
                return
        if name in vars(self).get("_buffers", {}):
            self.register_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            table = vars(self).get(kind, {})
            if name in table:
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object "
                             f"has no attribute '{name}'")

    def _remove(self, name, kept):
        for table in (vars(self), self._parameters,
                      self._buffers, self._modules):
            if table is not kept:  # a new value keeps its place
                table.pop(name, None)

    def register_buffer(self, name, value):
        if not isinstance(value, Tensor | None):
            raise TypeError(f"buffer {name} takes a tensor")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        self._buffers[name] = value

    def __delattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in getattr(self, kind):
                del getattr(self, kind)[name]
                return
        super().__delattr__(name)

    def named_modules(self, prefix="", seen=None):
        """This module and all below, each by its first name."""
        seen = set() if seen is None else seen
        if self not in seen:
            seen.add(self)
            yield prefix, self
            for name, child in self._modules.items():
                if child is not None:
                    yield from child.named_modules(
                        joined(prefix, name), seen)

    def _named_members(self, kind):
        seen = set()
        for prefix, module in self.named_modules():
            for name, t in getattr(module, kind).items():
                if t is not None and t not in seen:
                    seen.add(t)
                    yield joined(prefix, name), t

    def named_parameters(self):
        return self._named_members("_parameters")

    def named_buffers(self):
        return self._named_members("_buffers")

    def parameters(self):
        return (p for _, p in self.named_parameters())

    def __call__(self, *args):
        return self.forward(*args)

    def train(self, mode=True):
        self.training = mode
        for child in filter(None, self._modules.values()):
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def zero_grad(self):
        for p in self.parameters():
            p.meta.grad = None


def joined(prefix, name):
    return f"{prefix}.{name}" if prefix else name


class Linear(Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        bound = n_in ** -0.5

        def uniform(*shape):
            numbers = np.random.uniform(-bound, bound, shape)
            return Parameter(Tensor.of(numbers, np.float32))

        self.weight = uniform(n_out, n_in)
        self.bias = uniform(n_out)

    def forward(self, x):
        return matmul(x, self.weight.transpose(0, 1)) + self.bias


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        for index, module in enumerate(modules):
            setattr(self, str(index), module)

    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x
