/** What is known of an answer's text: what its citations say of a source, and its language. */

/** @import { Citation } from "../../client/src/protocol.js" */

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
