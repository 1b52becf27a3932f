"""denoising_diffusion_pytorch: a Unet's training step, noise schedules, and DDIM's sampling from a seed"""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from report import report

torch.manual_seed(0)
model = Unet(dim=8, dim_mults=(1, 2), channels=3, flash_attn=False)
for schedule in ("linear", "cosine", "sigmoid"):
    diffusion = GaussianDiffusion(model, image_size=16, timesteps=50, sampling_timesteps=4, beta_schedule=schedule)
    report(f"{schedule}, alphas", diffusion.alphas_cumprod)
optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-3)
for step in range(2):
    optimizer.zero_grad()
    loss = diffusion(torch.rand(2, 3, 16, 16))
    loss.backward()
    optimizer.step()
    report(f"step {step}, loss", loss)
    report(f"step {step}, gradients", [p.grad for p in model.parameters()])
report("samples", diffusion.sample(batch_size=2))
