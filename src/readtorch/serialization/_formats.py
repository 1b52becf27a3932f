"""The numbers by which the formats are known.

In PyTorch: the constants of `torch/serialization.py`.
"""

import struct

DEFAULT_PROTOCOL = 2

# What a file of before 1.6 begins with.
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
LONG_SIZE, INT_SIZE, SHORT_SIZE = (struct.Struct(f"={code}").size for code in "lih")
