"""`SobolEngine`: points that fill a cube more evenly than random ones. In PyTorch: `torch/quasirandom.py`."""

import readtorch

__all__ = ["SobolEngine"]


class SobolEngine:
    """Sobol's sequence of points in the cube [0, 1)^dimension; of every 2^m points each half, quarter … has its share.

        engine = SobolEngine(2, scramble=True, seed=1)
        engine.draw(4)      # the first four points, (4, 2)
        engine.draw(4)      # the next four

    dimension: 1 to 21,201. scramble: random digits are added and mixed (A. B. Owen: Scrambling Sobol and
    Niederreiter-Xing points, 1998), which makes of the sequence one of many equally even ones. seed: of these digits;
    None takes them from the default generator.
    Raises ValueError for another dimension. Directions are those of S. Joe and F. Y. Kuo (2008), points have 30 bits.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = self._zeros(dimension, self.MAXBIT)  # the directions: a row for each dimension
        readtorch._sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift = self._zeros(dimension)  # the first point, as an integer
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone(memory_format=readtorch.contiguous_format)  # the last point drawn
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    @staticmethod
    def _zeros(*shape):
        return readtorch.zeros(shape, device="cpu", dtype=readtorch.long)

    def _scramble(self):
        """A random first point, and directions mixed by random lower triangular matrices of bits."""
        generator = None if self.seed is None else readtorch.Generator().manual_seed(self.seed)

        def bits(*shape):
            return readtorch.randint(2, shape, device="cpu", generator=generator)

        powers = readtorch.pow(2, readtorch.arange(self.MAXBIT, device="cpu"))
        self.shift = readtorch.mv(bits(self.dimension, self.MAXBIT), powers)
        mixing = bits(self.dimension, self.MAXBIT, self.MAXBIT).tril()
        readtorch._sobol_engine_scramble_(self.sobolstate, mixing, self.dimension)

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points: (n, dimension). dtype: None for the default dtype. out: a tensor to write to."""
        dtype = readtorch.get_default_dtype() if dtype is None else dtype
        is_start = self.num_generated == 0  # the first point is no step from another one
        result = self._first_point.to(dtype)
        if not is_start or n != 1:
            state = self.sobolstate, self.dimension, self._steps()
            drawn, self.quasi = readtorch._sobol_engine_draw(self.quasi, n - is_start, *state, dtype=dtype)
            result = readtorch.cat((result, drawn), dim=-2) if is_start else drawn
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def _steps(self):
        """How many steps were made from the first point."""
        return max(self.num_generated - 1, 0)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2^m points. Raises ValueError if these and those before are not a power of 2, for which alone they are
        even.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Begin anew with the first point; returns the engine."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Pass over `n` points; returns the engine."""
        is_start = self.num_generated == 0
        readtorch._sobol_engine_ff_(self.quasi, n - is_start, self.sobolstate, self.dimension, self._steps())
        self.num_generated += n
        return self

    def __repr__(self):
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] if self.scramble else []
        shown += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{self.__class__.__name__}({', '.join(shown)})"
