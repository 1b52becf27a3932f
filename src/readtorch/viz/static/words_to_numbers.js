// Which words make which number: for each of two programs its numbers, and below them the words of the twister.

function programPanel({ result, inputs, set }, name) {
  const one = result[name],
    chosen = one.numbers[result.at - 1]?.words ?? [];
  const number = ({ text }, k) =>
    h("span", {
      class: `rt-w2n-number ${k + 1 === result.at ? "rt-is-pick" : one.same[k] ? "rt-is-gold" : "rt-is-plain"}${one.same[k] ? " rt-w2n-same" : ""}${one.twins.includes(k + 1) ? " rt-w2n-twin" : ""}`,
      onclick: () => set({ at: k + 1 }),
    }, text); // prettier-ignore
  const word = (users, i) => {
    const kind = chosen.includes(i + 1) ? "pick" : one.lost.includes(i + 1) ? "free" : "pale";
    return h("span", {
      class: `rt-w2n-word rt-is-${kind}`, title: `word ${i + 1} is ${result.words[i]}`,
      onclick: () => users.length && set({ at: users.includes(result.at) ? result.at : users[0] }),
    }, String(i + 1)); // prettier-ignore
  };
  const hexadecimal = chosen.map((i) => result.words[i - 1]).join(" ");
  return h(
    "div",
    { class: "rt-w2n-panel" },
    h("p", { class: "rt-dhead" }, h("code", {}, inputs[name]), h("span", {}, `: ${one.about}`)),
    h("div", { class: "rt-w2n-row" }, one.numbers.map(number)),
    h("div", { class: "rt-w2n-row", "aria-hidden": "true" }, one.users.map(word)),
    h("p", { class: "rt-w2n-how" }, h("b", {}, `Number ${result.at}`), `: ${one.how}. `, h("code", {}, hexadecimal)),
  );
}

const draw = (parts) => {
  const { result, set } = parts,
    count = Math.max(1, result.one.numbers.length, result.two.numbers.length);
  const texts = ["one", "two"].map((name) => {
    const { numbers, how } = result[name];
    return `${name === "one" ? "first" : "second"} program: ${numbers[result.at - 1]?.text ?? "none"}, ${how}`;
  });
  const both = h("div", {
    class: "rt-w2n", tabindex: 0, role: "slider", "data-focus": "numbers", "aria-label": "number", "aria-valuemin": 1, "aria-valuemax": count,
    "aria-valuenow": result.at, "aria-valuetext": `number ${result.at}; ${texts.join("; ")}`,
  }, programPanel(parts, "one"), programPanel(parts, "two")); // prettier-ignore
  const choose = (at) => () => set({ at: Math.max(1, Math.min(count, at)) });
  onKeys(both, {
    ArrowLeft: choose(result.at - 1), ArrowUp: choose(result.at - 1), ArrowRight: choose(result.at + 1), ArrowDown: choose(result.at + 1),
    Home: choose(1), End: choose(count),
  }); // prettier-ignore
  return [both];
};

export default { render: figure(model, draw) };
