"""What an export returns. In PyTorch: `torch/onnx/_internal/exporter/_onnx_program.py`."""

import os

import readtorch
from readtorch.utils._pytree import tree_leaves


class ONNXProgram:
    """A model in ONNX. model_proto: the protobuf message. exported_program: the program that it was written from."""

    def __init__(self, model_proto, exported_program):
        self.model_proto = model_proto
        self.exported_program = exported_program
        self._inference_session = None

    def __call__(self, *args, **kwargs):
        """The outputs, a list of tensors, as onnxruntime computes them. Raises ModuleNotFoundError without the package `onnxruntime`."""
        if self._inference_session is None:
            self.initialize_inference_session()
        names = [i.name for i in self._inference_session.get_inputs()]
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, readtorch.Tensor)]
        given = {name: tensor.detach().numpy() for name, tensor in zip(names, tensors, strict=True)}
        return [readtorch.from_numpy(y) for y in self._inference_session.run(None, given)]

    def initialize_inference_session(self):
        import onnxruntime

        content = self.model_proto.SerializeToString()
        self._inference_session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def save(self, destination):
        """Write the message to a path, or to a file object with `write`."""
        content = self.model_proto.SerializeToString()
        if isinstance(destination, str | os.PathLike):
            with open(destination, "wb") as file:
                file.write(content)
        else:
            destination.write(content)
