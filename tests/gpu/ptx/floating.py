"""Arithmetic of floating point. Approximations (…approx) are the exact functions of the C library: their last bits differ from a
chip's."""

from .instructions import instruction

_DIRECTED = ("rm", "rp", "rz")


@instruction("fma", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def floating(this):
    directed = this.one_of(*_DIRECTED)
    if directed:
        return rounded(this, directed)
    if this.name in ("neg", "abs"):
        return of_sign_bit(this)
    return put(this, (arithmetic if this.name in _ARITHMETIC else function)(this))


_ARITHMETIC = ("add", "sub", "mul", "fma", "mad", "div", "min", "max")


def put(this, value):
    if this.type == "f32":
        value = f"ftz({value})" if "ftz" in this else value
        value = f"sat({value})" if "sat" in this else value
        value = f"({value} > 0.0f ? {value} : 0.0f)" if "relu" in this else value
    return this.put(value)


def arithmetic(this):
    x, y = this.value(1), this.value(2)
    if this.name in ("fma", "mad"):
        return f"fma{'' if this.type == 'f64' else 'f'}({x}, {y}, {this.value(3)})"
    if this.name in ("min", "max"):
        number = f"{this.name}_{'d' if this.type == 'f64' else 'f'}({x}, {y})"
        return f"({x} != {x} ? {x} : {y} != {y} ? {y} : {number})" if "NaN" in this else number
    return f"{x} {dict(add='+', sub='-', mul='*', div='/')[this.name]} {y}"


def function(this):
    x, f = this.value(1), "" if this.type == "f64" else "f"
    one = "1.0" if this.type == "f64" else "1.0f"
    names = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "sqrt": "sqrt"}
    if this.name in ("rcp", "rsqrt"):
        return f"{one} / {x if this.name == 'rcp' else f'sqrt{f}({x})'}"
    return f"{names[this.name]}{f}({x})"


def rounded(this, how):
    """Down, up or towards zero: the float32 forms that have a fused multiply and add."""
    if this.type != "f32":
        this.refuse()
    if this.name in ("add", "sub"):
        arguments = this.value(1), "1.0f", this.value(2) if this.name == "add" else f"-({this.value(2)})"
    elif this.name == "mul":
        arguments = this.value(1), this.value(2), "-0.0f"
    elif this.name == "fma":
        arguments = this.value(1), this.value(2), this.value(3)
    else:
        this.refuse()
    return put(this, f"fma_{how}({', '.join(arguments)})")


def of_sign_bit(this):
    bit = f"((u{this.bits})1 << {this.bits - 1})"
    return this.put_bits(f"{this.unsigned(1)} ^ {bit}" if this.name == "neg" else f"{this.unsigned(1)} & ~{bit}")


@instruction("copysign")
def copy_sign(this):
    bit = f"((u{this.bits})1 << {this.bits - 1})"
    return this.put_bits(f"({this.unsigned(1)} & {bit}) | ({this.unsigned(2)} & ~{bit})")


@instruction("testp")
def test(this):
    x = this.value(1)
    tests = {
        "finite": f"isfinite({x})",
        "infinite": f"isinf({x})",
        "number": f"!isnan({x})",
        "notanumber": f"isnan({x})",
        "normal": f"isnormal({x})",
        "subnormal": f"(fpclassify({x}) == FP_SUBNORMAL)",
    }
    return this.put(tests[this.modifiers[0]], "pred")
