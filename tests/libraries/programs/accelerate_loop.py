"""accelerate: a prepared training loop with accumulation and clipping, saved and loaded states, models without memory"""

import tempfile

import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.utils import set_seed
from report import report

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
x = torch.randn(64, 5)
y = x.sum(1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 8, shuffle=True)
model, optimizer, scheduler, loader = accelerator.prepare(model, optimizer, scheduler, loader)
for epoch in range(2):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    report("loss", accelerator.gather(loss))
    report("rate", scheduler.get_last_lr())
folder = tempfile.mkdtemp()
accelerator.save_state(folder)
with torch.no_grad():
    model[0].weight.zero_()
accelerator.load_state(folder)
report("loaded", accelerator.unwrap_model(model)[0].weight)
report("processes", accelerator.state.num_processes)
with init_empty_weights():
    report("device", str(torch.nn.Linear(100, 100).weight.device))
