"""MONAI: a pipeline of transforms, a 3D network trained with the Dice loss, inference in windows, metrics"""

import monai
import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, MetaTensor, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks.nets import DenseNet121, SegResNet, UNet
from monai.transforms import (
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    RandFlipd,
    RandGaussianNoised,
    RandRotate90d,
    RandSpatialCropd,
    ScaleIntensityd,
    Spacingd,
)
from report import report

monai.utils.set_determinism(0)
generator = np.random.default_rng(0)


def volume():
    image = generator.standard_normal((16, 16, 16)).astype("float32")
    return {"image": image, "label": (image > 0.5).astype("float32")}


keys = ["image", "label"]
transforms = Compose(
    [
        EnsureChannelFirstd(keys, channel_dim="no_channel"),
        ScaleIntensityd("image"),
        Spacingd(keys, pixdim=(1.3, 1.3, 1.0), mode=("bilinear", "nearest")),
        RandSpatialCropd(keys, (8, 8, 8), random_size=False),
        RandFlipd(keys, prob=0.5, spatial_axis=0),
        RandRotate90d(keys, prob=0.5),
        RandGaussianNoised("image", prob=1.0),
    ]
)
transforms.set_random_state(0)
dataset = CacheDataset([volume() for _ in range(4)], transforms, progress=False)
sample = dataset[0]
report("kind", type(sample["image"]).__name__)
report("image", sample["image"].as_tensor())
report("affine", sample["image"].affine)

net = UNet(3, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
loss_function = DiceCELoss(to_onehot_y=True, softmax=True)
for epoch in range(2):
    for batch in DataLoader(dataset, batch_size=2, shuffle=False):
        optimizer.zero_grad()
        loss = loss_function(net(batch["image"]), batch["label"])
        loss.backward()
        optimizer.step()
        report("loss", loss.as_tensor() if isinstance(loss, MetaTensor) else loss)

net.eval()
with torch.no_grad():
    whole = sliding_window_inference(torch.randn(1, 1, 16, 16, 16), (8, 8, 8), 4, net, overlap=0.25)
report("windows", whole)
labels = [AsDiscrete(argmax=True, to_onehot=2)(part) for part in decollate_batch(whole)]
truth = [AsDiscrete(to_onehot=2)(torch.randint(0, 2, (1, 16, 16, 16))) for _ in labels]
for metric in (DiceMetric(), HausdorffDistanceMetric()):
    metric(labels, truth)
    report(type(metric).__name__, metric.aggregate())
report("Dice", DiceLoss(sigmoid=True)(torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 1, 8, 8))))
report("focal", FocalLoss()(torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 1, 8, 8)).float()))
torch.manual_seed(0)
report("residual", SegResNet(2, 8, in_channels=1, out_channels=2)(torch.randn(1, 1, 16, 16)))
report("dense", DenseNet121(2, 1, 3).eval()(torch.randn(1, 1, 32, 32)))
