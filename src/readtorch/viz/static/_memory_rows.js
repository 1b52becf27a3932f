// The allocator explorer's picture of memory: segments as rows, blocks in them; only what is in view is drawn.

const ROW = { height: 26, bar: 18, top: 4, label: 74, right: 6 };
const STREAMS = ["blue", "gold", "plum", "green", "strong"]; // colours of streams, in order of appearance

// look(): { byStream, toScale, picked (an address or null), event (the block of the event, or -1) }
// onHover, onPick: called with an address or null
function makeRows(H, history, ink, look, onHover, onPick) {
  const canvas = h("canvas", { class: "rt-canvas rt-rowscanvas", "aria-hidden": "true" });
  const spacer = h("div", { class: "rt-spacer" }, canvas);
  const label = { tabindex: 0, role: "group", "aria-label": "Segments and their blocks" };
  const box = h("div", { class: "rt-segments", ...label }, spacer);
  let width = 0,
    shown = []; // row numbers from top to bottom
  const placeOf = new Int32Array(H.rows.length);
  const streamColour = new Map(H.streams.map((stream, i) => [stream, STREAMS[i % STREAMS.length]]));

  // ---- places
  const rank = ([address, , stream, kind, pool]) => [+!!pool, +(kind === "small"), stream, +address];
  const ranks = H.rows.map(rank);
  const compare = (a, b) => a.reduce((found, value, i) => found || value - b[i], 0);
  const order = [...H.rows.keys()].sort((a, b) => compare(ranks[a], ranks[b]));
  function layOut() {
    shown = order.filter((row) => history.inRow[row]);
    placeOf.fill(-1);
    shown.forEach((row, i) => (placeOf[row] = i));
    const height = `${Math.max(1, shown.length) * ROW.height + ROW.top}px`;
    if (spacer.style.height !== height) spacer.style.height = height;
  }
  const topOf = (row) => ROW.top + placeOf[row] * ROW.height;
  function bytesPerPixel(row, toScale) {
    const largest = () => shown.reduce((most, i) => Math.max(most, H.rows[i][1]), 1);
    return (toScale ? largest() : H.rows[row][1]) / (width - ROW.label - ROW.right);
  }
  function blockUnder({ offsetX, offsetY }) {
    const row = shown[Math.floor((offsetY + box.scrollTop - ROW.top) / ROW.height)];
    if (row === undefined || offsetX < ROW.label) return null;
    const life = history.at(Number(H.rows[row][0]) + (offsetX - ROW.label) * bytesPerPixel(row, look().toScale));
    return life < 0 ? null : history.startOf(life);
  }
  function reach(life) {
    const top = topOf(H.lifeRow[life]);
    revealIn(box, 0, top, 0, top + ROW.height, 0, 4);
  }

  // ---- drawing
  function draw() {
    width = Math.max(200, box.clientWidth);
    const height = Math.max(box.clientHeight, 1),
      g = sharp(canvas, width, height);
    const first = Math.floor(box.scrollTop / ROW.height),
      end = Math.ceil((box.scrollTop + height) / ROW.height);
    const { event, picked, byStream, toScale } = look();
    const scale = new Float64Array(H.rows.length);
    g.fillStyle = ink.dim;
    for (const row of shown.slice(first, end)) {
      scale[row] = bytesPerPixel(row, toScale);
      g.fillText(nameOf(H.rows[row]), 2, topOf(row) - box.scrollTop + 13, ROW.label - 6);
    }
    if (!shown.length) g.fillText("no segment", 2, 20);
    const placed = (life) => {
      const row = H.lifeRow[life];
      const x = ROW.label + (H.lifeOffset[life] * UNIT) / scale[row],
        w = Math.max(1, history.sizeOf(life) / scale[row] - 1);
      return { x, y: topOf(row) - box.scrollTop, w, scale: scale[row] };
    };
    const visible = history.live().filter((life) => scale[H.lifeRow[life]]);
    const hatch = g.createPattern(hatching(), "repeat");
    for (const life of visible) {
      if (H.lifeState[life] === FREE) drawFree(g, placed(life));
      else drawUsed(g, life, placed(life), byStream, hatch);
    }
    drawFrame(g, event, ink.fg, 2);
    if (picked !== null) drawFrame(g, history.at(picked), ink.focus, 3);

    function drawFrame(g, life, colour, wide) {
      if (life < 0 || !scale[H.lifeRow[life]]) return;
      const { x, y, w } = placed(life);
      g.strokeStyle = colour;
      g.lineWidth = wide;
      g.strokeRect(x - wide / 2, y - wide / 2, w + wide, ROW.bar + wide);
    }
  }
  const nameOf = ([, size, , kind, pool, expandable]) =>
    `${pool ? "private " : ""}${expandable ? `${kind}, exp.` : sizeText(size)}`;
  function drawFree(g, { x, y, w }) {
    g.fillStyle = ink.line;
    g.fillRect(x, y, w, 1);
    g.fillRect(x, y + ROW.bar - 1, w, 1);
    g.fillRect(x, y, 1, ROW.bar);
    g.fillRect(x + w - 1, y, 1, ROW.bar);
  }
  function drawUsed(g, life, { x, y, w, scale }, byStream, hatch) {
    const waits = H.lifeState[life] === WAITING;
    const stream = streamColour.get(H.rows[H.lifeRow[life]][2]) ?? "strong";
    g.fillStyle = ink[byStream ? stream : waits ? "plum" : "blue"];
    g.fillRect(x, y, w, ROW.bar);
    if (waits) {
      g.fillStyle = hatch;
      g.fillRect(x, y, w, ROW.bar);
    }
    const lost = history.wasteOf(life) / scale;
    if (lost < 1) return;
    g.fillStyle = ink.strong;
    g.fillRect(x + w - lost, y + ROW.bar / 2, lost, ROW.bar / 2);
  }
  function hatching() {
    const tile = h("canvas", { width: 6, height: 6 }),
      g = tile.getContext("2d");
    g.strokeStyle = ink.bg;
    g.lineWidth = 2;
    for (const x of [-6, 0, 6]) {
      g.moveTo(x, 6);
      g.lineTo(x + 6, 0);
    }
    g.stroke();
    return tile;
  }

  // ---- mouse and keys
  canvas.addEventListener("pointermove", (event) => onHover(blockUnder(event)));
  canvas.addEventListener("pointerleave", () => onHover(null));
  canvas.addEventListener("click", (event) => onPick(blockUnder(event)));
  box.addEventListener("scroll", draw);

  const byPlace = (a, b) => H.lifeOffset[a] - H.lifeOffset[b];
  const blocksOf = (row) => [...history.live().filter((life) => H.lifeRow[life] === row)].sort(byPlace);
  // Go to what `find` gives for the block that is looked at; to the first of all if there is none.
  const walk = (find) => () => {
    const { picked, event } = look();
    const from = picked === null ? event : history.at(picked);
    const to = from >= 0 ? find(from) : shown.length ? blocksOf(shown[0])[0] : undefined;
    if (to === undefined) return;
    onPick(history.startOf(to));
    reach(to);
    draw();
  };
  const along = (d) => walk((life) => {
    const blocks = blocksOf(H.lifeRow[life]);
    return blocks[blocks.indexOf(life) + d];
  });
  const toRow = (d) => walk((life) => {
    const row = shown[placeOf[H.lifeRow[life]] + d];
    if (row === undefined) return undefined;
    const part = (l) => (H.lifeOffset[l] * UNIT) / H.rows[H.lifeRow[l]][1];
    return blocksOf(row).findLast((other) => part(other) <= part(life)) ?? blocksOf(row)[0];
  });
  onKeys(box, {
    ArrowLeft: along(-1),
    ArrowRight: along(1),
    ArrowUp: toRow(-1),
    ArrowDown: toRow(1),
    Home: walk((life) => blocksOf(H.lifeRow[life])[0]),
    End: walk((life) => blocksOf(H.lifeRow[life]).at(-1)),
  });
  return { box, layOut, draw, reach, streamColour, outgrown: () => Math.max(200, box.clientWidth) !== width };
}
