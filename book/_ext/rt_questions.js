// The field above the questions: it leaves those in which every word that was typed occurs, or, where there are none, those
// with the most of them. Words that make any sentence a question do not count.
(() => {
  const COMMON = new Set("a an and are can do does for how i in is it me my of on or should the to what when where which why with".split(" "));
  const groups = [...document.querySelectorAll("#questions > section")].map((group) => ({
    group,
    questions: [...group.querySelectorAll(":scope > section")].map((one) => [one, one.textContent.toLowerCase()]),
  }));
  const first = groups[0].group;

  const field = Object.assign(document.createElement("input"), { id: "rt-question", type: "text", autocomplete: "off", spellcheck: false });
  const label = Object.assign(document.createElement("label"), { htmlFor: field.id, textContent: "Your question" });
  const count = Object.assign(document.createElement("output"), { ariaLive: "polite" });
  const everywhere = Object.assign(document.createElement("a"), { textContent: "Search the whole book" });
  const filter = Object.assign(document.createElement("div"), { className: "rt-filter" });
  filter.append(label, field, count, everywhere);
  first.before(filter);

  const wordsOf = (text) => text.toLowerCase().match(/[^\s?,"'`]+/g) ?? [];

  const show = () => {
    const all = wordsOf(field.value);
    const words = all.some((word) => !COMMON.has(word)) ? all.filter((word) => !COMMON.has(word)) : all;
    const hits = (text) => words.filter((word) => text.includes(word)).length;
    const most = Math.max(...groups.flatMap(({ questions }) => questions.map(([, text]) => hits(text))));
    let shown = 0;
    for (const { group, questions } of groups) {
      let here = 0;
      for (const [one, text] of questions) {
        one.hidden = words.length > 0 && (most === 0 || hits(text) < most);
        here += !one.hidden;
      }
      group.hidden = here === 0;
      shown += here;
    }
    count.textContent = words.length ? `${shown} found` : `${shown} in all`;
    everywhere.href = `../search.html?q=${encodeURIComponent(field.value)}`;
    everywhere.hidden = words.length === 0;
  };

  // a link to a question that is not shown shows it
  const follow = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.closest("#questions [hidden]")) {
      field.value = "";
      show();
      target.scrollIntoView();
    }
  };

  field.addEventListener("input", show);
  addEventListener("hashchange", follow);
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  show();
  follow();
})();
