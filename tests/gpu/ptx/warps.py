"""Where threads meet: barriers, shuffles, votes, products of matrices."""

from .instructions import instruction

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
