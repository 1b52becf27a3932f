// The reader's half of rt_search.py: finds sections by words and code names, and shows where they stand.
// Everything arrives in classic scripts, since pages opened as files may not fetch.
(function () {
  "use strict";
  const NAME = /[\p{L}_][\p{L}\p{N}_]*(?:(?:\.|::)[\p{L}\p{N}_]+)*/gu;
  const WEIGHTS = [1, 1.5, 4]; // once, often, quoted here: see rt_search.py
  const IN_TITLE = 8;
  const IN_PAGE_TITLE = 12;
  const IN_REFERENCE = 4; // the name of an entry there: chapters come first
  const IN_SIGNATURE = 0.5; // what an entry says besides its name, its parameters above all
  const SHOWN = 40;
  const FEW = 5;
  const AROUND = 110; // characters before and after a hit
  const here = document.currentScript.src.replace(/search\.js.*$/, "");
  const waiting = {}; // page number: a promise of its texts,
  const arrivals = {}; // and what fulfils it

  // What a question has besides what it is about.
  const ASKING = new Set(
    ("a an and are as at be but by can could did do does for from get has have how i if in into is it its me my not of on or " +
      "our should so than that the their then there these they this to was we were what when where which who why will with " +
      "would you your").split(" "),
  );

  const normal = (name) => name.replaceAll("::", ".").toLowerCase();
  const bare = (word) => word.replace(/^_+|_+$/g, "");

  // How well a word of the book answers a word of the query: 1 the same, down to 0.
  function quality(term, word) {
    if (term === word) return 1;
    const at = term.indexOf(word);
    if (at < 0) return 0;
    const starts = at === 0 || term[at - 1] === ".";
    const ends = at + word.length === term.length || term[at + word.length] === ".";
    if (starts && ends) return 0.8;
    if (starts) return 0.3 + (0.3 * word.length) / term.length;
    return bare(term) === bare(word) ? 0.7 : word.length > 2 ? 0.2 + (0.2 * word.length) / term.length : 0;
  }

  const isEntry = ([, , anchor]) => anchor.includes("."); // of the API reference

  // The words of a query that say what it is about; all of them if none does.
  function wordsOf(query) {
    const words = [...new Set((query.match(NAME) || []).map(normal))];
    const about = words.filter((word) => !ASKING.has(word));
    return about.length ? about : words;
  }

  // -> Map: number of a section -> how much it has to do with the word
  function sectionsWith(index, word) {
    const scores = new Map();
    const inText = (section) => (isEntry(index.sections[section]) ? IN_SIGNATURE : 1);
    const note = (section, score) => scores.set(section, Math.max(score, scores.get(section) || 0));
    for (const [term, places] of Object.entries(index.words)) {
      const fits = quality(term, word);
      if (fits) for (const place of places) note(place >> 2, fits * WEIGHTS[place & 3] * inText(place >> 2));
    }
    const last = word.slice(word.lastIndexOf(".") + 1); // a title says Module for torch.nn.Module
    const inTitle = (term) => Math.max(quality(term, word), last === word ? 0 : quality(term, last) / 2);
    index.sections.forEach(([, title, anchor], n) => {
      const best = Math.max(0, ...(title.match(NAME) || []).map((term) => inTitle(normal(term))));
      if (best) note(n, best * (!anchor ? IN_PAGE_TITLE : isEntry([, , anchor]) ? IN_REFERENCE : IN_TITLE));
    });
    if (scores.size) return scores;
    if (word.includes(".")) return sectionsWith(index, word.slice(word.indexOf(".") + 1)); // where it is not written in full
    return /...s$/.test(word) ? sectionsWith(index, word.slice(0, -1)) : scores; // a plural
  }

  // -> the numbers of the sections, best first, and the words that none has
  //
  // A section need not have all words, but more than half of them (or as many as any has; one less if few have so many). A
  // word that few sections have says more, and the share of the words that a section has counts more than how often it has one.
  function search(index, query) {
    const words = wordsOf(query);
    const each = new Map(words.map((word) => [word, sectionsWith(index, word)]));
    words.slice(1).forEach((word, n) => joined(index, words[n], word, each));
    const total = new Map();
    for (const scores of each.values()) {
      const rarity = Math.log(1 + index.sections.length / scores.size);
      for (const [section, score] of scores) {
        const before = total.get(section) || { words: 0, score: 0 };
        total.set(section, { words: before.words + 1, score: before.score + rarity * score });
      }
    }
    const most = Math.max(0, ...[...total.values()].map((one) => one.words));
    const enough = Math.min(most, Math.floor(words.length / 2) + 1);
    const having = (count) => [...total].filter(([, one]) => one.words >= count);
    const found = having(enough).length < FEW ? having(Math.max(1, enough - 1)) : having(enough);
    const worth = (one) => one.score * (one.words / words.length) ** 2;
    return {
      found: found.sort(([m, a], [n, b]) => worth(b) - worth(a) || m - n).map(([section]) => section),
      lost: words.filter((word) => !each.get(word).size),
    };
  }

  // "batch norm" also means BatchNorm and batch_norm.
  function joined(index, one, other, each) {
    for (const name of [one + other, `${one}_${other}`]) {
      for (const [section, score] of sectionsWith(index, name)) {
        for (const scores of [each.get(one), each.get(other)]) {
          scores.set(section, Math.max(score, scores.get(section) || 0));
        }
      }
    }
  }

  // How many letters to change, add or leave out make one word of the other. To swap two neighbors is half a mistake.
  function distance(one, other) {
    let before, last, row = Array.from({ length: other.length + 1 }, (_, n) => n);
    for (let i = 1; i <= one.length; i++) {
      [before, last, row] = [last, row, [i]];
      for (let j = 1; j <= other.length; j++) {
        row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (one[i - 1] !== other[j - 1]));
        const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
        if (swapped) row[j] = Math.min(row[j], before[j - 2] + 0.5);
      }
    }
    return row[other.length];
  }

  // The word of the book nearest to one that it does not have; of equals the most frequent.
  function nearest(index, word) {
    const counts = new Map(Object.entries(index.words).map(([term, places]) => [term, places.length]));
    for (const term of index.sections.flatMap(([, title]) => (title.match(NAME) || []).map(normal))) {
      counts.set(term, 1 + (counts.get(term) || 0));
    }
    let [best, least] = [null, 1 + (word.length > 2) + (word.length > 5)];
    for (const [term, count] of counts) {
      if (Math.abs(bare(term).length - bare(word).length) > least) continue;
      const far = distance(bare(term), bare(word));
      if (far < least || (best && far === least && count > counts.get(best))) [best, least] = [term, far];
    }
    return best;
  }

  // -- showing ---------------------------------------------------------------------------------------

  function element(tag, attributes, ...children) {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  }

  // The longest end of a dotted name that a text has: `foo` of torch.nn.Module.foo
  function written(text, name) {
    const there = normal(text).includes(normal(name));
    const rest = name.replace(/^[^.:]+(\.|::)/, "");
    return there || rest === name ? name : written(text, rest);
  }

  function excerpt(text, names) {
    const words = names.map((name) => written(text, name));
    const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\\\.|::/g, "(?:\\.|::)"));
    const pattern = new RegExp(`(${escaped.join("|")})`, "giu");
    const first = text.search(pattern);
    if (first < 0) return [text.slice(0, 2 * AROUND)];
    const from = first <= AROUND ? 0 : Math.min(first, text.indexOf(" ", first - AROUND) + 1);
    const part = text.slice(from, first + AROUND + words[0].length);
    const pieces = part.split(pattern).map((piece, n) => (n % 2 ? element("mark", { textContent: piece }) : piece));
    return [from ? "… " : "", ...pieces, first + AROUND < text.length ? " …" : ""];
  }

  // `then` gets the texts of a page's sections; its script is loaded once.
  function withTexts(page, then) {
    if (waiting[page]) return waiting[page].then(then);
    waiting[page] = new Promise((resolve) => {
      document.head.append(element("script", { src: `${here}search/${page}.js` }));
      arrivals[page] = resolve;
    });
    return waiting[page].then(then);
  }

  function show(index, { found, lost }, query) {
    const words = wordsOf(query);
    const firstOf = index.pages.map((_, page) => index.sections.findIndex(([of]) => of === page));
    const list = document.getElementById("rt-search-results");
    const root = document.documentElement.dataset.content_root;
    for (const n of found.slice(0, SHOWN)) {
      const [page, title, anchor] = index.sections[n];
      const pageTitle = index.sections[firstOf[page]][1];
      const link = element("a", { href: `${root}${index.pages[page]}.html${anchor && "#" + anchor}` }, anchor ? title : pageTitle);
      const around = element("p", { className: "rt-search-excerpt" });
      list.append(element("li", {}, link, anchor ? element("span", { className: "rt-search-page" }, ` in ${pageTitle}`) : "", around));
      withTexts(page, (texts) => around.append(...excerpt(texts[n - firstOf[page]], words)));
    }
    const status = document.getElementById("rt-search-status");
    const named = lost.length > 1 || found.length; // else the query is that one word
    status.replaceChildren(said(found.length, query), ...lost.flatMap((word) => instead(index, word, query, named)));
  }

  // What to look for in place of a word that is nowhere.
  function instead(index, word, query, named) {
    const better = nearest(index, word);
    const said = named ? ` “${word}” is nowhere in the book.` : "";
    if (!better) return [said];
    const asked = query.replace(NAME, (name) => (normal(name) === word ? better : name));
    return [`${said} Did you mean `, element("a", { href: `?q=${encodeURIComponent(asked)}`, textContent: better }), "?"];
  }

  function said(count, query) {
    if (!count) return `Nothing in the book is called or contains “${query}”.`;
    const shown = count > SHOWN ? `; the first ${SHOWN} are listed` : "";
    return `${count} section${count > 1 ? "s" : ""} for “${query}”${shown}.`;
  }

  // What rt_search.py wrote in short, in full.
  function unpack(index) {
    for (const section of index.sections) if (section.length < 3) section.push(section[1]);
    const words = Object.create(null); // "__proto__" is a word, too
    let word = "";
    for (const entry of index.words.split(";")) {
      const [name, steps] = entry.split(" ");
      word = word.slice(0, parseInt(name[0], 36)) + name.slice(1);
      let place = 0;
      words[word] = steps.split(",").map((step) => (place += parseInt(step, 36)));
    }
    index.words = words;
  }

  window.rtSearch = {
    index(index) {
      unpack(index);
      const query = (new URLSearchParams(location.search).get("q") || "").trim();
      const field = document.querySelector(".bd-search-container input[name=q]");
      field.value = query;
      field.focus();
      if (query) show(index, search(index, query), query);
    },
    texts: (page, texts) => arrivals[page](texts),
  };
})();
