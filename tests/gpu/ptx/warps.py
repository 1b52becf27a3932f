"""Where threads meet: barriers, shuffles, votes, products of matrices."""

from .instructions import instruction, split

_MODES = {"up": "SHUFFLE_UP", "down": "SHUFFLE_DOWN", "bfly": "SHUFFLE_XOR", "idx": "SHUFFLE_INDEX"}
_VOTES = {"ballot": "VOTE_BALLOT", "any": "VOTE_ANY", "all": "VOTE_ALL", "uni": "VOTE_UNIFORM"}


def vote(this, mode, value, mask):
    return f"t->services->vote(t, {mode}, {value}, (u32){mask}, {this.function.meeting()})"


@instruction("bar", "barrier")
def barrier(this):
    if "warp" in this:
        return vote(this, "VOTE_SYNC_ONLY", "0", this.raw(0)) + ";"
    if "sync" not in this:
        this.refuse()
    this.function.meeting()
    count = f"(u32){this.raw(1)}" if len(this.operands) > 1 else "0"
    return f"t->services->barrier(t, (u32){this.raw(0)}, {count});"


@instruction("shfl")
def shuffle(this):
    first, _, inside = this.operands[0].partition("|")
    arguments = ", ".join(f"(u32){this.raw(i)}" for i in (1, 2, 3, 4))
    call = f"t->services->shuffle(t, {_MODES[this.modifiers[1]]}, {arguments}, &inside_, {this.function.meeting()})"
    code = this.function.put(first, "b32", call)
    return code + (f" {this.function.register(inside)} = inside_;" if inside else "")


@instruction("vote")
def votes(this):
    mode = this.modifiers[1]
    return this.put(vote(this, _VOTES[mode], this.value(1, "pred"), this.raw(2)), "b32" if mode == "ballot" else "pred")


@instruction("match")
def match(this):
    if "any" not in this or this.bits != 32:
        this.refuse()
    return this.put(vote(this, "VOTE_MATCH", f"(u32){this.raw(1)}", this.raw(2)), "b32")


@instruction("activemask")
def active_mask(this):
    """Threads run by turns: only this one is active."""
    return this.put("1u << (t->linear & 31)", "b32")


_PRODUCTS = {("m16n8k8", "tf32"): "MMA_TF32", ("m16n8k16", "bf16"): "MMA_BF16", ("m16n8k16", "f16"): "MMA_F16"}


def words(this, *operands):
    """`{%r1, %r2}` and more of the kind, as an array of C."""
    names = [name for i in operands for name in split(this.operands[i].strip()[1:-1])]
    return f"{{{', '.join(f'(u32){this.function.raw(name)}' for name in names)}}}"


def put_words(this):
    names = split(this.operands[0].strip()[1:-1])
    return " ".join(this.function.put(name, "b32", f"d_[{i}]") for i, name in enumerate(names))


@instruction("mma")
def matrix_product(this):
    shape, kinds = this.one_of("m16n8k8", "m16n8k16"), this.modifiers[-4:]
    if kinds[0] != "f32" or kinds[3] != "f32" or kinds[1] != kinds[2] or (shape, kinds[1]) not in _PRODUCTS:
        this.refuse()
    arguments = f"{_PRODUCTS[shape, kinds[1]]}, o_, c_, d_, {this.function.meeting()}"
    return f"u32 o_[] = {words(this, 1, 2)}, c_[] = {words(this, 3)}, d_[4]; mma(t, {arguments}); " + put_words(this)


@instruction("ldmatrix")
def load_matrices(this):
    if "m8n8" not in this or "b16" not in this:
        this.refuse()
    count = int(this.one_of("x1", "x2", "x4")[1:])
    name, _, plus = this.operands[1].strip("[] ").partition("+")
    address = f"(u32)({this.function.raw(name)} + {int(plus or '0', 0)})"
    site = this.function.meeting()
    return f"u32 d_[4]; ldmatrix(t, {address}, {count}, {int('trans' in this)}, d_, {site}); " + put_words(this)
