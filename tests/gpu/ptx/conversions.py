"""Conversions, comparisons, choices."""

from .instructions import instruction
from .module import FLOATS, SIZE, TYPES

_TO_INTEGER = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_RANGES = {
    f"{s}{n}": (-(1 << n - 1), (1 << n - 1) - 1) if s == "s" else (0, (1 << n) - 1) for s in "su" for n in (8, 16, 32)
}


@instruction("cvt")
def convert(this):
    to, source = [m for m in this.modifiers if m in TYPES][-2:]
    directed = this.one_of("rz", "rm", "rp")
    if "x2" in to or "x2" in source:
        return pack(this, to, source)
    if to == "tf32":
        return this.put(f"(UF({this.value(1, source)}) + 0x1000) & 0xffffe000u", "b32")
    if source in FLOATS:
        if directed and (to in FLOATS and SIZE[to] < SIZE[source]):
            this.refuse()
        return from_float(this, to, source)
    if to in FLOATS:
        if directed:
            this.refuse()
        return this.put(f"({'double' if to == 'f64' else 'float'}){this.value(1, source)}", to)
    if "sat" in this:
        low, high = _RANGES[to]
        limits = f"x_ < {low}ll ? {low}ll : x_ > {high}ll ? {high}ll : x_"
        return f"__int128 x_ = {this.value(1, source)}; " + this.put(limits, to)
    return this.put(f"({'s' if to[0] == 's' else 'u'}{8 * SIZE[to]}){this.value(1, source)}", to)


def from_float(this, to, source):
    x, rounding = this.value(1, source), this.one_of(*_TO_INTEGER)
    if to not in FLOATS:
        return this.put(f"to_{to.replace('b', 'u')}({_TO_INTEGER[rounding or 'rzi']}((double){x}))", to)
    if rounding:
        x = f"{_TO_INTEGER[rounding]}{'' if source == 'f64' else 'f'}({x})"
    if (to, source) == ("f16", "f64"):
        return f"{this.function.register(this.operands[0])} = UHD({x});"
    x = f"(float){x}" if to == "f32" != source else x
    return this.put(f"sat({x})" if "sat" in this else x, to)


def pack(this, to, source):
    """Two float32 numbers to a pair of halves: the second operand is the lower one."""
    if to not in ("f16x2", "bf16x2") or source != "f32":
        this.refuse()
    half = "UH" if to == "f16x2" else "UB"
    high, low = this.value(1, "f32"), this.value(2, "f32")
    return this.put(f"(u32){half}({high}) << 16 | {half}({low})", "b32")


_RELATIONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_UNORDERED = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}  # true of nan: the opposite is false


def relation(this):
    """`setp.lt`: numbers compared. The forms with u at their end are true where one of them is nan."""
    how, x, y = this.modifiers[0], this.value(1), this.value(2)
    if how == "ne" and this.is_float:
        return f"({x} < {y} || {x} > {y})"
    if how in _RELATIONS:
        return f"({x} {_RELATIONS[how]} {y})"
    if how in ("num", "nan"):
        return f"({x} == {x} && {y} == {y})" if how == "num" else f"({x} != {x} || {y} != {y})"
    if how in ("equ", "neu"):
        return f"(!({x} < {y} || {x} > {y}))" if how == "equ" else f"(!({x} == {y}))"
    return f"(!({x} {_UNORDERED[how]} {y}))"


@instruction("setp")
def set_predicate(this):
    """A predicate and, behind a bar, its opposite; each perhaps combined with a third one."""
    first, _, second = this.operands[0].partition("|")
    combine = {"and": "&", "or": "|", "xor": "^"}.get(this.one_of("and", "or", "xor"))
    also = f" {combine} {this.value(3, 'pred')}" if combine else ""
    code = f"u8 e_ = {relation(this)}; " + this.function.put(first, "pred", f"e_{also}")
    return code + (" " + this.function.put(second, "pred", f"!e_{also}") if second else "")


@instruction("set")
def set_value(this):
    if this.one_of("and", "or", "xor"):
        this.refuse()
    to = [m for m in this.modifiers if m in TYPES][-2]
    return this.put(f"{relation(this)} ? {'1.0f' if to == 'f32' else '~0u'} : 0", to)


@instruction("selp")
def select(this):
    return (
        this.put_bits(f"{this.value(3, 'pred')} ? {this.unsigned(1)} : {this.unsigned(2)}")
        if this.type != "pred"
        else this.refuse()
    )


@instruction("slct")
def select_by_sign(this):
    by, kind = this.modifiers[-1], [m for m in this.modifiers if m in TYPES][-2]
    bits = 8 * SIZE[kind]
    return this.put(f"{this.value(3, by)} >= 0 ? (u{bits}){this.raw(1)} : (u{bits}){this.raw(2)}", f"b{bits}")
