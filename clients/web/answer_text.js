/** From an answer's text to what is drawn: plain text, and the `[n]` markers in it. Nothing else is markup. */

/**
 * @import { Citation } from "./protocol.js"
 *
 * @typedef {{ type: "text", text: string }} TextSegment
 * @typedef {{ type: "marker", text: string, numbers: number[] }} MarkerSegment
 * @typedef {TextSegment | MarkerSegment} Segment
 */

/** As the server finds them: `[3]`, and several in one, `[1, 4]`. */
const MARKER = /\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]/g;

/** The beginning of a marker whose end has not come yet. */
const OPEN_MARKER = /\[(\d[\d\s,;]*)?$/;

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
  for (const match of text.matchAll(MARKER)) {
    if (match.index > end) segments.push({ type: "text", text: text.slice(end, match.index) });
    segments.push({ type: "marker", text: match[0], numbers: match[1].split(/[,;]/).map(Number) });
    end = match.index + match[0].length;
  }
  if (end < text.length) segments.push({ type: "text", text: text.slice(end) });
  return segments;
}

/**
 * The text as it is read aloud.
 *
 * @param {string} text
 * @returns {string}
 */
export function withoutMarkers(text) {
  return text.replace(MARKER, "").replace(/\s+([.,;:!?])/g, "$1").replace(/\s+/g, " ").trim();
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
