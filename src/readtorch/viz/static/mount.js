// Mounts the figures of a page that has no kernel. A classic script, so that it works from file:// too.
(function () {
  const page = (window.__readtorch = window.__readtorch || { assets: {}, models: {}, modules: {} });
  if (page.mount) {
    page.mount();
    return;
  }

  // Note [ Figures in the address ]
  // `#fig=allocator&step=1311` moves a figure: each `fig=` begins a figure's part, and what follows are its traits, or
  // the inputs of a figure that has some; what is not named is as it was at first, or, with `&keep`, as the reader has
  // left it. The names are those of the front ends, and the second figure of a name is `allocator-2`.
  // The address follows what the reader does without new entries in the browser's history. A link makes an entry, and
  // the state of all figures stays with the entry that is left, so that Back restores them.
  // What is too long for an address, such as a program from a dropped file, is in that state only.
  const LONGEST_PART = 2000;

  const models = () => Object.values(page.models);
  const withoutHash = () => location.href.split("#")[0];
  const sameValue = (one, other) => JSON.stringify(one) === JSON.stringify(other);

  // -> [[name, {trait: text}], …]
  function readAddress() {
    const parts = [];
    for (const pair of location.hash.slice(1).split("&")) {
      const [key, ...value] = pair.split("=").map(decoded);
      if (key === "fig") parts.push([value.join("="), {}]);
      else if (parts.length) parts.at(-1)[1][key] = value.join("=");
    }
    return parts;
  }
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }
  const encoded = (value) =>
    encodeURIComponent(value).replace(/%(2C|3A|2F|5B|5D)/g, (code) => decodeURIComponent(code));

  // A text as a value of the kind that is there.
  function likewise(text, value) {
    if (Array.isArray(value)) return text.split(",").filter(Boolean).map(Number);
    if (typeof value === "number") return Number(text);
    return typeof value === "boolean" ? text === "true" : text;
  }
  function moveFigure(model, fields) {
    const { data, inputs, ...traits } = "keep" in fields ? model.state : model.first;
    for (const [name, value] of Object.entries(traits))
      model.set(name, name in fields ? likewise(fields[name], value) : value);
    const given = Object.entries(fields).filter(([name]) => name in (inputs ?? {}));
    if (inputs) model.set("inputs", { ...inputs, ...Object.fromEntries(given) }); // the kit reads the texts
  }

  // The part of an address that says how a figure differs from how it was at first.
  function partOf(model) {
    const flat = ({ data, inputs, ...traits }) => ({ ...inputs, ...traits });
    const first = flat(model.first),
      state = flat(model.state);
    const unread = (model.state.inputs ? model.state.data.inputs : []).filter(({ only }) => only?.length && !only.slice(1).includes(state[only[0]]));
    const left = new Set(unread.map(({ name }) => name));
    const changed = Object.entries(state).filter(([name, value]) => !left.has(name) && !sameValue(value, first[name]));
    const part = [["fig", model.name], ...changed].map((pair) => pair.map(encoded).join("=")).join("&");
    return part.length > LONGEST_PART ? "" : part;
  }
  let waiting = null;
  function writeAddressSoon() {
    clearTimeout(waiting);
    waiting = setTimeout(writeAddress, 400); // browsers allow few changes a second
  }
  function writeAddress() {
    clearTimeout(waiting);
    const parts = models().filter((model) => model.first).map(partOf);
    const hash = parts.filter((part) => part.includes("&")).join("&");
    const plain = location.hash.startsWith("#fig=") ? withoutHash() : location.href;
    history.replaceState({ figures: states() }, "", hash ? `${withoutHash()}#${hash}` : plain);
  }
  const states = () => Object.fromEntries(models().map(({ name, state }) => [name, { ...state, data: null }]));

  function restore(states) {
    for (const model of models())
      for (const [name, value] of Object.entries(states[model.name] ?? {}))
        if (name !== "data" && !sameValue(value, model.state[name])) model.set(name, value);
    clearTimeout(waiting); // the address is that of the entry already
  }
  function showFigure(name) {
    const host = document.querySelector(`[data-rt-figure="${CSS.escape(name)}"]`);
    const root = host?.querySelector(".rt-w");
    if (!root) return;
    for (let at = host; at; at = at.parentElement) if (at.localName === "details") at.open = true;
    if (!root.hasAttribute("tabindex")) root.setAttribute("tabindex", "-1");
    root.scrollIntoView({ block: "start" });
    root.focus({ preventScroll: true });
  }
  function followAddress() {
    const parts = readAddress();
    for (const [name, fields] of parts) {
      const model = models().find((one) => one.name === name);
      if (model?.first) moveFigure(model, fields);
    }
    if (parts.length) showFigure(parts[0][0]);
  }
  // The address that the page was opened with waits for its figures; after a reload the browser scrolls by itself.
  const opened = readAddress();
  const again = /reload|back_forward/.test(performance.getEntriesByType("navigation")[0]?.type);
  let shown = again || !opened.length;
  function arriveAtOpened() {
    if (shown || !models().find(({ name, first }) => first && name === opened[0][0])) return;
    shown = true;
    showFigure(opened[0][0]);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href*="#fig="]');
    if (!link || link.href.split("#")[0] !== withoutHash() || event.defaultPrevented) return;
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    writeAddress(); // what Back returns to
    history.pushState({}, "", link.href);
    followAddress();
  });
  addEventListener("popstate", ({ state }) => (state?.figures ? restore(state.figures) : followAddress()));

  // What a front end asks of `model`, with the page's own memory in place of a kernel's.
  class PageModel {
    constructor(state, kind) {
      const namesakes = models().filter((model) => model.kind === kind).length;
      this.kind = kind;
      this.name = namesakes ? `${kind}-${namesakes + 1}` : kind;
      this.state = state;
      this.first = null; // the state once it is drawn
      this.listeners = {};
      this.widget_manager = null;
    }
    get(name) {
      return this.state[name];
    }
    set(name, value) {
      if (typeof name === "object") {
        Object.entries(name).forEach(([k, v]) => this.set(k, v));
        return;
      }
      if (this.state[name] === value) return;
      this.state[name] = value;
      this.emit(`change:${name}`);
      this.emit("change");
      if (this.first) writeAddressSoon();
    }
    // The address of this page with this figure as it is now; "" if that is too long for one.
    link() {
      writeAddress();
      const part = partOf(this);
      return part && `${withoutHash()}#${part}`;
    }
    save_changes() {}
    send() {}
    on(events, listener) {
      for (const event of events.split(/\s+/)) (this.listeners[event] ||= []).push(listener);
    }
    off(events, listener) {
      for (const event of events ? events.split(/\s+/) : Object.keys(this.listeners)) {
        this.listeners[event] = (this.listeners[event] || []).filter((l) => listener && l !== listener);
      }
    }
    emit(event) {
      (this.listeners[event] || []).slice().forEach((listener) => listener());
    }
  }

  function findAsset(key) {
    if (!page.assets[key]) {
      const tag = document.querySelector(`script[data-rt-asset="${key}"]`);
      if (tag) page.assets[key] = JSON.parse(tag.textContent);
    }
    return page.assets[key];
  }

  function addStyle(asset) {
    if (!asset.css || document.querySelector(`style[data-rt-css="${asset.cssKey}"]`)) return; // in the book it is a file
    const style = document.createElement("style");
    style.setAttribute("data-rt-css", asset.cssKey);
    style.textContent = asset.css;
    document.head.append(style);
  }

  // In the book a module arrives as a function (see rt_static.py); elsewhere as source text.
  function loadModule(key) {
    if (page.modules[key]) return page.modules[key];
    const asset = findAsset(key);
    if (!asset) return Promise.reject(new Error(`readtorch: no module ${key}`));
    addStyle(asset);
    page.modules[key] = asset.make
      ? Promise.resolve(asset.make())
      : import(URL.createObjectURL(new Blob([asset.esm], { type: "text/javascript" }))).then(
          (m) => m.default,
        );
    return page.modules[key];
  }

  async function mountOne(host) {
    host.setAttribute("data-rt-mounted", "pending");
    try {
      const id = host.getAttribute("data-rt-model");
      const state = JSON.parse(host.querySelector("script.rt-state").textContent);
      // two displays of one widget move together
      const model = (page.models[id] ||= new PageModel(state, host.getAttribute("data-rt-name")));
      host.setAttribute("data-rt-figure", model.name);
      const module = await loadModule(host.getAttribute("data-rt-module"));
      const el = document.createElement("div");
      host.append(el); // before render, so that the front end can measure itself
      await module.render({ model, el });
      host.querySelector(".rt-fallback")?.remove();
      host.setAttribute("data-rt-mounted", "yes");
      if (model.first) return; // the second display of it
      model.first = { ...model.state };
      for (const [name, fields] of opened) if (name === model.name) moveFigure(model, fields);
    } catch (error) {
      host.setAttribute("data-rt-mounted", "failed");
      console.error("readtorch: figure not mounted", error);
    }
  }

  page.mount = () =>
    Promise.all([...document.querySelectorAll(".rt-static:not([data-rt-mounted])")].map(mountOne)).then(arriveAtOpened);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", page.mount);
  else page.mount();
})();
