// House map: the rooms of the package on their floors, who imports whom, and one real call on its way.

const roomName = (room) => room.path || "front door";

function render({ model, el }) {
  const data = model.get("data"),
    { floors, trace } = data;
  const rooms = new Map(floors.flatMap((floor) => floor.rooms).map((room) => [room.path, room]));
  const chosen = () => rooms.get(model.get("selected")) ?? [...rooms.values()][0];
  const steps = trace ? trace.steps : [];
  // A walk enters a few rooms of many: only they are drawn, until somebody wants to see all.
  const walked = new Set(steps.map(({ room }) => room));
  let all = !walked.size;
  const isDrawn = (path) => all || walked.has(path);
  const goTo = (step) => {
    model.set("step", step);
    assign(model, "selected", step > 0 ? steps[step - 1].room : model.get("selected"));
  };

  // ---- the parts of the page
  const play =
    trace &&
    player({
      last: steps.length,
      what: "the call through the rooms",
      get: () => model.get("step"),
      set: goTo,
    });
  const buttons = new Map([...rooms.values()].map((room) => [room.path, drawRoom(room)]));
  const everything = h("input", {
    type: "checkbox",
    onchange: () => {
      all = everything.checked;
      if (isDrawn(chosen().path)) update();
      else assign(model, "selected", steps[0].room);
    },
  });
  const arrows = s("svg", { class: "rt-arrows", "aria-hidden": "true" });
  const storeys = floors.map((floor) =>
    h(
      "div",
      { class: "rt-floor" },
      h("p", { class: "rt-floorname" }, floor.name),
      h(
        "div",
        { class: "rt-rooms" },
        floor.rooms.map((room) => buttons.get(room.path)),
      ),
    ),
  );
  const house = h(
    "div",
    { class: "rt-house", role: "group", "aria-label": "Rooms, upper floors first. Arrow keys move." },
    arrows,
    storeys,
  );
  const detail = detailBox();
  const code = trace && h("div", { class: "rt-walked" });
  const root = h(
    "div",
    { class: "rt-w rt-map", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    trace && [
      h(
        "div",
        { class: "rt-bar" },
        play.buttons,
        h("span", { class: "rt-spring" }),
        walked.size ? h("label", { class: "rt-check" }, everything, ` all ${rooms.size} rooms`) : null,
      ),
      play.slider,
      play.now,
      code,
    ],
    h("div", { class: "rt-cols" }, house, detail),
    legend(
      [
        ["rt-r-chosen", "chosen"],
        ["rt-r-uses", "imported by it"],
        ["rt-r-used", "imports it"],
        trace && ["rt-r-been", "entered already"],
      ].filter(Boolean),
    ),
    h(
      "p",
      { class: "rt-hint" },
      "Keys: arrows move from room to room",
      trace ? "; , and . step, p plays." : ".",
    ),
  );
  el.append(root);

  function drawRoom(room) {
    const button = h(
      "button",
      { type: "button", class: "rt-room", onclick: () => assign(model, "selected", room.path) },
      h("span", { class: "rt-rname" }, roomName(room)),
      " ",
      h("span", { class: "rt-rlines" }, plural(room.lines, "line")),
      " ",
      h("span", { class: "rt-rnote" }),
    );
    button.addEventListener("focus", () => {
      if (chosen() !== room) assign(model, "selected", room.path);
    });
    return button;
  }

  // ---- moving: along a floor, or to the nearest room of the next one
  function along(by) {
    const order = [...rooms.keys()].filter(isDrawn);
    buttons.get(order[order.indexOf(chosen().path) + by])?.focus();
  }
  function across(by) {
    const drawn = floors.map((floor) => floor.rooms.filter(({ path }) => isDrawn(path))).filter((one) => one.length);
    const next = drawn[drawn.findIndex((floor) => floor.includes(chosen())) + by];
    if (!next) return;
    const middle = (path) => {
      const r = buttons.get(path).getBoundingClientRect();
      return r.left + r.width / 2;
    };
    const here = middle(chosen().path);
    const nearest = [...next].sort(
      (a, b) => Math.abs(middle(a.path) - here) - Math.abs(middle(b.path) - here),
    )[0];
    buttons.get(nearest.path).focus();
  }
  onKeys(house, {
    ArrowRight: () => along(1),
    ArrowLeft: () => along(-1),
    ArrowDown: () => across(1),
    ArrowUp: () => across(-1),
  });
  if (play) onKeys(root, play.keys);

  // ---- arrows behind the rooms: from the chosen room to what it imports, and from the room before in a walk
  function drawArrows() {
    const outer = house.getBoundingClientRect();
    const place = (path) => {
      const r = buttons.get(path).getBoundingClientRect();
      return { x: r.left + r.width / 2 - outer.left, top: r.top - outer.top, bottom: r.bottom - outer.top };
    };
    const arrow = (from, to, cls) => {
      const a = place(from),
        b = place(to),
        down = a.top < b.top;
      const [y0, y1] = down ? [a.bottom, b.top] : a.top > b.top ? [a.top, b.bottom] : [a.bottom, b.bottom];
      const bend = a.top === b.top ? 26 : (y1 - y0) / 2;
      return s("path", {
        class: cls,
        d: `M${a.x},${y0}C${a.x},${y0 + bend} ${b.x},${y1 - (a.top === b.top ? -bend : bend)} ${b.x},${y1}`,
      });
    };
    arrows.setAttribute("width", house.clientWidth);
    arrows.setAttribute("height", house.clientHeight);
    arrows.replaceChildren(
      ...Object.keys(chosen().imports)
        .filter(isDrawn)
        .map((to) => arrow(chosen().path, to, "rt-import")),
      ...chosen()
        .imported_by.filter(isDrawn)
        .map((from) => arrow(from, chosen().path, "rt-import rt-importby")),
    );
  }
  const resized = new ResizeObserver(drawArrows);
  resized.observe(house);

  // ---- details
  function visit(path) {
    assign(model, "selected", path); // which draws all rooms if this one was not drawn
    buttons.get(path).focus();
  }
  const link = (path, note) =>
    h(
      "li",
      {},
      linkButton(roomName(rooms.get(path)), () => visit(path)),
      note && h("span", { class: "rt-dim" }, ` ${note}`),
    );
  function detailOf(room) {
    const imports = Object.entries(room.imports).map(([path, by]) =>
      link(path, by.length > 6 ? `by ${by.length} files` : `by ${by.join(", ")}`),
    );
    const files = room.files.map((file) =>
      h(
        "li",
        {},
        h("code", {}, file.name),
        " ",
        h("span", { class: "rt-dim" }, `${plural(file.lines, "line")}. ${file.about}`),
        file.counterpart &&
          h("span", { class: "rt-dim rt-block2" }, "In PyTorch: ", h("code", {}, file.counterpart)),
        file.defines.length ? h("code", { class: "rt-block2" }, file.defines.join(", ")) : null,
      ),
    );
    return [
      h("p", { class: "rt-dtitle" }, [data.package, room.path].filter(Boolean).join("/")),
      room.about && h("p", {}, room.about),
      factList([
        ["in PyTorch", room.counterpart && h("code", {}, room.counterpart)],
        ["chapter", room.chapter],
        ["size", `${plural(room.files.length, "file")}, ${plural(room.lines, "line")}`],
      ]),
      heading("imports"),
      imports.length ? h("ul", {}, imports) : h("p", { class: "rt-dim" }, "nothing of ours"),
      heading("imported by"),
      room.imported_by.length
        ? h(
            "ul",
            {},
            room.imported_by.map((path) => link(path)),
          )
        : h("p", { class: "rt-dim" }, "no other room"),
      heading("what it holds"),
      h("ul", {}, files),
    ].filter(Boolean);
  }
  function sentence() {
    const at = model.get("step");
    if (!at) return ["The call has not started."];
    const { function: name, where, times } = steps[at - 1];
    return [
      h(
        "span",
        {},
        "enters ",
        h("b", {}, roomName(rooms.get(steps[at - 1].room) ?? { path: steps[at - 1].room })),
      ),
      h("span", { class: "rt-why" }, h("code", {}, name), ` ${where}${times > 1 ? `, ${times} times` : ""}`),
    ];
  }
  function update() {
    const room = chosen(),
      been = new Map();
    all ||= !isDrawn(room.path);
    everything.checked = all;
    for (const [path, button] of buttons) button.hidden = !isDrawn(path);
    floors.forEach((floor, i) => (storeys[i].hidden = !floor.rooms.some(({ path }) => isDrawn(path))));
    steps
      .slice(0, model.get("step"))
      .forEach((one, i) => been.set(one.room, [...(been.get(one.room) ?? []), i + 1]));
    for (const [path, button] of buttons) {
      const role =
        path === room.path
          ? "rt-r-chosen"
          : path in room.imports
            ? "rt-r-uses"
            : room.imported_by.includes(path)
              ? "rt-r-used"
              : "";
      button.className = `rt-room ${role}${been.has(path) ? " rt-r-been" : ""}`;
      button.setAttribute("aria-pressed", String(path === room.path));
      button.setAttribute("tabindex", path === room.path ? 0 : -1);
      button.querySelector(".rt-rnote").textContent = been.has(path)
        ? `entered ${been.get(path).length}×`
        : ({ "rt-r-uses": "imported by it", "rt-r-used": "imports it" }[role] ?? "");
    }
    if (play) {
      play.show(...sentence());
      const line = model.get("step") ? steps[model.get("step") - 1].line : null;
      code.replaceChildren(codeBlock(trace.source.lines, trace.source.first, line));
    }
    detail.replaceChildren(...detailOf(room));
    drawArrows();
  }
  const unbind = bind(model, ["step", "selected"], update);
  return () => {
    play?.stop();
    resized.disconnect();
    unbind();
  };
}

export default { render };
