/**
 * The markers of an answer, as the server finds them: `[3]`, `[1, 4]`, `[1-3]`, `[Doc 2: report.pdf, Page 4]` and their
 * kin. `cicada/protocol/markers.py` is its like; both are held to `tests/data/markers.json`.
 */

/**
 * @typedef {{ text: string, n: number | null }} MarkerPart  a number that is a link, or what stands around it
 * @typedef {{ start: number, end: number, text: string, numbers: number[], parts: MarkerPart[] }} Marker
 *   without a number where it names a place alone
 */

const MAX_RANGE = 20;
const MAX_LEAD_CHARS = 40;
const BRACKET = /\[([^[\]\n]{1,400})\]/g;

const ONE = String.raw`\d{1,3}(?:\s*[-–—]\s*\d{1,3})?`;
const AND = String.raw`\s*(?:,\s*(?:and\b)?|&|\band\b)\s*`;
const DOC = String.raw`(?:doc(?:ument)?|source|passage)s?\b\.?`;
const PAGE = String.raw`\d{1,6}(?:\s*[-–—]\s*\d{1,6})?`;
const NUMBERS = new RegExp(String.raw`^\s*#?${ONE}(?:(?:${AND}|\s*;\s*)#?${ONE})*\s*$`);
const BETWEEN_DOCUMENTS = new RegExp(String.raw`(\s*;\s*|${AND}(?=${DOC}\s*#?\s*\d))`, "i");
const DOCUMENTS = new RegExp(
  String.raw`^${DOC}\s*(#?${ONE}(?:${AND}#?${ONE})*(?=\s*(?:[:,]|$))|#?\s*\d{1,3}\b)?\s*`,
  "i",
);
const PAGES = new RegExp(
  String.raw`(?:^|[,:\s])\s*(?:pages?|pgs?\.?|pp?\.?|seiten?|s\.)\s*${PAGE}(?:${AND}${PAGE})*$`,
  "i",
);
const EXTENSION = /\.[a-z][a-z0-9]{1,5}$/i;

const STOP = /^\s*[.,;:!?。、]/;
const TOGETHER = /^(?:\s*(?:[,;&]|and\b))?\s*$/;
const LABEL = String.raw`(?:sources?|references?|refs?\.?|quellen?|fuentes?|fontes?|fonti?|bron(?:nen)?|来源|出典)\s*[:：]?`;
const LEAD = String.raw`(?:see(?:\s+also)?|cf\.?|compare|siehe(?:\s+auch)?|vgl\.?|voir|véase|vedi|zie|veja|参见|参照|${LABEL})`;
/** What stands before markers and only introduces them, and what must then follow. @type {[RegExp, RegExp][]} */
const INTRODUCED = [
  [new RegExp(String.raw`[(（]\s*(?:${LEAD}\s*)?$`, "i"), /^\s*(?:[)）]|$)/],
  [new RegExp(String.raw`(?:[,;–—]|\s-)\s*${LEAD}\s*$`, "i"), /^(?=\s*(?:[.,;:!?)。、）]|$))/],
  [
    new RegExp(String.raw`(?:^|(?<=\n)|(?<=[.!?…]\s)|(?<=。))\s*${LEAD}\s*$`, "i"),
    /^(?:\s*[.;。](?=\s|$)|\s*?(?=\n|$))/,
  ],
];

/**
 * @param {string} text
 * @returns {Marker[]} in order; brackets that name neither a number nor a file are words of the text
 */
export function markersIn(text) {
  return [...text.matchAll(BRACKET)].flatMap(({ 0: bracket, 1: inside, index }) => {
    const read = NUMBERS.test(inside) ? { numbers: rangesIn(inside), parts: numbered(inside) } : documentsIn(inside);
    if (!read) return [];
    const numbers = [...new Set(read.numbers)];
    const parts = [{ text: "[", n: null }, ...read.parts, { text: "]", n: null }].filter((part) => part.text);
    return [{ start: index, end: index + bracket.length, text: bracket, numbers, parts }];
  });
}

/**
 * The text as it is read: without its markers and what only introduces them (*see [3]*), with single spaces.
 *
 * @param {string} text
 * @returns {string}
 */
export function withoutMarkers(text) {
  let kept = "";
  let end = 0;
  for (const [start, after] of markedSpans(text)) {
    kept += text.slice(end, start);
    const stop = STOP.exec(text.slice(after)); // only here: the blank of "$ ./run" stays
    if (stop) kept = kept.trimEnd();
    end = stop ? after + stop[0].length - 1 : after;
  }
  return (kept + text.slice(end)).replace(/\s+/g, " ").trim();
}

/**
 * Where markers stand together, with the bracket around them and the words before them that say nothing else.
 *
 * @param {string} text
 * @returns {[number, number][]}
 */
function markedSpans(text) {
  /** @type {[number, number][]} */
  const groups = [];
  for (const { start, end } of markersIn(text)) {
    const last = groups.at(-1);
    if (last && TOGETHER.test(text.slice(last[1], start))) last[1] = end;
    else groups.push([start, end]);
  }
  return groups.map(([start, end]) => {
    const from = Math.max(0, start - MAX_LEAD_CHARS);
    for (const [before, after] of INTRODUCED) {
      const lead = before.exec(text.slice(from, start));
      const rest = lead && after.exec(text.slice(end));
      if (rest) return [from + lead.index, end + rest[0].length];
    }
    return [start, end];
  });
}

/**
 * @param {string} inside  a bracket that is no list of numbers
 * @returns {{ numbers: number[], parts: MarkerPart[] } | null} null where it names no document
 */
function documentsIn(inside) {
  /** @type {MarkerPart[]} */
  const parts = [];
  /** @type {number[]} */
  const numbers = [];
  for (const [at, piece] of inside.split(BETWEEN_DOCUMENTS).entries()) {
    const isBetween = at % 2 === 1;
    const list = isBetween ? "" : at > 0 && NUMBERS.test(piece) ? piece : listOf(piece.trim());
    if (list === null) return null;
    const head = piece.indexOf(list) + list.length;
    numbers.push(...rangesIn(list));
    parts.push({ text: piece.slice(0, head - list.length), n: null }, ...numbered(list));
    parts.push({ text: piece.slice(head), n: null });
  }
  return { numbers, parts };
}

/**
 * @param {string} part  what is said of one place
 * @returns {string | null} the list of its numbers, empty for a place alone; null where it names neither
 */
function listOf(part) {
  const pages = PAGES.exec(part);
  const rest = pages ? part.slice(0, pages.index).replace(/^[ ,:]+|[ ,:]+$/g, "") : part;
  const word = DOCUMENTS.exec(rest);
  const named = word ? rest.slice(word[0].length) : rest;
  const file = named.replace(/^[ \t,:"'“”‘’`]+|[ \t,:"'“”‘’`]+$/g, "");
  const list = word?.[1] ?? "";
  return EXTENSION.test(file) || (list && (!file || /^[:,]/.test(named))) ? list : null;
}

/**
 * @param {string} text
 * @returns {MarkerPart[]}
 */
function numbered(text) {
  return text.split(/(\d+)/).map((part) => ({ text: part, n: /^\d/.test(part) ? Number(part) : null }));
}

/**
 * @param {string} text
 * @returns {number[]}
 */
function rangesIn(text) {
  const numbers = [];
  for (const [, first, last] of text.matchAll(/(\d+)(?:\s*[-–—]\s*(\d+))?/g)) {
    const [start, end] = [Number(first), Number(last ?? first)];
    const short = end >= start && end - start < MAX_RANGE;
    if (short) for (let n = start; n <= end; n += 1) numbers.push(n);
    else numbers.push(start, end);
  }
  return numbers;
}
