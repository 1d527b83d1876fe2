// A reader at the end of the page stays there while it grows.
import { frame } from "./timing.js";

const END_PX = 80;
let isWatching = false;

const isAtEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - END_PX;

export function scrollToEnd() {
  window.scrollTo(0, document.documentElement.scrollHeight);
}

// Changes the page. The position is read and set once per frame: each reading lays out the page.
export function following(change) {
  if (!isWatching) finishFrame(isAtEnd());
  change();
}

async function finishFrame(wasAtEnd) {
  isWatching = true;
  await frame();
  isWatching = false;
  if (wasAtEnd) scrollToEnd();
}
