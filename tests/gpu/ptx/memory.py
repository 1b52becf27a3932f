"""Loads, stores, atomic operations, addresses, moves."""

import re

from .instructions import instruction, split
from .module import SIZE

_WHERE = {"global": "G", "const": "G", "shared": "S", "shared_cta": "S", "local": "L"}
_TAGS = {"shared": "SHARED_TAG", "local": "LOCAL_TAG"}


def place(this, operand, size):
    """`[%rd1+8]` as a pointer of C, checked."""
    function = this.function
    found = re.match(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?(?:0x)?[0-9A-Fa-f]+))?\s*\]$", operand)
    if not found:
        this.refuse()
    name, plus = found[1], int(found[2] or "0", 0)
    space = this.one_of(*_WHERE, "param")
    if space == "param":
        return parameter(function, name, plus)
    address = f"((u64){function.raw(name)} + ({plus}ll))"
    if space is None:
        return f"t->services->resolve(t, {address}, {size})"
    if _WHERE[space] == "S":
        address = f"(u64)(u32)({address})"
    return f"{_WHERE[space]}(t, {address}, {size})"


def parameter(function, name, plus):
    if name in function.call_space:
        return f"(PV_{name} + {plus})"
    if function.is_entry:
        return f"(t->parameters + {function.parameters[name] + plus})"
    if name == function.result:
        return f"(RET + {plus})"
    return f"(A{list(function.parameters).index(name)} + {plus})"


def vector_length(this):
    return int((this.one_of("v2", "v4", "v8") or "v1")[1:])


@instruction("ld", "ldu")
def load(this):
    count, size = vector_length(this), SIZE[this.type]
    where = place(this, this.operands[1], size * count)
    register = this.type if this.type[0] == "s" else f"b{8 * size}"
    in_c = f"{'s' if this.type[0] == 's' else 'u'}{8 * size}"
    if count == 1:
        return f"{in_c} x_ = *({in_c} *){where}; " + this.put("x_", register)
    names = split(this.operands[0].strip()[1:-1])
    puts = [this.function.put(name, register, f"x_[{i}]") for i, name in enumerate(names)]
    return f"{in_c} x_[{count}]; memcpy(x_, {where}, {size * count}); " + " ".join(puts)


@instruction("st")
def store(this):
    count, size = vector_length(this), SIZE[this.type]
    where = place(this, this.operands[0], size * count)
    in_c = f"u{8 * size}"
    if count == 1:
        return f"*({in_c} *){where} = ({in_c}){this.raw(1)};"
    values = [f"({in_c}){this.function.raw(name)}" for name in split(this.operands[1].strip()[1:-1])]
    return f"{in_c} x_[{count}] = {{{', '.join(values)}}}; memcpy({where}, x_, {size * count});"


@instruction("cp")
def copy_from_global_to_shared(this):
    """cp.async: done at once. Who reads before it waits is not found."""
    if this.one_of("commit_group", "wait_group", "wait_all"):
        return ""
    if "async" not in this or "bulk" in this or len(this.operands) > 3:
        this.refuse()
    to, source, size = this.operands[0].strip("[] "), this.operands[1].strip("[] "), int(this.operands[2])
    places = []
    for operand, space in ((to, "S"), (source, "G")):
        name, _, plus = operand.partition("+")
        address = f"(u64){this.function.raw(name)} + {int(plus or '0', 0)}"
        places.append(f"{space}(t, {f'(u32)({address})' if space == 'S' else address}, {size})")
    return f"memcpy({places[0]}, {places[1]}, {size});"


@instruction("atom", "red")
def atomic(this):
    """The old value, or nothing (red). One thread runs at a time: no other comes between."""
    if this.type in ("f16", "bf16", "f16x2", "bf16x2"):
        this.refuse()
    what = this.one_of("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
    first = 0 if this.name == "red" else 1
    where, x = place(this, this.operands[first], SIZE[this.type]), this.value(first + 1)
    new = {
        "add": f"old_ + {x}",
        "min": f"old_ < {x} ? old_ : {x}",
        "max": f"old_ > {x} ? old_ : {x}",
        "and": f"old_ & {x}",
        "or": f"old_ | {x}",
        "xor": f"old_ ^ {x}",
        "exch": x,
        "inc": f"old_ >= {x} ? 0 : old_ + 1",
        "dec": f"(old_ == 0 || old_ > {x}) ? {x} : old_ - 1",
    }
    value = f"old_ == {x} ? {this.value(first + 2)} : old_" if what == "cas" else new[what]
    in_c = {"f32": "float", "f64": "double"}.get(this.type) or f"{'s' if this.type[0] == 's' else 'u'}{this.bits}"
    code = f"{in_c} *q_ = ({in_c} *){where}; {in_c} old_ = *q_; *q_ = ({in_c})({value}); "
    return code if this.name == "red" else code + this.put("old_")


@instruction("mov")
def move(this):
    to, source = this.operands
    if to.startswith("{"):
        names = split(to[1:-1])
        bits = this.bits // len(names)
        puts = [this.function.put(name, f"b{bits}", f"x_ >> {i * bits}") for i, name in enumerate(names) if name != "_"]
        return f"u64 x_ = {this.raw(1)}; " + " ".join(puts)
    if source.startswith("{"):
        names = split(source[1:-1])
        bits = this.bits // len(names)
        parts = [f"((u64)(u{bits}){this.function.raw(name)} << {i * bits})" for i, name in enumerate(names)]
        return this.put_bits(" | ".join(parts))
    return this.put(this.value(1), "pred") if this.type == "pred" else this.put_bits(this.unsigned(1))


@instruction("cvta")
def convert_address(this):
    """Between an address of shared or local memory and a generic one."""
    if "to" in this:
        return this.put(this.raw(1) if "global" in this else f"{this.raw(1)} & ~TAG(255)")
    tag = _TAGS.get(this.modifiers[0])
    return this.put(f"{this.raw(1)} | TAG({tag})" if tag else this.raw(1))


@instruction("isspacep")
def is_space(this):
    return this.put(f"({this.raw(1)} >> 56) == {_TAGS.get(this.modifiers[0], 0)}", "pred")
