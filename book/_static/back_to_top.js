// The theme's button at the top would lie on a figure that is being used. CSS could hide it, body:has(.rt-w:focus-within), but
// then the browser works out the style of the whole page anew whenever the focus moves: a tenth of a second on a long page.
(function () {
  const give_way = (focused) =>
    document.getElementById("pst-back-to-top")?.classList.toggle("rt-gives-way", !!focused?.closest?.(".rt-w"));
  document.addEventListener("focusin", (event) => give_way(event.target));
  document.addEventListener("focusout", (event) => give_way(event.relatedTarget));
})();
