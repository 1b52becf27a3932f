"""Primitives of lists and dicts. The values are Python's own lists and dicts.

In PyTorch: the list and dict operators of `torch/csrc/jit/runtime/register_prim_ops.cpp`.
"""
from ....c10.tensor_impl import TensorImpl
from .operator import prim

KEYS = ("str", "int", "bool", "float", "complex", "Tensor")  # what may be a dict's key


# --------------------------------------------------------------------------------------------------------------- lists

@prim("aten::__getitem__.t(t[](a) list, int idx) -> t(*)")
def getitem(list, idx):
    return list[idx]


@prim("aten::select.t(t[](a) list, int idx) -> t(*)")
def select(list, idx):
    return list[idx]


@prim("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)")
def set_item(l, idx, el):
    try:
        l[idx] = el
    except IndexError:
        raise IndexError("list index out of range") from None
    return l


@prim("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)")
def append(self, el):
    self.append(el)
    return self


@prim("aten::extend.t(t[](a!) self, t[] other) -> ()")
def extend(self, other):
    self.extend(other)


@prim("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()")
def insert(self, idx, el):
    self.insert(idx, el)


@prim("aten::clear.t(t[](a!) self) -> ()")
def clear(self):
    self.clear()


@prim("aten::Delete.t(t[](a!) self, int idx) -> ()")
def delete(self, idx):
    if not -len(self) <= idx < len(self):
        raise IndexError("list index out of range")
    del self[idx]


@prim("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)")
def pop(self, idx):
    if not self:
        raise IndexError("pop from empty list")
    if not -len(self) <= idx < len(self):
        raise IndexError("list index out of range")
    return self.pop(idx)


@prim("aten::reverse.t(t[](a!) self) -> ()")
def reverse(self):
    self.reverse()


@prim("aten::copy.t(t[](a) self) -> t[]")
def copy(self):
    return list(self)


@prim("aten::list.t(t[] l) -> t[]")
def list_of_list(l):
    return list(l)


@prim("aten::len.t(t[] a) -> int")
def length(a):
    return len(a)


@prim("aten::add.t(t[] a, t[] b) -> t[]")
def concatenate(a, b):
    return a + b


@prim("aten::add_.t(t[](a!) self, t[] b) -> t[]")
def extend_and_return(self, b):
    self.extend(b)
    return self


@prim("aten::mul.left_t(t[] l, int n) -> t[]")
def repeat(l, n):
    return l * n


@prim("aten::mul.right_(int n, t[] l) -> t[]")
def repeat_from_left(n, l):
    return l * n


@prim("aten::mul_.t(t[](a!) l, int n) -> t[](a!)")
def repeat_in_place(l, n):
    l *= n
    return l


@prim("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]")
def slice_list(l, start, end, step):
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return l[start:end:step]


def _position(list, el):
    for i, value in enumerate(list):
        if equal(value, el):
            return i
    return None


def equal(a, b):
    """Whether two elements are: tensors if all their elements are."""
    if isinstance(a, TensorImpl):
        return bool((a == b).all().item())
    return a == b


def _index(self, el):
    position = _position(self, el)
    if position is None:
        raise ValueError(f"'{el}' is not in list")
    return position


def _remove(self, el):
    position = _position(self, el)
    if position is None:
        raise ValueError("list.remove(x): x not in list")
    del self[position]


def _count(self, el):
    return sum(equal(value, el) for value in self)


def _contains(l, item):
    return _position(l, item) is not None


def _lists_equal(a, b):
    return len(a) == len(b) and all(map(equal, a, b))


def _lists_differ(a, b):
    return not _lists_equal(a, b)


def _sort(self, reverse):
    self.sort(key=_sort_key, reverse=reverse)


def _sorted(input):
    return sorted(input, key=_sort_key)


def _sort_key(value):
    if hasattr(value, "script_sort_key"):  # objects of a class that defines __lt__
        return value.script_sort_key()
    return value.item() if isinstance(value, TensorImpl) else value


for _element in ("int", "float", "bool", "str", "Tensor"):
    prim(f"aten::index.list_{_element}({_element}[] self, {_element} el) -> int")(_index)
    prim(f"aten::remove.{_element}({_element}[](a!) self, {_element} el) -> ()")(_remove)
    prim(f"aten::count.{_element}({_element}[] self, {_element} el) -> int")(_count)
    prim(f"aten::__contains__.{_element}_list({_element}[] l, {_element} item) -> bool")(_contains)
    prim(f"aten::eq.{_element}_list({_element}[] a, {_element}[] b) -> bool")(_lists_equal)
    prim(f"aten::ne.{_element}_list({_element}[] a, {_element}[] b) -> bool")(_lists_differ)
    prim(f"aten::sort.{_element}({_element}[](a!) self, bool reverse=False) -> ()")(_sort)
    prim(f"aten::sorted.{_element}({_element}[](a) input) -> {_element}[]")(_sorted)
prim("aten::sort.any(t[](a!) self, bool reverse=False) -> ()")(_sort)
prim("aten::sorted.any(t[](a) self) -> t[]")(_sorted)


def _least(l):
    if not l:
        raise ValueError("Expected more than 0 elements")
    return min(l)


def _greatest(l):
    if not l:
        raise ValueError("Expected more than 0 elements")
    return max(l)


def _any(self):
    return any(self)


def _all(self):
    return all(self)


def _sum(self):
    return sum(self)


for _element, _total in (("int", "int"), ("float", "float"), ("bool", "int")):
    prim(f"prim::min.{_element}_list({_element}[] l, {_element}[] r) -> {_element}[]")(min)
    prim(f"prim::max.{_element}_list({_element}[] l, {_element}[] r) -> {_element}[]")(max)
    prim(f"prim::min.self_{_element}({_element}[] self) -> {_element}")(_least)
    prim(f"prim::max.self_{_element}({_element}[] self) -> {_element}")(_greatest)
    prim(f"aten::any.{_element}({_element}[] self) -> bool")(_any)
    prim(f"aten::all.{_element}({_element}[] self) -> bool")(_all)
    prim(f"aten::sum.{_element}({_element}[] self) -> {_total}")(_sum)
prim("aten::sum.complex(complex[] self) -> complex")(_sum)
prim("aten::any.str(str[] self) -> bool")(_any)


@prim("aten::list_with_default(int[] list, int[] defaults) -> int[]")
def list_with_default(list, defaults):
    return [default if size is None else size for size, default in zip(list, defaults[-len(list):])]


@prim("prim::rangelist(int n) -> int[]")
def rangelist(n):
    return list(range(n))


# --------------------------------------------------------------------------------------------------------------- dicts
# A tensor as a key is itself, not its elements: Python hashes tensors by identity, PyTorch's dict does so too.

def _missing(key):
    return RuntimeError(f"KeyError: {key}")


def _dict_getitem(self, key):
    if key not in self:
        raise _missing(key)
    return self[key]


def _dict_set(l, idx, v):
    l[idx] = v


def _dict_delete(self, key):
    if key not in self:
        raise _missing(key)
    del self[key]


def _dict_pop(self, key):
    if key not in self:
        raise _missing(key)
    return self.pop(key)


def _dict_of_pairs(inputs):
    return dict(inputs)


for _key in KEYS:
    _dict = f"Dict({_key}, t)"
    prim(f"aten::len.Dict_{_key}({_dict} self) -> int")(length)
    prim(f"aten::keys.{_key}({_dict} self) -> {_key}[](*)")(lambda self: list(self))
    prim(f"aten::values.{_key}({_dict} self) -> t[](*)")(lambda self: list(self.values()))
    prim(f"aten::items.{_key}({_dict} self) -> (({_key}, t)[])")(lambda self: list(self.items()))
    prim(f"aten::__getitem__.Dict_{_key}({_dict} self, {_key} key) -> t(*)")(_dict_getitem)
    prim(f"aten::get.{_key}({_dict} self, {_key} key) -> t(*)?")(lambda self, key: self.get(key))
    prim(f"aten::get.default_{_key}({_dict} self, {_key} key, t default_value) -> t(*)")(
        lambda self, key, default: self.get(key, default))
    prim(f"aten::setdefault.{_key}({_dict}(a!) self, {_key}(b -> *) key, t(c -> *) default_value) -> t(*)")(
        lambda self, key, default: self.setdefault(key, default))
    prim(f"aten::Delete.Dict_{_key}({_dict}(a!) self, {_key} key) -> ()")(_dict_delete)
    prim(f"aten::pop.Dict_{_key}({_dict}(a!) self, {_key} key) -> t(*)")(_dict_pop)
    prim(f"aten::pop.Dict_default_{_key}({_dict}(a!) self, {_key} key, t default_value) -> t(*)")(
        lambda self, key, default: self.pop(key, default))
    prim(f"aten::popitem.{_key}({_dict}(a!) self) -> (({_key}, t))")(lambda self: self.popitem())
    prim(f"aten::clear.{_key}({_dict}(a!) self) -> ()")(clear)
    prim(f"aten::update.{_key}({_dict}(a!) self, {_dict}(a!) to_add) -> ()")(lambda self, to_add: self.update(to_add))
    prim(f"aten::copy.Dict_{_key}({_dict}(a) self) -> {_dict}")(lambda self: dict(self))
    prim(f"aten::__contains__.{_key}({_dict} dict, {_key} key) -> bool")(lambda dict, key: key in dict)
    prim(f"aten::_set_item.{_key}({_dict}(a!) l, {_key}(b -> *) idx, t(c -> *) v) -> ()")(_dict_set)
    prim(f"aten::dict.{_key}(({_key}, tVal)[] inputs) -> Dict({_key}, tVal)")(_dict_of_pairs)
    prim(f"aten::dict.Dict_{_key}({_dict}(a) self) -> {_dict}")(lambda self: dict(self))
prim("aten::dict() -> Dict(str, Tensor)")(dict)
prim("aten::len.any(Any[] a) -> int")(length)
