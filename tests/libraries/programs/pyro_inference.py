"""pyro: variational inference with three guides, enumeration of a mixture, NUTS, predictions"""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoMultivariateNormal, AutoNormal
from pyro.optim import Adam, ClippedAdam
from report import report

positive, simplex = dist.constraints.positive, dist.constraints.simplex
pyro.set_rng_seed(0)
x = torch.randn(20, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.1 * torch.randn(20)


def regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    scale = pyro.sample("scale", dist.Gamma(2.0, 2.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight, scale), obs=y)


for kind, elbo in (
    (AutoDelta, Trace_ELBO()),
    (AutoMultivariateNormal, Trace_ELBO()),
    (AutoNormal, TraceMeanField_ELBO()),
):
    pyro.clear_param_store()
    pyro.set_rng_seed(1)
    guide = kind(regression)
    svi = SVI(regression, guide, Adam({"lr": 0.05}), elbo)
    report(kind.__name__, [svi.step(x, y) for _ in range(5)])
pyro.set_rng_seed(2)
report("predictive", Predictive(regression, guide=guide, num_samples=3)(x[:2])["y"])

pyro.clear_param_store()
pyro.set_rng_seed(0)


def counts():
    p = pyro.sample("p", dist.Dirichlet(torch.ones(3)))
    pyro.sample("q", dist.Beta(2.0, 3.0))
    pyro.sample("c", dist.Categorical(p).expand([4]).to_event(1), obs=torch.tensor([0, 1, 1, 2]))


def guess():
    pyro.sample("p", dist.Dirichlet(pyro.param("a", torch.ones(3) * 2, constraint=positive)))
    pyro.sample("q", dist.Beta(pyro.param("b", torch.tensor(1.5), constraint=positive), 2.0))


svi = SVI(counts, guess, ClippedAdam({"lr": 0.05}), Trace_ELBO())
report("Dirichlet and Beta", [svi.step() for _ in range(5)])
report("concentration", pyro.param("a"))


@config_enumerate
def mixture(data):
    weights = pyro.param("weights", torch.ones(2) / 2, constraint=simplex)
    centres = pyro.param("centres", torch.tensor([-1.0, 1.0]))
    with pyro.plate("points", len(data)):
        z = pyro.sample("z", dist.Categorical(weights))
        pyro.sample("x", dist.Normal(centres[z], 1.0), obs=data)


svi = SVI(mixture, lambda data: None, Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
report("mixture", [svi.step(x[:, 0]) for _ in range(4)])
report("centres", pyro.param("centres"))

pyro.set_rng_seed(0)
chain = MCMC(NUTS(regression), num_samples=5, warmup_steps=3, disable_progbar=True)
chain.run(x, y)
report("NUTS", chain.get_samples())
