// Shows Markdown that models wrote. Without this script, its source is on the page as text.
import { appendText, showText, splitTexts } from "./long_text.js";
import { frame, pause } from "./timing.js";

const PARSE_MS = 2000; // a text that takes longer stays as it was written
const COPIED_MS = 1500;
const SMOOTH_MS = 60; // of two frames; slower ones are spread out
const SLOWER = 3;
const LONG_CHARS = 50_000;
const HEADING = ":scope > h2, :scope > h3"; // of a message or a turn
const HEADING_LEVEL = 3; // where a text has none
const REFERENCES = /^ {0,3}\[[^\]\n]+\]:/m; // they may change text before them

// One worker for all texts of the page. It is replaced when a text takes too long.
class Parser {
  constructor() {
    this.waiting = Promise.resolve();
  }

  // The HTML of a text; null if it is to stay as it is.
  parse(source) {
    const parsed = this.waiting.then(() => this.ask(source));
    this.waiting = parsed;
    return parsed;
  }

  async ask(source) {
    this.worker ??= await started(); // a busy machine may need long for that
    if (!this.worker) return null;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.worker.terminate();
        this.worker = null;
        resolve(null);
      }, PARSE_MS);
      this.worker.onmessage = ({ data }) => { clearTimeout(timer); resolve(data); };
      this.worker.postMessage(source);
    });
  }
}

function started() {
  const worker = new Worker(new URL("./markdown_worker.js", import.meta.url), { type: "module" });
  return new Promise((resolve) => {
    worker.onmessage = () => resolve(worker);
    worker.onerror = () => resolve(null);
  });
}

const parser = new Parser();

// A text that may still grow. Only its last block is rendered again, at most once per frame.
export class MarkdownText {
  // redraw: gets a function that changes the page, and calls it
  constructor(root, redraw = (draw) => draw()) {
    this.root = root;
    this.redraw = redraw;
    this.source = root.textContent;
    this.settledAt = 0; // where in the source the last block begins
    this.levels = []; // of the headings before it
    this.open = []; // the nodes of that block
    this.isDrawn = false;
    this.isPlain = false;
    this.drawing = null;
  }

  append(delta) {
    this.source += delta;
    if (!this.isDrawn) appendText(this.root, delta);
    if (!this.isPlain) this.draw();
  }

  // The text is whole.
  async end() {
    await this.draw();
    if (this.isPlain || !REFERENCES.test(this.source)) return;
    this.settledAt = 0;
    this.levels = [];
    await this.draw();
  }

  draw() {
    this.drawing ??= this.drawAll();
    return this.drawing;
  }

  async drawAll() {
    let length = -1;
    try {
      while (length !== this.source.length && !this.isPlain && this.root.isConnected) {
        await frame();
        length = this.source.length;
        await this.drawOnce();
      }
    } finally {
      this.drawing = null; // in the same step as the last look at the source
    }
  }

  async drawOnce() {
    const heading = this.root.closest("article")?.querySelector(HEADING);
    const below = heading ? Number(heading.tagName.slice(1)) : HEADING_LEVEL;
    const text = this.source.slice(this.settledAt);
    const parsed = await parser.parse({ text, below, levels: this.levels });
    const began = performance.now();
    this.redraw(() => this.show(parsed));
    await frame();
    await frame();
    const took = performance.now() - began;
    if (took > SMOOTH_MS) await pause(took * SLOWER);
  }

  show(parsed) {
    if (!parsed) {
      this.stayPlain();
      return;
    }
    this.isDrawn = true;
    this.root.classList.add("markdown");
    this.root.classList.toggle("long", this.source.length > LONG_CHARS);
    if (this.settledAt === 0) this.root.replaceChildren();
    this.open.forEach((node) => node.remove());
    const open = nodes(parsed.open);
    this.open = [...open.childNodes];
    this.root.append(nodes(parsed.settled), open);
    this.settledAt += parsed.openAt;
    this.levels = parsed.levels;
  }

  stayPlain() {
    this.isPlain = true;
    this.isDrawn = false;
    this.root.classList.remove("markdown", "long");
    showText(this.root, this.source);
  }
}

// The worker lets no markup of the source through; the policy of the page would stop scripts too.
function nodes(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const code of template.content.querySelectorAll("pre")) frameCode(code);
  splitTexts(template.content);
  for (const table of template.content.querySelectorAll("table")) frameTable(table);
  return template.content;
}

function frameCode(code) {
  const box = document.createElement("div");
  box.className = "code";
  code.tabIndex = 0;
  code.replaceWith(box);
  box.append(copyButton("Copy the code", () => code.textContent), code);
}

function frameTable(table) {
  const box = document.createElement("div");
  box.className = "wide";
  box.tabIndex = 0;
  table.replaceWith(box);
  box.append(table);
}

export function copyButton(label, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", async () => {
    await copy(text());
    button.classList.add("copied");
    button.setAttribute("aria-label", "Copied");
    await pause(COPIED_MS);
    button.classList.remove("copied");
    button.setAttribute("aria-label", label);
  });
  return button;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without TLS, browsers offer the clipboard only to a selection.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

for (const root of document.querySelectorAll("[data-copy], [data-markdown]")) {
  const source = root.textContent;
  root.before(copyButton("Copy the message", () => source));
  splitTexts(root);
  if (root.hasAttribute("data-markdown")) new MarkdownText(root).draw();
}
