/** Replies about the corpus, conversations, feedback and uploads, read leniently. */

import { amount, asObject, count, list, text, texts } from "./fields.js";
import { readLocator, readSource } from "./sources.js";

/**
 * @import { Json } from "./fields.js"
 * @import { Locator, Source } from "./sources.js"
 *
 * @typedef {object} CollectionListed
 * @property {string} name
 * @property {string} title  for people; the name where none is declared
 * @property {string} description
 * @property {number} passages
 * @property {number} documents
 * @property {{ id: string, name: string, passages: number }[]} episodes
 * @property {{ path: string, passages: number }[]} sections
 * @property {number} moreEpisodes  not listed
 * @property {number} moreSections  not listed
 * @property {boolean} upload  the user may upload to it
 *
 * @typedef {object} Collections
 * @property {"collections"} type
 * @property {string} indexVersion  "" where nothing is published
 * @property {CollectionListed[]} collections
 * @property {string[]} uploadTo  collections that the user may create by an upload; `*` for any name
 * @property {string[]} examples
 * @property {boolean} empty  the user can read no passage
 * @property {string} next  the cursor of the next page; "" on the last
 *
 * @typedef {{ source: string, title: string, passages: number, sections: string[], original: boolean }} DocumentListed
 * @typedef {{ type: "documents", collection: string, documents: DocumentListed[], next: string }} Documents
 * @typedef {{ type: "found", indexVersion: string, query: string, sources: Source[], degraded: string[] }} Found
 *
 * @typedef {{ passageId: string, locator: Locator, text: string, clipped: boolean }} PassageRead
 * @typedef {object} Passages
 * @property {"passages"} type
 * @property {string} indexVersion
 * @property {string} collection
 * @property {{ source: string, title: string, original: string }} document  `original` is a URL for some minutes, or ""
 * @property {PassageRead[]} passages  in the document's order
 * @property {number} at  which of them was asked for, from 0
 * @property {boolean} hasPrevious
 * @property {boolean} hasNext
 *
 * @typedef {object} ConversationListed
 * @property {string} sessionId
 * @property {string} title
 * @property {number | null} createdAtMs
 * @property {number | null} updatedAtMs
 * @property {number | null} questions
 * @typedef {{ type: "conversations", conversations: ConversationListed[], next: string }} Conversations
 * @typedef {object} KeptConversation
 * @property {"conversation"} type
 * @property {string} sessionId
 * @property {string} title
 * @property {number | null} deletedAtMs  null unless it is deleted
 * @property {{ requestId: string, query: string, askedAtMs: number | null }[]} requests
 *
 * @typedef {{ type: "feedback", rating: string, reason: string, comment: string }} Feedback
 *
 * @typedef {object} UploadListed
 * @property {string} name
 * @property {number} bytes
 * @property {number | null} uploadedAtMs
 * @property {string} state  "waiting", "preparing", "loaded", "set_aside" or "not_prepared"
 * @property {string} code  of a document that was set aside or not prepared
 * @property {string} reason
 * @property {number | null} passages
 * @typedef {{ type: "upload", url: string, fields: Record<string, string>, expiresAtMs: number | null }} UploadBegun
 * @typedef {{ type: "uploads", collection: string, documents: UploadListed[], running: boolean, next: string }} Uploads
 * @typedef {{ type: "upload_deleted", collection: string, name: string }} UploadDeleted
 *
 * @typedef {Collections | Documents | Found | Passages | Conversations | KeptConversation | Feedback | UploadBegun | Uploads | UploadDeleted} CorpusReply
 *
 * @typedef {{ kind: "reply", requestId: string | null, reply: CorpusReply }} ReplyFrame
 */

/** @type {Record<string, (raw: Json) => CorpusReply>} */
const READERS = {
  collections: (raw) => ({
    type: "collections",
    indexVersion: text(raw.indexVersion),
    collections: list(raw.collections, readCollection),
    uploadTo: texts(raw.uploadTo),
    examples: texts(raw.examples),
    empty: raw.empty === true,
    next: text(raw.next),
  }),
  documents: (raw) => ({
    type: "documents",
    collection: text(raw.collection),
    documents: list(raw.documents, readDocument),
    next: text(raw.next),
  }),
  found: (raw) => ({
    type: "found",
    indexVersion: text(raw.indexVersion),
    query: text(raw.query),
    sources: list(raw.sources, readSource),
    degraded: list(raw.degraded, (one) => text(one.message) || null),
  }),
  passages: readPassages,
  conversations: (raw) => ({
    type: "conversations",
    conversations: list(raw.conversations, readConversation),
    next: text(raw.next),
  }),
  conversation: (raw) => ({
    type: "conversation",
    sessionId: text(raw.sessionId),
    title: text(raw.title),
    deletedAtMs: count(raw.deletedAtMs),
    requests: list(raw.requests, readRequest),
  }),
  feedback: (raw) => ({
    type: "feedback",
    rating: text(raw.rating),
    reason: text(raw.reason),
    comment: text(raw.comment),
  }),
  upload: (raw) => ({
    type: "upload",
    url: text(raw.url),
    fields: Object.fromEntries(Object.entries(asObject(raw.fields) ?? {}).map(([name, value]) => [name, `${value}`])),
    expiresAtMs: count(raw.expiresAtMs),
  }),
  uploads: (raw) => ({
    type: "uploads",
    collection: text(raw.collection),
    documents: list(raw.documents, readUpload),
    running: text(asObject(raw.run)?.state) === "running",
    next: text(raw.next),
  }),
  upload_deleted: (raw) => ({ type: "upload_deleted", collection: text(raw.collection), name: text(raw.name) }),
};

/**
 * Read a reply that only these actions have.
 *
 * @param {Json} raw
 * @param {string | null} requestId
 * @returns {ReplyFrame | null} null if it is another's
 */
export function readReplyOf(raw, requestId) {
  const read = Object.hasOwn(READERS, `${raw.type}`) ? READERS[`${raw.type}`] : null;
  return read && { kind: "reply", requestId, reply: read(raw) };
}

/**
 * @param {Json} raw
 * @returns {CollectionListed | null}
 */
function readCollection(raw) {
  const name = text(raw.name);
  if (!name) return null;
  return {
    name,
    title: text(raw.title) || name,
    description: text(raw.description),
    passages: amount(raw.passages) ?? 0,
    documents: amount(raw.documents) ?? 0,
    episodes: list(raw.episodes, (one) => {
      const id = text(one.id);
      return id ? { id, name: text(one.name) || id, passages: amount(one.passages) ?? 0 } : null;
    }),
    sections: list(raw.sections, (one) => {
      const path = text(one.path);
      return path ? { path, passages: amount(one.passages) ?? 0 } : null;
    }),
    moreEpisodes: count(raw.moreEpisodes) ?? 0,
    moreSections: count(raw.moreSections) ?? 0,
    upload: raw.upload === true,
  };
}

/**
 * @param {Json} raw
 * @returns {DocumentListed | null}
 */
function readDocument(raw) {
  const source = text(raw.source);
  if (!source) return null;
  const title = text(raw.title) || source;
  return { source, title, passages: amount(raw.passages) ?? 0, sections: texts(raw.sections), original: raw.original === true };
}

/**
 * @param {Json} raw
 * @returns {Passages}
 */
function readPassages(raw) {
  const document = asObject(raw.document) ?? {};
  const source = text(document.source);
  return {
    type: "passages",
    indexVersion: text(raw.indexVersion),
    collection: text(raw.collection),
    document: { source, title: text(document.title) || source, original: text(asObject(document.original)?.url) },
    passages: list(raw.passages, (one) => ({
      passageId: text(one.passageId),
      locator: readLocator(asObject(one.locator) ?? {}),
      text: text(one.text),
      clipped: one.clipped === true,
    })),
    at: count(raw.at) ?? 0,
    hasPrevious: raw.hasPrevious === true,
    hasNext: raw.hasNext === true,
  };
}

/**
 * @param {Json} raw
 * @returns {ConversationListed | null}
 */
function readConversation(raw) {
  const sessionId = text(raw.sessionId);
  if (!sessionId) return null;
  const [createdAtMs, updatedAtMs, questions] = [raw.createdAtMs, raw.updatedAtMs, raw.questions].map(count);
  return { sessionId, title: text(raw.title), createdAtMs, updatedAtMs, questions };
}

/** @param {Json} raw */
function readRequest(raw) {
  const requestId = text(raw.requestId);
  return requestId ? { requestId, query: text(raw.query), askedAtMs: count(raw.askedAtMs) } : null;
}

/**
 * @param {Json} raw
 * @returns {UploadListed | null}
 */
function readUpload(raw) {
  const name = text(raw.name);
  if (!name) return null;
  return {
    name,
    bytes: amount(raw.bytes) ?? 0,
    uploadedAtMs: count(raw.uploadedAtMs),
    state: text(raw.state),
    code: text(raw.code),
    reason: text(raw.reason),
    passages: count(raw.passages),
  };
}
