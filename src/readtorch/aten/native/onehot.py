"""one_hot: class indices as rows with a single 1.

In PyTorch: `aten/src/ATen/native/Onehot.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.c10.dispatch_key import CPU, META
from readtorch.c10.scalar_type import int64
from readtorch.c10.tensor_impl import host_array

# -------------------------------------------------------------------------------------------------- one_hot

one_hot = native_function("one_hot(Tensor self, int num_classes=-1) -> Tensor", "function", module="nn")


@one_hot.compose
def one_hot_composite(self, num_classes):
    """A new last dimension, 0 everywhere except for a 1 at the element's value."""
    array = self._array if self._keys & META else host_array(self)
    if array.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if self._keys & META:
        places = at.arange(num_classes if num_classes != -1 else self.max().item() + 1, device=self.device)
        return at.eq(self.unsqueeze(-1), places).to(int64).contiguous()
    if array.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return at.zeros((*array.shape, num_classes), dtype=self.dtype, device=self.device)
    least, most = (array.min(), array.max()) if self._keys & CPU else [extreme.item() for extreme in at.aminmax(self)]
    if least < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(most) + 1
    elif most >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = at.zeros((*array.shape, num_classes), dtype=self.dtype, device=self.device)
    return result.scatter_(-1, self.unsqueeze(-1), 1)
