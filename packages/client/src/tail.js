/** The client's end of a request's log: every event applied once and in order. Without I/O, and without the DOM. */

import { isTerminal } from "./protocol.js";

/**
 * @import { Accepted, Change, Citation, Complete, Confirm, EventFrame, Failed, Fallback, LogEvent, Reused, Source, Strategy, Verdict } from "./protocol.js"
 */

/** The code of an end that takes back the text before it. Older servers give it to the last strategy alone. */
export const WITHHELD = "answer_blocked";
/** Frames kept while one before them is missing; what does not fit comes again with the next resume. */
const MAX_EARLY_FRAMES = 10_000;

/**
 * Applies the events of one request.
 *
 * Frames may come early, late, twice or not at all: each `seq` is applied once, after all before it. What comes early
 * waits. `behind` tells that something is missing, which a resume after `applied` brings.
 */
export class RequestTail {
  /** The highest seq applied: all up to it are. */
  applied = 0;
  attempt = 0;
  /** The answer so far, of the latest attempt alone. */
  text = "";
  /** Passages that were ranked to find the sources; null before the search is done. @type {number | null} */
  searched = null;
  /** The version that was searched; "" before it is known. */
  indexVersion = "";
  /** What the search had to do without, in sentences. @type {string[]} */
  degraded = [];
  /** What was searched for, where the question was completed from the conversation; otherwise "". */
  query = "";
  /** The earlier answer that this one makes use of. @type {Reused | null} */
  reused = null;
  /** Whether the sources are only offered: found by a strategy that failed, and not what the answer rests on. */
  offered = false;
  /** By their number. @type {Map<number, Source>} */
  sources = new Map();
  /** @type {Citation[]} */
  citations = [];
  /** The numbers of all sources, where the answer has no marker to say which it rests on. @type {number[]} */
  notAttributed = [];
  /** @type {Accepted | null} */
  accepted = null;
  /** What is answering, or has answered. @type {Strategy | null} */
  strategy = null;
  /** On the theory of the question. @type {Verdict | null} */
  verdict = null;
  /** What was changed for the asker, by profile and version; it stays on a fallback. @type {Map<string, Change>} */
  receipts = new Map();
  /** What the asker is asked to confirm, by its id; it stays too. @type {Map<string, Confirm>} */
  confirmations = new Map();
  /** Strategies that were given up, in order. @type {Fallback[]} */
  fallbacks = [];
  /** @type {Complete | Failed | null} */
  terminal = null;

  #withheld = false;
  #lastSeq = 0;
  /** @type {Map<number, LogEvent>} */
  #early = new Map();

  /** Whether the log is known to hold an event that is not applied yet. */
  get behind() {
    return this.terminal === null && this.applied < this.#lastSeq;
  }

  /**
   * Learn that the log holds at least this many events.
   *
   * @param {number} lastSeq
   */
  noteLastSeq(lastSeq) {
    this.#lastSeq = Math.max(this.#lastSeq, lastSeq);
  }

  /**
   * Take a frame, and apply what can be: nothing, it, or also what waited for it.
   *
   * @param {EventFrame} frame
   * @returns {number} how many events were applied
   */
  feed({ seq, event }) {
    if (this.terminal || seq <= this.applied || this.#early.has(seq)) return 0;
    this.noteLastSeq(seq);
    if (seq !== this.applied + 1 && this.#early.size >= MAX_EARLY_FRAMES) return 0;
    this.#early.set(seq, event);
    const before = this.applied;
    for (let next; !this.terminal && (next = this.#early.get(this.applied + 1)); ) {
      this.applied += 1;
      this.#early.delete(this.applied);
      this.#apply(next);
    }
    if (this.terminal) this.#early.clear();
    return this.applied - before;
  }

  /**
   * End the request without an event of its log.
   *
   * @param {Failed} event
   */
  conclude(event) {
    this.terminal = event;
    this.#early.clear();
  }

  /** @param {LogEvent} event */
  #apply(event) {
    if (isTerminal(event)) this.terminal = event;
    switch (event.type) {
      case "accepted":
        this.accepted = event;
        break;
      case "attempt":
        this.#begin(event.attempt);
        this.strategy = event.strategy;
        break;
      case "fallback":
        this.fallbacks.push(event);
        this.strategy = event.to;
        this.#rewind();
        break;
      case "sources":
        if (!this.#isCurrent(event.attempt)) break;
        this.searched = event.searched;
        this.indexVersion = event.indexVersion;
        this.degraded = event.degraded;
        this.query = event.query;
        this.reused = event.reused;
        this.offered = event.offered;
        for (const source of event.sources) this.sources.set(source.n, source);
        break;
      case "chunk":
        if (this.#isCurrent(event.attempt)) this.text += event.content;
        break;
      case "citations":
        if (!this.#isCurrent(event.attempt)) break;
        this.citations.push(...event.citations);
        this.notAttributed.push(...event.notAttributed);
        break;
      case "verdict":
        if (this.#isCurrent(event.attempt)) this.verdict = event;
        break;
      case "receipt":
        this.receipts.set(`${event.change.id} ${event.change.version}`, event.change);
        break;
      case "confirm":
        this.confirmations.set(event.confirmationId, event);
        break;
      case "withdrawn":
        this.#withhold();
        break;
      case "complete":
        this.strategy = event.answeredBy || this.strategy;
        this.degraded = [...this.degraded, ...event.degraded];
        break;
      case "error":
        if ([event.code, event.failed.at(-1)?.code].includes(WITHHELD)) this.#withhold();
        break;
    }
  }

  /**
   * A new attempt's events follow. No two attempts' texts are ever joined, announced or not.
   *
   * @param {number} attempt
   */
  #begin(attempt) {
    if (attempt <= this.attempt) return;
    this.attempt = attempt;
    this.#rewind();
  }

  /** @param {number} attempt */
  #isCurrent(attempt) {
    this.#begin(attempt);
    return attempt === this.attempt && !this.#withheld;
  }

  /** The answer was blocked. What had arrived early is not shown either: it has been withdrawn since. */
  #withhold() {
    this.#withheld = true;
    this.#rewind();
  }

  #rewind() {
    this.text = "";
    this.searched = null;
    this.degraded = [];
    this.query = "";
    this.reused = null;
    this.offered = false;
    this.sources.clear();
    this.citations = [];
    this.notAttributed = [];
    this.verdict = null;
  }
}
