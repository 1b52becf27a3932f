"""python -m tests.gpu COMMAND …: runs it where there are fake GPUs. README.md has the settings."""

import os
import sys

from .fake import environment, missing

if len(sys.argv) < 2:
    sys.exit(__doc__)
if reason := missing():
    sys.exit(reason)
os.execvpe(sys.argv[1], sys.argv[1:], environment())
