/** Reading passages and their places. */

import { asObject, count, list, text } from "./fields.js";

/**
 * @import { Json } from "./fields.js"
 *
 * @typedef {object} Locator
 * @property {string} heading  who speaks, the document's title, or that it is the asker's own note
 * @property {string} place  the episode, the section, or the profile
 * @property {string} part  the chapter, the page, or the profile's field
 * @property {string} messageId
 * @property {{ id: string, name: string } | null} episode
 *
 * @typedef {object} Source  A retrieved passage.
 * @property {number} n  what the answer cites as `[n]`
 * @property {string} passageId  unique in its collection
 * @property {string} collection
 * @property {Locator} locator
 * @property {number} score  0 to 1
 * @property {string} text
 * @property {boolean} clipped  the text was shortened
 * @property {boolean} earlier  an earlier answer brought it, not the search
 * @property {Reason[]} why  why it is here, the weightiest first; empty where nothing is said
 *
 * @typedef {object} Reason
 * @property {string} kind  "intention", "entity", "similarity", "tool", or a later one
 * @property {string} name  of the intention, the entity or the tool
 * @property {string} matched  of an entity: the words of the question that name it
 */

/**
 * @param {Json} raw
 * @returns {Source | null}
 */
export function readSource(raw) {
  const n = count(raw.n);
  if (n === null) return null;
  const score = typeof raw.score === "number" ? Math.min(1, Math.max(0, raw.score)) : 0;
  return {
    n,
    passageId: text(raw.passageId),
    collection: text(raw.collection),
    locator: readLocator(asObject(raw.locator) ?? {}),
    score,
    text: text(raw.text),
    clipped: raw.clipped === true,
    earlier: raw.origin === "cache",
    why: list(raw.why, readReason),
  };
}

/**
 * @param {Json} raw
 * @returns {Reason | null}
 */
export function readReason(raw) {
  const kind = text(raw.kind);
  return kind ? { kind, name: text(raw.name), matched: text(raw.matched) } : null;
}

/**
 * @param {Json} raw
 * @returns {Locator}
 */
export function readLocator(raw) {
  if (raw.kind === "document") {
    const page = count(raw.page);
    return {
      heading: text(raw.title) || text(raw.source),
      place: text(raw.section) || text(raw.source),
      part: page === null ? "" : `page ${page}`,
      messageId: "",
      episode: null,
    };
  }
  if (raw.kind === "note") {
    return { heading: "Your note", place: text(raw.profile), part: text(raw.field), messageId: "", episode: null };
  }
  const id = text(raw.episodeId);
  const name = text(raw.episodeName);
  return {
    heading: text(raw.speaker),
    place: name || id,
    part: text(raw.chapterId),
    messageId: text(raw.messageId),
    episode: id ? { id, name } : null,
  };
}
