// The playground: an ordinary client of the public API.
import { LogPanel, TERMINAL, element } from "./log.js";
import { copyButton } from "./markdown.js";
import { api } from "./public_api.js";
import { following, scrollToEnd } from "./scrolling.js";
import { follow, loggedOut, refusal } from "./stream.js";
import { pause } from "./timing.js";

const page = document.getElementById("chat");
const find = (id) => document.getElementById(id);
const APPROVAL_LOOK_MS = 1500; // a call without events for this long may wait for approval
const UNNUMBERED = Number.MAX_SAFE_INTEGER; // a turn that the list of turns did not have yet
const LOOK_MS = 2000; // for turns that another tab or client has added
const LABELS = { once: "Allow once", session: "For this session", always: "Always", deny: "Deny" };

let session = page.dataset.session;
const turns = new Map(); // by response id
const running = new Set(); // the turns whose answers are being streamed
const away = new Set(); // the turns that lost their connection

function trouble(message) {
  find("trouble").textContent = message || "";
  find("trouble").hidden = !message;
}

function setRunning(turn, isRunning) {
  if (isRunning) running.add(turn);
  else running.delete(turn);
  find("stop").hidden = !running.size;
  find("send").disabled = running.size > 0;
}

function setAway(turn, isAway) {
  if (away.has(turn) === isAway) return;
  if (isAway) away.add(turn);
  else away.delete(turn);
  find("connection").textContent = away.size ? "The server does not answer. Reconnecting…" : "";
  find("connection").hidden = !away.size;
}

// One turn: its section of the page, and the position up to which its log was read.
class Turn {
  constructor(section, id = null) {
    this.section = section;
    this.cursor = -1;
    this.isOver = false;
    this.number = UNNUMBERED; // in the session
    const root = element("div", "log");
    section.append(root);
    const announce = (text) => (find("announce").textContent = text);
    const status = (name) => this.showQueued(name === "queued");
    this.panel = new LogPanel(root, { announce, status, redraw: following });
    if (id) this.setId(id);
  }

  showQueued(isQueued) {
    this.section.querySelector(".queued")?.remove();
    if (!isQueued) return;
    const note = element("p", "note queued", "Queued: the live view shows what it waits for.");
    this.section.querySelector(".log").before(note);
  }

  setId(id) {
    this.id = id;
    turns.set(id, this);
  }

  take(frame) {
    if (frame.data === "[DONE]") return;
    const event = JSON.parse(frame.data);
    if (event.type === "response.created") this.begin(event.response.id);
    this.cursor = event.sequence_number;
    following(() => this.panel.apply(event, Date.now()));
    this.isOver ||= TERMINAL[event.type] === true;
    this.lookForApprovals();
  }

  begin(id) {
    this.setId(id);
    const link = element("a", "note", "Watch it in the live view");
    link.href = page.dataset.live.replace("RESPONSE", encodeURIComponent(id));
    if (!this.section.querySelector(":scope > a.note")) this.section.append(link);
    if (!page.querySelector("aside [aria-current]")) listChat(this.section.querySelector(".from-user .text").textContent);
  }

  resume(signal) {
    if (!this.id) throw refusal("The connection broke before the answer began.", 400);
    const after = this.cursor >= 0 ? `&starting_after=${this.cursor}` : "";
    return api(`/v1/responses/${encodeURIComponent(this.id)}?stream=true${after}`, { signal });
  }

  // Reads a stream that is open already, if there is one, and resumes it until the response ends.
  async follow(answer = null) {
    this.lookForApprovals();
    const open = async (signal) => {
      const opened = answer ?? (await this.resume(signal));
      answer = null;
      return opened;
    };
    try {
      await follow({
        open,
        take: (frame) => this.take(frame),
        isOver: () => this.isOver,
        away: (isAway) => setAway(this, isAway),
      });
    } finally {
      setAway(this, false);
      clearTimeout(this.looking);
      this.panel.stop();
    }
  }

  lookForApprovals() {
    clearTimeout(this.looking);
    if (!this.isOver) this.looking = setTimeout(() => this.findApprovals(), APPROVAL_LOOK_MS);
  }

  async findApprovals() {
    if (this.isOver || !this.id || !this.panel.openCalls.length) return;
    const path = `/v1/responses/${encodeURIComponent(this.id)}/approval`;
    try {
      const { pending } = await (await api(path)).json();
      this.showApprovals(path, pending);
    } catch (error) {
      if (error.isFinal) return;
    }
    this.lookForApprovals(); // also while the server is away, which the stream shows
  }

  showApprovals(path, pending) {
    for (const call of pending) {
      const card = this.panel.tool(call.call_id, call.tool);
      if (card.state === "awaiting_approval") continue;
      card.began(call.requested_at * 1000, "awaiting_approval");
      card.ask(call.reason, call.expires_at, call.choices.map((value) => [value, LABELS[value] || value]), async (choice) => {
        try {
          await api(path, { method: "POST", body: JSON.stringify({ choice, request_id: call.request_id }) });
        } catch (error) {
          trouble(error.message);
          return false;
        }
        card.ended("in_progress");
        return true;
      });
    }
  }
}

// Lists a new chat as soon as the server has stored it.
function listChat(name) {
  const list = page.querySelector("aside ul");
  const link = element("a", "", name.length > 60 ? `${name.slice(0, 59)}…` : name);
  link.href = `${page.dataset.page}/${session}`;
  link.setAttribute("aria-current", "page");
  const entry = element("li");
  entry.append(link);
  list.querySelector(".muted")?.remove();
  list.prepend(entry);
}

function newSession() {
  const random = crypto.getRandomValues(new Uint8Array(12));
  session = page.dataset.prefix + Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  history.replaceState(null, "", `${page.dataset.page}/${session}`);
}

async function finish(turn, answer = null) {
  setRunning(turn, true);
  try {
    await turn.follow(answer);
  } catch (error) {
    trouble(error.message);
  }
  setRunning(turn, false);
}

function addSection(text) {
  find("hint").hidden = true;
  const section = element("section", "turn");
  const asked = element("article", "card from-user");
  const copying = copyButton("Copy the message", () => text);
  const question = element("p", "text", text);
  question.dir = "auto";
  asked.append(element("h3", "", "user"), copying, question);
  section.append(asked);
  find("turns").append(section);
  return section;
}

async function send(text) {
  trouble();
  if (!session) newSession();
  const turn = new Turn(addSection(text));
  scrollToEnd();
  setRunning(turn, true);
  try {
    const body = JSON.stringify({ model: find("model").value, input: text, stream: true });
    const answer = await api("/v1/responses", { method: "POST", body, headers: { "X-Hermes-Session-Id": session, "X-Hermes-Approval-Wait": "true" } });
    await finish(turn, answer);
  } catch (error) {
    trouble(error.message);
  }
  setRunning(turn, false);
  if (!turn.id) {
    turn.section.remove();
    find("text").value = text;
  }
  find("text").focus({ preventScroll: true });
}

// -- turns of other tabs and clients --------------------------------------------------------
async function lookForTurns() {
  const numbered = [...turns.values()].filter((turn) => turn.number !== UNNUMBERED);
  const newest = Math.max(0, ...numbered.map((turn) => turn.number));
  const answer = await fetch(`${page.dataset.page}/${session}/turns?after=${newest}`);
  if (answer.redirected) trouble(loggedOut().message);
  if (!answer.ok || answer.redirected) return;
  const { data } = await answer.json();
  // A turn that is being sent may be among them. Without its id, it can't be recognised.
  const isSending = [...running].some((turn) => !turn.id);
  if (!isSending) following(() => showTurns(data));
}

function originNote(origin) {
  const note = element("p", "note origin", `${origin.words} `);
  const link = element("a", "", `turn ${origin.turn}`);
  link.href = `#turn-${origin.turn}`;
  note.append(link);
  return note;
}

const inOrder = (some) => [...some].sort((one, other) => one.number - other.number);

function showTurns(found) {
  for (const { id, turn: number, asked, origin } of found) {
    if (!turns.has(id)) finish(new Turn(addSection(asked), id));
    const turn = turns.get(id);
    turn.number = number;
    turn.section.id = `turn-${number}`;
    if (origin && !turn.section.querySelector(".origin")) turn.section.prepend(originNote(origin));
  }
  const sections = inOrder(turns.values()).map((turn) => turn.section);
  const shown = [...find("turns").children];
  const isMoved = sections.some((section, index) => section !== shown[index]);
  if (isMoved) find("turns").append(...sections);
}

async function watchTurns() {
  for (;;) {
    await pause(LOOK_MS);
    if (!session || document.hidden) continue;
    await lookForTurns().catch(() => null); // open streams show that the server is away
  }
}

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = find("text").value.trim();
  if (!text || find("send").disabled) return;
  find("text").value = "";
  send(text);
});
find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    find("ask").requestSubmit();
  }
});
find("stop").addEventListener("click", async () => {
  const [oldest] = inOrder(running).filter((turn) => turn.id);
  if (!oldest) return;
  const path = `/v1/responses/${encodeURIComponent(oldest.id)}/cancel`;
  await api(path, { method: "POST" }).catch((error) => trouble(error.message));
});

// The page has the earlier questions; the answers come from the log.
const earlier = [...document.querySelectorAll(".turn")].map((section) => {
  const turn = new Turn(section, section.dataset.response);
  turn.number = Number(section.dataset.turn);
  return turn;
});
const newest = earlier.pop();
if (newest) finish(newest);
watchTurns();
for (const turn of earlier) await turn.follow().catch((error) => trouble(error.message));
scrollToEnd();
