"""torchvision: six networks forward and backward, transforms of images and boxes, segmentation, features, operators in Python"""

import torch
import torchvision
from report import report
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2

for name in "resnet18 mobilenet_v3_small squeezenet1_1 shufflenet_v2_x0_5 regnet_y_400mf mnasnet0_5".split():
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None, num_classes=4).eval()
    x = torch.randn(2, 3, 64, 64)
    report(name, model(x))
    model.double().train()  # in float32 the norms of batches this small lose most digits of the gradient, in PyTorch, too
    model(x.double()).square().sum().backward()
    report("gradient", next(model.parameters()).grad.norm())

torch.manual_seed(0)
image = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8)
transforms = v2.Compose(
    [
        v2.RandomResizedCrop(24, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.2, 0.2, 0.2, 0.1),
        v2.RandomRotation(20),
        v2.GaussianBlur(3),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.2] * 3),
        v2.RandomErasing(1.0),
    ]
)
report("transformed", transforms(image))
boxes = torchvision.tv_tensors.BoundingBoxes([[2, 3, 10, 12]], format="XYXY", canvas_size=(32, 32))
pair = v2.Compose([v2.Resize(16, antialias=True), v2.RandomHorizontalFlip(1.0)])
resized, moved = pair(torchvision.tv_tensors.Image(image), boxes)
report("kinds", [type(resized).__name__, type(moved).__name__])
report("resized", resized.float().as_subclass(torch.Tensor))
report("boxes", moved.as_subclass(torch.Tensor))
for kind in (v2.AutoAugment(), v2.RandAugment(), v2.ElasticTransform(), v2.RandomPerspective(p=1.0)):
    report(type(kind).__name__, kind(image).float().mean())

segmentation = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
    weights=None, weights_backbone=None, num_classes=3
)
report("segmentation", segmentation.eval()(torch.randn(1, 3, 64, 64))["out"].mean())
layers = {"layer1": "first", "avgpool": "last"}
extractor = create_feature_extractor(torchvision.models.resnet18(num_classes=3), layers)
report("features", {name: value.mean() for name, value in extractor(torch.randn(2, 3, 32, 32)).items()})
report("grid", torchvision.utils.make_grid(torch.rand(4, 3, 8, 8)))
one, other = torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 1, 3, 3]])
report("overlap", [torchvision.ops.box_iou(one, other), torchvision.ops.generalized_box_iou(one, other)])
report("focal", torchvision.ops.sigmoid_focal_loss(torch.randn(5), torch.ones(5)))
