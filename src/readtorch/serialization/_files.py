"""Files that `save` and `load` are given: paths and file objects; how a save to a path is all or nothing.

In PyTorch: the openers of `torch/serialization.py`, which write to the path itself. Explained in the chapter
"state_dict, save and load".

Note [ A save is all or nothing ]

A program that dies while it writes leaves half a file, and if that overwrote the last checkpoint the training
is lost. So `save` writes a new file beside the old one and renames it when it is complete: to rename is one
step of the file system, and whoever opens the path sees the old file or the new one, never a part. Before
that the data is brought to the disk, so that a power cut cannot leave the new name without its contents
either.

The new file gets the permissions that `open` gives, or those of the file that it replaces. A symbolic link
stays one: the file that it leads to is replaced. What is no regular file, such as /dev/stdout or a pipe, is
written to directly.
"""
import contextlib
import io
import os
import secrets
import stat


def is_path(name_or_file):
    return isinstance(name_or_file, (str, os.PathLike))


@contextlib.contextmanager
def open_for_reading(name_or_file):
    """The file of that name, or the file object itself. Raises its error, with advice, if it cannot seek."""
    if is_path(name_or_file):
        with open(name_or_file, "rb") as file:
            yield file
    else:
        _check_seekable(name_or_file)
        yield name_or_file


def _check_seekable(file):
    try:
        file.seek(file.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        if "seek" in str(error) or "tell" in str(error):
            raise type(error)(f"{error}. You can only torch.load from a file that is seekable. Please "
                              "pre-load the data into a "
                              "buffer like io.BytesIO and try to load from it instead.") from None
        raise


@contextlib.contextmanager
def open_for_writing(name_or_file):
    """A file to write to. For a path it takes the path's place at the end of the block: Note [ A save is all
    or nothing ].
    """
    if not is_path(name_or_file):
        yield name_or_file
        if hasattr(name_or_file, "flush"):
            name_or_file.flush()
        return
    path = os.path.realpath(name_or_file)
    mode = _mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
    else:
        with _replacing(path, mode) as file:
            yield file


def _mode_of(path):
    """The type and permissions of what is there, or None. Raises the error that `open` would raise."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        os.close(os.open(path, os.O_WRONLY))  # a file that may not be written to may not be replaced either
    return mode


@contextlib.contextmanager
def _replacing(path, mode):
    beside = f"{path}.{secrets.token_hex(4)}.tmp"
    with open(beside, "xb") as file:
        try:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(beside, stat.S_IMODE(mode))
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(beside)
            raise
    os.replace(beside, path)
