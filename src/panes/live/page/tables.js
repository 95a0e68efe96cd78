// Tables and lists. Whatever the data says becomes text, never markup.

import { cell, count, position } from "./format.js";

const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const drawn = new Map();

// Rows are made anew only when they differ from those that are there, and never under a pressed mouse.
function fill(id, columns, rows, { extra = () => [], inFirst = null, mark = "" } = {}) {
  const key = JSON.stringify([columns, rows, mark]);
  const table = document.getElementById(id);
  if (drawn.get(id) === key || table.matches(":active")) return;
  drawn.set(id, key);
  const isNumber = columns.map((_, i) => rows.length > 0 && rows.every((r) => r[i] === null || typeof r[i] === "number"));
  const head = element("tr");
  columns.forEach((name, i) => head.append(element("th", name, isNumber[i] ? "num" : "")));
  const body = rows.map((row, n) => {
    const line = element("tr");
    row.forEach((value, i) => {
      const made = element("td", undefined, isNumber[i] ? "num" : "");
      made.append(i === 0 && inFirst ? inFirst(n) : document.createTextNode(cell(value)));
      if (!isNumber[i]) made.title = String(value ?? "");
      line.append(made);
    });
    line.append(...extra(n));
    return line;
  });
  const top = element("thead"), rest = element("tbody");
  top.append(head); rest.append(...body);
  const held = table.contains(document.activeElement) ? document.activeElement.title : "";
  table.replaceChildren(top, rest);
  if (held) [...table.querySelectorAll("button")].find((button) => button.title === held)?.focus();
}

export function showAnswers({ answers, axis }) {
  const keep = answers.columns.map((_, i) => i).filter((i) => !["window_start", "window_end"].includes(answers.columns[i]));
  fill("answers", keep.map((i) => answers.columns[i]), answers.rows.map((row) => keep.map((i) => row[i])));
  const of = answers.of ? `${answers.of}: ` : "";
  const by = answers.by ? `, greatest ${answers.by} first` : "";
  document.getElementById("answers-said").textContent = of + (answers.note || (answers.window === null
    ? `the last ${count(answers.rows.length)}`
    : `window that ends ${position(axis, answers.window)}: ${count(answers.rows.length)} of ${count(answers.total)}${by}`));
}

export function showApart({ set_aside: apart }) {
  const key = JSON.stringify(apart.reasons);
  if (drawn.get("reasons") !== key) {
    drawn.set("reasons", key);
    const lines = apart.reasons.map((reason) => {
      const line = element("div", undefined, "reason");
      line.dataset.kind = reason.kind;
      line.append(element("i"), element("b", count(reason.rows)), element("span", `${reason.kind}: ${reason.reason}`));
      return line;
    });
    document.getElementById("reasons").replaceChildren(...(lines.length ? lines : [element("p", "none so far", "said")]));
  }
  fill("apart", apart.columns, apart.rows);
}

// A query's name is a button: its answers are shown from then on.
export function showQueries({ register, answers }, { onRemove, onChoose }) {
  const rows = register.queries.map((q) => [q.name, q.failed ?? q.window, q.answers, q.cost, q.store || "nothing", q.shape < 0 ? null : q.shape, q.text]);
  const inFirst = (n) => {
    const { name, failed } = register.queries[n];
    if (failed) return document.createTextNode(name);
    const button = element("button", name, "name");
    button.setAttribute("aria-pressed", String(name === answers.of));
    button.title = `show the answers of ${name}`;
    button.addEventListener("click", () => onChoose(name));
    return button;
  };
  const extra = (n) => {
    if (!register.can_edit) return [];
    const place = element("td"), button = element("button", "remove");
    button.title = `remove ${register.queries[n].name}`;
    button.addEventListener("click", () => onRemove(register.queries[n].name));
    place.append(button);
    return [place];
  };
  const [store, shape] = register.of_joins ? ["joins", "join"] : ["grouped by", "shape"];
  fill("queries", ["query", "window", "answers", "cost", store, shape, "text"], rows, { extra, inFirst, mark: answers.of });
  const shown = register.queries.length < register.found ? `${count(register.queries.length)} of ${count(register.found)} shown` : `${count(register.found)} shown`;
  document.getElementById("queries-said").textContent =
    `${count(register.total)} ${register.total === 1 ? "query" : "queries"} in ${register.shares} · ${shown} · cost: ${register.cost} · click a name for its answers`;
}

export function showTiles(tiles) {
  const place = document.getElementById("tiles");
  while (place.children.length < tiles.length) {
    const tile = element("div", undefined, "tile");
    tile.append(element("b"), element("span"));
    place.append(tile);
  }
  tiles.forEach(({ value, name, isLoud }, i) => {
    const [number, words] = place.children[i].children;
    if (number.textContent !== value) number.textContent = value;
    if (words.textContent !== name) words.textContent = name;
    place.children[i].dataset.loud = String(Boolean(isLoud));
  });
}
