/** What the tests of the page's modules share: frames, a clock that stands still, a socket without a network. */

import { parseFrame } from "../../../../packages/client/src/protocol.js";
import { DEFAULT_TIMING } from "../../../../packages/client/src/timing.js";

export const REQUEST = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
export const ASK = { action: "ask", requestId: REQUEST, query: "Who rang the bell?" };

export const TIMING = {
  ...DEFAULT_TIMING,
  openMs: 5,
  replyMs: 10,
  silenceMs: 20,
  gapMs: 1,
  pingMs: 100,
  wakeMs: 3,
  retireMs: 1000,
  retireGraceMs: 50,
  stableMs: 30,
  backoffBaseMs: 1,
  backoffCapMs: 4,
  attempts: 3,
};

/** The frame of an event, as the wire brings it. */
export function wire(seq, event, requestId = REQUEST) {
  return JSON.stringify({ requestId, seq, ...event });
}

/** The frame of an event, read. */
export function frame(seq, event) {
  return parseFrame(wire(seq, event));
}

export const accepted = (seq = 1) => frame(seq, { type: "accepted", route: "rag", reasoning: "", strategy: "rag" });
export const chunk = (seq, content = `${seq} `, attempt = 1) => frame(seq, { type: "chunk", attempt, content });
export const complete = (seq) => frame(seq, { type: "complete", answeredBy: "rag", model: "m", grounded: true, metrics: {} });
export const cancelled = (seq) => frame(seq, { type: "error", code: "cancelled", message: "Cancelled.", retryable: false });

export function resumed(outcome, lastSeq = 0) {
  return parseFrame(JSON.stringify({ requestId: REQUEST, seq: 0, type: "resumed", outcome, lastSeq }));
}

export function refused(code, { retryable = false, requestId = REQUEST, limit } = {}) {
  return parseFrame(JSON.stringify({ requestId, seq: 0, type: "error", code, message: `no: ${code}`, retryable, limit }));
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Time that passes only when it is told to. */
export class Clock {
  now = 0;
  #timers = new Map();
  #next = 0;

  timers = {
    set: (act, ms) => {
      this.#timers.set((this.#next += 1), { at: this.now + ms, act });
      return this.#next;
    },
    clear: (timer) => this.#timers.delete(timer),
  };

  /** Let time pass, and what is due happen. */
  pass(ms) {
    const until = this.now + ms;
    for (;;) {
      const [id, due] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
      if (!due || due.at > until) break;
      this.#timers.delete(id);
      this.now = Math.max(this.now, due.at);
      due.act();
    }
    this.now = until;
  }
}

/** A stand-in for the browser's WebSocket; the test is the network. */
export class FakeSocket {
  static all = [];
  sent = [];
  isClosed = false;

  constructor(url, protocols) {
    this.url = url;
    this.protocols = protocols;
    FakeSocket.all.push(this);
  }

  static get last() {
    return FakeSocket.all.at(-1);
  }

  open() {
    this.onopen();
  }

  bring(...frames) {
    for (const one of frames) this.onmessage({ data: one });
  }

  lose() {
    this.onclose();
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.isClosed = true;
  }
}
