"""c10/cuda: the device driver (real or simulated), the caching allocator above it, and what both need.

Read it upwards: `driver_api` (what a device can do), `simulated_driver` and `real_driver`; then the allocator: its
settings (`allocator_config`) and `sizes`, and the package `cuda_caching_allocator`; then `runtime`, `cuda_stream` and
`device_memory`; last `launch`, `compile` and `simulator`, which run kernels.

In PyTorch: `c10/cuda`. PyTorch has no such file: the folder is C++. Explained in the chapter "The caching allocator".
"""
