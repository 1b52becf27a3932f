"""Which rows of an embedding a rank has not. In PyTorch: `torch/distributed/tensor/_ops/_mask_buffer.py`."""


class MaskBuffer:
    """From a lookup to the sum over ranks: where the result of this rank is not meant.

    In PyTorch it is counted how many results wait for it, and a second use of one result finds it gone; here each result has its own.
    """

    def __init__(self, data=None):
        self.data = data

    def materialize_mask(self, mask):
        self.data = mask

    def taken(self):
        """What was put here, as a buffer of its own."""
        taken, self.data = MaskBuffer(self.data), None
        return taken

    def apply_mask(self, tensor):
        """`tensor` with zeros there. The result of an embedding has a dimension more than its indices."""
        if self.data is None:
            raise RuntimeError("MaskBuffer has not been materialized")
        mask = self.data if tensor.ndim == self.data.ndim else self.data.unsqueeze(-1)
        return tensor.masked_fill(mask, 0.0)
