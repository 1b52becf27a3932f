// One training step with the reader's own three samples: as figures/training_step.py.
const TURNS = 50;
const BOUND = 10;
const WEIGHT = [
  [0.03492254, -0.30119681, 0.1592117, 0.15689027],
  [-0.26723844, -0.0749386, -0.29291397, 0.12973636],
];
const BIAS = [-0.13468385, 0.35126835];

const adding = (values) => values.reduce((total, value) => total + value, 0);

function featuresOf(words) {
  const parts = words.replaceAll(",", " ").split(/\s+/).filter(Boolean);
  if (parts.length !== 4 || !parts.every((part) => NUMBER.test(part) && Math.abs(Number(part)) <= BOUND))
    refuse(`A sample is four numbers from -${BOUND} to ${BOUND}, such as 0.5, -1, 2, 0.`);
  return parts.map(Number);
}
function logSoftmax(row) {
  const largest = Math.max(...row);
  const total = adding(row.map((value) => Math.exp(value - largest)));
  return row.map((value) => value - largest - Math.log(total));
}
function softmaxBackward(grad, result) {
  const dot = adding(grad.map((g, i) => g * result[i]));
  return result.map((p, i) => p * (grad[i] - dot));
}
const linear = (x, weight, bias) => x.map((row) => weight.map((w, c) => adding(row.map((a, f) => a * w[f])) + bias[c]));

// What stations 1 to 6 compute.
function forward(x, labels, weight, bias, softmax) {
  const z = linear(x, weight, bias);
  const p = softmax ? z.map((row) => logSoftmax(row).map(Math.exp)) : z;
  const logq = p.map(logSoftmax);
  const loss = -adding(logq.map((row, i) => row[labels[i]])) / 3 + 0;
  const right = p.filter((row, i) => row[1] > row[0] === (labels[i] === 1)).length;
  return { z, p, logq, loss, right };
}

// The gradients, as stations 7 to 10 compute them.
function backward(x, labels, passed, softmax) {
  const toLogq = labels.map((label) => [0, 1].map((column) => (column === label ? -1 / 3 : 0)));
  const toP = toLogq.map((grads, i) => grads.map((g, c) => g - Math.exp(passed.logq[i][c]) * adding(grads)));
  const toZ = softmax ? toP.map((g, i) => softmaxBackward(g, passed.p[i])) : toP;
  const toWeight = [0, 1].map((c) => [0, 1, 2, 3].map((f) => adding(x.map((row, i) => toZ[i][c] * row[f]))));
  const toBias = [0, 1].map((c) => adding(toZ.map((row) => row[c])));
  return { toLogq, toP, toZ, toWeight, toBias };
}

// one + factor * other, for vectors and matrices
const plus = (one, other, factor = 1) =>
  Array.isArray(one) ? one.map((a, i) => plus(a, other[i], factor)) : one + factor * other;

const four = (row) => row.map((value) => value.toFixed(4)).join(", ");

// What happens at each station.
function sentences(r) {
  const name = r.softmax ? "SoftmaxBackward0" : "LogSoftmaxBackward0";
  const ends = r.softmax ? `The softmax in forward makes ${four(r.p[0])} of them.` : "forward returns them as they are.";
  return [
    r.zero
      ? "Optimizer.zero_grad sets both gradients to None; it writes no zeros."
      : "Nobody calls zero_grad: the gradients stay as they are.",
    `Module.__call__ passes three samples to forward, in iteration ${r.turn} of the loop.`,
    "The binding unpacks three tensors: input of 3 by 4, weight of 2 by 4, bias of 2.",
    "linear asks for addmm of bias, x and the transposed weight, a view of 4 by 2.",
    "AddmmBackward0 keeps x for the gradient of the weight. It does not keep the weight, for x needs no gradient.",
    `The kernel computes the scores; those of sample 1 are ${four(r.z[0])}. ${ends}`,
    `log_softmax, then each sample's class is picked: the loss is ${r.loss.toFixed(4)}, with ${r.right} of 3 right.`,
    "The walk begins with the derivative of the loss by itself, which is 1.",
    `The engine runs NllLossBackward0, LogSoftmaxBackward0, ${r.softmax ? "SoftmaxBackward0, " : ""}` +
      "AddmmBackward0 and TBackward0, and an AccumulateGrad for bias and weight.",
    `${name} turns the gradient of its result into that of its input, the scores.`,
    r.adds
      ? "AccumulateGrad adds to the gradients that are there."
      : "AccumulateGrad finds no gradient there and stores what arrives.",
    `SGD asks for add_ of each gradient with alpha = ${(0 - r.rate).toFixed(4)}.`,
    `The weight is overwritten in place, and its version goes from ${r.version} to ${r.version + 1}.`,
  ];
}

// All turns of the loop, and everything that was computed in the chosen one.
function model(inputs) {
  const x = [1, 2, 3].map((i) => featuresOf(inputs[`sample${i}`]));
  const labels = [1, 2, 3].map((i) => Number(inputs[`label${i}`]));
  const { softmax, rate } = inputs;
  let [weight, bias, grad] = [WEIGHT, BIAS, null];
  let chosen = {};
  const losses = [];
  for (let turn = 0; turn <= TURNS; turn++) {
    const passed = forward(x, labels, weight, bias, softmax);
    const grads = backward(x, labels, passed, softmax);
    const arrived = [grads.toWeight, grads.toBias];
    const adds = grad !== null && !inputs.zero;
    const found = grad;
    grad = adds ? plus(grad, arrived) : arrived;
    const after = plus([weight, bias], grad, -rate);
    losses.push(passed.loss);
    if (turn === inputs.turn) chosen = { x, labels, weight, bias, ...passed, ...grads, found, grad, after, adds, version: turn + 1 };
    [weight, bias] = after;
  }
  const result = { ...chosen, turn: inputs.turn, softmax, zero: inputs.zero, rate, losses };
  return { ...result, say: sentences(result) };
}
