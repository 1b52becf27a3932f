"""gpytorch: exact regression, a variational classifier, conjugate gradients in place of Cholesky"""

import gpytorch
import torch
from report import report

torch.manual_seed(0)
x = torch.linspace(0, 1, 30)
y = torch.sin(6 * x) + 0.1 * torch.randn(30)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(likelihood)
optimizer = torch.optim.Adam(model.parameters(), 0.1)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for _ in range(8):
    optimizer.zero_grad()
    loss = -mll(model(x), y)
    loss.backward()
    optimizer.step()
    report("exact", loss)
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    prediction = likelihood(model(torch.linspace(0, 1, 5)))
    report("mean", prediction.mean)
    report("variance", prediction.variance)
    report("region", prediction.confidence_region())
    report("sample", prediction.sample())


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        q = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, q))
        self.mean = gpytorch.means.LinearMean(1)
        kernels = gpytorch.kernels
        self.kernel = kernels.PeriodicKernel() * kernels.LinearKernel() + kernels.RQKernel()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


model_of_classes = Variational(x[::6, None])
elbo = gpytorch.mlls.VariationalELBO(gpytorch.likelihoods.BernoulliLikelihood(), model_of_classes, 30)
optimizer = torch.optim.Adam(model_of_classes.parameters(), 0.05)
for _ in range(4):
    optimizer.zero_grad()
    loss = -elbo(model_of_classes(x[:, None]), (y > 0).float())
    loss.backward()
    optimizer.step()
    report("variational", loss)

model.train(), likelihood.train()
settings = gpytorch.settings
with settings.max_cholesky_size(5), settings.cg_tolerance(1e-4), settings.num_trace_samples(20):
    torch.manual_seed(0)
    report("conjugate gradients", -mll(model(x), y))
