"""diffusers: a UNet trained on noise, five schedulers, a pipeline, an autoencoder, the average of the weights"""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    PNDMScheduler,
    UNet2DModel,
)
from diffusers.training_utils import EMAModel
from report import report

torch.manual_seed(0)
sizes = dict(
    sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4
)
blocks = dict(down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
unet = UNet2DModel(**sizes, **blocks, attention_head_dim=8)
schedule = DDPMScheduler(num_train_timesteps=50)
optimizer = torch.optim.AdamW(unet.parameters(), 1e-3)
average = EMAModel(unet.parameters(), decay=0.9)
images = torch.randn(4, 1, 8, 8)
for _ in range(3):
    noise, times = torch.randn_like(images), torch.randint(0, 50, (4,))
    loss = torch.nn.functional.mse_loss(unet(schedule.add_noise(images, noise, times), times).sample, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    average.step(unet.parameters())
    report("loss", loss)
report("average", average.shadow_params[0])

unet.eval()
for kind in (DDPMScheduler, DDIMScheduler, PNDMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    scheduler = kind(num_train_timesteps=50)
    scheduler.set_timesteps(4)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, 1, 8, 8, generator=generator) * scheduler.init_noise_sigma
    with torch.no_grad():
        for t in scheduler.timesteps:
            noise = unet(scheduler.scale_model_input(x, t), t).sample
            options = dict(generator=generator) if kind is DDPMScheduler else {}
            x = scheduler.step(noise, t, x, **options).prev_sample
    report(kind.__name__, x)

pipeline = DDPMPipeline(unet, schedule)
pipeline.set_progress_bar_config(disable=True)
made = pipeline(
    batch_size=1, generator=torch.Generator().manual_seed(0), num_inference_steps=3, output_type="np"
).images
report("pipeline", torch.tensor(made))
torch.manual_seed(2)
autoencoder = AutoencoderKL(1, 1, block_out_channels=(8,), norm_num_groups=4, sample_size=8).eval()
latent = autoencoder.encode(images[:1]).latent_dist
report("latent", latent.mean)
report("decoded", autoencoder.decode(latent.mode()).sample)
