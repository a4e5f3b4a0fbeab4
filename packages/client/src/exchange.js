/** One request's side of the conversation: what to send, and when. Without I/O and without a clock of its own. */

import { isTerminal } from "./protocol.js";
import { RequestTail } from "./tail.js";
import { backoffMs } from "./timing.js";

/**
 * @import { Action, Ask, EventFrame, Limit, RefusedFrame, ResumedFrame } from "./protocol.js"
 * @import { Timing } from "./timing.js"
 *
 * @typedef {{ code: string, message: string, limit?: Limit | null }} Failure  Why a request ended without an event of its
 *   log.
 */

const UNKNOWN = { code: "request_unknown", message: "The server does not know this question any more." };
const EXPIRED = { code: "request_expired", message: "This answer is no longer kept." };
const MISSING = { code: "connection_lost", message: "A part of the answer could not be had." };

/**
 * Follows one request to its end over as many connections as that takes.
 *
 * Whoever owns the connection tells it what happens (`connected`, `disconnected`, `event`, `resumed`, `refused`,
 * `fault`, and `tick` at `deadline`) and sends what these return. It ends by a terminal event or by a `failure`.
 *
 * An `ask` is sent again until an event shows that the server has the request: the same `requestId` twice is one
 * request. From then on it is resumed. Times are milliseconds of any monotonic clock.
 */
export class Exchange {
  tail = new RequestTail();
  /** @type {Failure | null} */
  failure;
  /** The connection brings nothing any more, and should be given up. */
  stalled = false;
  /** Whether the server is known to have the request. */
  known;

  #ask;
  #timing;
  #random;
  #asked;
  #connected = false;
  /** The reply that is awaited. @type {"ask" | "resume" | null} */
  #awaited = null;
  /** @type {"no" | "wanted" | "sent" | "done"} */
  #cancel = "no";
  #sentAt = 0;
  #heardAt = 0;
  #gapSince = 0;
  #fruitless = 0;
  #refusals = 0;
  #progress = 0;
  /** @type {number | null} */
  #retryAt = null;
  #mayResumeAt = -Infinity;

  /**
   * @param {Ask} ask
   * @param {object} options
   * @param {boolean} [options.known]  an event of it has been seen before: it is resumed, not asked
   * @param {Failure | null} [options.failure]  it ended by this before
   * @param {Timing} options.timing
   * @param {() => number} [options.random]
   */
  constructor(ask, { known = false, failure = null, timing, random = Math.random }) {
    this.#ask = ask;
    this.known = this.#asked = known;
    this.failure = failure;
    this.#timing = timing;
    this.#random = random;
  }

  get requestId() {
    return this.#ask.requestId;
  }

  /** Whether nothing more will come. */
  get ended() {
    return this.tail.terminal !== null || this.failure !== null;
  }

  /** Whether it is known, and not yet known to be up to date. */
  get catchingUp() {
    const waits = this.known && this.#retryAt !== null;
    return !this.ended && (waits || this.#awaited === "resume" || this.tail.behind);
  }

  /** Whether the asker has cancelled it and waits for the end. */
  get cancelling() {
    return !this.ended && this.#cancel !== "no";
  }

  /** When `tick` has something to do, if nothing happens before; Infinity if never. */
  get deadline() {
    return Math.min(Infinity, ...this.#timers().map((timer) => timer.at));
  }

  // --- what happens ---

  /**
   * A new connection is open.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  connected(now) {
    this.#connected = true;
    this.#heardAt = now;
    if (this.#mayResumeAt > now && this.known && this.#cancel !== "wanted" && this.#cancel !== "sent") {
      this.#retryAt = this.#mayResumeAt; // connections that break at once bring no storm of replays
      return [];
    }
    return this.#open(now);
  }

  /** The connection is gone, and with it whatever reply was awaited. */
  disconnected() {
    this.#connected = this.stalled = false;
    this.#awaited = this.#retryAt = null;
  }

  /**
   * The asker wants no more of it.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  cancel(now) {
    if (this.ended || this.#cancel !== "no") return [];
    this.#cancel = "wanted";
    if (!this.#asked) {
      this.#endUnasked();
      return [];
    }
    return this.#cancelKnown(now);
  }

  /**
   * An event of the request has come.
   *
   * @param {EventFrame} frame
   * @param {number} now
   * @returns {Action[]}
   */
  event(frame, now) {
    if (this.ended) return [];
    if (!this.known && this.#cancel === "no") this.#retryAt = null; // the gateway did not fail with its ask
    this.known = this.#asked = true;
    this.#heardAt = now;
    if (this.#awaited === "ask") this.#awaited = null;
    if (isTerminal(frame.event) && this.#cancel !== "no") this.#cancel = "done"; // ended, by this or something else
    const wasBehind = this.tail.behind;
    const applied = this.tail.feed(frame);
    if (applied) this.#fruitless = this.#refusals = 0;
    if (this.tail.behind && (applied || !wasBehind)) this.#gapSince = now;
    return this.ended ? [] : this.#cancelKnown(now);
  }

  /**
   * The reply to a `resume`: what the log held has been replayed, though perhaps not all of it has come.
   *
   * @param {ResumedFrame} reply
   * @param {number} now
   * @returns {Action[]}
   */
  resumed(reply, now) {
    if (this.ended) return [];
    this.#heardAt = now;
    if (this.#awaited === "resume") this.#awaited = null;
    switch (reply.outcome) {
      case "unknown":
        this.failure = UNKNOWN;
        return [];
      case "expired":
        this.failure = EXPIRED;
        return [];
      case "finished": // a terminal event exists, and has not been applied
        this.tail.noteLastSeq(this.tail.applied + 1);
    }
    this.known = true;
    this.tail.noteLastSeq(reply.lastSeq);
    this.#gapSince = now;
    return this.#cancelKnown(now);
  }

  /**
   * The server refused a frame of this request.
   *
   * @param {RefusedFrame} reply
   * @param {number} now
   */
  refused(reply, now) {
    if (this.ended || !this.#awaitsReply) return;
    this.#heardAt = now;
    if (reply.code === UNKNOWN.code && this.#cancel === "sent" && !this.known) this.#endUnasked();
    else if (reply.code === UNKNOWN.code) this.failure = UNKNOWN;
    else if (reply.code === EXPIRED.code) this.failure = EXPIRED;
    else if (reply.retryable && !reply.limit) this.#tryAgain(reply, now); // a limit is freed by its time: the asker decides
    else this.failure = reply;
  }

  /**
   * The gateway failed with some frame: perhaps with one of this request, if a reply is awaited.
   *
   * @param {string} message
   * @param {number} now
   * @param {number} progress  grows with everything that comes over the connection, whichever request it is of: as long
   *   as the server gets on, a burst is borne, however often this request's turn does not come
   */
  fault(message, now, progress = 0) {
    if (this.ended || !this.#awaitsReply) return;
    this.#heardAt = now;
    const moving = progress > this.#progress;
    this.#progress = progress;
    this.#tryAgain({ code: "gateway_fault", message }, now, moving);
  }

  /**
   * Do what is due.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  tick(now) {
    /** @type {Action[]} */
    const actions = [];
    for (;;) {
      const due = this.#timers()
        .filter((timer) => timer.at <= now)
        .sort((a, b) => a.at - b.at)[0];
      if (!due) return actions;
      actions.push(...due.act(now));
    }
  }

  // --- what follows ---

  /** @returns {{ at: number, act: (now: number) => Action[] }[]} */
  #timers() {
    if (!this.#connected || this.ended || this.stalled) return [];
    if (this.#retryAt !== null) return [{ at: this.#retryAt, act: (now) => this.#open(now) }];
    if (this.#awaitsReply) return [{ at: this.#sentAt + this.#timing.replyMs, act: (now) => this.#missReply(now) }];
    const timers = [{ at: this.#heardAt + this.#timing.silenceMs, act: (/** @type {number} */ now) => this.#resume(now) }];
    if (this.tail.behind) {
      const patienceMs = Math.min(this.#timing.gapMs * 2 ** this.#fruitless, this.#timing.silenceMs);
      const at = Math.max(this.#gapSince + patienceMs, this.#mayResumeAt);
      timers.push({ at, act: (now) => this.#fillGap(now) });
    }
    return timers;
  }

  get #awaitsReply() {
    return this.#awaited !== null || this.#cancel === "sent";
  }

  /**
   * Say what this request needs said on a connection that knows nothing of it.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  #open(now) {
    this.#retryAt = null;
    if (this.#cancel === "wanted" || this.#cancel === "sent") return this.#sendCancel(now);
    if (this.known) return this.#resume(now);
    this.#asked = true;
    this.#awaited = "ask";
    this.#sentAt = now;
    return [this.#ask];
  }

  /**
   * @param {number} now
   * @returns {Action[]}
   */
  #resume(now) {
    this.#awaited = "resume";
    this.#sentAt = now;
    this.#mayResumeAt = now + this.#timing.gapMs;
    return [{ action: "resume", requestId: this.requestId, after: this.tail.applied }];
  }

  /**
   * @param {number} now
   * @returns {Action[]}
   */
  #fillGap(now) {
    this.#fruitless += 1;
    if (this.#fruitless > this.#timing.attempts) {
      this.failure = MISSING;
      return [];
    }
    return this.#resume(now);
  }

  /**
   * A reply is overdue. If other things came, it alone was lost; if nothing did, the connection is dead.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  #missReply(now) {
    if (this.#heardAt <= this.#sentAt) {
      this.stalled = true;
      return [];
    }
    this.#awaited = null;
    if (this.#cancel === "sent") return this.#sendCancel(now);
    return this.known ? [] : this.#open(now);
  }

  /**
   * Cancel once the server is known to have the request: earlier, the `cancel` could overtake the `ask`.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  #cancelKnown(now) {
    return this.#cancel === "wanted" && this.known && this.#connected ? this.#sendCancel(now) : [];
  }

  /**
   * @param {number} now
   * @returns {Action[]}
   */
  #sendCancel(now) {
    this.#cancel = "sent";
    this.#sentAt = now;
    this.#retryAt = null;
    return [{ action: "cancel", requestId: this.requestId }];
  }

  /**
   * @param {Failure} failure
   * @param {number} now
   * @param {boolean} [moving]
   */
  #tryAgain(failure, now, moving = false) {
    this.#refusals += 1;
    if (this.#refusals > this.#timing.attempts && !moving) {
      this.failure = failure;
      return;
    }
    this.#awaited = null;
    this.#retryAt = Math.max(now + backoffMs(this.#timing, this.#refusals, this.#random), this.#mayResumeAt);
  }

  #endUnasked() {
    this.tail.conclude({ type: "error", code: "cancelled", message: "Cancelled.", retryable: false, failed: [] });
  }
}
