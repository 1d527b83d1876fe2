// Refreshes the page while it is visible, and draws the plots. The server renders the tables.
"use strict";

const CHART_HEIGHT = 150;
const ANNOUNCE_EVERY_MS = 15000; // a screen reader that read out every change would read nothing else

// A <details> that the operator opened stays open when the part is refreshed.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");

// A canvas needs the color of the theme that is shown, and not both of light-dark().
const swatch = document.body.appendChild(document.createElement("span"));
swatch.hidden = true;
const color = (name) => {
  swatch.style.color = `var(${name})`;
  return getComputedStyle(swatch).color;
};
// A value between two gaps has no line, so it is drawn as a dot.
const alone = (chart, row) => chart.data[row].flatMap((value, at, all) =>
  value != null && all[at - 1] == null && all[at + 1] == null ? [at] : []);
const line = (label, stroke) => ({
  label, stroke: () => color(stroke), width: 2, spanGaps: false,
  points: { show: true, size: 6, width: 0, fill: () => color(stroke), filter: alone },
});
const bars = (label, fill) => ({
  label, stroke: () => color(fill), fill: () => color(fill), width: 0, points: { show: false },
  paths: uPlot.paths.bars({ size: [0.8, 40] }),
});

const PLOTS = {
  throughput: { rows: ["ended", "failed"], series: [bars("ended", "--accent"), bars("failed", "--bad")] },
  errors: { rows: ["error_percent"], series: [line("failed, %", "--bad")], top: 100 },
  first: { rows: ["first_p50", "first_p95"], series: [line("median, s", "--accent"), line("95 %, s", "--second")] },
  total: { rows: ["total_p50", "total_p95"], series: [line("median, s", "--accent"), line("95 %, s", "--second")] },
  tokens: { rows: ["input_tokens", "output_tokens"], series: [line("input", "--accent"), line("output", "--second")] },
};

const COMPACT = new Intl.NumberFormat("en", { notation: "compact" });
const charts = {};
let slotSecs = 0;

function options(plot, width) {
  const axis = { stroke: () => color("--muted"), grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false } };
  const range = (_, low, high) => [0, plot.top || (high > 0 ? high * 1.1 : 1)];
  return {
    width, height: CHART_HEIGHT, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range } }, axes: [{ ...axis }, { ...axis, size: 46, values: (_, ticks) => ticks.map((tick) => COMPACT.format(tick)) }], series: [{}, ...plot.series],
    hooks: { setCursor: [showValues] },
  };
}

// The responses that ended in the slot under the pointer. The table has the same links.
function listSlot(chart) {
  const start = chart.data[0][chart.cursor.idx];
  if (start === undefined) return;
  const time = (secs) => encodeURIComponent(new Date(secs * 1000).toISOString());
  const list = document.getElementById("plot-grid").dataset.list;
  const span = `finished_at__gte=${time(start)}&finished_at__lt=${time(start + slotSecs)}`;
  location.assign(`${list}?${span}`);
}

// The values under the pointer, as the tooltip of the plot.
function showValues(chart) {
  const at = chart.cursor.idx;
  const values = at == null ? "" : chart.series.slice(1)
    .map((series, n) => `${series.label}: ${chart.data[n + 1][at] ?? "–"}`).join("\n");
  chart.root.title = values && `${new Date(chart.data[0][at] * 1000).toLocaleString()}\n${values}`;
}

function draw() {
  const source = document.getElementById("plots");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  slotSecs = data.slot_secs;
  const isEmpty = !data.ended.some(Boolean);
  document.getElementById("no-plots").hidden = !isEmpty;
  document.getElementById("plot-grid").hidden = isEmpty;
  if (isEmpty) return;
  for (const [name, plot] of Object.entries(PLOTS)) {
    const rows = [data.at, ...plot.rows.map((row) => data[row])];
    const root = document.getElementById(`plot-${name}`);
    if (charts[name]) charts[name].setData(rows);
    else charts[name] = new uPlot(options(plot, root.clientWidth), rows, root);
    root.classList.toggle("without-values", !rows.slice(1).flat().some((value) => value != null));
  }
}

function announce() {
  const announced = document.getElementById("announce");
  const summary = document.getElementById("summary");
  const now = Date.now();
  if (!summary || summary.textContent === announced.textContent || now - (announce.last || 0) < ANNOUNCE_EVERY_MS) return;
  announce.last = now;
  announced.textContent = summary.textContent;
}

function setStale(isStale) {
  document.getElementById("stale").hidden = !isStale;
}

document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden) event.preventDefault();
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  setStale(false);
  if (event.detail.target.id === "past") draw();
  announce();
});
document.body.addEventListener("htmx:sendError", () => setStale(true));
document.body.addEventListener("htmx:responseError", () => setStale(true));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.querySelectorAll("[hx-get]").forEach((part) => htmx.trigger(part, "look-again"));
});
document.addEventListener("themechange", () => {
  Object.values(charts).forEach((chart) => chart.redraw());
});
document.getElementById("plot-throughput").addEventListener("click", () => {
  if (charts.throughput) listSlot(charts.throughput);
});
document.querySelectorAll(".plot").forEach((place) => {
  new ResizeObserver(() => {
    const chart = charts[place.id.replace("plot-", "")];
    if (chart && chart.width !== place.clientWidth) chart.setSize({ width: place.clientWidth, height: CHART_HEIGHT });
  }).observe(place);
});
draw();
