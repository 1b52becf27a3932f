"""timm: four convolutional networks and two transformers forward and backward, nine optimizers, mixup"""

import numpy
import timm
import torch
from report import report
from timm.data import Mixup
from timm.optim import create_optimizer_v2

sizes = dict(
    resnet18=64,
    vit_tiny_patch16_224=224,
    efficientnet_b0=64,
    convnext_atto=64,
    mobilenetv3_small_050=64,
    mixer_s32_224=224,
)
for name, size in sizes.items():
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=7)
    x = torch.randn(2, 3, size, size)
    model.eval()
    report(name, model(x))
    report("features", list(model.forward_features(x).shape))
    model.train()
    model(x).logsumexp(-1).sum().backward()
    report("gradient", next(model.parameters()).grad.norm())

torch.manual_seed(0), numpy.random.seed(0)
for name in "lamb adamp nadamw lion adafactor madgrad rmsproptf adan lookahead_sgd".split():
    layer = torch.nn.Linear(5, 3)
    optimizer = create_optimizer_v2(layer, name, lr=0.01)
    for _ in range(3):
        layer(torch.ones(2, 5)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    report(name, layer.weight)
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=5)
report("mixup", mixup(torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])))
