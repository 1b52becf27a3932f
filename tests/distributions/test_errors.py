"""What distributions refuse, and with which words; validation on and off; subclasses; `readtorch run`; traces."""

import contextlib
import subprocess
import sys
import textwrap

import pytest
import torch

import readtorch as rt
from tests.distributions.parameters import KINDS, make
from tests.reference import assert_close, to_readtorch


def attempt(function, *args):
    """What it gives, or its error and its text."""
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error).replace("readtorch", "torch")


def assert_same_error(function):
    theirs = attempt(function, torch, torch.distributions)
    assert isinstance(theirs, tuple) and isinstance(theirs[1], str), f"no error: {theirs}"
    assert_close(attempt(function, rt, rt.distributions), theirs)


# ------------------------------------------------------------------------------------------------- bad parameters


def bad_values():
    """For each distribution and parameter a value that its constraint refuses."""
    for test, (name, kinds) in KINDS.items():
        for parameter, kind in kinds.items():
            if kind.__name__ in ("positive", "probability", "degrees", "above_two", "near_half", "counts", "weights"):
                yield test, name, parameter, -1.5
            elif kind.__name__ not in ("<lambda>", "temperature"):
                yield test, name, parameter, float("nan")


@pytest.mark.parametrize("test, name, parameter, bad", list(bad_values()), ids=str)
def test_parameters(test, name, parameter, bad):
    _, arguments = make(test, (2,), torch.float32)
    arguments[parameter].view(-1)[0] = bad
    options = {"validate_args": True} if name == "ContinuousBernoulli" else {}  # which moves them inside, otherwise
    assert_same_error(
        lambda T, d: getattr(d, name)(**(arguments if T is torch else to_readtorch(arguments)), **options)
    )
    if name not in ("Wishart", "MultivariateNormal", "LowRankMultivariateNormal"):  # which factor it
        ours, theirs = (
            attempt(lambda: getattr(T.distributions, name)(**convert(arguments), validate_args=False))  # noqa: B023
            for T, convert in ((rt, to_readtorch), (torch, dict))
        )
        assert isinstance(ours, tuple) == isinstance(theirs, tuple)


CALLS = {
    "both": lambda T, d: d.Bernoulli(0.5, 0.5),
    "neither": lambda T, d: d.Geometric(),
    "both of a binomial": lambda T, d: d.Binomial(3, T.tensor(0.5), T.tensor(0.5)),
    "neither of a categorical": lambda T, d: d.Categorical(),
    "categorical of a number": lambda T, d: d.Categorical(T.tensor(0.5)),
    "categorical of a logit": lambda T, d: d.Categorical(logits=T.tensor(0.5)),
    "dirichlet of a number": lambda T, d: d.Dirichlet(T.tensor(0.5)),
    "no number": lambda T, d: d.Normal("a", 1),
    "geometric of 0": lambda T, d: d.Geometric(T.tensor([0.5, 0.0])),
    "continuous": lambda T, d: d.ContinuousBernoulli(T.tensor(1.5), validate_args=True),
    "shapes": lambda T, d: d.Normal(T.zeros(2), T.ones(3)),
    "lkj": lambda T, d: d.LKJCholesky(1),
    "multinomial of counts": lambda T, d: d.Multinomial(T.tensor([1, 2]), T.ones(2, 3)),
    "uniform": lambda T, d: d.Uniform(1.0, 1.0),
    "mvn without dimensions": lambda T, d: d.MultivariateNormal(T.tensor(1.0), T.eye(1)),
    "mvn without matrix": lambda T, d: d.MultivariateNormal(T.zeros(2)),
    "mvn with two": lambda T, d: d.MultivariateNormal(T.zeros(2), T.eye(2), T.eye(2)),
    "mvn of a vector": lambda T, d: d.MultivariateNormal(T.zeros(2), T.ones(2)),
    "mvn of a triangular vector": lambda T, d: d.MultivariateNormal(T.zeros(2), scale_tril=T.ones(2)),
    "mvn of a precise vector": lambda T, d: d.MultivariateNormal(T.zeros(2), precision_matrix=T.ones(2)),
    "mvn of a rectangle": lambda T, d: d.MultivariateNormal(T.zeros(2), T.ones(2, 3)),
    "low rank without dimensions": lambda T, d: d.LowRankMultivariateNormal(T.tensor(1.0), T.ones(1, 1), T.ones(1)),
    "low rank of a vector": lambda T, d: d.LowRankMultivariateNormal(T.zeros(2), T.ones(2), T.ones(2)),
    "low rank of another size": lambda T, d: d.LowRankMultivariateNormal(T.zeros(2), T.ones(3, 1), T.ones(2)),
    "low rank of another diagonal": lambda T, d: d.LowRankMultivariateNormal(T.zeros(2), T.ones(2, 1), T.ones(3)),
    "low rank of other batches": lambda T, d: d.LowRankMultivariateNormal(T.zeros(4, 2), T.ones(3, 2, 1), T.ones(2)),
    "wishart without": lambda T, d: d.Wishart(3.0),
    "wishart of a vector": lambda T, d: d.Wishart(3.0, T.ones(2)),
    "wishart with few": lambda T, d: d.Wishart(T.tensor(1.0), T.eye(2)),
    "independent": lambda T, d: d.Independent(d.Normal(T.zeros(2), T.ones(2)), 2),
    "mixture of no categorical": lambda T, d: d.MixtureSameFamily(d.Bernoulli(T.rand(2)), d.Normal(T.zeros(2), T.ones(2))),
    "mixture of no distribution": lambda T, d: d.MixtureSameFamily(d.Categorical(T.ones(2)), 3),
    "mixture of another number": lambda T, d: d.MixtureSameFamily(d.Categorical(T.ones(3)), d.Normal(T.zeros(2), T.ones(2))),
    "mixture of other batches": lambda T, d: d.MixtureSameFamily(d.Categorical(T.ones(4, 2)), d.Normal(T.zeros(3, 2), T.ones(3, 2))),
    "value outside": lambda T, d: d.Exponential(T.ones(2)).log_prob(T.tensor([1.0, -1.0])),
    "cdf outside": lambda T, d: d.Uniform(0.0, 1.0).cdf(T.tensor([0.5, 2.0])),
    "value of another shape": lambda T, d: d.Normal(T.zeros(3), T.ones(3)).log_prob(T.zeros(2)),
    "value of another event": lambda T, d: d.Dirichlet(T.ones(3)).log_prob(T.ones(2) / 2),
    "no tensor": lambda T, d: d.Normal(0.0, 1.0).log_prob(0.5),
    "matrix outside": lambda T, d: d.LKJCholesky(2).log_prob(T.ones(2, 2)),
    "enumeration": lambda T, d: d.Binomial(T.tensor([1, 2]), T.tensor([0.5, 0.5])).enumerate_support(),
    "entropy of counts": lambda T, d: d.Binomial(T.tensor([1, 2]), T.tensor([0.5, 0.5])).entropy(),
    "cartesian product": lambda T, d: d.Independent(d.Bernoulli(T.rand(2)), 1).enumerate_support(),
    "no rsample": lambda T, d: d.Bernoulli(T.tensor(0.5)).rsample(),
    "no mode": lambda T, d: d.Multinomial(3, T.ones(2)).mode,
    "no entropy": lambda T, d: d.Poisson(T.ones(2)).entropy(),
    "validation": lambda T, d: d.Distribution.set_default_validate_args(2),
    "expanded to less": lambda T, d: d.Normal(T.zeros(3), T.ones(3)).expand((2,)),
    "kl of nothing": lambda T, d: d.kl_divergence(d.Normal(0.0, 1.0), 3),
    "family": lambda T, d: d.ExponentialFamily().entropy(),
    "family without parameters": lambda T, d: d.ExponentialFamily(validate_args=False)._log_normalizer(),
    "family without numbers": lambda T, d: type("F", (d.ExponentialFamily,), {"_mean_carrier_measure": 0})(validate_args=False).entropy(),
    "no distribution": lambda T, d: d.register_kl(3, d.Normal),
    "no second distribution": lambda T, d: d.register_kl(d.Normal, 3),
    "no expansion": lambda T, d: d.Distribution(validate_args=False).expand((2,)),
    "no density": lambda T, d: d.Distribution(validate_args=False).log_prob(T.zeros(())),
    "no support": lambda T, d: type("F", (d.Distribution,), {"support": None})(validate_args=False)._validate_sample(T.zeros(())),
    "no numbers": lambda T, d: d.Wishart(T.tensor(3.0), T.eye(2)) and d.wishart._mvdigamma(T.tensor(0.4), 2),
}  # fmt: skip


@pytest.mark.parametrize("test", CALLS)
def test_calls(test):
    assert_same_error(CALLS[test])


# ------------------------------------------------------------------------------------------------------- validation


@contextlib.contextmanager
def validation(T, on):
    previous = T.distributions.Distribution._validate_args
    T.distributions.Distribution.set_default_validate_args(on)
    try:
        yield
    finally:
        T.distributions.Distribution.set_default_validate_args(previous)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("own", [None, True, False])
def test_default_validation(on, own):
    def seen(T):
        with validation(T, on):
            bad = attempt(T.distributions.Normal, 0.0, -1.0, own)
            good = T.distributions.Exponential(1.0, own)
            kept = good.expand((2,))._validate_args
            return bad if isinstance(bad, tuple) else "made", attempt(good.log_prob, T.tensor(-1.0)), kept

    assert_close(seen(rt), seen(torch))


def test_warnings():
    def warned(T):
        class Silent(T.distributions.Distribution):
            pass

        with pytest.warns(UserWarning) as first:
            p = Silent(validate_args=True)
        with pytest.warns(UserWarning) as second:
            p._validate_sample(T.zeros(()))
        with pytest.warns(FutureWarning) as third:
            T.distributions.Normal(0.0, 1.0).sample_n(3)
        with pytest.warns(UserWarning) as fourth:
            T.distributions.Wishart(T.tensor(1.5), T.eye(2))
        return [str(w.message).replace("readtorch", "torch") for seen in (first, second, third, fourth) for w in seen]

    assert_close(warned(rt), warned(torch))


def test_subclasses():
    """A distribution of the user's, and one that inherits with an __init__ of its own and without `expand`."""

    def seen(T):
        d = T.distributions

        class Triangular(d.Distribution):
            arg_constraints = {"width": d.constraints.positive}
            has_rsample = True

            def __init__(self, width, validate_args=None):
                (self.width,) = d.utils.broadcast_all(width)
                super().__init__(self.width.shape, validate_args=validate_args)

            @d.constraints.dependent_property(is_discrete=False, event_dim=0)
            def support(self):
                return d.constraints.interval(-self.width, self.width)

            @d.utils.lazy_property
            def twice(self):
                return 2 * self.width

            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Triangular, _instance)
                new.width = self.width.expand(batch_shape)
                super(Triangular, new).__init__(T.Size(batch_shape), validate_args=False)
                new._validate_args = self._validate_args
                return new

            def rsample(self, sample_shape=()):
                u = T.rand((2,) + tuple(self._extended_shape(sample_shape)))
                return self.width * (u[0] - u[1])

            def log_prob(self, value):
                if self._validate_args:
                    self._validate_sample(value)
                return (1 - value.abs() / self.width).log() - self.width.log()

        class Named(d.Normal):
            def __init__(self, name):
                super().__init__(0.0, 1.0)

        p = Triangular(T.tensor([1.0, 2.0]))
        wider = p.expand((3, 2))
        drawn = d.TransformedDistribution(wider, d.AffineTransform(1.0, 2.0)).rsample()
        texts = repr(p), repr(wider), isinstance(Triangular.twice, property), "twice" in vars(p)
        values = p.twice, "twice" in vars(p), p.stddev if False else p.log_prob(p.sample())
        errors = [attempt(p.log_prob, T.tensor([0.0, 3.0])), attempt(Named("a").expand, (2,)), attempt(lambda: p.mean)]
        return texts, values, drawn, errors, attempt(Triangular, -1.0)

    T_results = []
    for T in (rt, torch):
        T.manual_seed(5)
        T_results.append(seen(T))
    assert_close(*T_results)


# ----------------------------------------------------------------------------------------------- traces and programs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["Normal", "Laplace", "Geometric", "StudentT", "MultivariateNormal", "VonMises", "Wishart"]
)
def test_traces_draw_anew(name):
    """A trace has the draw as an operator: it gives other numbers each time, and the reference's."""
    _, arguments = make(name, (), torch.float32)

    def traced(T, arguments):
        draw = getattr(T.distributions, name)(**arguments).sample
        function = T.jit.trace(lambda x: draw((3,)) + x, T.zeros(()), check_trace=False)
        T.manual_seed(4)
        return function(T.zeros(())), function(T.zeros(()))

    assert_close(traced(rt, to_readtorch(arguments)), traced(torch, arguments), rtol=1e-5, atol=1e-6)


def test_under_run(tmp_path):
    """`import torch.distributions` under `readtorch run`: PyTorch's names everywhere."""
    program = """
        import pickle
        import torch
        import torch.distributions as dist
        from torch.distributions import Normal, constraints
        from torch.distributions.utils import lazy_property
        from torch.distributions.transforms import ExpTransform
        torch.manual_seed(0)
        p = Normal(torch.zeros(2), torch.ones(2))
        print(p.sample(), p, Normal.__module__, Normal.__init__.__qualname__, dist.__name__)
        print(dist.Wishart.__module__, ExpTransform.__module__, type(constraints.simplex).__module__, lazy_property.__module__)
        print(pickle.loads(pickle.dumps(p)), torch.distributions is dist)
        try:
            dist.Multinomial(2, torch.ones(2)).mode
        except NotImplementedError as error:
            print(error)
    """
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(program))
    ours, theirs = (
        subprocess.run([sys.executable, *start, str(file)], capture_output=True, text=True, timeout=120)
        for start in (["-m", "readtorch", "run"], [])
    )
    assert ours.stderr == theirs.stderr == ""
    assert ours.stdout == theirs.stdout
