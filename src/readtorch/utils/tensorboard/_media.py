"""Images, videos and sounds as summaries: files of the usual formats inside of the event.

In PyTorch: part of `torch/utils/tensorboard/summary.py`.
"""
import io
import tempfile
import wave

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

from readtorch.c10.extras import extra

from ._convert_np import make_np
from ._utils import _prepare_video, convert_to_HWC


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """An image, or a batch of images as one grid. uint8 counts up to 255, other dtypes up to 1; what is more
    is cut off.
    """
    pixels = _bytes(convert_to_HWC(make_np(tensor), dataformats))
    return Summary(value=[Summary.Value(tag=tag, image=make_image(pixels, rescale))])


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None):
    """An image with boxes (N, 4), each (xmin, ymin, xmax, ymax), and maybe a label for each."""
    pixels = _bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    image = make_image(pixels, rescale, make_np(tensor_boxes), labels)
    return Summary(value=[Summary.Value(tag=tag, image=image)])


def _bytes(array):
    scaled = array.astype(np.float32) * _calc_scale_factor(array)
    return scaled.clip(0, 255).astype(np.uint8)


def _calc_scale_factor(array):
    return 1 if array.dtype == np.uint8 else 255


def make_image(tensor, rescale=1, rois=None, labels=None):
    """The PNG of a uint8 array (H, W, C); rois: boxes to draw on it."""
    with extra("tensorboard", "A picture in an event file"):
        from PIL import Image

    height, width, channels = tensor.shape
    picture = Image.fromarray(tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels)
    size = int(width * rescale), int(height * rescale)
    png = io.BytesIO()
    picture.resize(size, Image.Resampling.LANCZOS).save(png, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png.getvalue())


def draw_boxes(disp_image, boxes, labels=None):
    for i, (left, top, right, bottom) in enumerate(boxes):
        _draw_single_box(disp_image, left, top, right, bottom, None if labels is None else labels[i], "Red")
    return disp_image


def _draw_single_box(image, xmin, ymin, xmax, ymax, display_str, color="black", color_text="black",
                     thickness=2):
    with extra("tensorboard", "A picture in an event file"):
        from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(image), ImageFont.load_default()
    corners = [(xmin, ymin), (xmin, ymax), (xmax, ymax), (xmax, ymin), (xmin, ymin)]
    draw.line(corners, width=thickness, fill=color)
    if display_str:
        left, top, right, bottom = font.getbbox(display_str)
        width, height = right - left, bottom - top
        margin = np.ceil(0.05 * height)
        draw.rectangle([(xmin, ymax - height - 2 * margin), (xmin + width, ymax)], fill=color)
        draw.text((xmin + margin, ymax - height - margin), display_str, fill=color_text, font=font)
    return image


def video(tag, tensor, fps=4):
    """Clips (N, T, C, H, W) in a grid. The summary is empty if there is no `moviepy`."""
    frames = _bytes(_prepare_video(make_np(tensor)))
    return Summary(value=[Summary.Value(tag=tag, image=make_video(frames, fps))])


def make_video(tensor, fps):
    """The GIF of frames (T, H, W, C). None, and a message, without `moviepy`."""
    try:
        import moviepy  # noqa: F401
    except ImportError:
        return print("add_video needs package moviepy")
    try:
        from moviepy import editor  # moviepy 2 has none
    except ImportError:
        return print("moviepy is installed, but can't import moviepy.editor.",
                     "Some packages could be missing [imageio, requests]")
    frames, height, width, channels = tensor.shape
    with tempfile.NamedTemporaryFile(suffix=".gif") as file:
        clip = editor.ImageSequenceClip(list(tensor), fps=fps)
        clip.write_gif(file.name, verbose=False, logger=None)  # in PyTorch: other names for older versions
        gif = file.read()
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=gif)


def audio(tag, tensor, sample_rate=44100):
    """A sound in [-1, 1] with one channel, as a WAV of 16 bits. AssertionError for more dimensions."""
    samples = make_np(tensor).squeeze()
    if abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    sound = Summary.Audio(sample_rate=sample_rate, num_channels=1, length_frames=len(samples),
                          encoded_audio_string=_wav(samples, sample_rate), content_type="audio/wav")
    return Summary(value=[Summary.Value(tag=tag, audio=sound)])


def _wav(samples, sample_rate):
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(sample_rate)
        wav.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    return file.getvalue()
