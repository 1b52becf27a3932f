"""vit-pytorch: six vision transformers, distillation, images of several sizes"""

import torch
from report import report
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.distill import DistillableViT, DistillWrapper
from vit_pytorch.na_vit import NaViT

torch.manual_seed(0)
x = torch.randn(2, 3, 32, 32)
sizes = dict(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32)
cct = dict(num_layers=2, num_heads=2, mlp_ratio=2.0, num_classes=5, positional_embedding="learnable", n_conv_layers=1)
models = {
    "ViT": ViT(**sizes, dropout=0.1),
    "simple": SimpleViT(**sizes),
    "deep": DeepViT(**sizes),
    "CaiT": CaiT(**sizes, cls_depth=1),
    "CCT": CCT(img_size=32, embedding_dim=16, kernel_size=3, stride=2, padding=1, **cct),
    "NaViT": NaViT(**sizes),
}
for name, model in models.items():
    torch.manual_seed(1)
    y = model([[x[0], x[1][:, :16]], [x[1]]] if name == "NaViT" else x)
    y.square().sum().backward()
    report(name, y)
    report("gradients", sum(p.grad.norm() for p in model.parameters() if p.grad is not None))

torch.manual_seed(2)
teacher = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 5))
report("distilled", DistillWrapper(student=DistillableViT(**sizes), teacher=teacher)(x, torch.tensor([0, 3])))
