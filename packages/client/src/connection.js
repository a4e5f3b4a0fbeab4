/** The one socket that all open requests share: opened, kept, and opened again when it breaks. */

import { Calls } from "./calls.js";
import { parseFrame } from "./protocol.js";
import { backoffMs } from "./timing.js";

/**
 * @import { Exchange } from "./exchange.js"
 * @import { Action, Call, CallReply, Frame } from "./protocol.js"
 * @import { Timing } from "./timing.js"
 *
 * @typedef {object} Status  What the connection is doing, for those who show it.
 * @property {"idle" | "connecting" | "open" | "waiting" | "locked" | "refused"} state  `waiting`: it failed and is tried
 *   again soon. `idle`: there is none, and none is needed. `locked`: nobody is signed in. `refused`: the server does not
 *   accept this user; only `retry` tries again.
 * @property {number} failures  in a row
 * @property {boolean} everOpen  whether it has been open before
 * @property {boolean} catchingUp  open, and some request is not yet known to be up to date
 * @property {string} reason  why it is refused, in words for the asker
 */

const UNAUTHORIZED = "unauthorized";
const NEVER = Infinity;

/** Keeps a connection while somebody looks at the page or a request is open. */
export class Connection {
  #url;
  #protocols;
  #timing;
  #onChange;
  #onStatus;
  #onUnauthorized;
  #random;
  #now;
  #timers;
  #WebSocket;

  /** The requests that have not ended. @type {Map<string, Exchange>} */
  #exchanges = new Map();
  #calls;
  /** The socket in use, also while it opens. @type {WebSocket | null} */
  #socket = null;
  #isOpen = false;
  #openedAt = 0;
  #activeAt = 0;
  /** When the answer to a `ping` is overdue. */
  #pongDueAt = NEVER;
  /** When the next connection is opened. */
  #reopenAt = NEVER;
  #openDueAt = NEVER;
  #failures = 0;
  /** Frames that have brought a request on. */
  #progress = 0;
  #everOpen = false;
  #attended = true;
  #refusal = "";
  /** What the last socket offered. */
  #offered = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #shown = "";
  #isClosed = false;

  /**
   * @param {string} url
   * @param {object} options
   * @param {Timing} options.timing
   * @param {(exchange: Exchange) => void} options.onChange  told of every exchange that something has happened to
   * @param {(status: Status) => void} options.onStatus  told when the status has changed
   * @param {() => string[] | null} [options.protocols]  what a socket offers the server; null if it must not be opened now
   * @param {(reason: string) => void} [options.onUnauthorized]  told when the server does not accept this user any more
   * @param {() => number} [options.random]
   * @param {() => number} [options.now]  milliseconds of a monotonic clock
   * @param {{ set: (act: () => void, ms: number) => any, clear: (timer: any) => void }} [options.timers]
   * @param {typeof WebSocket} [options.WebSocket]
   */
  constructor(url, options) {
    this.#url = url;
    this.#timing = options.timing;
    this.#onChange = options.onChange;
    this.#onStatus = options.onStatus;
    this.#protocols = options.protocols ?? (() => []);
    this.#onUnauthorized = options.onUnauthorized ?? (() => undefined);
    this.#random = options.random ?? Math.random;
    this.#now = options.now ?? (() => performance.now());
    this.#timers = options.timers ?? { set: (act, ms) => setTimeout(act, ms), clear: (timer) => clearTimeout(timer) };
    this.#WebSocket = options.WebSocket ?? WebSocket;
    this.#calls = new Calls(this.#timing, this.#random);
  }

  // --- requests ---

  /**
   * Take up a request.
   *
   * @param {Exchange} exchange
   */
  add(exchange) {
    this.#exchanges.set(exchange.requestId, exchange);
    if (this.#isOpen) this.#after(exchange, exchange.connected(this.#now()));
    this.#settle();
  }

  /**
   * Have a request ended, if it is open.
   *
   * @param {string} requestId
   */
  cancel(requestId) {
    const exchange = this.#exchanges.get(requestId);
    if (exchange) this.#after(exchange, exchange.cancel(this.#now()));
    this.#settle();
  }

  /**
   * Send an action that one reply answers, as often as it takes.
   *
   * @param {Call} action
   * @returns {Promise<CallReply>}
   */
  call(action) {
    const reply = this.#calls.add(action);
    this.#settle();
    return reply;
  }

  // --- what the page knows ---

  /**
   * Whether somebody looks at the page: then a connection is kept though no request is open.
   *
   * @param {boolean} attended
   */
  attend(attended) {
    this.#attended = attended;
    if (attended) this.check();
    this.#settle();
  }

  /** The network may have changed, or the computer slept: find out now whether the connection still works. */
  check() {
    if (this.#isOpen && this.#pongDueAt === NEVER) this.#ping(this.#timing.wakeMs);
    if (this.#reopenAt !== NEVER) this.#reopenAt = this.#now();
    this.#settle();
  }

  /** The asker does not want to wait for the next try. */
  retry() {
    this.#refusal = "";
    this.#failures = 0;
    if (!this.#socket) this.#reopenAt = this.#now();
    this.#settle();
  }

  /** What a socket offers has changed, or may be offered now: a connection that offered something else is replaced. */
  authorized() {
    const offered = JSON.stringify(this.#protocols());
    if (offered === this.#offered) return this.#settle();
    if (this.#socket) this.#drop();
    this.retry();
  }

  /** The connection is needed: open it now if it is not. */
  start() {
    this.#settle();
  }

  /** Close the connection for good. */
  close() {
    this.#isClosed = true;
    this.#drop();
    this.#timers.clear(this.#timer);
  }

  // --- the socket ---

  #open() {
    this.#reopenAt = NEVER;
    const protocols = this.#protocols();
    if (protocols === null) return;
    const socket = this.#create(protocols);
    if (!socket) return;
    this.#offered = JSON.stringify(protocols);
    this.#socket = socket;
    this.#openDueAt = this.#now() + this.#timing.openMs;
    /** @param {() => void} act */
    const current = (act) => {
      if (this.#socket !== socket) return;
      act();
      this.#settle();
    };
    socket.onopen = () => current(() => this.#opened());
    socket.onmessage = ({ data }) => current(() => this.#received(data));
    socket.onclose = () => current(() => this.#lost());
  }

  /** @param {string[]} protocols */
  #create(protocols) {
    try {
      return new this.#WebSocket(this.#url, protocols);
    } catch (error) {
      this.#refusal = `The browser does not open ${this.#url}: ${error instanceof Error ? error.message : error}`;
      return null;
    }
  }

  #opened() {
    this.#openDueAt = NEVER;
    this.#isOpen = this.#everOpen = true;
    this.#openedAt = this.#activeAt = this.#now();
    for (const exchange of [...this.#exchanges.values()]) this.#after(exchange, exchange.connected(this.#now()));
    this.#calls.connected();
  }

  /** The connection is gone, or given up. */
  #lost() {
    const wasGood = this.#isOpen && this.#now() >= this.#openedAt + this.#timing.stableMs;
    this.#failures = wasGood ? 1 : this.#failures + 1;
    this.#drop();
    this.#reopenAt = this.#now() + backoffMs(this.#timing, this.#failures, this.#random);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null; // its events do not count any more: closing a dead connection can take minutes
    this.#isOpen = false;
    this.#openDueAt = this.#pongDueAt = NEVER;
    socket?.close();
    for (const exchange of this.#exchanges.values()) exchange.disconnected();
  }

  /** @param {Action} action */
  #send(action) {
    this.#activeAt = this.#now();
    this.#socket?.send(JSON.stringify(action));
  }

  /** @param {number} replyMs */
  #ping(replyMs) {
    this.#pongDueAt = this.#now() + replyMs;
    this.#send({ action: "ping" });
  }

  /** @param {unknown} data */
  #received(data) {
    const now = this.#now();
    this.#activeAt = now;
    this.#pongDueAt = NEVER;
    const frame = parseFrame(data);
    if (frame === null || frame.kind === "pong") return;
    if (frame.kind === "refused" && frame.code === UNAUTHORIZED) {
      this.#refusal = frame.message;
      this.#drop();
      this.#onUnauthorized(frame.message);
    } else if (frame.kind === "fault" || (frame.kind === "refused" && frame.requestId === null)) {
      this.#calls.fault(now);
      for (const exchange of [...this.#exchanges.values()]) {
        exchange.fault(frame.message, now, this.#progress);
        this.#after(exchange, []);
      }
    } else if (isCallReply(frame) && this.#calls.replied(frame, now)) {
      this.#failures = 0;
    } else if (frame.requestId !== null) {
      const exchange = this.#exchanges.get(frame.requestId);
      if (exchange) this.#after(exchange, this.#hand(frame, exchange, now));
    }
  }

  /**
   * @param {Frame} frame
   * @param {Exchange} exchange
   * @param {number} now
   * @returns {Action[]}
   */
  #hand(frame, exchange, now) {
    switch (frame.kind) {
      case "event": {
        const before = exchange.tail.applied;
        const actions = exchange.event(frame, now);
        if (exchange.tail.applied > before) {
          this.#failures = 0;
          this.#progress += 1;
        }
        return actions;
      }
      case "resumed":
        return exchange.resumed(frame, now);
      case "refused":
        exchange.refused(frame, now);
        return [];
      default:
        return [];
    }
  }

  /**
   * @param {Exchange} exchange
   * @param {Action[]} actions
   */
  #after(exchange, actions) {
    if (this.#isOpen) for (const action of actions) this.#send(action);
    if (exchange.ended) this.#exchanges.delete(exchange.requestId);
    this.#onChange(exchange);
  }

  // --- time ---

  /** Do what is due, say what has changed, and wait for what comes next. */
  #settle() {
    if (this.#isClosed) return;
    this.#tick();
    this.#tell();
    this.#timers.clear(this.#timer);
    const waitMs = this.#deadline() - this.#now();
    if (waitMs !== NEVER) this.#timer = this.#timers.set(() => this.#settle(), Math.max(0, waitMs));
  }

  #tick() {
    const now = this.#now();
    if (this.#isOpen) this.#tickOpen(now);
    else if (now >= this.#openDueAt) this.#lost();
    const absent = !this.#socket && !this.#refusal && this.#needed && this.#protocols() !== null;
    if (absent && (this.#reopenAt === NEVER || now >= this.#reopenAt)) this.#open();
  }

  /** @param {number} now */
  #tickOpen(now) {
    for (const exchange of [...this.#exchanges.values()]) {
      const actions = exchange.tick(now);
      if (actions.length || exchange.ended) this.#after(exchange, actions);
      if (exchange.stalled) return this.#lost();
    }
    for (const action of this.#calls.tick(now)) this.#send(action);
    if (now >= this.#pongDueAt) return this.#lost();
    if (now >= this.#retiresAt()) return this.#drop();
    if (now >= this.#activeAt + this.#timing.pingMs) this.#ping(this.#timing.replyMs);
  }

  #deadline() {
    if (this.#state() === "waiting") return this.#reopenAt;
    if (!this.#isOpen) return this.#openDueAt;
    const due = [...this.#exchanges.values()].map((exchange) => exchange.deadline);
    return Math.min(this.#pongDueAt, this.#activeAt + this.#timing.pingMs, this.#retiresAt(), this.#calls.deadline, ...due);
  }

  get #needed() {
    return this.#exchanges.size > 0 || this.#calls.size > 0 || this.#attended;
  }

  #retiresAt() {
    const graceMs = this.#exchanges.size > 0 ? this.#timing.retireGraceMs : 0;
    return this.#openedAt + this.#timing.retireMs + graceMs;
  }

  #tell() {
    const status = this.#status();
    const shown = JSON.stringify(status);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#onStatus(status);
  }

  /** @returns {Status} */
  #status() {
    return {
      state: this.#state(),
      failures: this.#failures,
      everOpen: this.#everOpen,
      catchingUp: this.#isOpen && [...this.#exchanges.values()].some((exchange) => exchange.catchingUp),
      reason: this.#refusal,
    };
  }

  /** @returns {Status["state"]} */
  #state() {
    if (this.#isOpen) return "open";
    if (this.#protocols() === null) return "locked";
    if (this.#refusal) return "refused";
    if (this.#socket) return "connecting";
    return this.#needed ? "waiting" : "idle";
  }
}

/**
 * @param {Frame} frame
 * @returns {frame is CallReply}
 */
function isCallReply(frame) {
  return ["confirmed", "profile", "reply", "refused"].includes(frame.kind);
}
