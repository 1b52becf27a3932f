"""kornia: colours, filters, geometry, features, losses and augmentations, with gradients"""

import kornia
import kornia.augmentation as augment
import torch
from report import report

torch.manual_seed(0)
x = torch.rand(2, 3, 16, 16, requires_grad=True)

for name in ("rgb_to_grayscale", "rgb_to_hsv", "rgb_to_hls", "rgb_to_lab", "rgb_to_yuv", "rgb_to_ycbcr", "rgb_to_xyz"):
    report(name, getattr(kornia.color, name)(x))
report("Gauss", kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)))
report("Sobel", kornia.filters.sobel(x))
report("Laplace", kornia.filters.laplacian(x, 3))
report("median", kornia.filters.median_blur(x, (3, 3)))
report("unsharp", kornia.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)))
report("Canny", kornia.filters.canny(x)[0])
report("dilation", kornia.morphology.dilation(x, torch.ones(3, 3)))
report("equalized", kornia.enhance.equalize(x.detach()))
report("contrast", kornia.enhance.adjust_contrast(x, 1.5))
report("histogram", kornia.enhance.histogram(x[:1].detach().flatten(1), torch.linspace(0, 1, 5), torch.tensor(0.1)))

rotated = kornia.geometry.rotate(x, torch.tensor([30.0, -45.0]))
rotated.sum().backward()
report("rotated", rotated)
report("gradient", x.grad)
corners = torch.tensor([[[0.0, 0.0], [15.0, 0.0], [15.0, 15.0], [0.0, 15.0]]])
homography = kornia.geometry.get_perspective_transform(corners, corners + torch.randn(1, 4, 2))
report("homography", homography)
report("warped", kornia.geometry.warp_perspective(x[:1], homography, (16, 16)))
report("resized", kornia.geometry.resize(x, (8, 8), antialias=True))
report("pyramid", kornia.geometry.pyrdown(x))
axis = torch.randn(3, 3)
report("rotation matrices", kornia.geometry.conversions.axis_angle_to_rotation_matrix(axis))
report("Harris", kornia.feature.harris_response(x[:, :1]))
report("HardNet", kornia.feature.HardNet(pretrained=False).eval()(torch.rand(2, 1, 32, 32)))

y = torch.rand(2, 3, 16, 16)
report("SSIM", kornia.losses.ssim_loss(x, y, 5))
report(
    "focal", kornia.losses.focal_loss(torch.randn(2, 3, 4, 4), torch.randint(3, (2, 4, 4)), alpha=0.5, reduction="mean")
)
report("Dice", kornia.losses.dice_loss(torch.randn(2, 3, 4, 4), torch.randint(3, (2, 4, 4))))
report("PSNR", kornia.metrics.psnr(x, y, 1.0))

torch.manual_seed(3)
augmentation = augment.AugmentationSequential(
    augment.RandomHorizontalFlip(p=0.5),
    augment.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    augment.RandomAffine(20.0, p=1.0),
    augment.RandomErasing(p=1.0),
    data_keys=["input", "mask"],
)
report("augmented", augmentation(x.detach(), torch.ones(2, 1, 16, 16)))
