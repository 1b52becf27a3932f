"""Settings against PyTorch's own reader, which builds without CUDA have, too; and what CUDA's reader adds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.sizes import MIB, UNLIMITED, format_size, round_size, segment_size

SHARED = [
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "expandable_segments",
    "pinned_use_background_threads",
    "pinned_max_round_threshold_mb",
    "pinned_max_cached_size_mb",
]
VALUES = [
    "",
    "0",
    "10",
    "11",
    "19",
    "20",
    "64",
    "-5",
    "25.5",
    "4",
    "abc",
    "0.5",
    "1.5",
    "True",
    "False",
    "true",
    "[",
    "]",
    "[256:4]",
    "[256:3]",
    "[255:4]",
    "[64:1,128:2,>:4]",
    "[>:4]",
    "[256:4",
    "[x:4]",
    "[0:4]",
    "99999999999999999999",
]


@pytest.fixture(autouse=True)
def reference_forgets():
    """PyTorch keeps large_segment_size for good: put it back after each test."""
    yield
    torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:20,expandable_segments:False")


def outcome(read, text):
    """None if it is accepted, else the error: its type and its words, without those of a failed assertion."""
    try:
        read(text)
    except (ValueError, IndexError, RuntimeError) as error:
        return type(error), str(error).split("\n")[0].rpartition("please report a bug to PyTorch. ")[2]


def check(text):
    torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:20")
    expected = outcome(torch._C._accelerator_setAllocatorSettings, text)
    assert outcome(AllocatorConfig().read, text) == expected, text


@pytest.mark.parametrize("key", SHARED)
def test_accepted_and_refused_as_by_the_reference(key):
    check(key)
    for value in VALUES:
        check(f"{key}:{value}")
        check(f"{key}:{value},expandable_segments:True")


SETTING = st.tuples(st.sampled_from(SHARED), st.sampled_from(VALUES)).map(":".join)


@given(st.lists(SETTING, max_size=4).map(",".join))
def test_several_settings_at_once(text):
    check(text)


def test_unknown_keys_and_keys_of_cuda():
    config = AllocatorConfig()
    with pytest.raises(ValueError, match="^Unrecognized key 'foo' in Accelerator allocator config.$"):
        config.read("foo:1")
    config.read("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5,backend:native")
    assert config.throw_on_cudamalloc_oom and config.per_process_memory_fraction == 0.5
    with pytest.raises(ValueError, match="per_process_memory_fraction is invalid"):
        config.read("per_process_memory_fraction:1.5")
    with pytest.raises(ValueError, match="power of 2, got 3"):
        config.read("pinned_num_register_threads:3")
    with pytest.raises(ValueError, match="less than or equal to 128, got 256"):
        config.read("pinned_num_register_threads:256")
    with pytest.raises(ValueError, match="options are native and cudaMallocAsync"):
        config.read("backend:other")
    with pytest.raises(RuntimeError, match="load time, cudaMallocAsync != native"):
        config.read("backend:cudaMallocAsync")
    with pytest.raises(ValueError, match="has to be greater than 0"):
        config.read("pinned_reserve_segment_size_mb:0")
    for bound in ("0.0", "1.0"):
        config.read(f"per_process_memory_fraction:{bound}")
    for text in ("pinned_reserve_segment_size_mb:3", "pinned_num_register_threads:128"):
        config.read(text)
        assert getattr(config, text.partition(":")[0]) == int(text.partition(":")[2])


def test_from_the_environment(monkeypatch):
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:40")
    config = AllocatorConfig()
    config.read_environment()
    assert config.max_split_size == 40 * MIB
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "foo:1")  # it goes before the other
    with pytest.raises(ValueError, match="^Unrecognized key 'foo' in CUDA allocator config.$"):
        config.read_environment()


def test_each_reading_begins_with_defaults():
    config = AllocatorConfig()
    config.read(
        "max_split_size_mb:40,garbage_collection_threshold:0.5,roundup_power2_divisions:4,"
        "expandable_segments:True,large_segment_size_mb:30"
    )
    config.read("")
    assert config.max_split_size == UNLIMITED
    assert config.garbage_collection_threshold == 0 and not any(config.roundup_power2_divisions)
    assert config.expandable_segments and config.large_segment_size == 30 * MIB
    assert config.max_non_split_rounding_size == 30 * MIB


def test_sizes():
    config = AllocatorConfig()
    assert [round_size(n, config) for n in (1, 512, 513, MIB)] == [512, 512, 1024, MIB]
    assert [segment_size(n, config) for n in (512, MIB, MIB + 512, 10 * MIB, 11 * MIB)] == [
        2 * MIB,
        2 * MIB,
        20 * MIB,
        10 * MIB,
        12 * MIB,
    ]
    config.read("roundup_power2_divisions:4")
    assert [round_size(n, config) for n in (1200, 5000, 7169, 1 << 20)] == [1536, 5120, 8192, 1 << 20]
    assert [format_size(n) for n in (0, 1024, 1025, MIB, MIB + 1, 1 << 30, 3 << 30)] == [
        "0 bytes",
        "1024 bytes",
        "1.00 KiB",
        "1024.00 KiB",
        "1.00 MiB",
        "1024.00 MiB",
        "3.00 GiB",
    ]
