"use strict";
// What all parts of the page share: the data, numbers for people, elements, histograms.
const data = JSON.parse(document.getElementById("data").textContent);
const ratio = (value) => (value >= 10 ? value.toPrecision(4) : value.toFixed(3));
const digits = (value) => (value >= 1000 ? value.toFixed(0) : value.toPrecision(4));

const make = (tag, options = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};

// Rows as objects; their texts are stored once.
const rows = (() => {
  const { fields, texts, commands, values } = data.rows;
  const read = {
    number: (value) => value,
    text: (value) => texts[value],
    texts: (value) => value.map((place) => texts[place]),
    command: ([head, who, tail]) => [...commands[head].map((place) => texts[place]),
      ...(who === undefined ? [] : [`contenders ${texts[who]}`, texts[tail]])].filter(Boolean).join(" --"),
  };
  return values.map((row, index) => Object.fromEntries([["index", index],
    ...fields.map(([name, kind], place) => [name, read[kind](row[place])])]));
})();

const histogram = ({ bins: [low, high, outside], shape }) => {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 280 110");
  svg.setAttribute("class", "histogram");
  const add = (tag, attributes, text) => {
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    svg.append(element);
  };
  const width = 280 / shape.length;
  [...shape].forEach((digit, index) => {
    const height = (80 * parseInt(digit, 36)) / 35;
    add("rect", { x: index * width, y: 88 - height, width: width - 1, height, fill: "#0072b2" });
  });
  const text = { y: 104, "font-size": 11, fill: "currentColor" };
  add("text", { ...text, x: 0 }, `${digits(low)} us`);
  add("text", { ...text, x: 280, "text-anchor": "end" }, `${digits(high)} us`);
  if (outside) add("text", { ...text, x: 140, "text-anchor": "middle" }, `${outside} outside`);
  return svg;
};

// What a link points into is unfolded.
const unfold = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
};
window.addEventListener("hashchange", unfold);
unfold();

// Paper cannot be unfolded.
const folded = [];
window.addEventListener("beforeprint", () => {
  for (const element of document.querySelectorAll("details:not([open])")) {
    element.open = true;
    folded.push(element);
  }
});
window.addEventListener("afterprint", () => folded.splice(0).forEach((element) => { element.open = false; }));
