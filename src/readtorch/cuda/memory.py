"""placeholder until the Python face of the allocator is committed"""
