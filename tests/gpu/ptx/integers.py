"""Arithmetic and logic of integers."""

from .floating import floating
from .instructions import instruction

_LOGIC = {"and": "&", "or": "|", "xor": "^"}


def sign(this):
    return "s" if this.type[0] == "s" else "u"


def wide(this):
    """C's type of twice the width."""
    if this.bits == 64:
        return "__int128" if sign(this) == "s" else "unsigned __int128"
    return f"{sign(this)}{2 * this.bits}"


@instruction("add", "sub", "addc", "subc")
def add(this):
    if this.is_float:
        return floating(this)
    plus = "+" if this.name.startswith("add") else "-"
    if "cc" not in this and not this.name.endswith("c"):
        return this.put_bits(f"{this.unsigned(1)} {plus} {this.unsigned(2)}")
    return with_carry(this, f"{this.unsigned(1)}", plus, this.unsigned(2))


def with_carry(this, x, plus, y):
    """Add or subtract, with the carry of before (…c) and for the next one (.cc)."""
    kind = "u64" if this.bits == 32 else "unsigned __int128"
    carry = f" {plus} cc" if this.name.endswith("c") else ""
    keep = f" cc = (x_ >> {this.bits}) & 1;" if "cc" in this else ""
    return f"{kind} x_ = ({kind})({x}) {plus} ({kind})({y}){carry}; " + this.put_bits("x_") + keep


@instruction("mul", "mad", "madc", "mul24", "mad24")
def multiply(this):
    if this.is_float:
        return floating(this)
    if this.name.endswith("24"):
        this.refuse()
    if "cc" in this or this.name == "madc":
        half = f"(u{this.bits})({product(this)}" + (f" >> {this.bits})" if "hi" in this else ")")
        return with_carry(this, half, "+", this.unsigned(3))
    adds = this.name == "mad"
    if "wide" in this:
        kind = f"{sign(this)}{2 * this.bits}"
        return this.put(product(this) + (f" + {this.function.value(this.operands[3], kind)}" if adds else ""), kind)
    if "hi" in this:
        half = f"({sign(this)}{this.bits})({product(this)} >> {this.bits})"
        return this.put(half + (f" + {this.value(3)}" if adds else ""))
    return this.put_bits(f"{this.unsigned(1)} * {this.unsigned(2)}" + (f" + {this.unsigned(3)}" if adds else ""))


def product(this):
    return f"(({wide(this)}){this.value(1)} * ({wide(this)}){this.value(2)})"


@instruction("div", "rem")
def divide(this):
    if this.is_float:
        return floating(this)
    kind = this.type if this.bits >= 32 else sign(this) + "32"
    return this.put(f"{this.name}_{kind}({this.value(1)}, {this.value(2)})")


@instruction("neg")
def negate(this):
    return floating(this) if this.is_float else this.put_bits(f"-{this.unsigned(1)}")


@instruction("abs")
def absolute(this):
    if this.is_float:
        return floating(this)
    x = this.function.value(this.operands[1], f"s{this.bits}")
    return f"s{this.bits} x_ = {x}; " + this.put_bits(f"x_ < 0 ? -(u{this.bits})x_ : (u{this.bits})x_")


@instruction("min", "max")
def smaller_or_larger(this):
    if this.is_float:
        return floating(this)
    x, y = this.value(1), this.value(2)
    return this.put(f"{x} {'<' if this.name == 'min' else '>'} {y} ? {x} : {y}")


@instruction("and", "or", "xor")
def logic(this):
    if this.type == "pred":
        return this.put(f"{this.value(1)} {_LOGIC[this.name]} {this.value(2)}")
    return this.put_bits(f"{this.unsigned(1)} {_LOGIC[this.name]} {this.unsigned(2)}")


@instruction("lop3")
def any_logic(this):
    """Any function of three bits, given by its table of eight."""
    table = int(this.operands[4], 0)
    terms = []
    for row in range(8):
        if table >> row & 1:
            terms.append(" & ".join(f"{'' if row >> 3 - i & 1 else '~'}{this.unsigned(i)}" for i in (1, 2, 3)))
    return this.put_bits(" | ".join(f"({term})" for term in terms) or "0")


@instruction("not")
def invert(this):
    return this.put(f"!{this.value(1)}") if this.type == "pred" else this.put_bits(f"~{this.unsigned(1)}")


@instruction("shl", "shr")
def shift(this):
    by = f"(u32){this.raw(2)}"
    function = "shl" if this.name == "shl" else "sar" if sign(this) == "s" else "shr"
    return this.put(
        f"{function}{max(this.bits, 32)}({this.value(1)}, {by})", this.type if function == "sar" else f"b{this.bits}"
    )


@instruction("shf")
def funnel_shift(this):
    """Two registers shifted as one."""
    pair = f"(((u64)(u32){this.raw(2)} << 32) | (u32){this.raw(1)})"
    by = f"(u32){this.raw(3)}"
    by = f"({by} & 31)" if "wrap" in this else f"({by} > 32 ? 32 : {by})"
    return this.put_bits(f"({pair} << {by}) >> 32" if "l" in this else f"{pair} >> {by}")


@instruction("bfi")
def insert_bits(this):
    return this.put_bits(
        f"bfi_b{this.bits}({this.unsigned(1)}, {this.unsigned(2)}, (u32){this.raw(3)}, (u32){this.raw(4)})"
    )


@instruction("bfe")
def extract_bits(this):
    field = f"{this.value(1)}, (u32){this.raw(2)}, (u32){this.raw(3)}"
    return this.put(f"bfe_signed({field}, {this.bits})" if sign(this) == "s" else f"bfe_u{this.bits}({field})")


@instruction("popc")
def count_ones(this):
    return this.put(f"__builtin_popcountll({this.unsigned(1)})", "b32")


@instruction("clz")
def leading_zeros(this):
    count = f"x_ ? __builtin_clzll(x_) - {64 - this.bits} : {this.bits}"
    return f"u{this.bits} x_ = {this.raw(1)}; " + this.put(count, "b32")


@instruction("bfind")
def highest_one(this):
    if "shiftamt" in this or sign(this) == "s":
        this.refuse()
    return f"u{this.bits} x_ = {this.raw(1)}; " + this.put("x_ ? 63 - __builtin_clzll(x_) : ~0u", "b32")


@instruction("brev")
def reverse_bits(this):
    return this.put(f"brev{this.bits}({this.raw(1)})")


@instruction("prmt")
def permute_bytes(this):
    return this.put(f"prmt({this.raw(1)}, {this.raw(2)}, {this.raw(3)})", "b32")
