// Follows one response from its first event. After its end, a slider shows any earlier moment.
import { LogPanel, seconds } from "./log.js";
import { following } from "./scrolling.js";
import { errorOf, follow, loggedOut } from "./stream.js";
import { pause } from "./timing.js";

const page = document.getElementById("live");
const find = (id) => document.getElementById(id);
const csrf = page.querySelector("[name=csrfmiddlewaretoken]").value;
const clockAhead = Date.now() - Number(page.dataset.serverMs); // of this machine before the server's
const LABELS = { once: "Allow once", session: "For this session", always: "Always", deny: "Deny" };
const WAIT_LOOK_MS = 5000;
const log = []; // {at, event}
let shownEvents = 0;
let position = null; // of the last event in the log
let isOver = false;

async function post(url, fields) {
  const body = new URLSearchParams(fields);
  find("trouble").hidden = true;
  try {
    const answer = await fetch(url, { method: "POST", body, headers: { "X-CSRFToken": csrf } });
    if (answer.ok) return true;
    const isPage = answer.headers.get("content-type")?.startsWith("text/html"); // of a CSRF failure
    if (answer.status === 401 || isPage) throw loggedOut();
    const refusal = await answer.json().catch(() => null);
    throw new Error(refusal?.error?.message || `The server answered ${answer.status}.`);
  } catch (error) {
    find("trouble").textContent = error.message;
    find("trouble").hidden = false;
    return false;
  }
}

function setStatus(status) {
  if (status !== "queued") find("wait")?.remove();
  find("status").textContent = status.replaceAll("_", " ");
  find("status").className = `badge ${status}`;
}

// What a queued turn waits for changes while others end.
async function watchWait() {
  while (find("wait")) {
    await pause(WAIT_LOOK_MS);
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) continue; // the stream shows that the server is away
    const seen = new DOMParser().parseFromString(await answer.text(), "text/html");
    const wait = seen.getElementById("wait");
    if (wait) find("wait")?.replaceWith(wait);
  }
}

function askApproval(card, event) {
  if (isOver) return;
  const allowed = page.dataset.decisions.split(" ").filter(Boolean); // empty without the permission to decide
  const offered = event.choices ? allowed.filter((value) => event.choices.includes(value)) : allowed;
  const choices = offered.map((value) => [value, LABELS[value] || value]);
  card.ask(event.reason, event.expires_at, choices, (choice) => post(page.dataset.approval, { choice, call_id: event.call_id }));
}

const panel = find("log") && new LogPanel(find("log"), {
  status: setStatus,
  approval: askApproval,
  announce: (text) => { if (!isOver) find("announce").textContent = text; },
  redraw: following,
});

function add(entry) {
  log.push(entry);
  following(() => panel.apply(entry.event, entry.at));
  shownEvents = log.length;
}

function showElapsed() {
  if (log.length) find("elapsed").textContent = seconds(panel.clock() - log[0].at);
}

// -- after the end ------------------------------------------------------------------------
function showAt(ms) {
  const until = log[0].at + ms;
  let count = 1;
  while (count < log.length && log[count].at <= until) count += 1;
  if (count < shownEvents) {
    panel.reset();
    shownEvents = 0;
  }
  for (; shownEvents < count; shownEvents += 1) panel.apply(log[shownEvents].event, log[shownEvents].at);
  panel.clock = () => until;
  panel.tick();
  find("scrub-time").textContent = `${seconds(ms)} of ${seconds(log.at(-1).at - log[0].at)}`;
  find("scrub").setAttribute("aria-valuetext", seconds(ms));
}

let playing = null;

function stopPlaying() {
  cancelAnimationFrame(playing);
  playing = null;
  find("play").textContent = "▶";
  find("play").setAttribute("aria-label", "Play from here");
}

function play() {
  const scrub = find("scrub");
  if (Number(scrub.value) >= Number(scrub.max)) scrub.value = 0;
  let last = performance.now();
  const step = (now) => {
    scrub.value = Number(scrub.value) + (now - last) * Number(find("speed").value);
    last = now;
    showAt(Number(scrub.value));
    if (Number(scrub.value) < Number(scrub.max)) playing = requestAnimationFrame(step);
    else stopPlaying();
  };
  find("play").textContent = "❚❚";
  find("play").setAttribute("aria-label", "Pause");
  playing = requestAnimationFrame(step);
}

function openScrubber() {
  const scrub = find("scrub");
  const span = Math.max(1, log.at(-1).at - log[0].at);
  scrub.max = span;
  scrub.value = span;
  scrub.addEventListener("input", () => { stopPlaying(); showAt(Number(scrub.value)); });
  scrub.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault(); // from commit to commit, not by a share of the width
    stopPlaying();
    scrub.value = nextCommit(Number(scrub.value), step);
    showAt(Number(scrub.value));
  });
  find("play").addEventListener("click", () => (playing ? stopPlaying() : play()));
  find("scrubber").hidden = false;
  showAt(span);
}

function nextCommit(ms, step) {
  const times = [...new Set(log.map((entry) => entry.at - log[0].at))];
  const found = step > 0 ? times.find((time) => time > ms) : times.findLast((time) => time < ms);
  return found ?? (step > 0 ? times.at(-1) : 0);
}

// -- while it runs ------------------------------------------------------------------------
async function open(signal) {
  const headers = position === null ? {} : { "Last-Event-ID": position };
  const answer = await fetch(page.dataset.events, { headers, signal });
  if (answer.ok) return answer;
  throw answer.status === 401 ? loggedOut() : await errorOf(answer);
}

function take(frame) {
  if (frame.event === "end") {
    end();
    return;
  }
  position = frame.id;
  add(JSON.parse(frame.data));
}

function end() {
  isOver = true;
  clearInterval(ticking);
  if (find("cancel")) find("cancel").hidden = true;
  panel.clock = () => log.at(-1).at;
  showElapsed();
  openScrubber();
}

function setAway(isAway) {
  if (find("connection").hidden !== isAway) return;
  find("connection").textContent = isAway ? "The server does not answer. Reconnecting…" : "";
  find("connection").hidden = !isAway;
}

async function watch() {
  try {
    await follow({ open, take, isOver: () => isOver, away: setAway });
  } catch (error) {
    find("trouble").textContent = error.message;
    find("trouble").hidden = false;
  }
}

const ticking = setInterval(showElapsed, 100);
find("cancel")?.addEventListener("click", async () => {
  find("cancel").disabled = true;
  if (!(await post(page.dataset.cancel, {}))) find("cancel").disabled = false;
});
if (panel) {
  panel.clock = () => Date.now() - clockAhead;
  watch();
  watchWait();
} else {
  clearInterval(ticking);
}
