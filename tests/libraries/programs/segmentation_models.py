"""segmentation_models_pytorch: Unet and DeepLabV3+ on small encoders, dice, focal and Tversky losses, scores; training steps"""

import segmentation_models_pytorch as smp
import torch
from report import report

torch.manual_seed(0)
x = torch.randn(2, 3, 64, 64)
masks = (torch.rand(2, 1, 64, 64) > 0.6).float()
for build, encoder in ((smp.Unet, "resnet18"), (smp.DeepLabV3Plus, "mobilenet_v2"), (smp.FPN, "efficientnet-b0")):
    model = build(encoder, encoder_weights=None, in_channels=3, classes=1)
    report(f"{build.__name__} {encoder}, parameters", sum(p.numel() for p in model.parameters()))
    model.eval()
    with torch.no_grad():
        report(f"{build.__name__} {encoder}, output", model(x))

model = smp.Unet("resnet18", encoder_weights=None, classes=1, decoder_attention_type="scse").double()
losses = [smp.losses.DiceLoss("binary"), smp.losses.FocalLoss("binary"), smp.losses.TverskyLoss("binary")]
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(2):
    optimizer.zero_grad()
    output = model(x.double())
    parts = [loss(output, masks.double()) for loss in losses]
    sum(parts).backward()
    optimizer.step()
    report(f"step {step}, losses", [part.item() for part in parts])
counts = smp.metrics.get_stats((output.sigmoid() > 0.5).long(), masks.long(), mode="binary")
report("IoU", smp.metrics.iou_score(*counts, reduction="micro"))
report("F1", smp.metrics.f1_score(*counts, reduction="micro-imagewise"))
