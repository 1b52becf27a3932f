"""c10/cuda: the device driver (real or simulated), the caching allocator above it, and what both need.

Read it upwards: `driver` (what a device can do), `simulated_driver` and `real_driver`; then the allocator: its
settings (`allocator_config`) and `sizes`, and the package `cuda_caching_allocator`; last `runtime`.

In PyTorch: `c10/cuda`. Explained in the chapter "The caching allocator".
"""
