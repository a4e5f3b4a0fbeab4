/** Actions of one frame and one reply, beside the questions: sent again until the reply comes. Without I/O. */

import { backoffMs } from "./timing.js";

/**
 * @import { Action, Call, CallReply } from "./protocol.js"
 * @import { Timing } from "./timing.js"
 *
 * @typedef {object} Pending
 * @property {Call} action
 * @property {(reply: CallReply) => void} resolve
 * @property {number} dueAt  when it is sent again, in the connection's milliseconds
 * @property {boolean} awaited  it is sent, and no reply has come
 * @property {number} tries
 */

const LOST = "The server did not answer. Try again.";

/** What was sent and has no reply yet. Every such action is one operation, however often it is sent. */
export class Calls {
  #timing;
  #random;
  /** By what their replies are known by: a request may have several confirmations. @type {Map<string, Pending>} */
  #pending = new Map();

  /**
   * @param {Timing} timing
   * @param {() => number} random
   */
  constructor(timing, random) {
    this.#timing = timing;
    this.#random = random;
  }

  get size() {
    return this.#pending.size;
  }

  get deadline() {
    return Math.min(Infinity, ...[...this.#pending.values()].map(({ dueAt }) => dueAt));
  }

  /**
   * Take up an action. It is due at once, in place of an earlier one of the same key.
   *
   * @param {Call} action
   * @returns {Promise<CallReply>}
   */
  add(action) {
    const key = keyOf(action);
    const { requestId } = action;
    this.#end(key, { kind: "refused", requestId, code: "superseded", message: LOST, retryable: false, limit: null });
    return new Promise((resolve) => {
      this.#pending.set(key, { action, resolve, dueAt: -Infinity, awaited: false, tries: 0 });
    });
  }

  /** A new connection is open: whatever was sent over the one before may be lost. */
  connected() {
    for (const pending of this.#pending.values()) pending.dueAt = -Infinity;
  }

  /**
   * What is to be sent now.
   *
   * @param {number} now
   * @returns {Action[]}
   */
  tick(now) {
    /** @type {Action[]} */
    const due = [];
    for (const [key, pending] of this.#pending) {
      if (pending.dueAt > now) continue;
      const { requestId } = pending.action;
      if (pending.tries >= this.#timing.attempts) {
        this.#end(key, { kind: "refused", requestId, code: "no_reply", message: LOST, retryable: true, limit: null });
        continue;
      }
      pending.tries += 1;
      pending.awaited = true;
      pending.dueAt = now + this.#timing.replyMs;
      due.push(pending.action);
    }
    return due;
  }

  /**
   * A reply has come. A refusal that may pass is no reply: the action is sent again after a while.
   *
   * @param {CallReply} reply
   * @param {number} now
   * @returns {boolean} whether it was to one of these
   */
  replied(reply, now) {
    const answered = [...this.#pending].find(([key, { action }]) =>
      reply.kind === "refused" ? action.requestId === reply.requestId : key === keyOf(reply),
    );
    if (!answered) return false;
    const [key, pending] = answered;
    const again = reply.kind === "refused" && reply.retryable && !reply.limit && reply.code !== "profile_conflict";
    if (again && pending.tries < this.#timing.attempts) {
      this.#sendLater(pending, now);
    } else {
      this.#end(key, reply);
    }
    return true;
  }

  /**
   * The gateway failed with some frame, perhaps with one of these: each is sent again after a while.
   *
   * @param {number} now
   */
  fault(now) {
    for (const pending of this.#pending.values()) if (pending.awaited) this.#sendLater(pending, now);
  }

  /**
   * @param {Pending} pending
   * @param {number} now
   */
  #sendLater(pending, now) {
    pending.awaited = false;
    pending.dueAt = now + backoffMs(this.#timing, pending.tries, this.#random);
  }

  /**
   * @param {string} key
   * @param {CallReply} reply
   */
  #end(key, reply) {
    const pending = this.#pending.get(key);
    this.#pending.delete(key);
    pending?.resolve(reply);
  }
}

/**
 * @param {Call | CallReply} one
 * @returns {string}
 */
function keyOf(one) {
  return "confirmationId" in one ? `${one.confirmationId}` : `${one.requestId}`;
}
