// Explorers: sliders above a picture. What they show is the library's own answer: kept in states.json for the settings
// that a page opens with, asked of the same Python code in a worker for all others.
const SVG = "http://www.w3.org/2000/svg";
const HERE = new URL("./", import.meta.url);

// ---- numbers as people read them -------------------------------------------------------------------------------------
const scaled = (value, unit) => {
  if (value === 0) return `0 ${unit}`;
  const names = ["p", "n", "µ", "m", "", "k", "M", "G", "T", "P"];
  let step = Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9);
  step = Math.max(-4, Math.min(5, step));
  return `${Number((value / 1000 ** step).toPrecision(3))} ${names[step + 4]}${unit}`;
};
const seconds = (value) => scaled(value, "s");
const SAY = {
  "": String,
  s: seconds,
  B: (value) => scaled(value, "B"),
  "B/s": (value) => scaled(value, "B/s"),
  "%": (value) => `${Number((100 * value).toPrecision(2))} %`,
  times: (value) => `× ${value}`,
};
const DRAW = { roofline: drawRoof, tiles: drawTiles };  // the others are lanes of spans

// ---- Python, once somebody needs it ----------------------------------------------------------------------------------
let worker = null, number = 0;
const waiting = new Map();
function ask(kind, options) {
  if (!worker) {
    worker = new Worker(new URL("python_worker.js", HERE), { type: "module" });
    worker.onmessage = ({ data }) => {
      if (data.stage) { loading(data); return; }
      const { resolve, reject } = waiting.get(data.number);
      waiting.delete(data.number);
      data.error ? reject(new Error(data.error)) : resolve(data.result);
    };
    worker.onerror = (event) => {
      waiting.forEach(({ reject }) => reject(new Error(event.message || "this browser cannot run Python")));
      stop();
    };
  }
  const mine = ++number;
  return new Promise((resolve, reject) => {
    waiting.set(mine, { resolve, reject });
    worker.postMessage({ number: mine, kind, options });
  });
}
// How far Python is, in each place that waits for it; the last stage takes it away.
function loading({ stage, done, of }) {
  document.querySelectorAll(".edl-loading").forEach((place) => {
    if (done === of) { place.remove(); return; }
    place.querySelector("progress").value = done / of;
    place.querySelector("span").textContent = stage;
  });
}
function waits(place) {
  const box = document.createElement("div"), bar = document.createElement("progress"), said = document.createElement("span");
  box.className = "edl-loading";
  bar.setAttribute("aria-label", "loading Python");
  Object.assign(bar, { max: 1, value: 0 });
  said.textContent = "loading Python from this site (13 MB, only once)";
  box.append(bar, said);
  place.append(box);
}
function stop() {
  document.querySelectorAll(".edl-loading").forEach((place) => place.remove());
  if (worker) worker.terminate();
  worker = null;
  waiting.forEach(({ reject }) => reject(new Error("stopped")));
  waiting.clear();
}
const kept = fetch(new URL("states.json", HERE)).then((answer) => answer.json());

// ---- drawing ---------------------------------------------------------------------------------------------------------
function node(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}
// On a phone the picture has fewer units across instead of smaller letters.
const wide = (place) => Math.max(320, Math.min(900, place.clientWidth || 900));
function canvas(place, height, said) {
  const width = wide(place);
  place.replaceChildren();
  return node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said, class: "edl-picture" }, place);
}
let patterns = 0;
function hatch(svg) {  // copies and messages are hatched: colour alone tells nothing to some
  const id = `edl-hatch-${++patterns}`;
  const defs = node("defs", {}, svg);
  const pattern = node("pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, defs);
  node("rect", { width: 6, height: 6, class: "edl-copy" }, pattern);
  node("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "edl-line" }, pattern);
  return `url(#${id})`;
}
function drawLanes(place, result) {
  const isNarrow = wide(place) < 600, left = isNarrow ? 74 : 110, ticks = isNarrow ? 2 : 4;
  const width = wide(place) - left - 20, row = 30, rows = result.rows;
  const svg = canvas(place, rows.length * row + 34, result.told);
  const fill = hatch(svg);
  const end = result.end_s || 1, x = (time) => left + (width * time) / end;
  rows.forEach((name, index) => {
    node("text", { x: left - 8, y: index * row + 20, "text-anchor": "end" }, svg, name);
    node("line", { x1: left, x2: left + width, y1: index * row + 27, y2: index * row + 27, class: "edl-rule" }, svg);
  });
  for (const [at, kind, name, start, stop] of result.spans) {
    const box = { x: x(start), y: at * row + 5, width: Math.max(0.7, x(stop) - x(start)), height: 20, rx: 1.5 };
    const style = kind === "copy" || kind === "comm" ? { fill } : { class: `edl-${kind}` };
    const rect = node("rect", { ...box, ...style }, svg);
    node("title", {}, rect, `${name}, ${seconds(start)} to ${seconds(stop)}`);
  }
  for (let i = 0; i <= ticks; i++) {
    const anchor = i === 0 ? "start" : i === ticks ? "end" : "middle", time = (end * i) / ticks;
    node("text", { x: x(time), y: rows.length * row + 24, "text-anchor": anchor }, svg, seconds(time));
  }
}
function drawRoof(place, result) {
  const svg = canvas(place, 324, result.told);
  const low = -1, high = 4.2, bottom = 8, top = 16, last = wide(place) - 30;
  const x = (value) => 70 + ((last - 70) * (Math.log10(value) - low)) / (high - low);
  const y = (value) => 280 - (260 * (Math.log10(value) - bottom)) / (top - bottom);
  for (let power = 0; power <= 4; power++)
    node("text", { x: x(10 ** power), y: 304, "text-anchor": "middle" }, svg, `${10 ** power}`);
  for (let power = 9; power <= 15; power += 3) {
    node("line", { x1: 70, x2: last, y1: y(10 ** power), y2: y(10 ** power), class: "edl-rule" }, svg);
    node("text", { x: 62, y: y(10 ** power) + 4, "text-anchor": "end" }, svg, scaled(10 ** power, ""));
  }
  node("text", { x: last, y: 321, "text-anchor": "end" }, svg, "FLOP/B");
  node("text", { x: 8, y: 14 }, svg, "FLOP/s");
  const ridge = result.peak_flop_per_s / result.byte_per_s;
  const left = 10 ** low, right = 10 ** high;
  const path = [[left, left * result.byte_per_s], [ridge, result.peak_flop_per_s], [right, result.peak_flop_per_s]];
  node("polyline", { points: path.map(([a, b]) => `${x(a)},${y(b)}`).join(" "), class: "edl-roof" }, svg);
  const [a, b] = [Math.min(Math.max(result.point[0], left), right), result.point[1]];
  node("line", { x1: x(a), x2: x(a), y1: y(b), y2: 280, class: "edl-rule" }, svg);
  const dot = node("circle", { cx: x(a), cy: y(b), r: 7, class: "edl-here" }, svg);
  node("title", {}, dot, result.told);
}

function drawTiles(place, result) {
  const [m, n, k] = result.sizes, [rows, columns] = result.tile, gap = 16, first = k + gap, left = 8;
  const scale = Math.min(1, (wide(place) - 2 * left) / (first + n)), bottom = scale * (first + m) + 20;
  const svg = canvas(place, bottom + 26 * result.bars.length, result.told);
  const fill = hatch(svg);
  const box = (x, y, width, height, style) =>
    node("rect", { x: left + scale * x, y: 2 + scale * y, width: scale * width, height: scale * height, ...style }, svg);
  const row = rows * Math.floor(m / rows / 2), column = columns * Math.floor(n / columns / 2);  // a program in the middle
  box(0, first + row, k, rows, { class: "edl-kernel" });
  box(first + column, 0, columns, k, { class: "edl-kernel" });
  box(first + column, first + row, columns, rows, { class: "edl-work" });
  const line = (x, y, across, down) => node("line", {
    x1: left + scale * x, x2: left + scale * (x + across), y1: 2 + scale * y, y2: 2 + scale * (y + down), class: "edl-rule",
  }, svg);
  for (let y = rows; y < m; y += rows) line(first, first + y, n, 0);
  for (let x = columns; x < n; x += columns) line(first + x, first, 0, m);
  for (const [name, x, y, width, height] of [["A", 0, first, k, m], ["B", first, 0, n, k], ["C", first, first, n, m]]) {
    box(x, y, width, height, { class: "edl-outline" });
    node("text", { x: left + scale * x + 6, y: scale * y + 18 }, svg, name);
  }
  result.bars.forEach(([name, bytes, times], index) => {
    const y = bottom + 26 * index, width = Math.max(1, (0.5 * wide(place) * bytes) / result.most_bytes);
    node("text", { x: left, y: y + 14 }, svg, name);
    node("rect", { x: left + 20, y: y + 2, width, height: 16, fill }, svg);
    node("text", { x: left + 26 + width, y: y + 14 }, svg, `${scaled(bytes, "B")}, ${times} ×`);
  });
}

// ---- one explorer ----------------------------------------------------------------------------------------------------
let controls_made = 0;
function control([name, text, values, unit, start], changed) {
  const label = document.createElement("label"), id = `edl-control-${++controls_made}`;
  label.htmlFor = id;
  const said = document.createElement("span");
  said.textContent = text;
  label.append(said);
  if (unit === "choice") {
    const select = document.createElement("select");
    select.id = id;
    select.setAttribute("aria-label", text);
    values.forEach((choice) => select.append(new Option(choice, choice)));
    select.selectedIndex = start;
    select.addEventListener("change", changed);
    label.append(select);
    return { name, label, place: () => select.selectedIndex };
  }
  const slider = document.createElement("input"), shown = document.createElement("output");
  slider.setAttribute("aria-label", text);
  Object.assign(slider, { id, type: "range", min: 0, max: values.length - 1, step: 1, value: start });
  const say = () => {
    shown.value = SAY[unit](values[slider.value]);
    slider.setAttribute("aria-valuetext", shown.value);
  };
  slider.addEventListener("input", () => { say(); changed(); });
  label.append(slider, shown);
  say();
  return { name, label, place: () => Number(slider.value) };
}
async function explorer(place) {
  const kind = place.dataset.kind, { controls, states } = (await kept)[kind];
  const picture = document.createElement("div"), told = document.createElement("p"), box = document.createElement("div");
  box.className = "edl-controls";
  told.setAttribute("role", "status");
  const made = controls.map((one) => control(one, update));
  made.forEach(({ label }) => box.append(label));
  place.replaceChildren(box, picture, told);
  let busy = false, again = false, drawn = () => {};
  window.addEventListener("resize", () => drawn());
  async function update() {
    if (busy) { again = true; return; }  // while one answer is worked out, only the newest question counts
    busy = true;
    const places = made.map((one) => one.place());
    const options = Object.fromEntries(made.map((one, i) => [one.name, controls[i][2][places[i]]]));
    const known = states[places.join(",")];
    if (!known && !worker) {
      told.textContent = "Loading Python …";
      waits(place);
    }
    try {
      const result = known || (await ask(kind, options));
      drawn = () => (DRAW[kind] || drawLanes)(picture, result);
      drawn();
      told.textContent = `modelled: ${result.told}`;
    } catch (error) {
      told.textContent = `${error.message}. The picture above shows the previous setting.`;
    }
    busy = false;
    if (again) { again = false; update(); }
  }
  update();
}

// ---- a program of one's own ------------------------------------------------------------------------------------------
const LONGEST_MS = 10000;  // longer than any program that a page can draw
function editor(place) {
  const text = place.querySelector("textarea"), run = place.querySelector("button");
  const picture = place.querySelector(".edl-drawn"), out = place.querySelector("pre");
  run.addEventListener("click", async () => {
    run.disabled = true;
    out.textContent = worker ? "" : "Loading Python …";
    if (!worker) waits(place);
    const loaded = worker ? Promise.resolve() : ask("streams", { chunks: 1, count: 1 });
    let timer = null;
    try {
      await loaded;
      timer = setTimeout(stop, LONGEST_MS);
      const result = await ask("program", { text: text.value });
      out.textContent = `${result.printed}${result.told}`;
      result.rows.length ? drawLanes(picture, result) : picture.replaceChildren();
    } catch (error) {
      const stopped = error.message === "stopped";
      out.textContent = stopped ? `stopped after ${LONGEST_MS / 1000} s: look for a loop that never ends` : error.message;
    }
    clearTimeout(timer);
    run.disabled = false;
  });
}

// ---- number formats: a table of each exponent's scale, made by the library -------------------------------------------
async function formats(place) {
  const table = await (await fetch(new URL("formats.json", HERE))).json();
  const choose = document.createElement("select"), bits = document.createElement("div"), told = document.createElement("p");
  choose.setAttribute("aria-label", "format");
  table.forEach((fmt, index) => choose.append(new Option(fmt.name, index)));
  bits.className = "edl-bits";
  told.setAttribute("role", "status");
  place.replaceChildren(choose, bits, told);
  let pattern = [];
  function value(fmt) {
    const number = (from, to) => pattern.slice(from, to).reduce((sum, bit) => 2 * sum + bit, 0);
    const sign = fmt.signed && pattern[0] ? -1 : 1, first = fmt.signed ? 1 : 0;
    const exponent = number(first, first + fmt.exponent_bits), fraction = number(first + fmt.exponent_bits, fmt.bits);
    const special = fmt.specials[pattern.join("")];
    if (special) return special;
    if (fmt.exponents[exponent] === null) return fraction ? "nan" : sign < 0 ? "-inf" : "inf";
    const [scale, whole] = fmt.exponents[exponent];
    return String(sign * scale * (whole + fraction / 2 ** fmt.mantissa_bits));
  }
  function show() {
    const fmt = table[choose.value], first = fmt.signed ? 1 : 0;
    const part = (i) => (i < first ? "sign" : i < first + fmt.exponent_bits ? "exponent" : "fraction");
    [...bits.children].forEach((button, i) => {
      button.textContent = pattern[i];
      button.setAttribute("aria-label", `${part(i)} bit ${fmt.bits - 1 - i}: ${pattern[i]}`);
      button.className = `edl-${part(i)}`;
    });
    told.textContent = `${fmt.name}: ${value(fmt)}   (largest ${fmt.largest}, smallest above 0 ${fmt.smallest})`;
  }
  function pick() {
    const fmt = table[choose.value];
    pattern = [...fmt.one].map(Number);
    bits.replaceChildren(...pattern.map((_, i) => {
      const button = document.createElement("button");
      button.addEventListener("click", () => { pattern[i] ^= 1; show(); });
      return button;
    }));
    show();
  }
  choose.addEventListener("change", pick);
  pick();
}

document.querySelectorAll(".edl-explorer").forEach(explorer);
document.querySelectorAll(".edl-editor").forEach(editor);
document.querySelectorAll(".edl-formats").forEach(formats);
