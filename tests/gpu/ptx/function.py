"""One PTX function: its parameters, registers and statements."""

import re

from .instructions import translated
from .module import SIZE, Kernel, Unsupported, aligned, alignment_in, identifier

_SPECIAL = {
    "%laneid": "(t->linear & 31)",
    "%warpid": "(t->linear >> 5)",
    "%lanemask_lt": "((1u << (t->linear & 31)) - 1)",
    "%lanemask_le": "((2u << (t->linear & 31)) - 1)",
    "%lanemask_eq": "(1u << (t->linear & 31))",
    "%lanemask_ge": "(~0u << (t->linear & 31))",
    "%lanemask_gt": "(~1u << (t->linear & 31))",
    **dict.fromkeys(("%clock", "%clock64", "%globaltimer", "%smid", "%nsmid"), "0u"),
}
_UNREAD = r"\.(maxntid|minnctapersm|reqntid|maxnreg|pragma|loc|file|noreturn|shared|local|reg|param)\b[^;\n]*;?"


class Function:
    def __init__(self, module, name, parameters, result, is_entry):
        self.module, self.name, self.is_entry = module, name, is_entry
        self.kernel = Kernel(name)
        self.parameters = {}  # name -> offset
        self.bits = {}  # register -> its width; 1 for a predicate
        self.locals = {}  # variable -> its name in C
        self.call_space = {}  # parameters of calls that the function makes -> bytes
        self.meetings = 0
        self.result = re.search(r"([\w$]+)\s*(\[\d+\])?\s*$", result)[1] if result.strip() else None
        self.read_parameters(parameters)

    # ----------------------------------------------------------------------------------------- declarations

    def read_parameters(self, text):
        at = 0
        for parameter in filter(None, map(str.strip, text.split(","))):
            found = re.search(r"\.([bsuf]\d+)\s+([\w$]+)\s*(\[(\d+)\])?$", parameter)
            if not found:
                raise Unsupported(f"parameter {parameter}")
            size = SIZE[found[1]] * int(found[4] or 1)
            at = aligned(at, alignment_in(parameter, SIZE[found[1]]))
            self.parameters[found[2]] = at
            self.kernel.sizes.append(size)
            at += size

    def read_registers(self, body):
        for kind, names in re.findall(r"\.reg\s+\.(\w+)\s+([^;]+);", body):
            bits = 1 if kind == "pred" else 8 * SIZE[kind]
            for name in map(str.strip, names.split(",")):
                if many := re.match(r"(%?[\w$]+)<(\d+)>$", name):
                    self.bits |= {f"{many[1]}{i}": bits for i in range(int(many[2]))}
                else:
                    self.bits[name] = bits

    def read_variables(self, body):
        """Local and shared variables, and the parameters of calls. Returns C's declarations."""
        for text in re.findall(r"\.shared\s+[^;]+;", body):
            self.module.add_variable(text.rstrip(";"))
        for kind, name, count in re.findall(r"\.local\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+([\w$]+)\s*\[(\d+)\]\s*;", body):
            self.locals[name] = f"L_{identifier(name)}", SIZE[kind] * int(count)
        form = r"(?<!\w)\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(\w+)\s*(?:\[(\d+)\])?\s*;"
        for kind, name, count in re.findall(form, body):
            self.call_space[name] = max(self.call_space.get(name, 0), SIZE[kind] * int(count or 1))
        self.kernel.local = sum(size for _, size in self.locals.values())
        spaces = [*self.locals.values(), *((f"PV_{name}", size) for name, size in self.call_space.items())]
        return [f"u8 {name}[{size}] __attribute__((aligned(16)));" for name, size in spaces]

    # ---------------------------------------------------------------------------------------------- operands

    def register(self, name):
        if name not in self.bits:
            raise Unsupported(f"register {name}")
        return ("R_" if name[0] == "%" else "B_") + identifier(name.lstrip("%"))

    def raw(self, operand):
        """An operand as unsigned bits."""
        operand = operand.strip()
        if operand in self.bits:
            return self.register(operand)
        if operand.startswith("%"):
            return self.special(operand)
        if found := re.match(r"0[fF]([0-9A-Fa-f]{8})$", operand):
            return f"0x{found[1]}u"
        if found := re.match(r"0[dD]([0-9A-Fa-f]{16})$", operand):
            return f"0x{found[1]}ull"
        if re.match(r"-?(0x[0-9A-Fa-f]+|\d+)U?$", operand):
            return f"((u64){int(operand.rstrip('U'), 0) & (1 << 64) - 1}ull)"
        if found := re.match(r"([A-Za-z_$][\w$]*)(?:\+(\d+))?$", operand):
            return f"({self.symbol(found[1])} + {found[2] or 0})"
        raise Unsupported(f"operand {operand}")

    def special(self, name):
        if found := re.match(r"%(tid|ntid|ctaid|nctaid)\.([xyz])$", name):
            return f"t->{found[1]}[{'xyz'.index(found[2])}]"
        if name == "%dynamic_smem_size":
            return "(u32)(t->shared_size - SHARED_STATIC)"
        if name not in _SPECIAL:
            raise Unsupported(f"special register {name}")
        return _SPECIAL[name]

    def symbol(self, name):
        """A variable's address; generic where it is neither shared nor a parameter."""
        if name in self.locals:
            return f"(u64)(uintptr_t){self.locals[name][0]}"
        if name in self.module.shared:
            return f"(u64){self.module.shared[name]}"
        if name in self.module.dynamic:
            return "(u64)SHARED_STATIC"
        if name in self.module.data:
            return f"((u64)(uintptr_t){self.module.data[name]} | TAG(DATA_TAG))"
        if name in self.parameters:
            return f"(u64){self.parameters[name]}"
        raise Unsupported(f"symbol {name}")

    def value(self, operand, kind):
        """An operand as a C value of a PTX type."""
        operand = operand.strip()
        if kind == "pred":
            if operand.startswith("!"):
                return f"(!{self.register(operand[1:])})"
            return self.register(operand) if operand in self.bits else f"({self.raw(operand)} != 0)"
        raw = self.raw(operand)
        forms = {"f32": f"F({raw})", "f64": f"D({raw})", "f16": f"FH((u16){raw})", "bf16": f"FB((u16){raw})"}
        return forms.get(kind) or f"({'s' if kind[0] == 's' else 'u'}{8 * SIZE[kind]}){raw}"

    def put(self, destination, kind, value):
        """`destination = value`, where the value is of a PTX type."""
        destination = destination.strip()
        if destination == "_":
            return f"(void)({value});"
        register, bits = self.register(destination), self.bits[destination]
        if kind == "pred" or bits == 1:
            return f"{register} = (u8)(({value}) != 0);"
        if kind in ("f32", "f64", "f16", "bf16"):
            return f"{register} = {dict(f32='UF', f64='UD', f16='UH', bf16='UB')[kind]}({value});"
        if kind[0] == "s":
            return f"{register} = (u{bits})(s{bits})(s{8 * SIZE[kind]})({value});"
        return f"{register} = (u{8 * SIZE[kind]})({value});"

    def meeting(self):
        """The number of another place where threads meet."""
        self.kernel.meets = True
        self.meetings += 1
        return self.meetings

    # ------------------------------------------------------------------------------------------------ bodies

    def translate(self, body):
        self.read_registers(body)
        declarations = self.read_variables(body)
        body = re.sub(r"(?<!\w)" + _UNREAD, "", body)
        lines = [line for statement in body.split(";") for line in self.statement(statement)]
        used = set(re.findall(r"\b[RB]_\w+", "\n".join(lines)))
        registers = {self.register(name): bits for name, bits in self.bits.items()}
        declarations += [f"u{max(bits, 8)} {name} = 0;" for name, bits in registers.items() if name in used]
        self.code = "\n".join(
            [self.head() + " {", "u32 cc = 0; u8 inside_ = 0; (void)cc; (void)inside_;", *declarations, *lines, "}"]
        )

    def head(self):
        if self.is_entry:
            return f"void K_{identifier(self.name)}(Thread *t)"
        arguments = "".join(f", u8 *A{i}" for i in range(len(self.parameters)))
        head = f"static void FN_{identifier(self.name)}(Thread *t, u8 *RET{arguments})"
        self.module.declarations.append(head + ";")
        return head

    def statement(self, text):
        """C's lines for what stands between two semicolons: labels, braces, an instruction."""
        while True:
            text = text.strip()
            if label := re.match(r"([$\w]+):(?!:)", text):
                yield f"Q_{identifier(label[1])}: (void)0;"
                text = text[label.end() :]
            elif text[:1] in ("{", "}"):
                text = text[1:]
            else:
                break
        if text:
            yield self.guarded(text)

    def guarded(self, text):
        guard = ""
        if found := re.match(r"@(!?)(%?\w+)\s+", text):
            guard = f"if ({found[1]}{self.register(found[2])}) "
            text = text[found.end() :]
        return f"{guard}{{ {translated(self, text)} }}"
