// What has been done so far, as buttons: each shows its step. words: what each verdict adds.
function passBar({ steps }, step, go, words) {
  const button = ({ title, verdict }, i) =>
    h("button", {
      type: "button", class: `rt-stmt${i === step ? " rt-is-pick" : ""}${verdict === "right" ? "" : " rt-fx-wrong"}`,
      "data-focus": `pass-${i}`, "aria-current": i === step ? "step" : null, onclick: () => go(i),
    }, title, words[verdict]); // prettier-ignore
  return h("div", { class: "rt-statements", role: "group", "aria-label": "the passes" }, steps.map(button));
}
