"""TorchScript archives made by hand, each of which PyTorch and readtorch must answer alike: load, or RuntimeError.

python -m tests.attack.archives_by_hand      loads each in a process of its own with either, prints what came of it as JSON
"""

import io
import json
import struct
import textwrap
import zipfile

CLASS = """\
class N(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
"""
FORWARD = """\
  def forward(self: __torch__.N,
    x: Tensor) -> Tensor:
    return torch.add(x, x)
"""
OBJECT = b"c__torch__\nN\n)\x81}(X\x08\0\0\0training\x88ub"


def archive(code=CLASS + FORWARD, data=b"\x80\x02" + OBJECT + b".", constants=b"\x80\x02).", compress=False, **records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as made:
        parts = {
            "data.pkl": data,
            "constants.pkl": constants,
            "version": b"3\n",
            "byteorder": b"little",
            "code/__torch__.py": code,
        }
        for name, content in {**parts, **records}.items():
            if content is not None:
                made.writestr(f"archive/{name}", content)
    return file.getvalue()


def with_body(body, arguments="x: Tensor", returns="Tensor"):
    """An archive whose forward has this body."""
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return archive(f"{CLASS}  def forward(self: __torch__.N,\n    {arguments}) -> {returns}:\n{body}\n")


def with_expression(expression):
    return with_body(f"_0 = {expression}\nreturn x")


def with_attribute(annotation, value):
    """value: the instructions that push it."""
    data = b"\x80\x02c__torch__\nN\n)\x81}(X\x08\0\0\0training\x88X\x01\0\0\0a" + value + b"ub."
    return archive(f"{CLASS}  a : {annotation}\n{FORWARD}", data)


def with_class_line(line):
    return archive(CLASS + textwrap.indent(line, "  ") + "\n" + FORWARD)


def with_module_line(line, at_end=False):
    return archive(CLASS + FORWARD + line + "\n" if at_end else line + "\n" + CLASS + FORWARD)


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


CANARY = "readtorch_was_here"
RUNS = f"__import__('os').environ.__setitem__('{CANARY}', '1')"

CODE = {  # name -> archive
    "plain": archive(),
    # what runs Python
    "an expression": with_module_line(RUNS),
    "an expression at the end": with_module_line(RUNS, True),
    "import": with_module_line("import os"),
    "import a.b": with_module_line("import os.path"),
    "from import": with_module_line("from os import system"),
    "import *": with_module_line("from os import *"),
    "assignment": with_module_line(f"a = {RUNS}"),
    "annotated assignment": with_module_line("a : int = 3"),
    "version": with_module_line("op_version_set = 1"),
    "version later": with_module_line("op_version_set = 1", True),
    "if": with_module_line(f"if {RUNS}:\n  pass"),
    "for": with_module_line("for i in [1]:\n  pass"),
    "while": with_module_line("while False:\n  pass"),
    "with": with_module_line("with a:\n  pass"),
    "try": with_module_line(f"try:\n  {RUNS}\nexcept:\n  pass"),
    "pass": with_module_line("pass"),
    "del": with_module_line("del a"),
    "assert": with_module_line(f"assert {RUNS}"),
    "raise": with_module_line("raise a"),
    "global": with_module_line("global a"),
    "lambda": with_module_line("f = lambda: 1"),
    "a text": with_module_line("'text'"),
    "async def": with_module_line("async def f():\n  pass"),
    "decorated class": with_module_line(f"@{RUNS}"),
    "a function": with_module_line("def f(x: Tensor) -> Tensor:\n  return x", True),
    "decorated function": with_module_line("@staticmethod\ndef f(x: Tensor) -> Tensor:\n  return x", True),
    "decorated method": archive(CLASS + f"  @{RUNS}\n" + FORWARD),
    "two statements in a line": with_module_line("a = 1; b = 2"),
    "no Python": with_module_line("this is no Python"),
    "no indentation": archive(CLASS + "def" + FORWARD),
    "a null": archive(CLASS + FORWARD + "\0"),
    "not UTF-8": archive((CLASS + FORWARD).encode() + b"# \xff\xfe\n"),
    "empty": archive(""),
    "no code": archive(**{"code/__torch__.py": None}),
    "deep brackets": with_expression("(" * 5000 + "1" + ")" * 5000),
    "brackets 150 deep": with_expression("(" * 150 + "1" + ")" * 150),
    # classes
    "two bases": archive(CLASS.replace("(Module)", "(Module, Module)") + FORWARD),
    "a base that is called": archive(CLASS.replace("(Module)", f"({RUNS})") + FORWARD),
    "another base": archive(CLASS.replace("(Module)", "(object)") + FORWARD),
    "metaclass": archive(CLASS.replace("(Module)", "(metaclass=type)") + FORWARD),
    "no base": archive(
        CLASS.replace("(Module)", "").replace("  __parameters__ = []\n  __buffers__ = []\n", "") + FORWARD
    ),
    "expression in a class": with_class_line(RUNS),
    "assignment in a class": with_class_line(f"a = {RUNS}"),
    "constant in a class": with_class_line("a : Final[int] = 3"),
    "call as a constant": with_class_line(f"a : Final[int] = {RUNS}"),
    "wrong constant": with_class_line("a : Final[int] = 'x'"),
    "constant without Final": with_class_line("a : int = 3"),
    "float constant": with_class_line("a : Final[float] = 3.5"),
    "tuple constant": with_class_line("a : Final[Tuple[int, int]] = (1, 2)"),
    "list constant": with_class_line("a : Final[List[int]] = [1, 2]"),
    "negative constant": with_class_line("a : Final[int] = -3"),
    "constant that overflows": with_class_line("a : Final[int] = 99999999999999999999"),
    "pass in a class": with_class_line("pass"),
    "docstring of a class": with_class_line("'text'"),
    "if in a class": with_class_line("if True:\n  a = 1"),
    "class in a class": with_class_line("class M:\n  pass"),
    "import in a class": with_class_line("import os"),
    "__slots__": with_class_line("__slots__ = []"),
    "__parameters__ of a call": with_class_line(f"__parameters__ = {RUNS}"),
    "__parameters__ of numbers": with_class_line("__parameters__ = [1]"),
    "annotation of a call": with_class_line(f"a : {RUNS}"),
    "annotation of a number": with_class_line("a : 3"),
    "annotation of a text": with_class_line("a : 'int'"),
    "annotation of a text with code": with_class_line(f'a : "{RUNS}"'),
    "unknown annotation": with_class_line("a : os"),
    "annotation of dots": with_class_line("a : os.system"),
    "__annotations__ of a call": with_class_line(f'__annotations__["a"] = {RUNS}'),
    "__annotations__ of a number": with_class_line("__annotations__[0] = int"),
    "an attribute twice": with_class_line("training : bool"),
    "attribute of another object": with_class_line("a.b : int"),
    "two targets": with_class_line("a = b = 1"),
    "hooks that are not there": with_class_line('__forward_hooks__ = ["gone"]'),
    "a method twice": archive(CLASS + FORWARD + FORWARD),
    # functions
    "varargs": with_body("return x", "*x"),
    "kwargs": with_body("return x", "**x"),
    "positional only": with_body("return x", "x: Tensor, /"),
    "keyword only": with_body("return x", "x: Tensor, *, n: int"),
    "default": with_body("return x", "x: Tensor, n: int=3"),
    "default of a call": with_body("return x", f"x: Tensor, n: int={RUNS}"),
    "default of a list": with_body("return x", "x: Tensor, n: List[int]=[1]"),
    "default of a dict": with_body("return x", "x: Tensor, n: Dict[str, int]={'a': 1}"),
    "default None": with_body("return x", "x: Tensor, n: Optional[int]=None"),
    "default that does not fit": with_body("return x", "x: Tensor, n: int='a'"),
    "default of an unknown name": with_body("return x", "x: Tensor, n: int=os"),
    "default of a sum": with_body("return x", "x: Tensor, n: int=1 + 2"),
    "default inf": with_body("return x", "x: Tensor, n: float=inf"),
    "default of a constant": with_body("return x", "x: Tensor, n: Tensor=CONSTANTS.c0"),
    "default of a device": with_body("return x", 'x: Tensor, n: Device=torch.device("cpu")'),
    "no annotations": with_body("return x", "x", "Tensor"),
    "wrong result": with_body("return x", "x: Tensor", "int"),
    "result of a call": with_body("return x", "x: Tensor", RUNS),
    "type comment": with_body("# type: (Tensor) -> Tensor\nreturn x", "x"),
    "type comment of a call": with_body(f"# type: ({RUNS}) -> Tensor\nreturn x", "x"),
    "type comment that is no Python": with_body("# type: (() -> )\nreturn x", "x"),
    "unknown self": archive(CLASS + FORWARD.replace("__torch__.N", "__torch__.M")),
    "no self": archive(CLASS + "  def forward() -> int:\n    return 1\n"),
    "self called s": archive(CLASS + FORWARD.replace("self", "s")),
    "one line": archive(CLASS + "  def forward(self, x: Tensor) -> Tensor: return x\n"),
    "docstring": with_body('"text"\nreturn x'),
    "nested function": with_body("def f(y: Tensor) -> Tensor:\n  return y\nreturn x"),
    "nested class": with_body("class A:\n  pass\nreturn x"),
    "import in a function": with_body("import os\nreturn x"),
    "import from in a function": with_body("from os import system\nreturn x"),
    "try in a function": with_body("try:\n  pass\nexcept:\n  pass\nreturn x"),
    "global in a function": with_body("global a\nreturn x"),
    "nonlocal": with_body("nonlocal x\nreturn x"),
    "del in a function": with_body("y = x\ndel y\nreturn x"),
    "with in a function": with_body("with x:\n  pass\nreturn x"),
    "yield": with_body("yield x"),
    "await": with_body("return await x"),
    "assert in a function": with_body("assert 1 == 1\nreturn x"),
    "raise in a function": with_body("raise x"),
    "raise nothing": with_body("raise"),
    "raise from": with_body("raise x from x"),
    "match": with_body("match x:\n  case 1:\n    pass\nreturn x"),
    "break outside": with_body("break\nreturn x"),
    "return outside": with_module_line("return 1"),
    "return tuple": with_body("return (x, x)", returns="Tuple[Tensor, Tensor]"),
    "no return": with_body("pass"),
    "pass in a function": with_body("pass\nreturn x"),
    "for else": with_body("for i in range(2):\n  pass\nelse:\n  pass\nreturn x"),
    "while else": with_body("while False:\n  pass\nelse:\n  pass\nreturn x"),
    "if in one line": with_body("if True: pass\nreturn x"),
    "for in a function": with_body("for i in range(2):\n  x = torch.add(x, x)\nreturn x"),
    "semicolon": with_body("y = x; return y"),
    "walrus": with_body("return (y := x)"),
    "assign to a call": with_body("f(x) = x\nreturn x"),
    "assign to a number": with_body("1 = x\nreturn x"),
    "two names": with_body("a = b = x\nreturn x"),
    "unpack": with_body("a, b = (x, x)\nreturn a"),
    "starred": with_body("a, *b = [x, x]\nreturn a"),
    "augmented": with_body("n = 1\nn += 1\nreturn x"),
    "augmented //=": with_body("n = 1\nn //= 1\nreturn x"),
    "augmented @=": with_body("x @= x\nreturn x"),
    "annotated": with_body("n : int = 1\nreturn x"),
    "annotated without a value": with_body("n : int\nreturn x"),
    "continued line": with_body("n = 1 + \\\n  2\nreturn x"),
    "line in brackets": with_body("n = (1 +\n  2)\nreturn x"),
    "comment": with_body("# a comment\nreturn x"),
    # expressions
    **{
        f"expression {each}": with_expression(each)
        for each in (
            "1",
            "1.5",
            "-1",
            "1e3",
            "0x1f",
            "0b11",
            "0o17",
            "1_000",
            "1j",
            "01.5",
            ".5",
            "5.",
            "1E5",
            "1e400",
            "9223372036854775807",
            "9223372036854775808",
            "99999999999999999999999",
            "'a'",
            '"a"',
            "'''a'''",
            "r'a'",
            "b'a'",
            "u'a'",
            "f'a'",
            "f'{x}'",
            r"'\n'",
            r"'\x41'",
            r"'\u0041'",
            r"'\101'",
            r"'\777'",
            r"'\d'",
            r"'\r'",
            r"'\0'",
            "'a' 'b'",
            "'ä'",
            "True",
            "None",
            "...",
            "Ellipsis",
            "NotImplemented",
            "__debug__",
            "__name__",
            "__builtins__",
            "[1, 2]",
            "[]",
            "()",
            "(1,)",
            "(1, 2)",
            "{}",
            "{'a': 1}",
            "{1, 2}",
            "{**{}}",
            "[*[1]]",
            "[i for i in [1, 2]]",
            "[i for i in [1] if i]",
            "[i for i in [1] for j in [1]]",
            "{i: i for i in [1]}",
            "{i for i in [1]}",
            "(i for i in [1])",
            "lambda: 1",
            "x if True else x",
            "not True",
            "~1",
            "+1",
            "1 if x else 2",
            "1 < 2",
            "1 < 2 < 3",
            "1 == 1 == True",
            "1 in [1]",
            "1 not in [1]",
            "1 is None",
            "x is not None",
            "True and False or True",
            "1 // 2",
            "x @ x",
            "2 ** 3",
            "1 << 2",
            "1 & 3",
            "1 | 2",
            "1 ^ 3",
            "1 if 1 else",
            "x[0]",
            "x[0:1]",
            "x[...]",
            "x[None]",
            "x[::2]",
            "x[1:2, 0]",
            "[1, 2][0]",
            "f(x)",
            "print(1)",
            "open('/etc/passwd')",
            "eval('1')",
            "exec('1')",
            "compile('1', '', 'eval')",
            "__import__('os')",
            "globals()",
            "getattr(x, 'shape')",
            "setattr(self, 'training', False)",
            "type(x)",
            "vars(self)",
            "dir(x)",
            "input()",
            "breakpoint()",
            "id(x)",
            "hash('a')",
            "len([1])",
            "str(1)",
            "int('1')",
            "isinstance(x, Tensor)",
            "range(2)",
            "list([1])",
            "dict()",
            "max(1, 2)",
            "abs(-1)",
            "sorted([1])",
            "map(x, x)",
            "os.system('true')",
            "os",
            "torch.os",
            "torch.os.system('true')",
            "torch.load('x')",
            "torch.ops",
            "torch.add(x, x)",
            "torch.add(x, *[x])",
            "torch.add(*[x, x])",
            "torch.add(**{})",
            "torch.add(x, x, alpha=2)",
            "torch.add(x, x, alpha=2, alpha=3)",
            "ops.prim.min([1, 2])",
            "ops.aten.add(x, x)",
            "ops.os.system('true')",
            "ops.prim.PythonOp(x)",
            "ops",
            "ops.prim.RaiseException('a')",
            "ops.prim.CallFunction(x)",
            "ops.profiler._record_function_enter('a')",
            "ops.aten.warn('a')",
            "torch.save(x, 'f')",
            "torch.__class__",
            "x.__class__",
            "x.__dict__",
            "x.__class__.__base__",
            "x.__reduce__()",
            "x.__init__()",
            "x.data",
            "x.grad_fn",
            "x.__array_interface__",
            "x.storage()",
            "x.numpy()",
            "x.apply_(x)",
            "x._backward_hooks",
            "x.item()",
            "x.shape",
            "x.device",
            "x.names",
            "self",
            "self.training",
            "self.gone",
            "self.__class__",
            "self.forward(x)",
            "(self).forward(x, )",
            "self.__init__()",
            "self.__dict__",
            "__torch__",
            "__torch__.N",
            "__torch__.N.__new__(__torch__.N)",
            "__torch__.os",
            "__torch__.os.system('a')",
            "__torch__.N.__class__",
            "__torch__.N.__subclasses__()",
            "__torch__.N.forward",
            "CONSTANTS",
            "CONSTANTS.c0",
            "CONSTANTS.c",
            "CONSTANTS.__class__",
            "CONSTANTS.c-1",
            "CONSTANTS.c99999999999999999999",
            "fork",
            "fork(self.forward, x)",
            "annotate(int, 1)",
            "annotate(os, 1)",
            "annotate(int, 'a')",
            "annotate",
            "unchecked_cast(Tensor, x)",
            "unchecked_cast(int, x)",
            "uninitialized(Tensor)",
            "uninitialized(os)",
            "uninitialized",
            "inf",
            "nan",
            "infj",
            "'a'.__class__",
            "'{0.__class__}'.format(x)",
            "'{0.__class__.__init__.__globals__}'.format(x)",
            "'{}'.format(1)",
            "'{} {}'.format(1)",
            "'{0}'.format(1)",
            "'{a}'.format(a=1)",
            "'{0!r}'.format(1)",
            "'{:>10}'.format(1)",
            "'%s' % 1",
            "'a'.join(['b'])",
            "'a'.upper()",
            "'a'.format_map({})",
            "'a'.encode()",
            "[1].__class__",
            "[1].append(2)",
            "[1].sort()",
            "{'a': 1}['a']",
            "{'a': 1}.keys()",
            "(1).__class__",
            "1 .real",
            "x.real",
            "x.T",
            "1()",
            "'a'()",
            "x()",
            "x(1)(2)",
            "None.a",
            "None()",
            "'a' * 1000000000",
            "[0] * 1000",
            "10 ** 10 ** 10",
            "x; x",
        )
    },
    # strange results, of which nothing may come
    **{
        f"{kind} brackets": with_expression(each)
        for kind, each in {
            "a chain of attributes": "x" + ".T" * 300,
            "a long sum": " + ".join(["1"] * 300),
            "a chain of minus": "-" * 300 + "1",
            "a chain of not": "not " * 300 + "True",
        }.items()
    },
}


def doubled(start, join, times=60):
    return start + b"q\x00" + join * times


PICKLES = {
    "plain": archive(),
    # BUILD on what lives
    "pollute_class": archive(data=b"\x80\x02ctorch\ndevice\nN}X\x06\0\0\0__eq__Ns\x86b" + OBJECT + b"."),
    "pollute_function": archive(
        data=b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}X\x0c\0\0\0__defaults__X\x04\0\0\0gone\x85s\x86b"
        + OBJECT
        + b"."
    ),
    "pollute_ordered_dict": archive(data=b"\x80\x02ccollections\nOrderedDict\n)R}X\x05\0\0\0itemsNsb" + OBJECT + b"."),
    "array_during_load": with_attribute(
        "Tensor", b"ctorch\ndevice\nq\x63N}(X\x13\0\0\0__array_interface__}X\x07\0\0\0untypedh\x63u\x86b"
    ),
    "a state for a list": with_attribute("List[int]", b"]N}X\x01\0\0\0aNs\x86b"),
    "a state for a tensor's class": with_attribute("Any", b"ctorch\nFloatStorage\nN}X\x06\0\0\0_dtypeNs\x86b"),
    "a class as a value": with_attribute("Any", b"ctorch\ndevice\n"),
    "a storage class as a value": with_attribute("Any", b"ctorch\nFloatStorage\n"),
    "a class of the archive as a value": with_attribute("Any", b"c__torch__\nN\n"),
    # names
    **{
        f"calls {module}.{name}": archive(
            data=b"\x80\x02c" + f"{module}\n{name}\n".encode() + text("true") + b"\x85R" + OBJECT + b"."
        )
        for module, name in (
            ("os", "system"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("torch", "load"),
            ("torch", "Tensor"),
            ("torch.jit._pickle", "os"),
            ("torch._utils", "_import_dotted_name"),
            ("collections", "Counter"),
            ("__torch__", "os"),
            ("__torch__.os", "system"),
            ("__main__", "os"),
            ("__builtin__", "complex"),
            ("torch.storage", "UntypedStorage"),
            ("torch", "osStorage"),
            ("readtorch", "load"),
            ("copyreg", "_reconstructor"),
            ("torch.distributed.rpc", "rref"),
            ("functools", "partial"),
        )
    },
    "INST": archive(data=b"\x80\x02(X\x04\0\0\0trueios\nsystem\n" + OBJECT + b"."),
    "OBJ": archive(data=b"\x80\x02(cos\nsystem\nX\x04\0\0\0trueo" + OBJECT + b"."),
    "STACK_GLOBAL": archive(data=b"\x80\x02\x8c\x02os\x8c\x06system\x93" + OBJECT + b"."),
    "EXT1": archive(data=b"\x80\x02\x82\x01" + OBJECT + b"."),
    "a persistent id that is a list": archive(data=b"\x80\x02]Q" + OBJECT + b"."),
    "a persistent id of another kind": archive(data=b"\x80\x02X\x01\0\0\0a\x85Q."),
    # keys
    "deep_tuple_key": with_attribute("Dict[str, int]", b"})" + b"\x85" * 100_000 + b"Ns"),
    "hash_2_to_60": with_attribute("Any", doubled(b")", b"h\x00h\x00\x86q\x00") + b"}h\x00Ns"),
    "a tuple as a key": with_attribute("Any", b"}K\x01\x85Ns"),
    "a list as a key": with_attribute("Any", b"}]Ns"),
    "None as a key": with_attribute("Any", b"}NNs"),
    "an int as a key": with_attribute(
        "Dict[int, int]", b"ctorch.jit._pickle\nrestore_type_tag\n}K\x01K\x02s" + text("Dict[int, int]") + b"\x86R"
    ),
    "complex keys that collide": with_attribute(
        "Any",
        b"}("
        + b"cbuiltins\ncomplex\nq\x00"
        + b"0".join([b""])
        + b"".join(
            b"h\x00G" + struct.pack(">d", 2.0 ** -(i % 500)) + b"G" + struct.pack(">d", float(i)) + b"\x86RN"
            for i in range(2)
        )
        + b"u",
    ),
    # memory and depth
    "long_binput": archive(data=b"\x80\x02Nr\xff\xff\xff\x0b\x85" + OBJECT + b"."),
    "a text of 4 GB": archive(data=b"\x80\x02X\xff\xff\xff\xff."),
    "deep tuples": with_attribute("Any", b")" + b"\x85" * 100_000),
    "deep lists": with_attribute("Any", b"]" * 1000 + b"a" * 999),
    "lists that double": with_attribute("List[" * 61 + "int" + "]" * 61, b"]q\x00" + b"](h\x00h\x00eq\x00" * 60),
    "a list in itself": with_attribute("Any", b"]q\x00h\x00a"),
    "a million marks": archive(data=b"\x80\x02" + b"(" * 1_000_000 + b"."),
    "a deep type": with_attribute(
        "List[int]",
        b"ctorch.jit._pickle\nrestore_type_tag\n]" + text("List[" * 10_000 + "int" + "]" * 10_000) + b"\x86R",
    ),
    "60 MB of lists": lambda: archive(data=b"\x80\x02(" + b"]" * 60_000_000 + b"t.", compress=True),
    "60 MB of code": lambda: archive("#" * 60_000_000, compress=True),
    # damaged
    "empty": archive(data=b""),
    "only STOP": archive(data=b"\x80\x02."),
    "breaks off": archive(data=b"\x80\x02" + OBJECT),
    "protocol 4": archive(data=b"\x80\x04" + OBJECT + b"."),
    "no protocol": archive(data=OBJECT + b"."),
    "two values": archive(data=b"\x80\x02N" + OBJECT + b"."),
    "a number": archive(data=b"\x80\x02K\x01."),
    "None": archive(data=b"\x80\x02N."),
    "constants no tuple": archive(constants=b"\x80\x02N."),
    "constants missing": archive(**{"constants.pkl": None}),
    "data missing": archive(**{"data.pkl": None}),
    "an attribute missing": archive(data=b"\x80\x02c__torch__\nN\n)\x81}b."),
    "an attribute too many": archive(data=b"\x80\x02c__torch__\nN\n)\x81}(X\x08\0\0\0training\x88X\x01\0\0\0aNub."),
    "no state": archive(data=b"\x80\x02c__torch__\nN\n)\x81."),
    "a list as the state": archive(data=b"\x80\x02c__torch__\nN\n)\x81]b."),
    "an int for a bool": archive(data=b"\x80\x02c__torch__\nN\n)\x81}(X\x08\0\0\0trainingK\x01ub."),
    "a text for a bool": archive(data=b"\x80\x02c__torch__\nN\n)\x81}(X\x08\0\0\0trainingX\x01\0\0\0aub."),
    "LONG1 of 9 bytes": with_attribute("int", b"\x8a\x09" + bytes(9)),
    "LONG1": with_attribute("int", b"\x8a\x08" + bytes(8)),
    "a class that is not there": archive(data=b"\x80\x02c__torch__\nM\n)\x81}b."),
    "an unknown type tag": with_attribute("List[int]", b"ctorch.jit._pickle\nrestore_type_tag\n]X\x02\0\0\0os\x86R"),
    "a type tag that is no Python": with_attribute(
        "List[int]", b"ctorch.jit._pickle\nrestore_type_tag\n]X\x02\0\0\0((\x86R"
    ),
    "a type tag of code": with_attribute(
        "List[int]", b"ctorch.jit._pickle\nrestore_type_tag\n]" + text(RUNS) + b"\x86R"
    ),
    "a type tag for a number": with_attribute(
        "int", b"ctorch.jit._pickle\nrestore_type_tag\nK\x01" + text("List[int]") + b"\x86R"
    ),
    "a list of a number": with_attribute("List[int]", b"ctorch.jit._pickle\nbuild_intlist\nK\x01\x85R"),
    "a device that is none": with_attribute("Device", b"ctorch\ndevice\nX\x01\0\0\0a\x85R"),
    "complex of texts": with_attribute("complex", b"cbuiltins\ncomplex\nX\x01\0\0\0aX\x01\0\0\0b\x86R"),
}
SUBJECTS = {"code": CODE, "pickle": PICKLES}
DEADLY = {
    "code: hooks that are not there",
    "code: expression ops.prim.PythonOp(x)",
    "pickle: a deep type",
    "pickle: deep_tuple_key",
    "pickle: 60 MB of lists",
    "pickle: long_binput",
    "pickle: a text of 4 GB",
}  # PyTorch dies of them, or takes gigabytes
DIFFERENT = {  # where the two do not agree, and why
    "code: not UTF-8": "PyTorch's lexer skips any bytes in comments",
    **dict.fromkeys(
        [
            "code: deep brackets",
            "code: a long sum brackets",
            "pickle: deep tuples",
            "pickle: deep lists",
            "pickle: a list in itself",
        ],
        "bounds of depth, here only",
    ),
    **dict.fromkeys(
        [
            "code: default of a sum",
            "code: expression 0x1f",
            "code: expression [i for i in [1] for j in [1]]",
            "code: expression (i for i in [1])",
            "code: expression 1 < 2 < 3",
            "code: expression 1 == 1 == True",
        ],
        "no archive that was saved has it, and PyTorch reads it otherwise than Python",
    ),
    "code: expression x[...]": "PyTorch's compiler cannot; ours can, in scripts as well",
    **dict.fromkeys(
        ["code: expression ops.profiler._record_function_enter('a')", "code: expression torch.save(x, 'f')"],
        "an operator that is not here",
    ),
    "code: a chain of minus brackets": "PyTorch folds them into the number, and then cannot read it",
    "pickle: an attribute missing": "RuntimeError here, IndexError in PyTorch",
    **dict.fromkeys(["pickle: an int for a bool", "pickle: a text for a bool"], "PyTorch looks at no types"),
}


def loaded(library, data):
    """ "loaded", or the error; and whether anything ran or was changed."""
    import os

    jit = __import__(f"{library}.jit").jit
    try:
        module = jit.load(io.BytesIO(data))
        attribute = getattr(module, "a", None)
        for name in (
            ("isnan", "isfinite", "isinf", "logical_not", "logical_not_", "_conj") if library == "readtorch" else ()
        ):
            getattr(attribute, name, int)()  # they would read and write where a false tensor says that its memory is
        outcome = "loaded"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
        outcome = outcome if len(outcome) < 1500 else f"{outcome[:700]} … {outcome[-700:]}"
    if CANARY in os.environ:
        outcome = "CODE RAN"
    if library == "readtorch":
        outcome = polluted() or outcome
    return outcome


def polluted():
    """What an archive has changed in this process."""
    import readtorch
    from readtorch._utils import _rebuild_tensor_v2

    device = readtorch.device
    if device("cpu") == device("meta") or "__array_interface__" in vars(device) or "untyped" in vars(device):
        return "A CLASS WAS CHANGED"
    return "A FUNCTION WAS CHANGED" if _rebuild_tensor_v2.__defaults__ != (None,) else None


def outcomes(cases, library):
    """name -> [outcome, events that the watch saw, peak in bytes], or what `limits.alone` says of a death."""
    import warnings

    from tests.attack import limits
    from tests.attack.watching import harmless

    warnings.simplefilter("ignore")
    watch = limits.Watch(harmless)
    loaded(library, archive())

    def run(names):
        answers = {}
        for name in names:
            data = cases[name]() if callable(cases[name]) else cases[name]
            watch.events.clear()
            limits.forget_peak()
            before = limits.peak()
            watch.on = library == "readtorch"
            outcome = loaded(library, data)
            watch.on = False
            answers[name] = [outcome, list(watch.events), limits.peak() - before]
        return answers

    found = {}
    for names in batched(sorted(cases), 30):  # a process is made for many; only if it dies for each
        together = limits.alone(lambda names=names: run(names), seconds=30, memory=2 * limits.GIGABYTE)
        if "result" in together:
            found.update(together["result"])
            continue
        for name in names:
            answer = limits.alone(lambda name=name: run([name]), memory=2 * limits.GIGABYTE)
            found[name] = answer["result"][name] if "result" in answer else [str(answer), [], 0]
    return found


def batched(items, count):
    return [items[i : i + count] for i in range(0, len(items), count)]


def all_cases():
    return {f"{subject}: {name}": data for subject, files in SUBJECTS.items() for name, data in files.items()}


def main():
    cases = all_cases()
    theirs = outcomes({name: data for name, data in cases.items() if name not in DEADLY}, "torch")
    print(json.dumps({"torch": theirs, "readtorch": outcomes(cases, "readtorch")}))


if __name__ == "__main__":
    main()
