"""d2l: its Trainer on linear and softmax regression, attention, a Transformer encoder, GRU and ResNet blocks; gradients"""

import torch
from d2l import torch as d2l
from report import report

torch.manual_seed(0)


class Quiet(d2l.Trainer):
    def prepare_model(self, model):
        model.board.display = False  # it would draw
        super().prepare_model(model)


data = d2l.SyntheticRegressionData(torch.tensor([2.0, -3.4]), 4.2, num_train=64, num_val=32, batch_size=16)
data.num_workers = 0
for model in (d2l.LinearRegressionScratch(2, lr=0.03), d2l.LinearRegression(lr=0.03)):
    batch = [data.X[:2], data.y[:2]]
    model(batch[0])  # lazy layers find their sizes
    Quiet(max_epochs=2).fit(model, data)
    w, b = (model.w, model.b) if hasattr(model, "w") else model.get_w_b()
    report(f"{type(model).__name__}, weight", w)
    report(f"{type(model).__name__}, bias", b)
    report(f"{type(model).__name__}, loss", model.loss(model(data.X), data.y).mean())

x, lengths = torch.randn(2, 6, 16, requires_grad=True), torch.tensor([4, 6])
for name, layer in {
    "multi-head attention": d2l.MultiHeadAttention(16, 4, 0.0),
    "additive attention": d2l.AdditiveAttention(8, 0.0),
    "dot-product attention": d2l.DotProductAttention(0.0),
}.items():
    y = layer(x, x, x, lengths)
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    report(f"{name}, output", y)
    report(f"{name}, gradient", gradient)
encoder = d2l.TransformerEncoder(20, 16, 32, 4, 2, 0.0).eval()
report("Transformer encoder", encoder(torch.arange(12).view(2, 6) % 20, lengths))
states, last = d2l.GRU(16, 8, num_layers=2)(x.transpose(0, 1))
report("GRU", states)
report("GRU, last", last)
block = d2l.Residual(8, use_1x1conv=True, strides=2)
block(torch.randn(2, 4, 8, 8))
images = block.double()(torch.randn(2, 4, 8, 8).double())
images.square().sum().backward()
report("residual block", images)
report("its gradients", [p.grad for name, p in block.named_parameters() if name.endswith("weight")])
report("corr2d", d2l.corr2d(torch.arange(9.0).view(3, 3), torch.ones(2, 2)))
