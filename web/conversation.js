/** The questions of one conversation, in order, and what becomes of them. Without the DOM. */

import { Exchange } from "./exchange.js";
import { uuid } from "./protocol.js";

/**
 * @import { Connection } from "./connection.js"
 * @import { Ask } from "./protocol.js"
 * @import { Store } from "./store.js"
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
    return kept.map(({ ask, known }) => this.#begin(ask, known, true));
  }

  /**
   * Ask a question.
   *
   * @param {string} query  not blank
   * @param {string[]} episodes  to search in; all if empty
   * @returns {Turn}
   */
  ask(query, episodes) {
    const scope = episodes.length ? { episodes } : {};
    return this.#begin({ action: "ask", requestId: uuid(), query, sessionId: this.#sessionId, ...scope }, false, false);
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
    if (exchange.known !== this.#known.has(exchange)) this.#keep();
  }

  /** Begin anew. What is being answered is cancelled: nobody waits for it any more. */
  clear() {
    for (const turn of this.turns) this.cancel(turn);
    this.turns = [];
    this.#sessionId = uuid();
    this.#keep();
  }

  /**
   * @param {Ask} ask
   * @param {boolean} known
   * @param {boolean} restored
   * @returns {Turn}
   */
  #begin(ask, known, restored) {
    const exchange = new Exchange(ask, { known, timing: this.#timing });
    const turn = { ask, exchange, restored };
    this.turns.push(turn);
    this.#keep();
    this.#connection.add(exchange);
    return turn;
  }

  #keep() {
    this.#store.write(this.turns.map(({ ask, exchange }) => ({ ask, known: exchange.known })));
    for (const { exchange } of this.turns) if (exchange.known) this.#known.add(exchange);
  }
}
