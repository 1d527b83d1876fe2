// Reads an event stream, and goes on where the connection broke.
import { pause } from "./timing.js";

const RETRY_MS = 500;
const MAX_RETRY_MS = 5000;
const SILENT_MS = 30_000; // the server sends a comment every 10 s

const LOGGED_OUT = "You are logged out. Open this page again to log in.";

// isFinal: the server would refuse it again
export const refusal = (message, status, isFinal = status < 500) => Object.assign(new Error(message), { status, isFinal });
export const loggedOut = () => refusal(LOGGED_OUT, 401);

// The error that an answer of the server is, in the server's words.
export async function errorOf(answer) {
  const body = await answer.json().catch(() => null);
  const isFinal = answer.status < 500 || answer.headers.get("x-should-retry") === "false";
  return refusal(body?.error?.message || `The server answered ${answer.status}.`, answer.status, isFinal);
}

function parsed(frame) {
  const found = { id: null, event: "message", data: "" };
  for (const line of frame.split("\n")) {
    const [, field, value] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
    if (field) found[field] = value;
  }
  return found;
}

// The frames of a stream, up to its end; alive() is called with every piece that arrives.
async function* frames(answer, alive) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const whole = (buffer + value).split("\n\n");
    buffer = whole.pop();
    for (const frame of whole) yield parsed(frame);
  }
}

async function* connection(open) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MS);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENT_MS);
  };
  try {
    const answer = await open(silence.signal);
    yield null; // connected
    yield* frames(answer, alive);
  } finally {
    clearTimeout(timer);
  }
}

// open(signal): a stream of what comes after the frames that were taken; take(frame); isOver();
// away(isAway): whether there is no connection
export async function follow({ open, take, isOver, away }) {
  let wait = RETRY_MS;
  while (!isOver()) {
    const received = connection(open);
    for (;;) {
      const { done, value } = await received.next().catch((error) => {
        if (!error.isFinal) return { done: true };
        away(false);
        throw error;
      });
      if (done) break;
      away(false);
      wait = RETRY_MS;
      if (value?.data) take(value);
    }
    if (isOver()) return;
    away(true);
    await pause(wait);
    wait = Math.min(wait * 2, MAX_RETRY_MS);
  }
}
