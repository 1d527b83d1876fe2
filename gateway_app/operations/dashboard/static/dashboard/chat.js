// The playground: an ordinary client of the public API, with a token that lasts an hour.
import { LogPanel, TERMINAL, element } from "./log.js";

const page = document.getElementById("chat");
const find = (id) => document.getElementById(id);
const csrf = page.querySelector("[name=csrfmiddlewaretoken]").value;
const RETRY_MS = 500;
const MAX_RETRY_MS = 5000;
const APPROVAL_LOOK_MS = 1500; // a call without events for this long may wait for approval
const RENEW_MS = 60_000; // before the token ends
const LABELS = { once: "Approve once", session: "For this session", always: "Always", deny: "Deny" };

let token = null;
let tokenEnds = 0;
let session = page.dataset.session;
let running = null; // the turn whose answer is being streamed

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function bearer() {
  if (!token || Date.now() > tokenEnds - RENEW_MS) {
    const answer = await fetch(page.dataset.tokenUrl, { method: "POST", headers: { "X-CSRFToken": csrf } });
    if (!answer.ok) throw new Error("You are logged out. Open this page again to log in.");
    const given = await answer.json();
    token = given.token;
    tokenEnds = Date.now() + given.expires_in * 1000;
  }
  return token;
}

async function api(path, options = {}) {
  const headers = { Authorization: `Bearer ${await bearer()}`, "Content-Type": "application/json", ...options.headers };
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  const error = new Error(body?.error?.message || `The server answered ${answer.status}.`);
  error.status = answer.status;
  throw error;
}

// The events of a stream, up to its end or to the end of the connection.
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += value;
    const frames = buffer.split("\n\n");
    buffer = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("");
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

function trouble(message) {
  find("trouble").textContent = message || "";
  find("trouble").hidden = !message;
}

function setRunning(turn) {
  running = turn;
  find("stop").hidden = !turn;
  find("send").disabled = Boolean(turn);
}

function scrollDown() {
  find("turns").lastElementChild?.scrollIntoView({ block: "end" });
  window.scrollTo(0, document.documentElement.scrollHeight);
}

function isAtBottom() {
  return window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;
}

// One turn: its section of the page, and the position up to which its log was read.
class Turn {
  constructor(section, id = null) {
    this.section = section;
    this.id = id;
    this.cursor = -1;
    this.isOver = false;
    const root = element("div", "log");
    section.append(root);
    this.panel = new LogPanel(root, { announce: (text) => (find("announce").textContent = text) });
  }

  async read(answer) {
    this.lookForApprovals();
    for await (const event of events(answer)) {
      const follows = isAtBottom();
      if (event.type === "response.created") this.begin(event.response.id);
      this.cursor = event.sequence_number;
      this.panel.apply(event, Date.now());
      this.isOver ||= TERMINAL[event.type] === true;
      this.lookForApprovals();
      if (follows) scrollDown();
    }
  }

  begin(id) {
    this.id = id;
    const link = element("a", "note", "Watch it in the live view");
    link.href = page.dataset.live.replace("RESPONSE", encodeURIComponent(id));
    if (!this.section.querySelector("a.note")) this.section.append(link);
    if (!page.querySelector("aside [aria-current]")) listChat(this.section.querySelector(".from-user .text").textContent);
  }

  // Resumes after the last event that was read, until the response ends.
  async follow() {
    let wait = RETRY_MS;
    while (!this.isOver) {
      try {
        const after = this.cursor >= 0 ? `&starting_after=${this.cursor}` : "";
        const answer = await api(`/v1/responses/${encodeURIComponent(this.id)}?stream=true${after}`);
        wait = RETRY_MS;
        trouble();
        await this.read(answer);
      } catch (error) {
        if (error.status && error.status < 500) throw error;
        trouble(`The connection is lost (${error.message}); trying again.`);
      }
      if (!this.isOver) await pause(wait);
      wait = Math.min(wait * 2, MAX_RETRY_MS);
    }
    clearTimeout(this.looking);
    this.panel.stop();
  }

  lookForApprovals() {
    clearTimeout(this.looking);
    if (!this.isOver) this.looking = setTimeout(() => this.showApprovals(), APPROVAL_LOOK_MS);
  }

  async showApprovals() {
    if (this.isOver || !this.id || !this.panel.openCalls.length) return;
    const path = `/v1/responses/${encodeURIComponent(this.id)}/approval`;
    const { pending } = await (await api(path)).json();
    for (const call of pending) {
      const card = this.panel.tool(call.call_id, call.tool);
      if (card.state === "awaiting_approval") continue;
      card.began(call.requested_at * 1000, "awaiting_approval");
      card.ask(call.reason, call.choices.map((value) => [value, LABELS[value] || value]), async (choice) => {
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
    this.lookForApprovals();
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

async function finish(turn) {
  setRunning(turn);
  try {
    await turn.follow();
  } catch (error) {
    trouble(error.message);
  }
  setRunning(null);
  find("text").focus({ preventScroll: true });
}

async function send(text) {
  trouble();
  if (!session) newSession();
  find("hint").hidden = true;
  const section = element("section", "turn");
  const asked = element("article", "card from-user");
  asked.append(element("h3", "", "user"), element("p", "text", text));
  section.append(asked);
  find("turns").append(section);
  scrollDown();
  const turn = new Turn(section);
  setRunning(turn);
  try {
    const body = JSON.stringify({ model: find("model").value, input: text, stream: true });
    const answer = await api("/v1/responses", { method: "POST", body, headers: { "X-Hermes-Session-Id": session, "X-Hermes-Approval-Wait": "true" } });
    await turn.read(answer).catch(() => null); // finish() resumes a stream that was cut
  } catch (error) {
    trouble(error.message);
  }
  if (turn.id) await finish(turn);
  else {
    section.remove();
    find("text").value = text;
    setRunning(null);
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
  if (!running?.id) return;
  const path = `/v1/responses/${encodeURIComponent(running.id)}/cancel`;
  await api(path, { method: "POST" }).catch((error) => trouble(error.message));
});

// The page has the earlier questions; the answers come from the log.
const turns = [...document.querySelectorAll(".turn")].map((section) => new Turn(section, section.dataset.response));
const newest = turns.pop();
if (newest) finish(newest);
for (const turn of turns) await turn.follow().catch((error) => trouble(error.message));
scrollDown();
