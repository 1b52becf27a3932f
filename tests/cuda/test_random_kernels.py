"""Random numbers as CUDA kernels, on the simulator."""

import numpy as np
import pytest

from readtorch.aten.native.cuda import distribution_templates, dropout
from tests.cuda.launches import checked, floats

u64 = np.uint64

# counter (four words), key (two words), result: Random123's known answers for philox4x32-10
KNOWN = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def philox(counter, key):
    """Another Philox, with Python's integers."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & 0xFFFFFFFF, (p >> 32) ^ d ^ m, p & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return [a, b, c, d]


def whole(words):
    return u64(words[0] | words[1] << 32)


@pytest.mark.parametrize("counter, key, answer", KNOWN)
def test_known_answers(counter, key, answer):
    from readtorch.aten.native.cuda.philox_rng_engine import philox as ours

    with np.errstate(over="ignore"):
        assert list(ours(whole(key), whole(counter[2:]), whole(counter[:2]))) == answer
    assert philox(counter, key) == answer


def drawn(function, size, *arguments, dtype=np.float32, seed=0, offset=0, **options):
    out = np.zeros(size, dtype)
    checked(function, (seed, offset), out, *arguments, **options)
    return out


def test_what_torch_gives():
    """Recorded: torch.manual_seed(s), then torch.rand or randn on a GPU, as PyTorch prints it."""
    close = dict(atol=5e-5, rtol=0)
    np.testing.assert_allclose(
        drawn(distribution_templates.uniform, 8),
        [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203],
        **close,
    )
    np.testing.assert_allclose(
        drawn(distribution_templates.normal, 6), [-0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797], **close
    )
    np.testing.assert_allclose(drawn(distribution_templates.normal, 3, seed=42), [0.1940, 2.1614, -0.1721], **close)


def words(size, blocks, at_once, seed, offset):
    """The 32-bit words that each element is made of: elements of one evaluation lie a grid apart."""
    threads = 256 * min(-(-size // 256), blocks)
    result = []
    for i in range(size):
        row, thread = divmod(i, threads)
        draw, part = divmod(row, at_once)
        counter = offset // 4 + draw
        numbers = philox([counter & 0xFFFFFFFF, counter >> 32, thread, 0], [seed & 0xFFFFFFFF, seed >> 32])
        result.append(numbers[part * 4 // at_once :][: 4 // at_once])
    return np.array(result, u64)


@pytest.mark.parametrize("seed, offset", [(0, 0), (2**40 + 5, 4), (7, 2**34)])
def test_layout(seed, offset):
    words_32 = words(1100, 1, 4, seed, offset)[:, 0]
    expected = words_32.astype(np.float32) * np.float32(2.3283064e-10) + np.float32(2.3283064e-10) / 2
    got = drawn(distribution_templates.uniform, 1100, seed=seed, offset=offset, most_blocks=1)
    np.testing.assert_array_equal(got, np.where(expected == 1, 0, expected))
    words_64 = words(600, 1, 2, seed, offset)
    expected = (words_64[:, 0] ^ words_64[:, 1] << u64(21)) * 2.0**-53 + 2.0**-54
    np.testing.assert_array_equal(
        drawn(distribution_templates.uniform, 600, dtype=np.float64, seed=seed, offset=offset, most_blocks=1), expected
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distributions(dtype):
    uniform = drawn(distribution_templates.uniform, 2000, -1.0, 3.0, dtype=dtype)
    assert uniform.min() >= -1 and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.1
    normal = drawn(distribution_templates.normal, 2000, 2.0, 3.0, dtype=dtype)
    assert abs(normal.mean() - 2) < 0.2 and abs(normal.std() - 3) < 0.2
    exponential = drawn(distribution_templates.exponential, 2000, 2.0, dtype=dtype)
    assert exponential.min() > 0 and abs(exponential.mean() - 0.5) < 0.05
    kept = drawn(distribution_templates.bernoulli, 2000, 0.3, dtype=dtype)
    assert set(kept) == {0, 1} and abs(kept.mean() - 0.3) < 0.05
    assert len(np.unique(drawn(distribution_templates.uniform, 2000, dtype=dtype))) > 1990


def test_integers():
    np.testing.assert_array_equal(
        drawn(distribution_templates.integers, 300, -3, 9, dtype=np.int64, most_blocks=1),
        words(300, 1, 4, 0, 0)[:, 0].astype(np.int64) % 12 - 3,
    )
    pairs = words(300, 1, 2, 0, 0)
    expected = (pairs[:, 0] << u64(32) | pairs[:, 1]) % u64(1 << 40)
    np.testing.assert_array_equal(
        drawn(distribution_templates.integers, 300, 0, 1 << 40, dtype=np.int64, most_blocks=1), expected
    )


def test_what_is_used():
    assert [distribution_templates.draws_used(n, most_blocks=2) for n in (0, 1, 512, 2048, 2049)] == [0, 4, 4, 4, 8]
    assert distribution_templates.draws_used(1025, at_once=2, most_blocks=2) == 8


def dropout_words(size, vector):
    """Element by element as `fused_dropout_kernel_vec` goes: one block of 256 threads, seed 5, offset 8."""
    if vector == 1:
        return [word for (word,) in words(size, 1, 4, 5, 8)]
    fours = max(vector // 4, 1)

    def word(i):
        turn, within = divmod(i, vector * 256)
        thread, k = divmod(within, vector)
        return philox([2 + turn * fours + k // 4, 0, thread, 0], [5, 0])[k % 4]

    return [word(i) for i in range(size)]


@pytest.mark.parametrize("size, vector", [(1, 1), (40, 8), (40, 4), (6, 2), (1030, 2), (257, 1), (1040, 8), (0, 1)])
def test_dropout(size, vector):
    x, out, mask = floats(size), np.zeros(size, np.float32), np.zeros(size, bool)
    checked(dropout.dropout, (5, 8), x, 0.25, out, mask, most_blocks=1, vector=vector)
    np.testing.assert_allclose(out, x * mask / 0.75, rtol=1e-6)
    np.testing.assert_array_equal(mask, np.array(dropout_words(size, vector), np.float64) * 2.0**-32 < 0.75)
    grad = floats(size, seed=1)
    checked(dropout.dropout_backward, grad, mask, 1 / 0.75, out)
    np.testing.assert_allclose(out, grad * mask / 0.75, rtol=1e-6)
