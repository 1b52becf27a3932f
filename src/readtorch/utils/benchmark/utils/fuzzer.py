"""Tensors of random sizes, strides and layouts, to be timed. In PyTorch: `torch/utils/benchmark/utils/fuzzer.py`."""

import itertools
import math

import numpy as np

import readtorch

__all__ = ["Fuzzer", "FuzzedParameter", "ParameterAlias", "FuzzedTensor"]


class FuzzedParameter:
    """A random number by name.

    distribution: "uniform" from `minval` to `maxval`, both included, whole numbers if both are; "loguniform", whole, with equal
    chances for equal ratios; or a dict from values to their probabilities, without `minval` and `maxval`.
    strict: drawn once for a set of parameters, however often the others are drawn anew until they fit.

    Raises AssertionError for another distribution, or probabilities that do not add up to 1.
    """

    def __init__(self, name, minval=None, maxval=None, distribution=None, strict=False):
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        self._distribution = distribution
        if isinstance(distribution, dict):
            if any(p < 0 for p in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if (
                abs(sum(distribution.values()) - 1) > 1e-5
            ):  # in PyTorch 2.13: the other way round, so that no dict is accepted
                raise AssertionError("Distribution is not normalized")
            for bound in ("minval", "maxval"):
                if getattr(self, f"_{bound}") is not None:
                    raise AssertionError(f"When passing a custom distribution, '{bound}' must be None")
        elif distribution not in ("loguniform", "uniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")

    @property
    def name(self):
        return self._name

    def sample(self, state):
        """A value, from a `numpy.random.RandomState`."""
        low, high = self._minval, self._maxval
        if isinstance(self._distribution, dict):
            index = state.choice(np.arange(len(self._distribution)), p=tuple(self._distribution.values()))
            return list(self._distribution)[index]
        if self._distribution == "loguniform":
            return min(max(int(2 ** state.uniform(np.log2(low), np.log2(high))), low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low, high + 1))
        return state.uniform(low, high)


class ParameterAlias:
    """A value that stands for that of another parameter: sizes of 1 or of the other operand, say, so that they broadcast."""

    def __init__(self, alias_to):
        self.alias_to = alias_to

    def __repr__(self):
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor by name, whose sizes are numbers or names of parameters.

    steps: it is every so many-th element of a larger one, in each dimension. probability_contiguous: else its dimensions lie in
    memory in a random order. min_elements, max_elements, max_allocation_bytes: parameters that lead to others are rejected.
    dim_parameter: the parameter that says how many of the sizes there are. tensor_constructor: called with size, dtype and all
    parameters, instead of `rand` and `randint`.
    """

    def __init__(
        self,
        name,
        size,
        steps=None,
        probability_contiguous=0.5,
        min_elements=None,
        max_elements=None,
        max_allocation_bytes=None,
        dim_parameter=None,
        roll_parameter=None,
        dtype=readtorch.float32,
        cuda=False,
        tensor_constructor=None,
    ):
        self._name, self._size, self._steps = name, size, steps or ()
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._dtype, self._cuda = dim_parameter, dtype, cuda
        self._tensor_constructor = tensor_constructor or self.default_tensor_constructor

    @property
    def name(self):
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        if dtype.is_floating_point or dtype.is_complex:
            return readtorch.rand(size=size, dtype=dtype, device="cpu")
        return readtorch.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(self, params, state):
        """The tensor, and its facts."""
        size, steps = self._get_size_and_steps(params)
        whole = self._tensor_constructor(size=tuple(map(math.prod, zip(size, steps))), dtype=self._dtype, **params)
        whole = whole.cuda() if self._cuda else whole
        order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == np.arange(len(size))):
                order = state.permutation(len(size))
            whole = whole.permute(tuple(order)).contiguous().permute(tuple(np.argsort(order)))
        tensor = whole[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(self, params):
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]
        size, steps = (tuple(params.get(n, n) for n in values)[:dim] for values in (self._size, self._steps))
        return size + (1,) * (dim - len(size)), steps + (1,) * (dim - len(steps))

    def satisfies_constraints(self, params):
        size, steps = self._get_size_and_steps(params)
        elements = math.prod(size)  # of Python's integers, which do not overflow
        if elements < 0:
            raise AssertionError("Computed number of elements is negative")
        return (
            (self._max_elements is None or elements <= self._max_elements)
            and (self._min_elements is None or elements >= self._min_elements)
            and (
                self._max_allocation_bytes is None
                or elements * math.prod(steps) * self._dtype.itemsize <= self._max_allocation_bytes
            )
        )


class Fuzzer:
    """Sets of random parameters and the tensors that they describe, the same for the same seed.

    constraints: called with the dict of parameters, which are drawn anew unless all return true. Raises ValueError for names that
    are used twice, and when a thousand draws in a row do not fit.
    """

    def __init__(self, parameters, tensors, constraints=None, seed=None):
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters = _flat(parameters, FuzzedParameter)
        self._tensors = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = self._total_generated = 0

    def take(self, n):
        """n times: ({name: tensor}, {name: facts}, {name: parameter})."""
        state = np.random.RandomState(self._seed)
        readtorch.manual_seed(state.randint(low=0, high=2**63, dtype=np.int64))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {name: t for name, (t, _) in made.items()}, {name: facts for name, (_, facts) in made.items()}, params

    @property
    def rejection_rate(self):
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state):
        strict = {}
        for _ in range(1000):
            drawn = {}
            for p in self._parameters:
                drawn[p.name] = strict[p.name] if p.name in strict else p.sample(state)
                if p.strict:
                    strict[p.name] = drawn[p.name]
            params = _resolve_aliases(drawn)
            self._total_generated += 1
            fits = all(fits(params) for fits in self._constraints)
            if fits and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(values, kind):
    return tuple(itertools.chain.from_iterable([v] if isinstance(v, kind) else v for v in values))


def _resolve_aliases(params):
    """Each alias replaced by what it stands for, maybe another alias, until none is left. ValueError for a circle."""
    params, count = dict(params), None
    while aliases := [name for name, value in params.items() if isinstance(value, ParameterAlias)]:
        if len(aliases) == count:
            raise ValueError(f"ParameterAlias cycle detected\n{params}")
        count = len(aliases)
        for name in aliases:
            params[name] = params[params[name].alias_to]
    return params
