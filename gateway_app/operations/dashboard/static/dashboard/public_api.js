// Requests of the playground to the public API, with a token that lasts an hour.
import { refusal } from "./stream.js";

const page = document.getElementById("chat");
const csrf = page.querySelector("[name=csrfmiddlewaretoken]").value;
const RENEW_MS = 60_000; // before the token ends
let token = null;
let tokenEnds = 0;

async function bearer() {
  if (!token || Date.now() > tokenEnds - RENEW_MS) {
    const headers = { "X-CSRFToken": csrf };
    const answer = await fetch(page.dataset.tokenUrl, { method: "POST", headers });
    if (!answer.ok) throw new Error("You are logged out. Open this page again to log in.");
    const given = await answer.json();
    token = given.token;
    tokenEnds = Date.now() + given.expires_in * 1000;
  }
  return token;
}

export async function api(path, options = {}) {
  const own = { Authorization: `Bearer ${await bearer()}`, "Content-Type": "application/json" };
  const answer = await fetch(path, { ...options, headers: { ...own, ...options.headers } });
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  throw refusal(body?.error?.message || `The server answered ${answer.status}.`, answer.status);
}
