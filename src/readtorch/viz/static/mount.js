// Mounts the figures of a page that has no kernel. A classic script, so that it works from file:// too.
(function () {
  const page = (window.__readtorch = window.__readtorch || { assets: {}, models: {}, modules: {} });
  if (page.mount) {
    page.mount();
    return;
  }

  // What a front end asks of `model`, with the page's own memory in place of a kernel's.
  class PageModel {
    constructor(state) {
      this.state = state;
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
    if (document.querySelector(`style[data-rt-css="${asset.cssKey}"]`)) return;
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
      const model = (page.models[id] ||= new PageModel(state)); // two displays of one widget move together
      const module = await loadModule(host.getAttribute("data-rt-module"));
      const el = document.createElement("div");
      host.append(el); // before render, so that the front end can measure itself
      await module.render({ model, el });
      host.querySelector(".rt-fallback")?.remove();
      host.setAttribute("data-rt-mounted", "yes");
    } catch (error) {
      host.setAttribute("data-rt-mounted", "failed");
      console.error("readtorch: figure not mounted", error);
    }
  }

  page.mount = () => document.querySelectorAll(".rt-static:not([data-rt-mounted])").forEach(mountOne);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", page.mount);
  else page.mount();
})();
