// Long texts in pieces: browsers shape a text node as a whole, which freezes the page for seconds
// at 50,000 Arabic letters, and at as many marks on one letter.
const PIECE_CHARS = 1000;
const SPACE = /\s/;
const MARKS = /(\p{M}{24})\p{M}+/gu; // no language needs more on one letter

// A space, or between two characters: not within a surrogate pair.
function cutOf(data) {
  for (let at = PIECE_CHARS; at > PIECE_CHARS / 2; at -= 1) {
    if (SPACE.test(data[at - 1])) return at;
  }
  const isPair = (data.charCodeAt(PIECE_CHARS) & 0xfc00) === 0xdc00;
  return isPair ? PIECE_CHARS + 1 : PIECE_CHARS;
}

function inPieces(node) {
  let data = node.data.replace(MARKS, "$1…");
  const pieces = [];
  while (data.length > PIECE_CHARS) {
    const cut = cutOf(data);
    pieces.push(data.slice(0, cut));
    data = data.slice(cut);
  }
  node.replaceWith(...pieces, data);
}

export function splitTexts(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const long = [];
  while (walker.nextNode()) if (walker.currentNode.data.length > PIECE_CHARS) long.push(walker.currentNode);
  long.forEach(inPieces);
}

export function appendText(root, text) {
  const part = new DocumentFragment();
  part.append(text);
  splitTexts(part);
  root.append(part);
}

export function showText(root, text) {
  root.replaceChildren();
  appendText(root, text);
}
