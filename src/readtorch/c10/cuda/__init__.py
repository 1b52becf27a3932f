"""c10/cuda: the device driver (real or simulated), the caching allocator above it, and what both need.

Read it upwards: `driver` (what a device can do), `simulated_driver` and `real_driver`; then the allocator:
`allocator_config`, `sizes`, `block`, `statistics`, `history`, and its storeys `device_state`,
`free_blocks`, `events`, `segments`, `expandable_segments`, `device_caching_allocator`; over all devices
`caching_allocator`; last `runtime`.

In PyTorch: `c10/cuda`. Explained in the chapter "The caching allocator".
"""
