"""`memory_summary`: the table of a device's statistics.

In PyTorch: a part of `torch/cuda/memory.py`; the table is the same to the letter.
"""
WIDTH = 75
QUANTITIES = (  # of all blocks, of large and of small ones: (statistic, name, whether it is in bytes)
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "GPU reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active allocs", False),
    ("segment", "GPU reserved segments", False),
    ("inactive_split", "Non-releasable allocs", False),
)
OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))
COLUMNS = ("current", "peak", "allocated", "freed")


def summary(stats, device, abbreviated):
    """The table of the statistics that `memory_stats` gives."""
    thin, thick = "-" * WIDTH, "=" * WIDTH
    title = f"{'':18}PyTorch CUDA memory summary, device ID {device}"
    counts = (f"{'':11} CUDA OOMs: {stats['num_ooms']:<12d} | {'':6} cudaMalloc retries: "
              f"{stats['num_alloc_retries']:<8d}  ")
    heads = "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  "
    lines = [thick, f"{title:<{WIDTH}}", thin, counts, thick, heads]
    kinds = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for statistic, name, in_bytes in QUANTITIES:
        lines += [thin, *rows(stats, statistic, name, kinds, size_cell if in_bytes else count_cell)]
    for statistic, name in OVERSIZE:
        values = [stats[f"{statistic}.{column}"] for column in COLUMNS]
        lines += [thin, row(name, values, values, count_cell)]
    return "".join(f"|{line}|\n" for line in [*lines, thick])


def rows(stats, statistic, name, kinds, cell):
    """One row a kind of blocks, in the units that suit the first."""
    names = {"all": name, "large_pool": "      from large pool", "small_pool": "      from small pool"}
    values = {kind: [stats[f"{statistic}.{kind}.{column}"] for column in COLUMNS] for kind in kinds}
    return [row(names[kind], values[kind], values["all"], cell) for kind in kinds]


def row(name, values, guides, cell):
    return f" {name:<21} | " + " | ".join(cell(value, guide) for value, guide in zip(values, guides)) + " "


def size_cell(nbytes, guide):
    """Bytes, in the unit in which `guide` is below 768 * 1024."""
    for unit in ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if guide < 768 * 1024 or unit == "PiB":
            return f"{nbytes:6d} {unit}"
        nbytes, guide = nbytes // 1024, guide / 1024


def count_cell(count, guide):
    """A count, in thousands or millions if `guide` needs it."""
    for unit in (" ", "K", "M"):
        if guide < 750 * 1000 or unit == "M":
            return f"{count:7d} {unit} "
        count, guide = count // 1000, guide / 1000
