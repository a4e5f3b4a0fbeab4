/** From an answer's text to what is drawn: plain text, and the markers in it. Nothing else is markup. */

/**
 * @import { Citation } from "./protocol.js"
 *
 * @typedef {{ type: "text", text: string }} TextSegment
 * @typedef {{ text: string, n: number | null }} MarkerPart  a number that is a link, or what stands around it
 * @typedef {{ type: "marker", text: string, numbers: number[], parts: MarkerPart[] }} MarkerSegment
 * @typedef {TextSegment | MarkerSegment} Segment
 */

/** As the server finds them: `[3]`, several in one, `[1, 4]`, `[1-3]`, `[Doc 2: report.pdf, Page 4]`, `[Docs 1, 2]`. */
const BRACKET = /\[([^[\]\n]{1,400})\]/g;
const NUMBERS = /^\s*#?\d{1,3}(?:\s*[-–—]\s*\d{1,3})?(?:\s*[,;]\s*#?\d{1,3}(?:\s*[-–—]\s*\d{1,3})?)*\s*$/;
const DOCUMENT = /^\s*(?:doc(?:ument)?|source|passage)s?\b\.?\s*#?\s*(\d{1,3})(?=\s*(?:$|[:,]|(?:page|pg|p|pp|seite|s)\b))/i;
const ONE = String.raw`#?\d{1,3}(?:\s*[-–—]\s*\d{1,3})?`;
const DOCUMENTS = new RegExp(
  String.raw`^\s*(?:doc(?:ument)?|source|passage)s?\b\.?\s*${ONE}(?:\s*(?:,\s*(?:and\b)?|&|and\b)\s*${ONE})*\s*$`,
  "i",
);
const BETWEEN_DOCUMENTS = /(;|,(?=\s*(?:doc(?:ument)?|source|passage)s?\b\.?\s*#?\s*\d))/i;
const MAX_RANGE = 20;

/** The beginning of a marker whose end has not come yet. */
const OPEN_MARKER = /\[(?:\s*#?\d[\d\s,;#–—-]*|[dsp][^[\]\n]{0,400})?$/i;

/**
 * The part of a growing text that will stay as it is: without a marker of which only the beginning is there.
 *
 * @param {string} text
 * @returns {string}
 */
export function settled(text) {
  return text.replace(OPEN_MARKER, "");
}

/**
 * Split a text. Segments of a growing text stay as they are, but for the last.
 *
 * @param {string} text
 * @returns {Segment[]}
 */
export function segmentsOf(text) {
  /** @type {Segment[]} */
  const segments = [];
  let end = 0;
  for (const match of text.matchAll(BRACKET)) {
    const marker = markerOf(match[0], match[1]);
    if (!marker) continue;
    if (match.index > end) segments.push({ type: "text", text: text.slice(end, match.index) });
    segments.push(marker);
    end = match.index + match[0].length;
  }
  if (end < text.length) segments.push({ type: "text", text: text.slice(end) });
  return segments;
}

/**
 * @param {string} text  a bracket
 * @param {string} inside
 * @returns {MarkerSegment | null} null for a bracket that names no number
 */
function markerOf(text, inside) {
  if (NUMBERS.test(inside)) return { type: "marker", text, numbers: rangesIn(inside), parts: numbered(text) };
  /** @type {MarkerPart[]} */
  const parts = [{ text: "[", n: null }];
  /** @type {number[]} */
  const numbers = [];
  for (const piece of inside.split(BETWEEN_DOCUMENTS)) {
    if (DOCUMENTS.test(piece)) {
      numbers.push(...rangesIn(piece));
      parts.push(...numbered(piece));
      continue;
    }
    const match = DOCUMENT.exec(piece);
    if (!match) {
      if (!/^\s*[;,]\s*$/.test(piece)) return null;
      parts.push({ text: piece, n: null });
      continue;
    }
    numbers.push(Number(match[1]));
    const at = match[0].length;
    parts.push({ text: piece.slice(0, at - match[1].length), n: null }, { text: match[1], n: Number(match[1]) });
    parts.push({ text: piece.slice(at), n: null });
  }
  parts.push({ text: "]", n: null });
  return { type: "marker", text, numbers, parts };
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

/**
 * The text as it is read aloud.
 *
 * @param {string} text
 * @returns {string}
 */
export function withoutMarkers(text) {
  const plain = segmentsOf(text).map((segment) => (segment.type === "text" ? segment.text : ""));
  return plain.join("").replace(/\s+([.,;:!?])/g, "$1").replace(/\s+/g, " ").trim();
}

/**
 * What the citations say of a source: verified only if every use of it is.
 *
 * @param {Citation[]} citations
 * @param {number} n
 * @returns {{ uses: Citation[], verdict: "verified" | "unverified" | null }}
 */
export function citationsOf(citations, n) {
  const uses = citations.filter((citation) => citation.n === n);
  if (uses.length === 0) return { uses, verdict: null };
  return { uses, verdict: uses.every((use) => use.verdict === "verified") ? "verified" : "unverified" };
}

/**
 * The language of a text, where its script tells; "" where it does not. Without it a voice reads Japanese as English.
 *
 * @param {string} text
 * @returns {string} a BCP 47 tag
 */
export function languageOf(text) {
  const latin = letters(text, /[a-z]/gi);
  if (letters(text, /[\u3041-\u30ff]/g) > latin) return "ja";
  if (letters(text, /[\uac00-\ud7af]/g) > latin) return "ko";
  return "";
}

/**
 * @param {string} text
 * @param {RegExp} script
 * @returns {number}
 */
function letters(text, script) {
  return text.match(script)?.length ?? 0;
}
