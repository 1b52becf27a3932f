"""What writes error files. In PyTorch: `torch/distributed/elastic/multiprocessing/errors/error_handler.py`."""

import faulthandler
import json
import os
import time
import traceback
import warnings

__all__ = ["ErrorHandler"]


class ErrorHandler:
    """Writes an exception into the file that TORCHELASTIC_ERROR_FILE names, as JSON; a program may have one of its own."""

    def _get_error_file_path(self):
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self):
        """Before the function runs: signals that end the process show where it was."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:  # stderr may be no file
            warnings.warn(f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2)

    def record_exception(self, e):
        """Write what happened, in PyTorch's form."""
        path = self._get_error_file_path()
        if path:
            extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
            self._write(path, {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}})

    def dump_error_file(self, rootcause_error_file, error_code=0):
        """Pass on what a child wrote; how the child ended it could not know itself."""
        with open(rootcause_error_file) as file:
            data = json.load(file)
        if error_code and isinstance(data.get("message"), dict):
            data["message"]["errorCode"] = error_code
        path = self._get_error_file_path()
        if path:
            self._write(path, data)

    def _write(self, path, data):
        try:
            with open(path, "w") as file:
                json.dump(data, file)
        except OSError as error:
            warnings.warn(f"Unable to write error to file. {type(error).__name__}: {error}", stacklevel=3)
