// All rows: sorted, filtered, and opened for their samples and commands.
(() => {
  const STEP = 200;
  // key, title, number format, whether to hide it on a phone
  const columns = [
    { key: "view", title: "device", wide: true, show: (row) => data.views[row.view] },
    { key: "op", title: "op" },
    { key: "dtype", title: "dtype", wide: true },
    { key: "suite", title: "suite", wide: true },
    { key: "workload", title: "workload" },
    { key: "contender", title: "contender" },
    { key: "median", title: "median us", number: digits },
    { key: "tflops", title: "TFLOP/s", number: digits, wide: true },
    { key: "tbps", title: "TB/s", number: digits, wide: true },
    { key: "roof", title: "roof %", number: (value) => (100 * value).toFixed(1), wide: true },
    { key: "speedup", title: "speed-up", number: ratio },
    { key: "verdict", title: "verdict" },
    { key: "samples", title: "samples", number: String, wide: true },
    { key: "status", title: "status", wide: true },
  ];
  if (data.views.length < 2) columns.shift();
  const filterKeys = ["view", "op", "dtype", "suite", "contender", "status", "verdict"];

  const state = { sort: null, descending: false, words: "", chosen: {}, shown: STEP };
  const search = rows.map((row) =>
    [data.views[row.view], row.op, row.dtype, row.suite, row.workload, row.contender, row.status,
      row.verdict].join(" ").toLowerCase());

  const buildFilters = () => {
    const box = document.getElementById("filters");
    const input = make("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows" });
    input.addEventListener("input", () => {
      state.words = input.value.toLowerCase();
      state.shown = STEP;
      draw();
    });
    box.append(input);
    for (const key of filterKeys) {
      const values = [...new Set(rows.map((row) => row[key]))].filter((value) => value !== "");
      if (values.length < 2) continue;
      const title = key === "view" ? "device" : key;
      const select = make("select", { "aria-label": title, id: `filter-${key}` },
        make("option", { value: "", text: `any ${title}` }));
      values.sort();
      for (const value of values) {
        const text = key === "view" ? data.views[value] : value;
        select.append(make("option", { value: String(value), text }));
      }
      select.addEventListener("change", () => {
        state.chosen[key] = select.value;
        state.shown = STEP;
        draw();
      });
      box.append(select);
    }
  };

  const buildHead = () => {
    const line = make("tr");
    for (const column of columns) {
      const cell = make("th", { scope: "col", tabindex: "0", text: column.title,
        class: [column.number ? "n" : "", column.wide ? "wide" : ""].join(" ").trim() });
      const sort = () => {
        state.descending = state.sort === column ? !state.descending : false;
        state.sort = column;
        draw();
      };
      cell.addEventListener("click", sort);
      cell.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
      column.cell = cell;
      line.append(cell);
    }
    document.querySelector("#table thead").append(line);
  };

  // Rows without a value come last, whichever way the column is sorted.
  const compare = (left, right) => {
    const { key } = state.sort;
    const [a, b] = [left[key], right[key]];
    const missing = (value) => value === null || value === undefined || value === "";
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const order = typeof a === "number" ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
    return state.descending ? -order : order;
  };

  const chosenRows = () => {
    const words = state.words.split(/\s+/).filter(Boolean);
    const found = rows.filter((row, index) =>
      words.every((word) => search[index].includes(word)) &&
      filterKeys.every((key) => !state.chosen[key] || String(row[key]) === state.chosen[key]));
    if (state.sort) found.sort(compare);
    return found;
  };

  const copy = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy command"; }, 1500);
  };

  const detail = (row) => {
    const text = make("div", { class: "text" });
    const line = (words) => { if (words) text.append(make("p", { text: words })); };
    if (row.median !== null) {
      line(`${digits(row.median)} us, 5 % to 95 %: ${digits(row.low)} to ${digits(row.high)} us`);
    }
    if (row.speedup !== null) {
      line(`${ratio(row.speedup)} [${ratio(row.speedup_low)}, ${ratio(row.speedup_high)}] over ${row.baseline}`);
    }
    row.notes.forEach(line);
    row.about.forEach(line);
    line(row.facts);
    text.append(make("code", { text: row.repro }));
    const button = make("button", { type: "button", text: "Copy command", class: "copy" });
    button.addEventListener("click", () => copy(row.repro, button));
    text.append(button);
    const inner = make("div", { class: "inner" }, text);
    if (row.bins) inner.append(histogram(row));
    return make("tr", { class: "detail" }, make("td", { colspan: String(columns.length) }, inner));
  };

  const tableRow = (row) => {
    const line = make("tr", { class: "row", tabindex: "0", "data-row": String(row.index) });
    for (const column of columns) {
      const value = row[column.key];
      let text = column.show ? column.show(row) : value;
      if (column.number) text = value === null ? "-" : column.number(value);
      if (column.key === "verdict" && row.status !== "ok") text = row.status;
      const classes = [column.number ? "n" : "", column.wide ? "wide" : "",
        column.key === "verdict" ? String(text) : ""];
      line.append(make("td", { text: text ?? "-", class: classes.join(" ").trim() }));
    }
    const toggle = () => {
      if (line.nextSibling?.classList?.contains("detail")) line.nextSibling.remove();
      else line.after(detail(row));
    };
    line.addEventListener("click", toggle);
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
    return line;
  };

  const draw = () => {
    const found = chosenRows();
    document.querySelector("#table tbody").replaceChildren(...found.slice(0, state.shown).map(tableRow));
    document.getElementById("count").textContent =
      `${found.length} of ${rows.length} rows; a click on a title sorts, on a row shows more`;
    document.getElementById("more").hidden = found.length <= state.shown;
    for (const column of columns) {
      const sorted = state.sort === column;
      const arrow = sorted ? (state.descending ? " ↓" : " ↑") : "";
      column.cell.textContent = column.title + arrow;
      column.cell.setAttribute("aria-sort", sorted ? (state.descending ? "descending" : "ascending") : "none");
    }
  };

  document.getElementById("more").addEventListener("click", () => { state.shown += 5 * STEP; draw(); });
  buildFilters();
  buildHead();
  draw();
})();
