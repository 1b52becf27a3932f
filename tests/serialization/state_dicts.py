"""Random checkpoints: dtypes, views, shared storages, nesting. Made with the reference, from a seed."""

import collections
import random

import torch

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
]
# Those with a class of storages, such as FloatStorage: of the others PyTorch cannot read back what it writes in the old format.
DTYPES_WITH_CLASS = [dtype for dtype in DTYPES if dtype in torch.storage._dtype_to_storage_type_map()]


class Maker:
    def __init__(self, seed, dtypes=DTYPES):
        self.dtypes = dtypes
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.made = []  # tensors that later ones may be views of

    def checkpoint(self):
        kind = self.random.choice([collections.OrderedDict, dict])
        result = kind((self.name(i), self.value(3)) for i in range(self.random.randint(1, 12)))
        if kind is collections.OrderedDict:
            result._metadata = collections.OrderedDict({"": {"version": 1}})
        return result

    def name(self, i):
        return self.random.choice(["weight", "bias", "größe", "a.b", "running_mean", ""]) + str(i)

    def value(self, depth):
        pick = self.random.random()
        if pick < 0.65 or depth == 0:
            return self.tensor()
        if pick < 0.75:
            return self.leaf()
        children = [self.value(depth - 1) for _ in range(self.random.randint(0, 4))]
        if pick < 0.83:
            return children
        if pick < 0.9:
            return tuple(children)
        return {self.random.choice([i, f"k{i}", (i, "k")]): child for i, child in enumerate(children)}

    def leaf(self):
        return self.random.choice(
            [
                None,
                True,
                3,
                -(2**40),
                2**70,
                0.1,
                float("inf"),
                "text\n",
                b"bytes\x00",
                bytearray(b"x"),
                1 + 2j,
                torch.Size([2, 0]),
                torch.float32,
                torch.device("cpu"),
                torch.strided,
                {1, 2},
                collections.Counter("abca"),
                "\ud800",
            ]
        )

    def tensor(self):
        pick = self.random.random()
        if self.made and pick < 0.1:
            return self.random.choice(self.made)
        tensor = self.view(self.random.choice(self.made)) if self.made and pick < 0.4 else self.fresh()
        if (
            (tensor.is_floating_point() or tensor.is_complex())
            and tensor.dtype.itemsize > 1
            and self.random.random() < 0.3
        ):
            tensor = torch.nn.Parameter(tensor.detach(), requires_grad=self.random.random() < 0.7)
        elif self.random.random() < 0.05:
            tensor = tensor.detach()
            tensor.note = ["an attribute"]
        self.made.append(tensor)
        return tensor

    def fresh(self):
        shape = [self.random.choice([0, 1, 1, 2, 3, 5]) for _ in range(self.random.randint(0, 4))]
        dtype = self.random.choice(self.dtypes)
        count = torch.Size(shape).numel()
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self.generator).bool()
        raw = torch.randint(0, 256, (count * dtype.itemsize,), generator=self.generator, dtype=torch.uint8)
        return raw.view(dtype).view(shape) if count else torch.empty(shape, dtype=dtype)

    def view(self, tensor):
        """A tensor of any strides within another's storage."""
        tensor = tensor.detach()
        room = tensor.untyped_storage().nbytes() // tensor.dtype.itemsize
        offset = self.random.randint(0, room)
        shape, stride, left = [], [], room - offset - 1
        for _ in range(self.random.randint(0, 3)):
            size, step = self.random.randint(0, 3), self.random.randint(0, 4)
            if size and (size - 1) * step <= left:
                left -= (size - 1) * step
                shape.append(size)
                stride.append(step)
        if left < 0:
            shape, stride = [0], [1]
        return torch.as_strided(tensor, shape, stride, offset)


def random_checkpoint(seed, dtypes=DTYPES):
    return Maker(seed, dtypes).checkpoint()
