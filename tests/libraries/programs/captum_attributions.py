"""captum: twenty attributions of a small convolutional network, and how sensitive one of them is"""

import numpy
import torch
from captum import attr
from captum.metrics import infidelity, sensitivity_max
from report import report

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu1, self.pool = torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
        self.hidden, self.relu2, self.out = torch.nn.Linear(36, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.relu2(self.hidden(self.pool(self.relu1(self.conv(x))).flatten(1))))


net = Net().eval()
x = torch.randn(2, 1, 8, 8)
black = torch.zeros_like(x)
both = torch.cat([black, black + 1])
quarters = (torch.arange(64) // 16).view(1, 1, 8, 8)
torch.manual_seed(1), numpy.random.seed(0)

report("integrated gradients", attr.IntegratedGradients(net).attribute(x, black, target=1))
report("saliency", attr.Saliency(net).attribute(x, target=1))
report("input times gradient", attr.InputXGradient(net).attribute(x, target=1))
report("DeepLift", attr.DeepLift(net).attribute(x, black, target=0))
report("DeepLift SHAP", attr.DeepLiftShap(net).attribute(x, both, target=0))
report("gradient SHAP", attr.GradientShap(net).attribute(x, both, target=0))
report("guided backprop", attr.GuidedBackprop(net).attribute(x, target=2))
report("deconvolution", attr.Deconvolution(net).attribute(x, target=2))
report("Grad-CAM", attr.LayerGradCam(net, net.conv).attribute(x, target=1))
report("guided Grad-CAM", attr.GuidedGradCam(net, net.conv).attribute(x, target=1))
report("occlusion", attr.Occlusion(net).attribute(x, (1, 4, 4), target=0, strides=(1, 2, 2)))
report("ablation", attr.FeatureAblation(net).attribute(x, target=0, feature_mask=quarters))
report("permutation", attr.FeaturePermutation(net).attribute(x, target=0, feature_mask=quarters))
report("conductance", attr.LayerConductance(net, net.relu1).attribute(x, black, target=0))
report("activation", attr.LayerActivation(net, net.hidden).attribute(x))
report("of a neuron", attr.NeuronIntegratedGradients(net, net.hidden).attribute(x, 2))
report("relevance", attr.LRP(net).attribute(x, target=0))
report("Shapley values", attr.ShapleyValueSampling(net).attribute(x, target=0, feature_mask=quarters, n_samples=3))
report("noise tunnel", attr.NoiseTunnel(attr.Saliency(net)).attribute(x, nt_samples=3, target=0))
report("sensitivity", sensitivity_max(attr.Saliency(net).attribute, x, target=0))


def perturb(inputs):
    noise = torch.randn_like(inputs) * 0.1
    return noise, inputs - noise


report("infidelity", infidelity(net, perturb, x, attr.Saliency(net).attribute(x, target=0), target=0))
report("kernel SHAP", attr.KernelShap(net).attribute(x[:1], target=0, feature_mask=quarters, n_samples=20))
