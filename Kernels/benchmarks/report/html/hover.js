// The samples behind a mark or a row: over it, or with the arrow keys in a picture that has the focus.
(() => {
  const tip = document.getElementById("tip");
  let marked = null;

  const hide = () => {
    tip.hidden = true;
    marked?.classList.remove("marked");
    marked = null;
  };

  const show = (element) => {
    const row = rows[element.dataset.row];
    if (!row || row.median === null) return;
    hide();
    marked = element;
    element.classList.add("marked");
    const line = (words) => make("p", { text: words });
    const rates = [row.tflops && `${digits(row.tflops)} TFLOP/s`, row.tbps && `${digits(row.tbps)} TB/s`,
      row.roof && `${(100 * row.roof).toFixed(1)} % of the roof`].filter(Boolean);
    tip.replaceChildren(
      make("b", { text: `${row.contender} ${row.suite}/${row.workload}` }),
      line(`${digits(row.median)} us, 5 % to 95 %: ${digits(row.low)} to ${digits(row.high)} us`),
      line(`${row.samples} samples`),
      line(rates.join(", ")));
    if (row.speedup !== null) {
      const interval = `[${ratio(row.speedup_low)}, ${ratio(row.speedup_high)}]`;
      tip.append(line(`${ratio(row.speedup)} ${interval} over ${row.baseline}`));
    }
    if (row.bins) tip.append(histogram(row));
    tip.hidden = false;
    const at = element.getBoundingClientRect();
    const room = tip.getBoundingClientRect();
    const left = Math.max(4, Math.min(at.right + 12, document.documentElement.clientWidth - room.width - 4));
    const below = at.bottom + 12 + room.height < window.innerHeight;
    const top = below ? at.bottom + 12 : Math.max(4, at.top - 12 - room.height);
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  };

  document.addEventListener("pointerover", (event) => {
    const element = event.target.closest?.("[data-row]");
    if (element && event.pointerType !== "touch") show(element);
    else hide();
  });
  document.addEventListener("click", (event) => {
    const element = event.target.closest?.(".tiles [data-row]");
    if (element) show(element);
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const tile = document.activeElement?.closest?.(".tiles svg");
    if (!step || !tile) return;
    const marks = [...tile.querySelectorAll("[data-row]")];
    if (!marks.length) return;
    event.preventDefault();
    const now = marks.indexOf(marked);
    show(marks[(now + step + marks.length) % marks.length] ?? marks[0]);
  });
  document.addEventListener("focusout", hide);
})();
