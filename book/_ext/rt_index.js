// The tables of the index: their roles, the addresses of lines, and the text field above, which leaves the rows that hold
// every word that was typed.
(() => {
  const ROLES = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell", col: "columnheader", rowgroup: "rowheader" };
  const ADDRESS = /^([^:]+)(?::(\d+)(?:–(\d+))?)?$/; // path:first–last

  for (const table of document.querySelectorAll(".rt-index")) {
    for (const one of [table, ...table.querySelectorAll("thead, tbody, tr, td, th")]) {
      one.setAttribute("role", ROLES[one.scope || one.localName]); // narrow screens lay the table out as blocks
    }
    for (const place of table.querySelectorAll("a:not([href])")) { // see rt_index.py, Note [ Addresses of lines ]
      const [, path, first, last] = place.textContent.match(ADDRESS);
      const base = path.startsWith("src/") ? table.dataset.ours : table.dataset.theirs;
      place.href = base + path + (first ? `#L${first}` : "") + (last ? `-L${last}` : "");
    }
  }

  for (const field of document.querySelectorAll(".rt-filter input")) {
    const count = field.closest(".rt-filter").querySelector("output");
    const table = document.getElementById(field.dataset.table);
    const groups = [...table.tBodies].map((body) => ({
      body,
      rows: [...body.rows].filter((row) => row.cells.length > 1).map((row) => [row, row.textContent.toLowerCase()]),
    }));

    const filter = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { body, rows } of groups) {
        let here = 0;
        for (const [row, text] of rows) {
          row.hidden = !words.every((word) => text.includes(word));
          here += !row.hidden;
        }
        body.hidden = here === 0;
        shown += here;
      }
      count.textContent = words.length ? `${shown} found` : `${shown} in all`;
    };

    field.addEventListener("input", filter);
    field.closest(".rt-filter").hidden = false;
    filter();
  }
})();
