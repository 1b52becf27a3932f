// What a kernel can reach: the roof of a chip with the kernel under it, and beside it the warps of a multiprocessor
// and how long the kernel would take by each limit alone.

const LEFT = -2, RIGHT = 4, LOW = -2, HIGH = 3.5, // powers of ten: operations a byte, TFLOP/s
  BOX = { x: 46, y: 8, width: 400, height: 210 },
  PLACES = { x: 470, y: 22, side: 12, columns: 8 }; // prettier-ignore

const held = (value, low, high) => Math.min(Math.max(value, low), high);
const atIntensity = (x) => BOX.x + (BOX.width * (held(Math.log10(x), LEFT, RIGHT) - LEFT)) / (RIGHT - LEFT);
const atSpeed = (y) => BOX.y + (BOX.height * (HIGH - held(Math.log10(y), LOW, HIGH))) / (HIGH - LOW);
const POWERS = { "-2": "0.01", "-1": "0.1", 0: "1", 1: "10", 2: "100", 3: "1,000", 4: "10,000" };

const grid = () => [
  [-2, -1, 0, 1, 2, 3, 4].map((power) => [
    s("line", { class: "rt-rf-grid", x1: atIntensity(10 ** power), x2: atIntensity(10 ** power), y1: BOX.y, y2: BOX.y + BOX.height }),
    s("text", { class: power === LEFT ? "rt-rf-tick" : "rt-rf-tick rt-rf-mid", x: atIntensity(10 ** power), y: BOX.y + BOX.height + 13 }, POWERS[power]),
  ]),
  [-2, -1, 0, 1, 2, 3].map((power) => [
    s("line", { class: "rt-rf-grid", x1: BOX.x, x2: BOX.x + BOX.width, y1: atSpeed(10 ** power), y2: atSpeed(10 ** power) }),
    s("text", { class: "rt-rf-tick rt-rf-end", x: BOX.x - 5, y: atSpeed(10 ** power) + 4 }, POWERS[power]),
  ]),
];

// The slope of memory from the left edge, and the flat roof of the units from the corner on.
function roofLine(bandwidth, peak) {
  const corner = (peak * 1000) / bandwidth;
  return `M${BOX.x} ${atSpeed((10 ** LEFT * bandwidth) / 1000)}L${atIntensity(corner)} ${atSpeed(peak)}L${BOX.x + BOX.width} ${atSpeed(peak)}`;
}

// Where a limit of this kernel alone lies below the roof: the slope of what is in flight, or the height of a kernel that is too short or has too few blocks.
function lowerLimit({ bound, kept, bandwidth, peak, reached, idle }) {
  if (bound === "latency") return s("path", { class: "rt-rf-limit", d: roofLine(bandwidth * kept, peak) });
  return bound === "launch" || (bound === "arithmetic" && idle > 1) ? s("path", { class: "rt-rf-limit", d: `M${BOX.x} ${atSpeed(reached)}H${BOX.x + BOX.width}` }) : "";
}

function kernelPoint(result) {
  const x = atIntensity(result.intensity),
    roof = Math.min(result.peak, (result.intensity * result.bandwidth) / 1000);
  return [
    s("line", { class: "rt-rf-gap", x1: x, x2: x, y1: atSpeed(roof), y2: atSpeed(result.reached) }),
    s("circle", { class: "rt-rf-point", cx: x, cy: atSpeed(result.reached), r: 6 }),
  ];
}

const warpPlaces = ({ warps, blocks }) =>
  Array.from({ length: WARPS }, (_, warp) => {
    const block = Math.floor(warp / (warps / blocks)),
      kind = warp >= warps ? "rt-rf-empty" : block % 2 ? "rt-rf-odd" : "rt-rf-even";
    return s("rect", {
      class: kind, width: PLACES.side - 2, height: PLACES.side - 2,
      x: PLACES.x + (warp % PLACES.columns) * PLACES.side, y: PLACES.y + Math.floor(warp / PLACES.columns) * PLACES.side,
    }); // prettier-ignore
  });

function askedBar({ asked, needed }) {
  const width = PLACES.columns * PLACES.side - 2,
    most = Math.max(asked, needed),
    y = PLACES.y + 8 * PLACES.side + 34;
  return [
    s("text", { class: "rt-rf-tick", x: PLACES.x, y: y - 6 }, "KiB in flight"),
    s("rect", { class: "rt-rf-asked", x: PLACES.x, y, width: (width * asked) / most, height: 12 }),
    s("line", { class: "rt-rf-needed", x1: PLACES.x + (width * needed) / most, x2: PLACES.x + (width * needed) / most, y1: y - 3, y2: y + 15 }),
    s("text", { class: "rt-rf-tick", x: PLACES.x, y: y + 28 }, `${shortText(asked)} of ${shortText(needed)} needed`),
  ];
}

const LIMITS = { memory: "memory", latency: "in flight", arithmetic: "arithmetic", launch: "shortest" },
  LIMIT_ROW = 13,
  LIMIT_WIDTH = 140;

/** A row for each limit: how long the kernel would take if there were no other. The longest is the one that it meets. */
function limitRows({ limits, bound }, x, top) {
  return Object.entries(limits).map(([name, time], i) => {
    const y = top + LIMIT_ROW * i;
    return [
      s("rect", { class: name === bound ? "rt-rf-met" : "rt-rf-unmet", x, y, width: Math.max(1, (LIMIT_WIDTH * time) / limits[bound]), height: LIMIT_ROW - 2 }),
      s("text", { class: "rt-rf-name", x: x + 3, y: y + 9 }, LIMITS[name]),
      s("text", { class: "rt-rf-name rt-rf-end", x: x + LIMIT_WIDTH - 2, y: y + 9 }, durationText(time)),
    ];
  }); // prettier-ignore
}

const roof = ({ result, inputs }) => [
  grid(),
  Object.values(CHIPS[inputs.chip].peak).map((peak) => s("path", { class: "rt-rf-other", d: roofLine(result.bandwidth, peak) })),
  s("path", { class: "rt-rf-roof", d: roofLine(result.bandwidth, result.peak) }),
  lowerLimit(result),
  kernelPoint(result),
  s("text", { class: "rt-rf-tick rt-rf-mid", x: BOX.x + BOX.width / 2, y: BOX.y + BOX.height + 28 }, "operations a byte"),
  s("text", { class: "rt-rf-tick", x: BOX.x + 5, y: BOX.y + 14 }, "TFLOP/s"),
];

const places = (result) => [
  s("text", { class: "rt-rf-tick", x: PLACES.x, y: PLACES.y - 8 }, "places for warps"),
  warpPlaces(result),
];

const wide = (now) =>
  s("svg", { class: "rt-rf rt-rf-wide", viewBox: "0 0 620 250", role: "img", "aria-label": "The roofline, and the warps of a multiprocessor" },
    roof(now), places(now.result), askedBar(now.result), limitRows(now.result, PLACES.x, 194)); // prettier-ignore

// In a narrow window the plot has the whole width, and the multiprocessor stands below it.
const narrow = (now) => [
  s("svg", { class: "rt-rf rt-rf-narrow rt-rf-plot", viewBox: "0 0 476 250", role: "img", "aria-label": "The roofline" }, roof(now)),
  s("svg", { class: "rt-rf rt-rf-narrow", viewBox: "0 0 300 122", role: "img", "aria-label": "The warps of a multiprocessor" },
    s("g", { transform: `translate(${8 - PLACES.x} 0)` }, places(now.result)),
    limitRows(now.result, 130, 4),
    s("g", { transform: `translate(${130 - PLACES.x} -74)` }, askedBar(now.result))),
]; // prettier-ignore

const draw = (now) => h("div", {}, wide(now), narrow(now));

export default { render: figure(model, draw) };
