"""Written in the chapter "Where numbers come from: init and random": its cells are this file, put together by `tools/mini.py`."""

import math
import secrets

import numpy as np

from .module import Linear


class Generator:
    """mt19937, the Mersenne twister."""

    def __init__(self):
        self.manual_seed(secrets.randbits(64))

    def manual_seed(self, seed):
        self.words, self.position = [seed & 0xFFFFFFFF], 624
        self.spare = None  # half of a pair of normal numbers
        for i in range(1, 624):
            last = self.words[-1]
            word = 1812433253 * (last ^ last >> 30) + i
            self.words.append(word & 0xFFFFFFFF)
        return self

    def renew(self):
        w = self.words
        for i in range(624):
            joined = (w[i] & 0x80000000
                      | w[(i + 1) % 624] & 0x7FFFFFFF)
            odd = 0x9908B0DF if joined & 1 else 0
            w[i] = w[(i + 397) % 624] ^ joined >> 1 ^ odd
        self.position = 0

    def random(self):
        if self.position == 624:
            self.renew()
        y = self.words[self.position]
        self.position += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        return y ^ y >> 18


default_generator = Generator()


def manual_seed(seed):
    return default_generator.manual_seed(seed)


def uniform(g):
    """24 bits: as many as a float32 has."""
    return (g.random() & 0xFFFFFF) / 2**24


def uniform64(g):
    return (g.random() << 32 | g.random()) % 2**53 / 2**53


def uniform_(t, low=0.0, high=1.0, g=default_generator):
    low, high = np.float32(low), np.float32(high)
    u = np.array([uniform(g) for _ in range(t.read().size)])
    numbers = np.float32(u * float(high - low) + float(low))
    numbers[numbers == high] = low  # the upper end is open
    return t.write(numbers.reshape(t.shape))


def randperm(n, g=default_generator):
    order = list(range(n))
    for i in range(n - 1):
        j = i + g.random() % (n - i)
        order[i], order[j] = order[j], order[i]
    return order


def normal(g):
    """Made in pairs; the second waits in the generator."""
    if g.spare is None:
        v, u = uniform64(g), uniform64(g)  # the angle first
        radius = math.sqrt(-2 * math.log1p(-u))
        g.spare = radius * math.sin(2 * math.pi * v)
        return radius * math.cos(2 * math.pi * v)
    spare, g.spare = g.spare, None
    return spare


def sixteen(u):
    """Of 8 radii and 8 angles, 16 normal numbers."""
    radius = np.sqrt(-2 * np.log(1 - u[:8]))
    angle = 2 * math.pi * u[8:]
    return [*(radius * np.cos(angle)), *(radius * np.sin(angle))]


def normal_(t, mean=0.0, std=1.0, g=default_generator):
    n = t.read().size
    draw = normal if n < 16 else uniform
    numbers = np.array([draw(g) for _ in range(n)])
    if n >= 16:
        for i in range(0, n - 15, 16):
            numbers[i:i + 16] = sixteen(numbers[i:i + 16])
        if n % 16:
            last = np.array([uniform(g) for _ in range(16)])
            numbers[-16:] = sixteen(last)
    return t.write((numbers * std + mean).reshape(t.shape))


def kaiming_uniform_(t, a=0.0, g=default_generator):
    fan_in = math.prod(t.shape[1:])
    gain = math.sqrt(2 / (1 + a**2))
    bound = math.sqrt(3) * gain / math.sqrt(fan_in)
    return uniform_(t, -bound, bound, g)


class Linear(Linear):
    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out)
        self.reset_parameters()

    def reset_parameters(self):
        kaiming_uniform_(self.weight, a=math.sqrt(5))
        bound = 1 / math.sqrt(self.weight.shape[1])
        uniform_(self.bias, -bound, bound)
