"""Devices that do not exist: their memory, and their streams' made-up time."""

import os

import numpy as np
import pytest

from readtorch.c10.cuda.cuda_exception import AcceleratorError, MemoryAllocationError
from readtorch.c10.cuda.driver_api import DEFAULT_STREAM, Driver
from readtorch.c10.cuda.simulated_driver import SimulatedDriver, parse_size
from readtorch.c10.cuda.simulated_memory import FIRST_ADDRESS, FIRST_RESERVED_ADDRESS, PAGE
from readtorch.c10.cuda.simulated_streams import Latencies

MIB = 1 << 20


# ---------------------------------------------------------------------------------------------------- memory


def test_sizes():
    assert [parse_size(text) for text in (5, "5", "2GiB", "512 MiB", "1.5k", "1TB")] == [
        5,
        5,
        2 << 30,
        512 << 20,
        1536,
        1 << 40,
    ]
    with pytest.raises(ValueError, match="2GiB"):
        parse_size("much")
    with pytest.raises(ValueError, match="3 devices"):
        SimulatedDriver(3, ["1GiB", "2GiB"])
    driver = SimulatedDriver(2, ["1GiB", "2GiB"])
    assert [driver.get_device_properties(i).total_memory for i in range(2)] == [1 << 30, 2 << 30]
    assert driver.device_count() == 2
    assert "simulated" in driver.get_device_properties(0).name


def test_addresses_and_capacity():
    driver = SimulatedDriver(2, "64MiB")
    a, b = driver.malloc(0, 1), driver.malloc(0, 3 * MIB)
    assert (a, b) == (FIRST_ADDRESS, FIRST_ADDRESS + PAGE)
    assert driver.mem_get_info(0) == (58 * MIB, 64 * MIB) and driver.mem_get_info(1) == (64 * MIB, 64 * MIB)
    assert driver.processes(0) == [(os.getpid(), 6 * MIB)]
    with pytest.raises(MemoryAllocationError):
        driver.malloc(0, 59 * MIB)
    driver.free(0, a)
    assert driver.malloc(0, 1) > b  # no address is used twice
    with pytest.raises(AcceleratorError):
        driver.free(0, a)
    down = SimulatedDriver(1, "64MiB", addresses="down")
    assert down.malloc(0, 1) > down.malloc(0, 1)


def test_host_memory_behind_addresses():
    driver = SimulatedDriver(2, "64MiB")
    a, b = driver.malloc(0, 2 * MIB), driver.malloc(1, 2 * MIB)
    driver.host(a, 100)[:] = 1
    driver.host(a + 100, 100)[:] = 2
    driver.host(b, 200)[:] = 3
    assert driver.host(a, 200).sum() == 300 and driver.host(b + 1, 10).sum() == 30
    assert np.shares_memory(driver.host(a, 10), driver.host(a + 5, 10))
    for address, size in (a, 2 * MIB + 1), (a - 1, 1), (b + 2 * MIB, 1), (0, 1):
        with pytest.raises(AcceleratorError, match="illegal memory access"):
            driver.host(address, size)
    driver.free(0, a)
    with pytest.raises(AcceleratorError):
        driver.host(a, 1)


def test_memory_that_is_not_touched_costs_nothing():
    driver = SimulatedDriver(1, "8TiB")
    a = driver.malloc(0, 3 << 40)
    assert a == FIRST_ADDRESS and driver.mem_get_info(0)[0] == 5 << 40


def test_pages_under_reserved_addresses():
    driver = SimulatedDriver(1, "64MiB")
    start = driver.mem_address_reserve(0, 1 << 40)
    assert start == FIRST_RESERVED_ADDRESS
    pages = [driver.mem_create(0, 2 * MIB) for _ in range(3)]
    for i in 0, 1, 3:
        driver.mem_map(0, start + i * PAGE, PAGE, pages[min(i, 2)])
    assert driver.mem_get_info(0)[0] == 58 * MIB
    driver.host(start, 2 * PAGE)[:] = 7  # one piece over two pages
    assert driver.host(start + PAGE - 10, 20).sum() == 140
    with pytest.raises(AcceleratorError):
        driver.host(start + PAGE, 2 * PAGE)  # the third is missing
    with pytest.raises(AcceleratorError):
        driver.mem_map(0, start, PAGE, pages[0])
    with pytest.raises(AcceleratorError):
        driver.mem_address_free(start, 1 << 40)  # something is mapped
    for i in 0, 1, 3:
        driver.mem_unmap(start + i * PAGE, PAGE)
        driver.mem_release(pages[min(i, 2)])
    with pytest.raises(AcceleratorError):
        driver.mem_unmap(start, PAGE)
    with pytest.raises(AcceleratorError):
        driver.host(start, 1)
    driver.mem_address_free(start, 1 << 40)
    assert driver.mem_get_info(0)[0] == 64 * MIB
    with pytest.raises(AcceleratorError):
        driver.free(0, start)


def test_a_driver_answers_every_question():
    assert not SimulatedDriver.__abstractmethods__
    with pytest.raises(TypeError):
        Driver()


# ------------------------------------------------------------------------------------------- streams, events


def test_without_latencies_everything_is_done_at_once():
    driver = SimulatedDriver()
    done = []
    event = driver.event_create(0)
    assert driver.event_query(event)  # never recorded
    driver.enqueue(0, DEFAULT_STREAM, lambda: done.append(1))
    driver.event_record(event, 0, DEFAULT_STREAM)
    assert done == [1] and driver.event_query(event) and driver.stream_query(0, DEFAULT_STREAM)


def test_virtual_time():
    driver = SimulatedDriver(latencies=Latencies(launch=5))
    stream = driver.stream_create(0)
    driver.streams.timeline = []
    first, last = (driver.event_create(0, enable_timing=True) for _ in range(2))
    driver.event_record(first, 0, stream)
    driver.enqueue(0, stream, lambda: None, duration=100, label="a")
    driver.enqueue(0, stream, lambda: None, duration=100, label="b")
    driver.enqueue(0, DEFAULT_STREAM, lambda: None, duration=50, label="c")
    driver.event_record(last, 0, stream)
    assert driver.streams.timeline == [
        (0, stream, "a", 5, 105),
        (0, stream, "b", 105, 205),
        (0, DEFAULT_STREAM, "c", 15, 65),
    ]
    assert driver.streams.now == 15 and not driver.event_query(last)
    driver.event_synchronize(last)
    assert driver.streams.now == 205 and driver.event_query(last) and driver.stream_query(0, stream)
    assert driver.event_elapsed_time(first, last) == 0.205
    driver.enqueue(0, stream, lambda: None, duration=10)
    driver.device_synchronize(0)
    assert driver.streams.now == 220


def test_streams_wait_for_events():
    driver = SimulatedDriver(2)
    a, b = driver.stream_create(0), driver.stream_create(1)
    event = driver.event_create(0)
    driver.stream_wait_event(1, b, event)  # not recorded: nothing to wait for
    driver.streams.timeline = []
    driver.enqueue(0, a, lambda: None, 100)
    driver.event_record(event, 0, a)
    driver.enqueue(1, b, lambda: None, 10)
    driver.stream_wait_event(1, b, event)
    driver.enqueue(1, b, lambda: None, 10)
    assert [span[3:] for span in driver.streams.timeline] == [(0, 100), (0, 10), (100, 110)]


def test_deferred_work_is_seen_when_the_host_looks():
    driver = SimulatedDriver(1, "64MiB", deferred=True, latencies=Latencies(launch=1))
    a, b = driver.stream_create(0), driver.stream_create(0)
    address = driver.malloc(0, 100)
    memory = driver.host(address, 1)
    memory[0] = 0
    event = driver.event_create(0)
    driver.enqueue(0, a, lambda: memory.fill(1), duration=100)
    driver.event_record(event, 0, a)
    driver.stream_wait_event(0, b, event)
    driver.enqueue(0, b, lambda: memory.__imul__(2), duration=10)
    assert memory[0] == 0  # read too early: the old number
    assert not driver.event_query(event)
    driver.event_synchronize(event)
    assert memory[0] == 1
    driver.stream_synchronize(0, b)
    assert memory[0] == 2


def test_freeing_waits_for_the_device_and_costs():
    driver = SimulatedDriver(1, "64MiB", deferred=True, latencies=Latencies(malloc=200, free=300))
    stream = driver.stream_create(0)
    address = driver.malloc(0, 100)
    done = []
    driver.enqueue(0, stream, lambda: done.append(1), duration=1000)
    driver.free(0, address)
    assert done and driver.streams.now == 200 + 1000 + 300


def test_handles_that_nobody_has():
    driver = SimulatedDriver()
    stream, event = driver.stream_create(0, -1), driver.event_create(0)
    driver.stream_destroy(0, stream)
    driver.event_destroy(event)
    for wrong in (
        lambda: driver.stream_synchronize(0, stream),
        lambda: driver.event_query(event),
        lambda: driver.stream_query(1, DEFAULT_STREAM),
    ):
        with pytest.raises(AcceleratorError, match="invalid resource handle"):
            wrong()
    first, last = driver.event_create(0), driver.event_create(0)
    driver.event_record(first, 0, DEFAULT_STREAM)
    driver.event_record(last, 0, DEFAULT_STREAM)
    with pytest.raises(AcceleratorError):
        driver.event_elapsed_time(first, last)  # made without enable_timing
