// Shows the log of one response: messages and reasoning as Markdown, everything else as text.
import { showText } from "./long_text.js";
import { MarkdownText, copyButton } from "./markdown.js";

export const TERMINAL = { "response.completed": true, "response.failed": true, "response.incomplete": true };
const TICK_MS = 100;

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export function seconds(ms) {
  const secs = Math.max(0, ms) / 1000;
  if (secs < 1) return `${Math.round(secs * 1000)} ms`;
  return secs < 60 ? `${secs.toFixed(1)} s` : `${Math.floor(secs / 60)} min ${Math.floor(secs % 60)} s`;
}

// Characters that change the order of what is shown: a call would read as another one.
const BIDIRECTIONAL = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const inOrder = (text) => text.replace(BIDIRECTIONAL, (found) => `\\u${found.charCodeAt().toString(16).padStart(4, "0")}`);

function pretty(text) {
  try {
    return inOrder(JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return inOrder(text);
  }
}

function outputText(output) {
  if (typeof output === "string") return output;
  return (output || []).map((part) => part.text ?? `[${part.type}]`).join("");
}

// A tool call: its state and for how long it has been in it, its arguments and its output.
class ToolCard {
  constructor(panel, name) {
    this.panel = panel;
    this.root = element("article", "card tool");
    const head = element("h3");
    this.badge = element("span", "badge");
    this.time = element("span", "num");
    head.append(element("code", "", inOrder(name)), this.badge, element("span", "spring"), this.time);
    this.input = element("pre");
    this.input.tabIndex = 0;
    this.input.setAttribute("aria-label", `Arguments of ${name}`);
    this.output = element("pre");
    this.output.hidden = true;
    this.output.tabIndex = 0;
    this.output.setAttribute("aria-label", `Output of ${name}`);
    this.decide = element("div", "decide");
    this.root.append(head, this.input, this.decide, this.output);
    this.name = name;
    this.setState("in_progress", "being written");
  }

  setState(state, words = state.replaceAll("_", " ")) {
    this.state = state;
    this.badge.className = `badge ${state}`;
    this.badge.textContent = words;
  }

  setOutput(text) {
    this.output.hidden = false;
    showText(this.output, text);
  }

  began(at, state) {
    this.since = at;
    this.setState(state);
  }

  ended(state, tookMs) {
    this.since = null;
    this.setState(state);
    if (this.decide.querySelector("button")) this.decide.replaceChildren();
    if (tookMs != null) this.time.textContent = seconds(tookMs);
  }

  tick(now) {
    if (this.since != null && now != null) this.time.textContent = seconds(now - this.since);
  }

  // expiresAt: when it ends as a denial, in seconds; choices: [[value, label], ...]; the callback
  // gets the value.
  ask(reason, expiresAt, choices, callback) {
    const buttons = choices.map(([value, label]) => {
      const button = element("button", value === "deny" ? "danger" : "", label);
      button.type = "button";
      button.addEventListener("click", async () => {
        buttons.forEach((each) => (each.disabled = true));
        if (!(await callback(value))) buttons.forEach((each) => (each.disabled = false));
      });
      return button;
    });
    this.decide.replaceChildren(element("span", "", inOrder(reason)), ...buttons);
    if (expiresAt == null) return; // a log of an older version
    this.decide.append(deadline(expiresAt));
    document.dispatchEvent(new Event("timesadded"));
  }
}

function deadline(expiresAt) {
  const line = element("small", "deadline", "It is denied at ");
  const time = element("time");
  time.dateTime = new Date(expiresAt * 1000).toISOString();
  line.append(time, ".");
  return line;
}

export class LogPanel {
  // hooks: status(status, body), approval(card, event), announce(text), redraw(draw)
  constructor(root, hooks = {}) {
    this.root = root;
    this.hooks = hooks;
    this.clock = () => Date.now();
    this.reset();
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  reset() {
    this.root.replaceChildren();
    this.items = new Map(); // output_index -> {texts, tool}
    this.tools = new Map(); // call_id -> ToolCard
    this.status = null;
  }

  stop() {
    clearInterval(this.timer);
  }

  tick() {
    const now = this.clock();
    this.tools.forEach((tool) => tool.tick(now));
  }

  get openCalls() {
    return [...this.tools].filter(([, tool]) => tool.output.hidden);
  }

  apply(event, at) {
    const step = STEPS[event.type];
    if (step) step(this, event, at);
  }

  setStatus(status, body) {
    this.status = status;
    this.hooks.status?.(status, body);
  }

  announce(text) {
    this.hooks.announce?.(text);
  }

  note(text) {
    this.root.append(element("p", "note", text));
  }

  tool(callId, name) {
    let card = this.tools.get(callId);
    if (!card) {
      card = new ToolCard(this, name);
      this.tools.set(callId, card);
      this.root.append(card.root);
    }
    return card;
  }

  addItem(index, item) {
    const shown = { kind: item.type, texts: new Map() };
    this.items.set(index, shown);
    if (item.type === "message" || item.type === "reasoning") {
      this.addCard(shown);
    } else if (item.call_id && item.output !== undefined) {
      const card = this.tool(item.call_id, item.name || "tool");
      card.setOutput(pretty(outputText(item.output)));
      if (card.state === "in_progress" || card.since != null) card.ended("completed");
    } else if ("arguments" in item || "input" in item) {
      shown.tool = this.tool(item.call_id || item.id, item.name || item.type);
      showText(shown.tool.input, inOrder(item.arguments || item.input || ""));
    } else {
      this.note(`[${item.type}]`);
    }
  }

  addCard(shown) {
    const isMessage = shown.kind === "message";
    shown.root = element("article", isMessage ? "card from-assistant" : "card reasoning");
    const head = element("h3", "", isMessage ? "assistant" : "reasoning");
    const written = () => [...shown.texts.values()].map((text) => text.source).join("\n\n");
    shown.root.append(head, copyButton(`Copy the ${shown.kind}`, written));
    this.root.append(shown.root);
  }

  itemDone(index, item) {
    const shown = this.items.get(index);
    if (!shown) return;
    shown.texts.forEach((text) => text.end());
    if (item.status === "incomplete" && shown.root) shown.root.append(element("p", "note", "broken off here"));
    if (!shown.tool) return;
    showText(shown.tool.input, pretty(item.arguments ?? item.input ?? ""));
    if (item.status === "incomplete") shown.tool.ended("incomplete");
    else if (shown.tool.state === "in_progress") shown.tool.setState("in_progress", "called");
    if (item.type === "mcp_call" && (item.output != null || item.error != null)) {
      shown.tool.setOutput(pretty(outputText(item.output ?? item.error)));
      shown.tool.ended(item.error ? "failed" : "completed");
    }
  }

  grow(index, part, delta) {
    const shown = this.items.get(index);
    if (!shown) return;
    if (shown.tool) {
      shown.tool.input.append(inOrder(delta));
      return;
    }
    let text = shown.texts.get(part);
    if (!text) {
      const root = element("div", "text");
      root.dir = "auto";
      shown.root.append(root);
      text = new MarkdownText(root, this.hooks.redraw);
      shown.texts.set(part, text);
    }
    text.append(delta);
  }

  end(event) {
    const body = event.response;
    const reason = body.error?.message || body.incomplete_details?.message || body.incomplete_details?.reason || "";
    const usage = body.usage ? `${body.usage.input_tokens} tokens in, ${body.usage.output_tokens} out` : "";
    const line = element("p", "end");
    line.append(element("span", `badge ${body.status}`, body.status), ` ${[reason, usage].filter(Boolean).join(" · ")}`);
    this.root.append(line);
    this.tools.forEach((tool) => tool.since != null && tool.ended("interrupted"));
    this.setStatus(body.status, body);
    this.announce(`The response is ${body.status}.`);
  }
}

const grows = (part) => (panel, event) => panel.grow(event.output_index, event[part] ?? 0, event.delta);

const STEPS = {
  "response.created": (panel, event) => panel.setStatus(event.response.status, event.response),
  "response.queued": (panel, event) => panel.setStatus("queued", event.response),
  "response.in_progress": (panel, event) => panel.setStatus("in_progress", event.response),
  "response.completed": (panel, event) => panel.end(event),
  "response.failed": (panel, event) => panel.end(event),
  "response.incomplete": (panel, event) => panel.end(event),
  "response.output_item.added": (panel, event) => panel.addItem(event.output_index, event.item),
  "response.output_item.done": (panel, event) => panel.itemDone(event.output_index, event.item),
  "response.output_text.delta": grows("content_index"),
  "response.refusal.delta": grows("content_index"),
  "response.reasoning_summary_text.delta": grows("summary_index"),
  "response.reasoning_text.delta": grows("content_index"),
  "response.function_call_arguments.delta": grows(),
  "response.mcp_call_arguments.delta": grows(),
  "response.custom_tool_call_input.delta": grows(),
  "hermes.tool.called": (panel, event) => {
    // An mcp_call item has no call id; this event has both the call id and the output index.
    const shown = panel.items.get(event.output_index);
    if (shown?.tool) panel.tools.set(event.call_id, shown.tool);
    const card = panel.tool(event.call_id, event.name);
    if (event.arguments) showText(card.input, pretty(event.arguments));
  },
  "hermes.tool.started": (panel, event, at) => {
    panel.tool(event.call_id, event.name).began(at, "running");
    panel.announce(`The tool ${event.name} runs.`);
  },
  "hermes.tool.progress": (panel, event) => {
    const card = panel.tool(event.call_id, "tool");
    card.setOutput(card.output.textContent + inOrder(event.text));
  },
  "hermes.tool.finished": (panel, event) => panel.tool(event.call_id, event.name).ended(event.status, event.duration_ms),
  "hermes.approval.requested": (panel, event, at) => {
    const card = panel.tool(event.call_id, event.name);
    card.began(at, "awaiting_approval");
    panel.announce(`The tool ${event.name} waits for approval.`);
    panel.hooks.approval?.(card, event);
  },
  "hermes.approval.resolved": (panel, event) => {
    const card = panel.tool(event.call_id, event.name);
    card.ended(event.decision === "deny" || event.decision === "expired" ? "denied" : "in_progress");
    card.decide.replaceChildren(element("span", "note", `${event.decision}${event.by ? `, by ${event.by}` : ""}`));
  },
  "hermes.attempt.started": (panel, event) => panel.note(`Attempt ${event.attempt} takes over.`),
  "hermes.quirk": (panel, event) => panel.note(`The upstream departed from its protocol: ${event.name}.`),
  "hermes.usage.estimated": (panel) => panel.note("The upstream did not count all tokens: the usage is an estimate."),
  "hermes.context.truncated": (panel, event) => panel.note(`${event.dropped_items ?? "Some"} old items were left out of the context.`),
};
