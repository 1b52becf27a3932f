"""Arrays in the layout that an image wants: height, width, channels.

In PyTorch: `torch/utils/tensorboard/_utils.py`.
"""

import numpy as np

from readtorch.c10.extras import extra


def figure_to_image(figures, close=True):
    """Matplotlib's picture of a figure, uint8 of shape (3, H, W); of a list, (N, 3, H, W)."""
    if isinstance(figures, list):
        return np.stack([_render(figure, close) for figure in figures])
    return _render(figures, close)


def _render(figure, close):
    with extra("viz", "A matplotlib figure in an event file"):
        import matplotlib.pyplot as plt
        from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    rgba = np.frombuffer(canvas.buffer_rgba(), dtype=np.uint8).reshape(height, width, 4)
    if close:
        plt.close(figure)
    return np.moveaxis(rgba[:, :, :3], 2, 0)


def convert_to_HWC(tensor, input_format):
    """An array whose dimensions are named by `input_format`, as (H, W, C); a batch as one grid. A single
    channel is repeated, for grey is red, green and blue alike. AssertionError for a format that does not fit.
    """
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            f"You can not use the same dimension shorthand twice.             input_format: {input_format}"
        )
    if tensor.ndim != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"        tensor shape: {tensor.shape}, input_format: {input_format}"
        )
    order = input_format.upper().find
    if tensor.ndim == 4:
        return make_grid(tensor.transpose([order(c) for c in "NCHW"])).transpose(1, 2, 0)
    if tensor.ndim == 3:
        image = tensor.transpose([order(c) for c in "HWC"])
        return np.concatenate([image] * 3, 2) if image.shape[2] == 1 else image
    if tensor.ndim == 2:
        return np.stack([tensor.transpose([order(c) for c in "HW"])] * 3, 2)


def make_grid(I, ncols=8):
    """Images (N, 1 or 3, H, W) side by side, as one image (3, rows * H, columns * W)."""
    if not isinstance(I, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if I.shape[1] == 1:
        I = np.concatenate([I] * 3, 1)
    if I.ndim != 4 or I.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, channels, height, width = I.shape
    ncols = min(count, ncols)
    nrows = -(-count // ncols)
    canvas = np.zeros((channels, nrows * height, ncols * width), dtype=I.dtype)
    for i, image in enumerate(I):
        y, x = i // ncols * height, i % ncols * width
        canvas[:, y : y + height, x : x + width] = image
    return canvas


def _prepare_video(V):
    """Clips (N, T, C, H, W) side by side in a grid, as the frames (T, rows * H, columns * W, C) of one."""
    count, frames, channels, height, width = V.shape
    if V.dtype == np.uint8:
        V = np.float32(V) / 255.0
    if count & (count - 1):  # no power of two: empty clips fill up the grid
        missing = 2 ** count.bit_length() - count
        V = np.concatenate([V, np.zeros((missing, frames, channels, height, width))])
    rows = 2 ** ((count.bit_length() - 1) // 2)
    columns = len(V) // rows
    V = V.reshape(rows, columns, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return V.reshape(frames, rows * height, columns * width, channels)
