// Turns Markdown into HTML, outside the page: a text that takes long to parse can't freeze it.
import "./vendor/markdown-it.umd.min.js";

const MAX_NESTING = 100; // markdown-it drops what is nested deeper
const MAX_TAGS = 50_000; // a page with more of them becomes slow
const LOWEST_HEADING = 6;
const WEB_LINK = /^(?:https?:\/\/|mailto:)/i;
const SHOWN_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=]+$/i;

const options = { html: false, linkify: true, breaks: true, maxNesting: MAX_NESTING };
const markdown = globalThis.markdownit(options);
const { escapeHtml } = markdown.utils;
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
// A target that is not allowed leaves its source on the page, as text.
markdown.validateLink = (target) => WEB_LINK.test(target) || SHOWN_IMAGE.test(target);

const leads = (target) => `href="${escapeHtml(target)}" target="_blank" rel="noopener noreferrer"`;

// A link in a link ends the outer one: an image in a link must know where it is.
markdown.core.ruler.push("linked_images", (state) => {
  for (const { children } of state.tokens) {
    let depth = 0;
    for (const token of children ?? []) {
      if (token.type === "link_open") depth += 1;
      else if (token.type === "link_close") depth -= 1;
      else if (token.type === "image") token.meta = { isLinked: depth > 0 };
    }
  }
});

Object.assign(markdown.renderer.rules, {
  link_open(tokens, index) {
    const target = tokens[index].attrGet("href");
    return WEB_LINK.test(target) ? `<a ${leads(target)}>` : "<a>";
  },
  // A remote image would report to its server that the text was read: it becomes a link.
  image(tokens, index, settings, env, renderer) {
    const token = tokens[index];
    const source = token.attrGet("src");
    const name = renderer.renderInlineAsText(token.children, settings, env);
    const target = escapeHtml(source);
    if (SHOWN_IMAGE.test(source)) return `<img src="${target}" alt="${escapeHtml(name)}">`;
    const words = escapeHtml(name || source);
    return token.meta.isLinked ? words : `<a ${leads(source)}>${words}</a>`;
  },
  heading_open(tokens, index, settings, env) {
    const own = Number(tokens[index].tag.slice(1));
    env.levels = [...env.levels.filter((level) => level < own), own];
    return `<${heading(env)}>`;
  },
  heading_close: (tokens, index, settings, env) => `</${heading(env)}>\n`,
  th_open: (tokens, index) => cell(tokens[index]),
  td_open: (tokens, index) => cell(tokens[index]),
});

// One step below the heading that it belongs to, whatever its number is: a screen reader lists them.
function heading(env) {
  return `h${Math.min(LOWEST_HEADING, env.below + env.levels.length)}`;
}

// The policy of the pages allows no style attributes.
function cell(token) {
  const side = token.attrGet("style")?.replace("text-align:", "");
  return side ? `<${token.tag} class="align-${side}">` : `<${token.tag}>`;
}

function lineStart(text, line) {
  const ends = /\r\n?|\n/g;
  for (let passed = 0; passed < line; passed += 1) ends.exec(text);
  return ends.lastIndex;
}

// The last block may still change while the text grows; those before it are settled.
// Null is a text that stays as it was written.
// below: the number of the heading that the text is under; levels: of the headings before the text
function render({ text, below, levels }) {
  const env = { below, levels };
  const tokens = markdown.parse(text, env);
  if (tokens.some((token) => token.level >= MAX_NESTING - 1)) return null;
  const last = tokens.findLastIndex((token) => token.level === 0 && token.nesting >= 0);
  if (last < 0) return { settled: "", open: "", openAt: 0, levels };
  const settled = markdown.renderer.render(tokens.slice(0, last), markdown.options, env);
  const settledLevels = env.levels;
  const open = markdown.renderer.render(tokens.slice(last), markdown.options, env);
  if (settled.split("<").length + open.split("<").length > MAX_TAGS) return null;
  return { settled, open, openAt: lineStart(text, tokens[last].map[0]), levels: settledLevels };
}

onmessage = ({ data }) => postMessage(render(data));
postMessage("ready");
