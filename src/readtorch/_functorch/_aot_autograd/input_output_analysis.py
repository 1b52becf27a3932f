"""Arguments that are one tensor, or share memory. In PyTorch: `torch/_functorch/_aot_autograd/input_output_analysis.py`, and
`AOTDedupeWrapper` of `runtime_wrappers.py`.
"""

from readtorch._tensor import Tensor

from .functional_utils import storage_of


def repeated(args):
    """The places of arguments that stand further in front, too."""
    seen, places = set(), []
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            if id(a) in seen:
                places.append(i)
            seen.add(id(a))
    return places


def is_written(info):
    return info.mutates_data or info.mutates_metadata


def leafified(args, places):
    """Arguments of which each is a tensor of its own: what is not written to need not be known to be the same."""
    args = list(args)
    for i in places:
        args[i] = args[i].detach().requires_grad_(args[i].requires_grad)
    return args


class AOTDedupeWrapper:
    """For a function that writes to an argument which it gets twice: a function that gets it once. args: the arguments of the first call."""

    def __init__(self, args):
        dropped = set(repeated(args))
        self.kept = [i for i in range(len(args)) if i not in dropped]
        first = {id(args[i]): place for place, i in enumerate(self.kept)}
        self.place_of = [
            first[id(a)] if isinstance(a, Tensor) else self.kept.index(i) for i, a in enumerate(args)
        ]  # among those that are kept

    def remove_dupe_args(self, args):
        return [args[i] for i in self.kept]

    def wrap(self, fn):
        return lambda *args: fn(*[args[place] for place in self.place_of])


def refuse_writes_to_shared_memory(args, input_info):
    """A graph cannot express that a write to one input changes another one. (PyTorch makes both views of one synthetic base.)"""
    owners = {}
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            owners.setdefault(storage_of(a), []).append(i)
    for places in owners.values():
        written = [i for i in places if is_written(input_info[i])]
        if written and len({id(args[i]) for i in places}) > 1:
            other = next(i for i in places if args[i] is not args[written[0]])
            raise NotImplementedError(
                f"this function writes to its input {written[0]}, whose memory input {other} shares: readtorch's AOTAutograd does not "
                "compile such calls. Call it with a clone() of one of them"
            )
