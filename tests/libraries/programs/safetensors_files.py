"""safetensors: files of four element types, slices, metadata, a model with tied weights"""

import os
import tempfile

import torch
from report import report
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
file = os.path.join(tempfile.mkdtemp(), "a.safetensors")
tensors = {"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.randn(4).bfloat16(), "h": torch.randn(2).half()}
save_file(tensors, file, metadata={"made by": "a program"})
report("loaded", dict(sorted(load_file(file).items())))
report("bytes", len(save(tensors)))
with safe_open(file, framework="pt") as opened:
    report("names", sorted(opened.keys()))
    report("metadata", opened.metadata())
    report("slice", opened.get_slice("a")[1:, :2])


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 3)
        self.output = torch.nn.Linear(3, 5, bias=False)
        self.output.weight = self.embedding.weight


model, other = Tied(), Tied()
save_model(model, file)
load_model(other, file)
report("tied", other.output.weight)
