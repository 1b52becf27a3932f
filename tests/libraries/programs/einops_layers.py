"""einops: patches as a layer, einsum, reduce, pack and unpack, gradients through all of them"""

import torch
from einops import einsum, pack, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from report import report

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
net = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    torch.nn.Linear(48, 16),
    Reduce("b n c -> b c", "mean"),
    EinMix("b c -> b d", weight_shape="c d", bias_shape="d", c=16, d=5),
)
y = net(x)
y.square().sum().backward()
report("output", y)
report("gradient of x", x.grad)
report("gradients", [p.grad for p in net.parameters()])
report("einsum", einsum(x, x, "b c h w, b d h w -> b c d"))
report("reduce", reduce(x, "b c (h 2) w -> b h", "max"))
packed, shapes = pack([x, x.mean(1)], "b * h w")
report("shapes", [list(s) for s in shapes])
report("packed", packed)
report("unpacked", unpack(packed, shapes, "b * h w"))
report("repeat", repeat(packed, "b c h w -> (b 2) c h w").sum((1, 2, 3)))
