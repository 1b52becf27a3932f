"""What TensorBoard's projector reads: tables with tabs, a picture of pictures, and a file that names them.

In PyTorch: `torch/utils/tensorboard/_embedding.py`.
"""

import io
import math

import numpy as np
from tensorboard.compat import tf
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from readtorch.c10.extras import extra

from ._convert_np import make_np
from ._utils import make_grid


def _gfile_join(a, b):
    """Paths may lie in a cloud: tensorboard's file systems know how to join them, by two names."""
    if hasattr(tf.io.gfile, "join"):
        return tf.io.gfile.join(a, b)
    return tf.io.gfile.get_filesystem(a).join(a, b)


def _write(directory, name, content):
    with tf.io.gfile.GFile(_gfile_join(directory, name), "wb") as file:
        file.write(content)


def make_tsv(metadata, save_path, metadata_header=None):
    """A line for each point: its label, or one label under each header."""
    rows = [str(label) for label in metadata]
    if metadata_header:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        rows = ["\t".join(map(str, row)) for row in [metadata_header, *metadata]]
    _write(save_path, "metadata.tsv", ("\n".join(rows) + "\n").encode())


def make_sprite(label_img, save_path):
    """All pictures (N, C, H, W) in one square: `ceil(sqrt(N))` in a row."""
    with extra("tensorboard", "A picture in an event file"):
        from PIL import Image

    grid = make_grid(make_np(label_img), ncols=math.ceil(label_img.size(0) ** 0.5)).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[: grid.shape[0]] = grid
    png = io.BytesIO()
    Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(png, format="PNG")
    _write(save_path, "sprite.png", png.getvalue())


def make_mat(matlist, save_path):
    """A line for each point: its coordinates."""
    rows = ("\t".join(str(number.item()) for number in row) for row in matlist)
    _write(save_path, "tensors.tsv", "".join(f"{row}\n" for row in rows).encode())


def get_embedding_info(metadata, label_img, subdir, global_step, tag):
    """Where the files of one embedding are."""
    info = EmbeddingInfo(
        tensor_name=f"{tag}:{str(global_step).zfill(5)}", tensor_path=_gfile_join(subdir, "tensors.tsv")
    )
    if metadata is not None:
        info.metadata_path = _gfile_join(subdir, "metadata.tsv")
    if label_img is not None:
        info.sprite.image_path = _gfile_join(subdir, "sprite.png")
        info.sprite.single_image_dim.extend([label_img.size(3), label_img.size(2)])
    return info


def write_pbtxt(save_path, contents):
    _write(save_path, "projector_config.pbtxt", contents.encode())
