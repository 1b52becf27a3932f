// Where five optimizers go: as figures/optimizer_paths.py, with the same operations in the same order.
const FAR = 1e6,
  NEAR = 0.02;

const SURFACES = {
  valley: {
    gradient: (x, y) => [2 * (x - 1) - 40 * x * (y - x * x), 20 * (y - x * x)],
    loss: (x, y) => (1 - x) * (1 - x) + 10 * (y - x * x) * (y - x * x),
    minima: [[1, 1]],
  },
  bowl: { gradient: (x, y) => [x, 25 * y], loss: (x, y) => 0.5 * (x * x + 25 * y * y), minima: [[0, 0]] },
  wells: {
    gradient: (x, y) => [4 * x * (x * x - 1), 2 * y],
    loss: (x, y) => (x * x - 1) * (x * x - 1) + y * y,
    minima: [
      [-1, 0],
      [1, 0],
    ],
  },
};

// Each makes the direction of one coordinate: gradient -> direction.
const withMomentum = (beta) => {
  let buffer = null;
  return (g) => (buffer = buffer === null ? g : beta * buffer + g);
};
const OPTIMIZERS = {
  SGD: { rate: 0.018, make: () => withMomentum(0) },
  momentum: { rate: 0.005, make: withMomentum },
  Adagrad: {
    rate: 1.5,
    make: () => {
      let sum = 0;
      return (g) => {
        sum = sum + g * g;
        return g / (Math.sqrt(sum) + 1e-10);
      };
    },
  },
  RMSprop: {
    rate: 0.02,
    make: () => {
      let mean = 0;
      return (g) => {
        mean = 0.99 * mean + (1 - 0.99) * (g * g);
        return g / (Math.sqrt(mean) + 1e-8);
      };
    },
  },
  Adam: {
    rate: 0.1,
    make: (beta) => {
      let mean = 0,
        square = 0,
        left1 = 1,
        left2 = 1;
      return (g) => {
        mean = beta * mean + (1 - beta) * g;
        square = 0.999 * square + (1 - 0.999) * (g * g);
        left1 = left1 * beta;
        left2 = left2 * 0.999;
        const size = Math.sqrt(square / (1 - left2)) + 1e-8;
        return mean / (1 - left1) / size;
      };
    },
  },
};

function pathOfOptimizer(name, inputs) {
  const { gradient, loss, minima } = SURFACES[inputs.surface],
    kind = OPTIMIZERS[name],
    rate = kind.rate * inputs.rate,
    alongX = kind.make(inputs.momentum),
    alongY = kind.make(inputs.momentum);
  let { x, y } = inputs,
    arrived = null;
  const points = [[x, y]];
  for (let t = 1; t <= inputs.steps; t++) {
    const [gx, gy] = gradient(x, y);
    x = x - rate * alongX(gx);
    y = y - rate * alongY(gy);
    if (!(Math.abs(x) < FAR && Math.abs(y) < FAR)) return { name, rate, points, arrived: null, loss: null };
    points.push([x, y]);
    if (arrived === null && minima.some(([a, b]) => (x - a) * (x - a) + (y - b) * (y - b) < NEAR * NEAR)) arrived = t;
  }
  return { name, rate, points, arrived, loss: loss(x, y) };
}

const twoDigits = (x) => (x * (1 + 1e-12)).toFixed(2).replace(/0+$/, "").replace(/\.$/, "");

function ending({ loss, points, arrived }) {
  if (loss === null) return `has diverged at step ${points.length}`;
  return arrived ? `has arrived at step ${arrived}` : "has not arrived";
}

const model = (inputs) => {
  const names = Object.keys(OPTIMIZERS).filter((name) => inputs.show === "all" || inputs.show === name),
    paths = names.map((name) => pathOfOptimizer(name, inputs));
  const parts = paths.map((one) => `${one.name} ${ending(one)}`).join(", ");
  const say = `After ${inputs.steps} step${inputs.steps === 1 ? "" : "s"} from (${twoDigits(inputs.x)}, ${twoDigits(inputs.y)}): ${parts}.`;
  return { paths, minima: SURFACES[inputs.surface].minima, say };
};
