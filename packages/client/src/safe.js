/** Text from elsewhere, fit to be shown: the same characters are left out as by the command line. */

const UNSAFE = new RegExp(
  "\\x1b\\[[0-?]*[ -/]*[@-~]" + // control sequences whole
    "|[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f" + // control characters but tab and line feed
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u206f" + // directions: they could make text read as another
    "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u2060-\\u2065\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb" + // not seen
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" + // not seen: shorthand's and music's
    "\\u{e0000}-\\u{e0fff}" + // tags and variation selectors: text that nobody sees
    "\\p{Cs}]", // halves of surrogate pairs
  "gu",
);

/** Not seen, though letters, signs or symbols by category: fillers, the empty Braille pattern, notehead and hieroglyphs. */
const NOTHING = /[\u115f\u1160\u2800\u3164\uffa0\ufffc\u{13441}\u{13442}\u{1d159}]/gu;

/**
 * Whether a text shows nothing: it has no letter, digit, punctuation or symbol that is seen. The server refuses it.
 *
 * @param {string} text
 * @returns {boolean}
 */
export function isBlank(text) {
  return !/[\p{L}\p{N}\p{P}\p{S}]/u.test(text.replace(NOTHING, ""));
}

/**
 * A text without what could make it read as another, or hide in it.
 *
 * @param {string} text
 * @returns {string}
 */
export function safe(text) {
  return text.replace(UNSAFE, "");
}
