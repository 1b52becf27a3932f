// Paper is light, whatever the reader's screen is, and it cannot be unfolded: hidden cells are printed. (The
// theme does the same with solutions. Folded lines of quoted source stay folded, since the caption says where
// they are, and so does the code that compares with readtorch.)
(function () {
  const page = document.documentElement;
  let theme, opened;
  window.addEventListener("beforeprint", () => {
    theme = page.dataset.theme;
    page.dataset.theme = "light";
    opened = document.querySelectorAll(".cell details:not([open], .rt-folded, .rt-same, .rt-static *)");
    opened.forEach((cell) => (cell.open = true));
  });
  window.addEventListener("afterprint", () => {
    page.dataset.theme = theme;
    opened.forEach((cell) => (cell.open = false));
  });
})();
