/**
 * A growing Markdown text as it can be shown already: the beginning of a construct waits, an open one is closed.
 *
 * Without this `**bo` would show its asterisks until the word is whole, and a table's first line would be a paragraph.
 */

/** The beginning of a marker whose end has not come yet. */
const OPEN_MARKER = /\[(?:\s*#?\d[\d\s,;#&and–—-]*|[dsp][^[\]\n]{0,400})?$/i;
/** A link of which the address is not whole yet: its label is. */
const OPEN_LINK = /!?\[([^[\]\n]{0,400})\](?:\([^()\s]*)?$/;
const FENCE = /^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(`{3,}|~{3,})(.*)$/;
/** A last line that says nothing yet: it could become a rule, a list's item, a heading, a table's second row, a fence. */
const STRUCTURE = /^[\s>]*(?:[-=|:+*_\s]+|#{1,6}\s*|\d{1,9}[.)]?\s*|`{1,2}|(?:`{3,}|~{3,})[^`\n]*|\${1,2}|(?:[-*+]|\d{1,9}[.)])\s+\[[ xX]?\]?\s*)$/;
const ITEM = /^[\s>]*(?:[-*+]|\d{1,9}[.)]|#{1,6}|>)\s/;
const BLANK = /^[\s>]*$/;
const DELIMITERS = /[*_~`]+$/;
const LETTER = /[\p{L}\p{N}]/u;
/** How far back the beginning of a construct is looked for, and the paragraph it stands in: the rest is whole. */
const MAX_OPEN_CHARS = 500;
const MAX_PIECE_CHARS = 5_000;

/**
 * @param {string} text  the beginning of an answer
 * @returns {string}
 */
export function completed(text) {
  const fence = openFence(text);
  if (fence) return withoutLastLine(text, new RegExp(`^[\\s>]*${fence[0]}*$`));
  const begun = withoutLastLine(text, STRUCTURE);
  const rest = begun.slice(0, -MAX_OPEN_CHARS);
  const end = begun
    .slice(-MAX_OPEN_CHARS)
    .replace(OPEN_MARKER, "")
    .replace(OPEN_LINK, (whole, label) => (whole.endsWith("]") ? whole : label));
  return closed(rest + end.replace(DELIMITERS, (run, at) => (isCloser(rest + end, rest.length + at) ? run : "")));
}

/**
 * @param {string} text
 * @returns {string} the fence of the code that has not ended; "" if there is none
 */
function openFence(text) {
  const lines = text.split("\n");
  lines.pop(); // a fence is one when its line has ended
  let open = "";
  for (const line of lines) {
    const [, fence, info] = FENCE.exec(line) ?? [];
    if (!fence) continue;
    if (!open) open = fence[0] === "`" && info.includes("`") ? "" : fence;
    else if (fence[0] === open[0] && fence.length >= open.length && !info.trim()) open = "";
  }
  return open;
}

/**
 * @param {string} text
 * @param {RegExp} pattern
 * @returns {string} without its last line, if that is like the pattern
 */
function withoutLastLine(text, pattern) {
  const start = text.lastIndexOf("\n") + 1;
  const isShort = text.length - start <= MAX_OPEN_CHARS;
  return isShort && pattern.test(text.slice(start)) ? text.slice(0, start) : text;
}

/**
 * Whether the delimiters at the end stand after a word: they may end something. Others wait for what they begin.
 *
 * @param {string} text
 * @param {number} at
 */
function isCloser(text, at) {
  const piece = lastPiece(text.slice(0, at));
  return /\S$/.test(piece) && closersOf(piece) === text.slice(at);
}

/**
 * @param {string} text
 * @returns {string} with what is open closed
 */
function closed(text) {
  if (text.endsWith("\n")) return text + tableEnd(text.trimEnd(), text.slice(text.trimEnd().length));
  const row = lastLine(text).trimStart().startsWith("|");
  const closers = closersOf(lastPiece(text));
  const whole = closers ? text.trimEnd() + closers : text;
  return row ? whole + tableEnd(whole, "") : whole;
}

/**
 * A first row alone is no table yet: the row that makes it one.
 *
 * @param {string} text
 * @param {string} gap  what follows the row
 * @returns {string}
 */
function tableEnd(text, gap) {
  const lines = text.slice(-MAX_PIECE_CHARS).split("\n");
  const [header, before = ""] = [lines.at(-1)?.trim() ?? "", lines.at(-2)?.trim() ?? ""];
  if (!header.startsWith("|") || before.startsWith("|") || gap.length > 1) return "";
  const cells = header.replace(/\\\|/g, "").replace(/\|$/, "").split("|").length - 1;
  if (cells < 1) return "";
  const row = `${"|---".repeat(cells)}|`;
  if (gap) return row;
  return `${header.length > 1 && header.endsWith("|") ? "" : " |"}\n${row}`;
}

/** @param {string} text */
function lastLine(text) {
  return text.slice(text.lastIndexOf("\n") + 1);
}

/**
 * The text in which emphasis can be open: of the last paragraph, item, or cell.
 *
 * @param {string} text
 * @returns {string}
 */
function lastPiece(text) {
  const lines = text.slice(-MAX_PIECE_CHARS).split("\n");
  const paragraph = lines.slice(lines.findLastIndex((line) => BLANK.test(line)) + 1);
  const from = paragraph.findLastIndex((line) => ITEM.test(line));
  const piece = paragraph.slice(Math.max(0, from)).join("\n").replace(ITEM, "");
  const line = lastLine(piece).trimStart();
  return line.startsWith("|") ? line.slice(line.lastIndexOf("|") + 1) : piece;
}

/**
 * What closes the emphasis and code that are open at the end of a text, innermost first.
 *
 * @param {string} text
 * @returns {string}
 */
function closersOf(text) {
  /** @type {string[]} */
  const open = [];
  for (let at = 0; at < text.length; ) {
    const [run] = /^(?:\\[\s\S]?|`+|\*+|_+|~~)/.exec(text.slice(at, at + 100)) ?? [text[at]];
    const end = at + run.length;
    if (run[0] === "`") {
      const close = codeEnd(text, end, run.length);
      if (close < 0) return run + open.reverse().join("");
      at = close;
      continue;
    }
    if ("*_".includes(run[0]) || run === "~~") step(open, run, text[at - 1] ?? " ", text[end] ?? " ");
    at = end;
  }
  return open.reverse().join("");
}

/**
 * @param {string} text
 * @param {number} from
 * @param {number} ticks
 * @returns {number} where the code ends; -1 if it does not
 */
function codeEnd(text, from, ticks) {
  for (const match of text.slice(from).matchAll(/`+/g)) {
    if (match[0].length === ticks) return from + match.index + ticks;
  }
  return -1;
}

/**
 * Take in one run of delimiters.
 *
 * @param {string[]} open
 * @param {string} run
 * @param {string} before
 * @param {string} after
 */
function step(open, run, before, after) {
  const inWord = run[0] === "_";
  const mayClose = /\S/.test(before) && !(inWord && LETTER.test(after));
  const mayOpen = /\S/.test(after) && !(inWord ? LETTER : /[A-Za-z0-9]/).test(before); // 2**8 is a power
  let left = run.length;
  while (mayClose && left > 0 && open.at(-1)?.[0] === run[0] && (open.at(-1) ?? "").length <= left) {
    left -= (open.pop() ?? "").length;
  }
  while (mayOpen && left > 0) {
    const length = left >= 2 ? 2 : 1;
    open.push(run[0].repeat(length));
    left -= length;
  }
}
