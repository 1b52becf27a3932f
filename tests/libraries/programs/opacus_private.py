"""opacus: private training with both ways of gradients per sample, the budget, an LSTM, a repaired network"""

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.layers import DPLSTM
from opacus.validators import ModuleValidator
from report import report

torch.manual_seed(0)
x = torch.randn(64, 5)
y = (x.sum(1) > 0).long()
for mode in ("hooks", "functorch"):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        report(mode, loss)
    report("epsilon", engine.get_epsilon(1e-5))

layers = [torch.nn.Conv2d(1, 2, 3), torch.nn.GroupNorm(1, 2), torch.nn.Flatten(), torch.nn.Linear(72, 2)]
samples = GradSampleModule(torch.nn.Sequential(*layers))
samples(torch.randn(3, 1, 8, 8)).sum().backward()
report("of each sample", [p.grad_sample for p in samples.parameters()])
lstm = GradSampleModule(DPLSTM(4, 3, batch_first=True))
lstm(torch.randn(2, 5, 4))[0].sum().backward()
report("LSTM", [p.grad_sample for p in lstm.parameters()])
report("repaired", str(ModuleValidator.fix(torch.nn.Sequential(torch.nn.BatchNorm1d(32)))))
