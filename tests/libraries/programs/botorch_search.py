"""botorch: a Gaussian process fitted by L-BFGS in float64, five acquisition functions, their optimum (compared as float32)"""

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qNoisyExpectedImprovement,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from report import report

torch.manual_seed(0)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
X = draw_sobol_samples(bounds, 8, 1, seed=0).squeeze(1)
Y = -((X - 0.4) ** 2).sum(-1, keepdim=True)
report("points", X)
gp = SingleTaskGP(X, Y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
# The optimizer's way is long, and each step multiplies the last bits of the one before: what it finds is compared as float32.
report("fitted", [p.float() for p in gp.parameters()])
report("posterior", gp.posterior(X[:2]).mean.float())
sampler = SobolQMCNormalSampler(torch.Size([64]), seed=1)
acquisitions = [
    LogExpectedImprovement(gp, Y.max()),
    ProbabilityOfImprovement(gp, Y.max()),
    UpperConfidenceBound(gp, 0.2),
    qExpectedImprovement(gp, Y.max(), sampler),
    qNoisyExpectedImprovement(gp, X, sampler),
]
for acquisition in acquisitions:
    report(type(acquisition).__name__, acquisition(X[:3, None]).float())
candidate, value = optimize_acqf(UpperConfidenceBound(gp, 0.2), bounds, 1, 4, 32, options={"seed": 0})
report("optimum", [round(t, 2) for t in candidate[0].tolist()] + [round(value.item(), 3)])
