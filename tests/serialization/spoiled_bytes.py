"""Ways to spoil any file: bits flipped, the end cut off, a piece cut out or put in."""


def flipped_bits(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def truncated(data, rng):
    return data[: rng.randrange(len(data))]


def cut_out(data, rng):
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(1, 200) :]


def put_in(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 200)) + data[at:]


def ways(base, weights):
    """name -> (a function of rng that spoils `base(rng)`, its weight), for each of these four."""
    return {
        way.__name__.replace("_", " "): (lambda rng, way=way: way(base(rng), rng), weight)
        for way, weight in zip((flipped_bits, truncated, cut_out, put_in), weights)
    }
