/** From an answer's text to what is drawn: plain text, and the markers in it. Nothing else is markup. */

import { markersIn } from "../../client/src/markers.js";

/**
 * @import { Marker } from "../../client/src/markers.js"
 * @import { Citation } from "../../client/src/protocol.js"
 *
 * @typedef {{ type: "text", text: string }} TextSegment
 * @typedef {Marker & { type: "marker" }} MarkerSegment
 * @typedef {TextSegment | MarkerSegment} Segment
 */

/** The beginning of a marker whose end has not come yet. */
const OPEN_MARKER = /\[(?:\s*#?\d[\d\s,;#&and–—-]*|[dsp][^[\]\n]{0,400})?$/i;

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
  for (const marker of markersIn(text)) {
    if (marker.numbers.length === 0) continue; // a place alone leads nowhere
    if (marker.start > end) segments.push({ type: "text", text: text.slice(end, marker.start) });
    segments.push({ type: "marker", ...marker });
    end = marker.end;
  }
  if (end < text.length) segments.push({ type: "text", text: text.slice(end) });
  return segments;
}

/**
 * What the citations say of a source: unverified if one use of it is, verified only if every use is.
 *
 * @param {Citation[]} citations
 * @param {number} n
 * @returns {{ uses: Citation[], verdict: "verified" | "unverified" | "unchecked" | null }}
 */
export function citationsOf(citations, n) {
  const uses = citations.filter((citation) => citation.n === n);
  if (uses.length === 0) return { uses, verdict: null };
  if (uses.some((use) => use.verdict === "unverified")) return { uses, verdict: "unverified" };
  return { uses, verdict: uses.every((use) => use.verdict === "verified") ? "verified" : "unchecked" };
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
