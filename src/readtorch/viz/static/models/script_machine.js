// A scripted function of an int, run instruction by instruction: as figures/script_machine.py.
const MOST = 2 ** 63; // the limit of a `while`, as near as a number comes
const OPERATORS = { gt: (a, b) => a > b, add: (a, b) => a + b, mul: (a, b) => a * b, sub: (a, b) => a - b };

// [source, { function: [instructions, constants, operators, functions] }]; the first function is called
const PROGRAMS = {
  squares: [
    [
      "def square_of(n: int):", "    return n * n", "", "def squares(n: int):", "    total = 0", "    for i in range(n):",
      "        if i > 0:", "            total = total + square_of(i)", "    return total",
    ],
    {
      squares: [
        "STORE 0; LOADC 2; MOVE 0; LOADC 0; LOADC 1; LOOP 18 3; STOREN 1 2; LOAD 1; LOADC 1; OP 0; JF 6; LOAD 2; LOAD 1; CALL 0; " +
          "OP 1; JMP 2; LOAD 2; STORE 3; DROPR 2; DROPR 1; LOADC 0; MOVE 3; JMP -17; STORE 4; MOVE 4; RET",
        [true, 0, 0], ["gt", "add"], ["square_of"],
      ],
      square_of: ["STORE 0; LOAD 0; MOVE 0; OP 0; RET", [], ["mul"], []],
    },
  ],
  doubled: [
    ["def doubled(n: int):", "    total = 1", "    while n > 0:", "        total = total * 2", "        n = n - 1", "    return total"],
    {
      doubled: [
        "STORE 0; LOADC 4; LOADC 2; LOAD 0; LOADC 1; OP 0; LOADC 3; MOVE 0; LOOP 17 4; STOREN 1 3; DROPR 1; MOVE 2; LOADC 0; OP 1; " +
          "STORE 4; MOVE 3; LOADC 3; OP 2; STORE 5; LOAD 5; LOADC 1; OP 3; MOVE 4; MOVE 5; JMP -16; STOREN 6 2; DROPR 7; MOVE 6; RET",
        [2, 0, MOST, 1, 0], ["gt", "mul", "sub", "gt"], [],
      ],
    },
  ],
  at_most: [
    ["def at_most(n: int):", "    if n > 3:", "        n = 3", "    return n * n"],
    {
      at_most: [
        "STORE 0; LOAD 0; LOADC 0; OP 0; JF 3; LOADC 0; JMP 2; LOAD 0; STORE 1; DROPR 0; LOAD 1; MOVE 1; OP 1; RET",
        [3], ["gt", "mul"], [],
      ],
    },
  ],
}; // prettier-ignore

const words = (value) => (value === MOST ? "2**63 - 1" : value === true ? "True" : value === false ? "False" : String(value));
const parsed = (code) => code.split("; ").map((line) => line.split(" ").map((part, i) => (i ? Number(part) : part)));

// What each instruction does, and what is said of it.
const INSTRUCTIONS = {
  LOAD({ stack }, { registers }, x) {
    stack.push(registers.get(x));
    return `LOAD pushes ${words(registers.get(x))}, which stays in register ${x}.`;
  },
  MOVE({ stack }, { registers }, x) {
    stack.push(registers.get(x));
    registers.delete(x);
    return `MOVE pushes ${words(stack.at(-1))} and empties register ${x}: this was its last use.`;
  },
  LOADC({ stack }, { constants }, x) {
    stack.push(constants[x]);
    return `LOADC pushes the constant ${words(constants[x])}.`;
  },
  STORE({ stack }, { registers }, x) {
    registers.set(x, stack.pop());
    return `STORE pops ${words(registers.get(x))} into register ${x}.`;
  },
  STOREN({ stack }, { registers }, x, n) {
    const values = stack.splice(-n);
    values.forEach((value, i) => registers.set(x + i, value));
    return `STOREN pops ${values.map(words).join(", ")} into registers ${x} to ${x + n - 1}.`;
  },
  DROPR(_, { registers }, x) {
    const gone = registers.get(x);
    registers.delete(x);
    return `DROPR empties register ${x}: nobody reads ${words(gone)} any more.`;
  },
  OP({ stack }, { operators }, x) {
    const [a, b] = stack.splice(-2);
    stack.push(OPERATORS[operators[x]](a, b));
    return `OP calls aten::${operators[x]}(${words(a)}, ${words(b)}), which leaves ${words(stack.at(-1))}.`;
  },
  JF({ stack }, frame, x) {
    if (stack.pop()) return "JF pops True, and does nothing.";
    frame.pc += x - 1;
    return `JF pops False, and goes to ${frame.pc}.`;
  },
  JMP(_, frame, x) {
    frame.pc += x - 1;
    return `JMP goes to ${frame.pc}.`;
  },
  LOOP({ stack }, frame, x, n) {
    const base = stack.length - n - 1;
    const [begun, most, goOn] = stack.slice(base);
    if (begun < most && goOn) {
      stack.splice(base, 3, begun + 1, most, begun);
      return `LOOP: ${begun} of at most ${words(most)} begun, and it may go on: iteration ${begun} begins.`;
    }
    stack.splice(base, 3);
    frame.pc += x - 1;
    const why = begun < most ? "it may not go on" : `all ${begun} have been run`;
    return `LOOP: ${why}. The loop is left, to ${frame.pc}.`;
  },
  CALL(machine, { name, pc, functions }, x) {
    machine.frames.push(frameOf(machine, functions[x]));
    return `CALL adds a frame for ${functions[x]}; its argument is on the stack, and ${name} stands at ${pc}.`;
  },
  RET({ frames }, { name }) {
    frames.pop();
    return `RET takes the frame of ${name} away; its result stays on the stack.`;
  },
};

function frameOf({ all }, name) {
  const [code, constants, operators, functions] = all[name];
  return { name, code: parsed(code), constants, operators, functions, pc: 0, registers: new Map() };
}

function model({ program, n }) {
  const [source, all] = PROGRAMS[program];
  const machine = { all, stack: [n], frames: [] };
  machine.frames.push(frameOf(machine, program));
  const steps = [],
    say = [];
  while (machine.frames.length) {
    const frame = machine.frames.at(-1);
    const numbers = [...frame.registers.keys()].sort((a, b) => a - b);
    const registers = numbers.map((number) => [String(number), words(frame.registers.get(number))]);
    steps.push({ frames: machine.frames.map(({ name, pc }) => [name, pc]), registers, stack: machine.stack.map(words) });
    const [name, x, many] = frame.code[frame.pc],
      at = `At ${frame.pc} in ${frame.name}: `;
    frame.pc += 1;
    say.push(at + INSTRUCTIONS[name](machine, frame, x, many));
  }
  steps.push({ frames: [], registers: [], stack: machine.stack.map(words) });
  say.push(`The machine stops. The result is ${words(machine.stack.at(-1))}.`);
  const each = (of) => Object.fromEntries(Object.entries(all).map(([name, code]) => [name, of(code)]));
  return { source, listings: each(([code]) => code.split("; ")), constants: each(([, constants]) => constants.map(words)), steps, say };
}
