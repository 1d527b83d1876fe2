// Requests of the playground to the public API, with a token that lasts an hour.
import { errorOf, loggedOut } from "./stream.js";

const page = document.getElementById("chat");
const csrf = page.querySelector("[name=csrfmiddlewaretoken]").value;
const RENEW_MS = 60_000; // before the token ends
let token = null;
let tokenEnds = 0;

async function bearer() {
  if (!token || Date.now() > tokenEnds - RENEW_MS) {
    const headers = { "X-CSRFToken": csrf };
    const answer = await fetch(page.dataset.tokenUrl, { method: "POST", headers });
    if (answer.status === 401 || answer.status === 403) throw loggedOut();
    if (!answer.ok) throw await errorOf(answer);
    const given = await answer.json();
    token = given.token;
    tokenEnds = Date.now() + given.expires_in * 1000;
  }
  return token;
}

async function ask(path, options) {
  const own = { Authorization: `Bearer ${await bearer()}`, "Content-Type": "application/json" };
  return fetch(path, { ...options, headers: { ...own, ...options.headers } });
}

export async function api(path, options = {}) {
  let answer = await ask(path, options);
  if (answer.status === 401) {
    token = null; // it ended early: with the login, or with the rights of the user
    answer = await ask(path, options);
  }
  if (answer.ok) return answer;
  throw await errorOf(answer);
}
