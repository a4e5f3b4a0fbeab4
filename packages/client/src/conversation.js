/** The questions of one conversation, in order, and what becomes of them. Without the DOM. */

import { Exchange } from "./exchange.js";
import { uuid } from "./protocol.js";

/**
 * @import { Connection } from "./connection.js"
 * @import { Ask } from "./protocol.js"
 * @import { Kept, Store } from "./store.js"
 * @import { Timing } from "./timing.js"
 *
 * @typedef {object} Turn  One question and its answer.
 * @property {Ask} ask
 * @property {Exchange} exchange
 * @property {boolean} restored  it was asked before the page was loaded
 */

/** Asks, restores, cancels and forgets. */
export class Conversation {
  /** @type {Turn[]} */
  turns = [];

  #store;
  #connection;
  #timing;
  #sessionId = uuid();
  /** What is written down as known to the server. @type {WeakSet<Exchange>} */
  #known = new WeakSet();

  /**
   * @param {Store} store
   * @param {Connection} connection
   * @param {Timing} timing
   */
  constructor(store, connection, timing) {
    this.#store = store;
    this.#connection = connection;
    this.#timing = timing;
  }

  /**
   * Take up what was asked before the page was loaded. What the server may not have is asked again, under the same id.
   *
   * @returns {Turn[]}
   */
  restore() {
    const kept = this.#store.read();
    this.#sessionId = kept.at(-1)?.ask.sessionId ?? this.#sessionId;
    return kept.map((one) => this.#begin(one, true));
  }

  /**
   * Ask a question.
   *
   * @param {string} query  not blank
   * @param {{ collections?: string[], episodes?: string[], sections?: string[], documents?: string[] }} scope  to search in;
   *   everything if it is empty
   * @returns {Turn}
   */
  ask(query, scope) {
    const ask = /** @type {const} */ ({ action: "ask", requestId: uuid(), query, sessionId: this.#sessionId, ...scope });
    return this.#begin({ ask, known: false }, false);
  }

  /** @param {Turn} turn */
  cancel(turn) {
    this.#connection.cancel(turn.ask.requestId);
  }

  /**
   * Something has happened to a request.
   *
   * @param {Exchange} exchange
   */
  changed(exchange) {
    if (exchange.known !== this.#known.has(exchange) || exchange.failure?.limit) this.#keep();
  }

  /**
   * Forget a question that has ended.
   *
   * @param {Turn} turn
   */
  drop(turn) {
    this.turns = this.turns.filter((one) => one !== turn);
    this.#keep();
  }

  /** The name of the conversation. */
  get sessionId() {
    return this.#sessionId;
  }

  /** Begin a new conversation. Answers under way go on at the server. */
  clear() {
    this.turns = [];
    this.#sessionId = uuid();
    this.#keep();
  }

  /**
   * Take up a conversation that the server keeps, in place of this one.
   *
   * @param {string} sessionId
   * @param {{ requestId: string, query: string }[]} requests  in order
   * @returns {Turn[]}
   */
  open(sessionId, requests) {
    this.turns = [];
    this.#sessionId = sessionId;
    return requests.map(({ requestId, query }) =>
      this.#begin({ ask: { action: "ask", requestId, query, sessionId }, known: true }, true),
    );
  }

  /**
   * @param {Kept} question
   * @param {boolean} restored
   * @returns {Turn}
   */
  #begin({ ask, known, limited = null }, restored) {
    const exchange = new Exchange(ask, { known, failure: limited, timing: this.#timing });
    const turn = { ask, exchange, restored };
    this.turns.push(turn);
    this.#keep();
    if (!exchange.ended) this.#connection.add(exchange);
    return turn;
  }

  #keep() {
    const kept = this.turns.map(({ ask, exchange: { known, failure } }) => ({
      ask,
      known,
      ...(failure?.limit ? { limited: failure } : {}),
    }));
    this.#store.write(kept);
    for (const { exchange } of this.turns) if (exchange.known) this.#known.add(exchange);
  }
}
