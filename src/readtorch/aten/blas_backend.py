"""The names of NVIDIA's and AMD's libraries between which a program may choose; here there is none of them.

In PyTorch: `aten/src/ATen/BlasBackend.h`, `aten/src/ATen/LinalgBackend.h`, `aten/src/ATen/ROCmFABackend.h`.
"""

import enum

BlasBackend = enum.Enum("_BlasBackend", {"Default": 0, "Cublas": 1, "Cublaslt": 2, "Ck": 3}, module=__name__)
LinalgBackend = enum.Enum("_LinalgBackend", {"Default": 0, "Cusolver": 1, "Magma": 2}, module=__name__)
ROCmFABackend = enum.Enum("_ROCmFABackend", {"Default": 0, "AOTriton": 1, "Ck": 2}, module=__name__)
