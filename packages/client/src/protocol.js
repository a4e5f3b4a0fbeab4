/**
 * The messages, as a client sees them: what it sends, and what it receives, read leniently.
 *
 * A client outlives the server's versions. It leaves unknown fields aside, and an event that it does not know, or cannot
 * read, still takes its place in the log (`type: "unknown"`), so that what follows it is shown.
 */

import { amount, asObject, count, isCount, list, text } from "./fields.js";
import { readReplyOf } from "./replies.js";
import { safe } from "./safe.js";
import { readLocator, readReason, readSource } from "./sources.js";

export const MAX_QUERY_CHARS = 4000;
export const MAX_FILTER_CHARS = 128;
/** Fewer than the protocol's 50: a browser cannot split a message, and API Gateway refuses frames above 32 KiB. */
export const MAX_EPISODES = 20;

/**
 * @import { Json } from "./fields.js"
 * @import { ReplyFrame } from "./replies.js"
 * @import { Locator as PassageLocator, Reason as PassageReason, Source as PassageSource } from "./sources.js"
 *
 * @typedef {PassageLocator} Locator
 * @typedef {PassageReason} Reason
 * @typedef {PassageSource} Source
 *
 * @typedef {"hybrid" | "rag" | "cag" | "direct" | "profile_agent" | "theory_agent" | string} Strategy
 *
 * @typedef {object} Ask
 * @property {"ask"} action
 * @property {string} requestId
 * @property {string} query
 * @property {string} [sessionId]
 * @property {string[]} [collections]
 * @property {string[]} [episodes]
 * @property {string[]} [documents]
 * @property {string[]} [sections]
 * @property {number} [topK]
 * @typedef {{ action: "resume", requestId: string, after: number }} Resume
 * @typedef {{ action: "cancel", requestId: string }} Cancel
 * @typedef {{ action: "ping" }} Ping
 * @typedef {{ action: "confirm", requestId: string, confirmationId: string, accept: boolean }} ConfirmChange
 * @typedef {{ action: "profile", requestId: string, operation: "undo", id: string, version: number }} UndoChange
 * @typedef {{ action: string, requestId: string, [field: string]: unknown }} CorpusCall  An action of `replies.js`.
 * @typedef {ConfirmChange | UndoChange | CorpusCall} Call  Answered by one reply.
 * @typedef {Ask | Resume | Cancel | Ping | Call} Action
 *
 * @typedef {object} Citation  One use of one marker.
 * @property {number} n  0 where it has no number and names no passage
 * @property {"verified" | "unverified" | "unchecked"} verdict
 * @property {string} sentence
 * @property {string} code  why it is unverified, or ""
 * @property {string} reason  the same for people
 *
 * @typedef {{ strategy: Strategy, code: string, reason: string }} StrategyFailure
 *
 * @typedef {object} Limit  What an account may use, and what of it is left.
 * @property {string} account  whose: "user", "group" or "deployment"
 * @property {string} group  its name, of a group's
 * @property {string} limit  "requestsMinute", "requestsOpen", "tokensDay", "tokensMonth", "usdDay", "usdMonth", "stopped"
 * @property {number | null} most  null where it is not told
 * @property {number | null} left
 * @property {number | null} resetsAtMs  since the epoch; null where no time frees it
 *
 * @typedef {{ field: string, before: string | null, after: string | null }} ChangedField
 * @typedef {object} Change  What was done to one of the asker's profiles.
 * @property {string} operation  "created", "updated", "undone", "deleted"
 * @property {string} id
 * @property {string} kind
 * @property {string} name
 * @property {number} version
 * @property {ChangedField[]} fields
 * @property {boolean} undoable
 *
 * @typedef {object} Reused  An earlier answer that this one makes use of.
 * @property {boolean} whole  its text is given again; otherwise a new text is written from its passages
 * @property {string} question  what was asked then
 * @property {number | null} answeredAtMs  since the epoch
 *
 * @typedef {object} Metrics
 * @property {number | null} latencyMs  from acceptance to the end
 * @property {number | null} firstChunkMs  from acceptance to the first text
 * @property {number | null} modelCalls  null where an earlier server does not tell
 * @property {number | null} inputTokens
 * @property {number | null} outputTokens
 * @property {number | null} costUsd  null when the model's price is not known
 *
 * @typedef {{ type: "accepted", route: string, reasoning: string, strategy: Strategy }} Accepted
 * @typedef {{ type: "attempt", attempt: number, strategy: Strategy }} Attempt
 * @typedef {object} Sources
 * @property {"sources"} type
 * @property {string} indexVersion
 * @property {number} attempt
 * @property {string} query  what was searched for, where the question was completed; otherwise ""
 * @property {Reused | null} reused
 * @property {boolean} offered  found by an attempt that failed: the answer does not rest on them
 * @property {number} searched
 * @property {string[]} degraded
 * @property {Source[]} sources
 * @typedef {{ type: "chunk", attempt: number, content: string }} Chunk
 * @typedef {{ type: "fallback", from: Strategy, to: Strategy, code: string, reason: string }} Fallback
 * @typedef {{ type: "citations", attempt: number, citations: Citation[], notAttributed: number[] }} Citations
 * @typedef {{ n: number, strength: string }} VerdictPassage
 * @typedef {object} Verdict  On the theory of the question, as the agent's tool call gave it.
 * @property {"verdict"} type
 * @property {number} attempt
 * @property {string} verdict  "supported", "contradicted" or "open"
 * @property {boolean} given  otherwise the agent gave none, and the passages are all that were gathered
 * @property {VerdictPassage[]} for
 * @property {VerdictPassage[]} against
 * @typedef {{ type: "receipt", attempt: number, change: Change }} Receipt
 * @typedef {object} Confirm  Something would be deleted, if the asker confirms it.
 * @property {"confirm"} type
 * @property {number} attempt
 * @property {string} confirmationId
 * @property {string} operation  "delete" or "remove_fields"
 * @property {string} kind
 * @property {string} name
 * @property {ChangedField[]} fields
 * @property {number} expiresAtMs  since the epoch
 * @typedef {object} Complete
 * @property {"complete"} type
 * @property {string[]} degraded
 * @property {Strategy} answeredBy
 * @property {string} model
 * @property {boolean} grounded
 * @property {number | null} changes  of profiles; null where the question asked for none
 * @property {StrategyFailure[]} failed  before it, in order
 * @property {Limit[]} limits  what is left of each
 * @property {Metrics} metrics
 * @typedef {{ type: "error", code: string, message: string, retryable: boolean, failed: StrategyFailure[] }} Failed
 * @typedef {{ type: "withdrawn", attempt: number }} Withdrawn  an event stood here whose text was taken back
 * @typedef {{ type: "unknown", attempt: null }} Unknown
 * @typedef {Accepted | Attempt | Sources | Chunk | Withdrawn | Fallback | Citations | Verdict | Receipt | Confirm | Complete | Failed | Unknown} LogEvent
 *
 * @typedef {{ kind: "event", requestId: string, seq: number, event: LogEvent }} EventFrame
 * @typedef {{ kind: "resumed", requestId: string | null, outcome: string, lastSeq: number }} ResumedFrame
 * @typedef {object} RefusedFrame  A frame was refused; this ends no request.
 * @property {"refused"} kind
 * @property {string | null} requestId
 * @property {string} code
 * @property {string} message
 * @property {boolean} retryable
 * @property {Limit | null} limit  the one that is reached
 * @typedef {{ kind: "pong" }} PongFrame
 * @typedef {{ kind: "fault", message: string }} FaultFrame  The gateway's own complaint; it names no request of ours.
 * @typedef {object} ConfirmedFrame  What became of a confirmation.
 * @property {"confirmed"} kind
 * @property {string} confirmationId
 * @property {string | null} requestId
 * @property {string} outcome  "done" or "declined"
 * @typedef {{ kind: "profile", requestId: string | null }} ProfileFrame  A profile as it stands after an operation.
 * @typedef {ConfirmedFrame | ProfileFrame | ReplyFrame | RefusedFrame} CallReply
 * @typedef {EventFrame | ResumedFrame | ConfirmedFrame | ProfileFrame | ReplyFrame | RefusedFrame | PongFrame | FaultFrame} Frame
 */

/**
 * Read a frame.
 *
 * @param {unknown} data  what the socket brought
 * @returns {Frame | null} null if it is nothing that a client could use
 */
export function parseFrame(data) {
  const raw = parseObject(data);
  if (raw === null) return null;
  if (typeof raw.type !== "string") {
    return typeof raw.message === "string" ? { kind: "fault", message: safe(raw.message) } : null;
  }
  if (!isCount(raw.seq)) return null;
  if (raw.seq === 0) return readReply(raw);
  if (typeof raw.requestId !== "string") return null;
  return { kind: "event", requestId: raw.requestId, seq: raw.seq, event: readEvent(raw) };
}

/**
 * Whether an event ends its request.
 *
 * @param {LogEvent} event
 * @returns {event is Complete | Failed}
 */
export function isTerminal(event) {
  return event.type === "complete" || event.type === "error";
}

/**
 * A random UUID (RFC 9562, version 4). `crypto.randomUUID` is there on secure origins only.
 *
 * @returns {string}
 */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/**
 * @param {unknown} data
 * @returns {Json | null}
 */
function parseObject(data) {
  if (typeof data !== "string") return null;
  try {
    return asObject(JSON.parse(data));
  } catch {
    return null;
  }
}

/**
 * @param {Json} raw
 * @returns {Frame | null}
 */
function readReply(raw) {
  const requestId = typeof raw.requestId === "string" ? raw.requestId : null;
  switch (raw.type) {
    case "pong":
      return { kind: "pong" };
    case "resumed":
      return { kind: "resumed", requestId, outcome: text(raw.outcome), lastSeq: count(raw.lastSeq) ?? 0 };
    case "confirmed":
      return { kind: "confirmed", requestId, confirmationId: text(raw.confirmationId), outcome: text(raw.outcome) };
    case "profile":
    case "profile_deleted":
      return { kind: "profile", requestId };
    case "error": {
      const message = [text(raw.message), text(raw.detail)].filter(Boolean).join(" ");
      const limit = readLimit(asObject(raw.limit));
      return { kind: "refused", requestId, code: text(raw.code), message, retryable: raw.retryable === true, limit };
    }
    default:
      return readReplyOf(raw, requestId);
  }
}

/**
 * @param {Json} raw
 * @returns {LogEvent}
 */
function readEvent(raw) {
  const attempt = count(raw.attempt) ?? 0;
  switch (raw.type) {
    case "accepted":
      return {
        type: "accepted",
        route: text(raw.route),
        reasoning: text(raw.reasoning),
        strategy: text(raw.strategy),
      };
    case "attempt":
      return { type: "attempt", attempt, strategy: text(raw.strategy) };
    case "sources":
      return {
        type: "sources",
        indexVersion: text(raw.indexVersion),
        attempt,
        query: text(raw.query),
        reused: readReused(asObject(raw.reused)),
        offered: raw.offered === true,
        searched: count(raw.searched) ?? 0,
        degraded: list(raw.degraded, (one) => text(one.message) || null),
        sources: list(raw.sources, readSource),
      };
    case "chunk":
      return { type: "chunk", attempt, content: text(raw.content) };
    case "withdrawn":
      return { type: "withdrawn", attempt };
    case "fallback":
      return { type: "fallback", from: text(raw.from), to: text(raw.to), code: text(raw.code), reason: text(raw.reason) };
    case "citations":
      return {
        type: "citations",
        attempt,
        citations: list(raw.citations, readCitation),
        notAttributed: Array.isArray(raw.notAttributed) ? raw.notAttributed.filter(Number.isInteger) : [],
      };
    case "verdict":
      return {
        type: "verdict",
        attempt,
        verdict: text(raw.verdict),
        given: raw.given === true,
        for: list(raw.for, readVerdictPassage),
        against: list(raw.against, readVerdictPassage),
      };
    case "receipt": {
      const change = readChange(asObject(raw.change));
      return change ? { type: "receipt", attempt, change } : { type: "unknown", attempt: null };
    }
    case "confirm":
      return {
        type: "confirm",
        attempt,
        confirmationId: text(raw.confirmationId),
        operation: text(raw.operation),
        kind: text(raw.kind),
        name: text(raw.name),
        fields: list(raw.fields, readChangedField),
        expiresAtMs: count(raw.expiresAtMs) ?? 0,
      };
    case "complete":
      return {
        type: "complete",
        degraded: list(raw.degraded, (one) => text(one.message) || null),
        answeredBy: text(raw.answeredBy),
        model: text(raw.model),
        grounded: raw.grounded === true,
        changes: count(raw.changes),
        failed: list(raw.failed, readFailure),
        limits: list(raw.limits, readLimit),
        metrics: readMetrics(asObject(raw.metrics) ?? {}),
      };
    case "error":
      return {
        type: "error",
        code: text(raw.code),
        message: text(raw.message),
        retryable: raw.retryable === true,
        failed: list(raw.failed, readFailure),
      };
    default:
      return { type: "unknown", attempt: null };
  }
}

/**
 * @param {Json} raw
 * @returns {VerdictPassage | null}
 */
function readVerdictPassage(raw) {
  const n = count(raw.n);
  return n === null ? null : { n, strength: text(raw.strength) };
}

/**
 * @param {Json | null} raw
 * @returns {Change | null}
 */
function readChange(raw) {
  const version = count(raw?.version);
  if (!raw || version === null) return null;
  return {
    operation: text(raw.operation),
    id: text(raw.id),
    kind: text(raw.kind),
    name: text(raw.name),
    version,
    fields: list(raw.fields, readChangedField),
    undoable: raw.undoable === true,
  };
}

/**
 * @param {Json} raw
 * @returns {ChangedField | null}
 */
function readChangedField(raw) {
  const field = text(raw.field);
  return field ? { field, before: text(raw.before) || null, after: text(raw.after) || null } : null;
}

/**
 * @param {Json | null} raw
 * @returns {Reused | null}
 */
function readReused(raw) {
  const question = text(raw?.question);
  return question ? { whole: raw?.use === "answer", question, answeredAtMs: count(raw?.answeredAtMs) } : null;
}

/**
 * @param {Json} raw
 * @returns {StrategyFailure}
 */
function readFailure(raw) {
  return { strategy: text(raw.strategy), code: text(raw.code), reason: text(raw.reason) };
}

/**
 * @param {Json | null} raw
 * @returns {Limit | null}
 */
function readLimit(raw) {
  const limit = text(raw?.limit);
  if (!raw || !limit) return null;
  return {
    account: text(raw.account),
    group: text(raw.group),
    limit,
    most: amount(raw.most),
    left: amount(raw.left),
    resetsAtMs: count(raw.resetsAtMs),
  };
}

/**
 * @param {Json} raw
 * @returns {Citation | null}
 */
function readCitation(raw) {
  const n = count(raw.n);
  if (n === null) return null;
  const verdict = raw.verdict === "verified" || raw.verdict === "unchecked" ? raw.verdict : "unverified";
  return { n, verdict, sentence: text(raw.sentence), code: text(raw.code), reason: text(raw.reason) };
}

/**
 * @param {Json} raw
 * @returns {Metrics}
 */
function readMetrics(raw) {
  return {
    latencyMs: amount(raw.latencyMs),
    firstChunkMs: amount(raw.firstChunkMs),
    modelCalls: count(raw.modelCalls),
    inputTokens: amount(raw.inputTokens),
    outputTokens: amount(raw.outputTokens),
    costUsd: amount(raw.costUsd),
  };
}
