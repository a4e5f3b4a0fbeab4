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
 * @property {number} tries
 */

const LOST = "The server did not answer. Try again.";

/** What was sent and has no reply yet. Every such action is one operation, however often it is sent. */
export class Calls {
  #timing;
  #random;
  /** By request id. @type {Map<string, Pending>} */
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
   * Take up an action. It is due at once.
   *
   * @param {Call} action
   * @returns {Promise<CallReply>}
   */
  add(action) {
    return new Promise((resolve) => {
      this.#pending.set(action.requestId, { action, resolve, dueAt: -Infinity, tries: 0 });
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
    for (const [requestId, pending] of this.#pending) {
      if (pending.dueAt > now) continue;
      if (pending.tries >= this.#timing.attempts) {
        this.#end(requestId, { kind: "refused", requestId, code: "no_reply", message: LOST, retryable: true });
        continue;
      }
      pending.tries += 1;
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
    const pending = reply.requestId === null ? undefined : this.#pending.get(reply.requestId);
    if (!pending || reply.requestId === null) return false;
    const again = reply.kind === "refused" && reply.retryable && reply.code !== "profile_conflict";
    if (again && pending.tries < this.#timing.attempts) {
      pending.dueAt = now + backoffMs(this.#timing, pending.tries, this.#random);
    } else {
      this.#end(reply.requestId, reply);
    }
    return true;
  }

  /**
   * The gateway failed with some frame, perhaps with one of these: each is sent again after a while.
   *
   * @param {number} now
   */
  fault(now) {
    for (const pending of this.#pending.values()) {
      pending.dueAt = now + backoffMs(this.#timing, Math.max(1, pending.tries), this.#random);
    }
  }

  /**
   * @param {string} requestId
   * @param {CallReply} reply
   */
  #end(requestId, reply) {
    const pending = this.#pending.get(requestId);
    this.#pending.delete(requestId);
    pending?.resolve(reply);
  }
}
