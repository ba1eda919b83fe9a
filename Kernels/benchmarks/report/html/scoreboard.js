// The scoreboard against a baseline of the reader's choice, and sorted by a contender.
for (const section of document.querySelectorAll(".scoreboard")) {
  const blocks = data.boards[Number(section.dataset.view)];
  const choice = section.querySelector(".baseline");

  const fill = (cell, score, itself) => {
    cell.className = score ? score[3] : "none";
    if (!score) {
      cell.replaceChildren(itself ? "baseline" : "-");
      return;
    }
    cell.replaceChildren(make("b", { text: score[0] }), " ", make("small", { text: score[1] }),
      make("small", { text: score[2] }));
  };

  const draw = () => {
    for (const table of section.querySelectorAll(".scores")) {
      const { contenders, lines } = blocks[Number(table.dataset.block)];
      const baseline = contenders.indexOf(choice.value);
      for (const line of table.querySelectorAll("tbody tr")) {
        const { best, against } = lines[Number(line.dataset.line)];
        const scores = choice.value === "" ? best : against[baseline] ?? [];
        line.querySelectorAll("td").forEach((cell, index) => fill(cell, scores[index], index === baseline));
      }
    }
  };
  choice.addEventListener("change", draw);

  for (const table of section.querySelectorAll(".scores")) {
    const body = table.querySelector("tbody");
    const heads = [...table.querySelectorAll("thead th")];
    table.querySelectorAll(".sort").forEach((button, index) => {
      button.addEventListener("click", () => {
        const head = heads[index + 1];
        const descending = head.getAttribute("aria-sort") === "ascending";
        const value = (line) => parseFloat(line.querySelectorAll("td")[index].textContent);
        const missing = (line) => Number.isNaN(value(line));
        const lines = [...body.children].sort((left, right) => missing(left) - missing(right) ||
          (descending ? value(right) - value(left) : value(left) - value(right)) || 0);
        body.replaceChildren(...lines);
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      });
    });
  }
}
