// What should I use? The same judgement as `report choose`: measured, between measured shapes, or unknown.
(() => {
  const element = document.getElementById("choose-data");
  if (!element) return;
  const data = JSON.parse(element.textContent);
  const form = document.getElementById("choose-form");
  const answer = document.getElementById("choose-answer");
  const ratio = (value) => (value >= 100 ? value.toPrecision(4) : value.toFixed(3));
  const micro = (value) => (value >= 1000 ? value.toFixed(0) : value.toPrecision(4));
  const distinct = (values) => [...new Set(values)];
  const byNumber = (left, right) => Number(left) - Number(right) || String(left).localeCompare(String(right));
  const state = { exact: {}, sizes: {} };

  const make = (tag, options = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "text") made.textContent = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  const chooser = (title, values, chosen, changed) => {
    const select = make("select", { name: title });
    for (const value of values) select.append(make("option", { value, text: value === "" ? "none" : value }));
    select.value = chosen;
    select.addEventListener("change", () => changed(select.value));
    return make("label", { text: `${title} ` }, select);
  };

  const sized = (title, values, chosen, changed) => {
    const list = make("datalist", { id: `choose-sizes-${title}` });
    for (const value of values) list.append(make("option", { value }));
    const input = make("input", { name: title, type: "number", min: 1, value: chosen, list: list.id });
    input.addEventListener("input", () => changed(Number(input.value)));
    return make("label", { text: `${title} ` }, input, list);
  };

  const leaders = (race) => race.standings
    .filter(([, , behind, verdict], place) => place === 0 || (behind && verdict !== "faster"))
    .map(([name]) => name);

  const common = (races) => {
    const wins = new Map();
    for (const race of races) {
      leaders(race).forEach((name, place) => {
        const [led, won] = wins.get(name) || [0, 0];
        wins.set(name, [led + 1, won + (place === 0 ? 1 : 0)]);
      });
    }
    const everywhere = [...wins].filter(([, [led]]) => led === races.length);
    everywhere.sort(([, [, left]], [, [, right]]) => right - left);
    return everywhere.length ? everywhere[0][0] : null;
  };

  const axes = (races) => distinct(races.flatMap((race) => Object.keys(race.sizes)));
  const isBetween = (middle, to, names) => names.some((axis) => middle.sizes[axis] !== to.sizes[axis])
    && names.every((axis) => {
      const ends = [state.sizes[axis], to.sizes[axis]];
      return Math.min(...ends) <= middle.sizes[axis] && middle.sizes[axis] <= Math.max(...ends);
    });
  const widest = (race, names) => Math.max(1, ...names.map((axis) => {
    const factor = race.sizes[axis] / state.sizes[axis];
    return Math.max(factor, 1 / factor);
  }));
  const covers = (races, names) => names.every((axis) =>
    races.some((race) => race.sizes[axis] <= state.sizes[axis])
    && races.some((race) => race.sizes[axis] >= state.sizes[axis]));

  const told = (races) => {
    const names = axes(races);
    const listed = (word, some) => some.map((race) => {
      const sizes = names.map((axis) => `${axis} ${race.sizes[axis]}`).join(", ");
      return `${word}: ${race.workload} (${sizes}): ${leaders(race).join(" or ")}`;
    });
    const same = races.filter((race) => names.every((axis) => race.sizes[axis] === state.sizes[axis]));
    if (same.length) {
      const lines = same.flatMap((race) => {
        const [[name, median], second] = race.standings;
        const [other, , behind, verdict] = second || [];
        let line = `use ${name}: ${micro(median)} us`;
        if (!second) line += ", the only contender with a time";
        else if (behind) {
          const [middle, low, high] = behind.map(ratio);
          line += `, ${middle} [${low}, ${high}] times as fast as ${other} (${verdict})`;
        }
        const ties = leaders(race).slice(1);
        const tie = ties.length ? [`near-tie: ${ties.join(", ")} may be as fast`] : [];
        return [`${line}; measured as ${race.workload}`, ...tie];
      });
      return common(same) ? lines : [...lines, "cannot tell: these races of one shape have different winners"];
    }
    const around = races.filter((race) => !races.some((other) => isBetween(other, race, names)));
    const close = around.filter((race) => widest(race, names) <= data.far);
    if (names.length && covers(close, names)) {
      const name = common(close);
      return [name ? `use ${name}: not measured, but it is among the fastest on all shapes around`
        : "cannot tell: the fastest changes between the measured shapes around", ...listed("between", close)];
    }
    const nearest = [...races].sort((left, right) => widest(left, names) - widest(right, names)).slice(0, 3);
    return ["cannot tell: outside of what was measured, or in a gap", ...listed("nearest measured", nearest)];
  };

  const show = (races) => {
    answer.replaceChildren(...told(races).map((line, place) =>
      make(place === 0 ? "strong" : "p", { text: line })));
  };

  // Each choice leaves those races that agree with it; what no longer exists is chosen anew.
  const draw = () => {
    let races = data.races;
    const fields = [];
    const narrow = (title, of, key, at) => {
      const values = distinct(races.map(of)).sort(byNumber);
      if (!values.includes(at[key])) at[key] = values[0];
      if (values.length > 1) {
        fields.push(chooser(title, values, at[key], (value) => {
          at[key] = value;
          draw();
          form.querySelector(`[name="${CSS.escape(title)}"]`)?.focus();
        }));
      }
      races = races.filter((race) => of(race) === at[key]);
    };
    narrow("device", (race) => data.views[race.view], "view", state);
    narrow("operation", (race) => race.op, "op", state);
    narrow("type", (race) => race.dtype, "dtype", state);
    for (const axis of distinct(races.flatMap((race) => Object.keys(race.exact))).sort()) {
      narrow(axis, (race) => race.exact[axis] ?? "", axis, state.exact);
    }
    const left = races;
    for (const axis of axes(left).sort()) {
      const values = distinct(left.map((race) => race.sizes[axis])).sort(byNumber);
      if (!(state.sizes[axis] >= 1)) state.sizes[axis] = left[0].sizes[axis];
      fields.push(sized(axis, values, state.sizes[axis], (value) => {
        if (value >= 1) {
          state.sizes[axis] = value;
          show(left);
        }
      }));
    }
    form.replaceChildren(...fields);
    if (left.length) show(left);
    else answer.textContent = "no row has a time";
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  draw();
})();
