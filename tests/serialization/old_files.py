"""Files in the formats of before PyTorch 1.6, and of before 0.2, which no release of today writes: tar archives."""

import io
import pickle
import struct
import tarfile

import torch


def legacy(T, obj, **options):
    """The bytes of `save(..., _use_new_zipfile_serialization=False)`."""
    file = io.BytesIO()
    T.save(obj, file, _use_new_zipfile_serialization=False, **options)
    return file.getvalue()


def same_storage(tensor):
    return tensor.untyped_storage().data_ptr()


class _ByKey(pickle.Pickler):
    def __init__(self, file, keys):
        super().__init__(file, 2)
        self.keys = keys

    def persistent_id(self, obj):
        return str(self.keys[id(obj)]) if isinstance(obj, torch.Tensor) else None


def tar(obj, tensors, views=()):
    """A tar archive with `obj`, in which `tensors` occur, as PyTorch 0.1 wrote it.

    views: [(index of a tensor, offset, number of elements)]: tensors whose storage is a part of that of the first tensor.
    """
    keys = {id(tensor): 100 + i for i, tensor in enumerate(tensors)}
    views = {index: (offset, numel) for index, offset, numel in views}
    storages, described, pickled = io.BytesIO(), io.BytesIO(), io.BytesIO()
    roots = [tensor for i, tensor in enumerate(tensors) if i not in views]
    pickle.dump(len(roots), storages, 2)
    for tensor in roots:
        storage = tensor.storage()
        pickle.dump((keys[id(tensor)] + 1000, "cpu", getattr(torch, storage._pickle_storage_type())), storages, 2)
        storages.write(struct.pack("<q", len(storage)))
        storages.write(torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy().tobytes())
    root = keys[id(tensors[0])] + 1000
    pickle.dump([(keys[id(tensors[i])] + 1000, root, *place) for i, place in views.items()], storages, 2)
    pickle.dump(len(tensors), described, 2)
    for i, tensor in enumerate(tensors):
        offset = 0 if i in views else tensor.storage_offset()
        pickle.dump((keys[id(tensor)], keys[id(tensor)] + 1000, torch.FloatTensor), described, 2)
        described.write(
            struct.pack(f"<q{2 * tensor.dim() + 1}q", tensor.dim(), *tensor.shape, *tensor.stride(), offset)
        )
    _ByKey(pickled, keys).dump(obj)
    return archive({"storages": storages.getvalue(), "tensors": described.getvalue(), "pickle": pickled.getvalue()})


def archive(files):
    """A tar archive of files, by name."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()
