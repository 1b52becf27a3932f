// The text field above a table of the index: rows that hold every word that was typed stay.
(() => {
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
