/** Ask a Cicada deployment questions over one WebSocket. Has no user interface; works in browsers and in Node.js. */

import { Connection } from "./connection.js";
import { Exchange } from "./exchange.js";
import { MAX_QUERY_CHARS, uuid } from "./protocol.js";
import { isBlank } from "./safe.js";
import { bearer } from "./session.js";
import { DEFAULT_TIMING } from "./timing.js";

export { markersIn, withoutMarkers } from "./markers.js";
export { MAX_QUERY_CHARS, uuid } from "./protocol.js";
export { DEFAULT_TIMING } from "./timing.js";

/**
 * @import { Status } from "./connection.js"
 * @import { Ask, Call, CallReply, Citation, Complete, Fallback, Limit, Source, Strategy } from "./protocol.js"
 * @import { Timing } from "./timing.js"
 *
 * @typedef {string | (() => string | null | Promise<string | null>)} Token  A token, or what gets a fresh one.
 *
 * @typedef {object} AskOptions
 * @property {string[]} [collections]  search only these; all if empty
 * @property {string[]} [episodes]  search only these; all if empty
 * @property {string[]} [documents]  search only these sources; all if empty
 * @property {string[]} [sections]  search only these section paths; all if empty
 * @property {number} [topK]  passages to retrieve, 1 to 100
 * @property {string} [sessionId]  names a conversation: later questions may refer to earlier ones
 * @property {string} [requestId]  a UUID; the same one twice is one request
 * @property {AbortSignal} [signal]  aborting cancels the request
 *
 * @typedef {object} Answer  What has arrived of an answer. After a fallback, `text` starts again.
 * @property {string} requestId
 * @property {string} text
 * @property {Strategy | null} strategy  what is answering, or has answered
 * @property {Source[]} sources
 * @property {Citation[]} citations
 * @property {Fallback[]} fallbacks  strategies that failed, in order
 * @property {Complete | null} complete  the last event; null while the answer is being written
 * @property {boolean} grounded  the answer is complete and rests on sources
 */

/** An answer ended with an error. */
export class AnswerFailed extends Error {
  /**
   * @param {{ code: string, message: string, retryable?: boolean, limit?: Limit | null }} failure
   * @param {string} text  what had been written
   */
  constructor({ code, message, retryable = false, limit = null }, text) {
    super(message);
    this.name = "AnswerFailed";
    this.code = code;
    this.retryable = retryable;
    this.limit = limit;
    this.text = text;
  }
}

/** The answer to one question as it arrives: iterate over its states, or wait for `answer()`. */
export class AnswerStream {
  #exchange;
  #cancel;
  /** @type {(() => void)[]} */
  #waiting = [];
  #changes = 0;

  /**
   * @param {Exchange} exchange
   * @param {() => void} cancel
   */
  constructor(exchange, cancel) {
    this.#exchange = exchange;
    this.#cancel = cancel;
  }

  get requestId() {
    return this.#exchange.requestId;
  }

  /** What has arrived so far. @returns {Answer} */
  get current() {
    const { tail } = this.#exchange;
    const complete = tail.terminal?.type === "complete" ? tail.terminal : null;
    return {
      requestId: this.requestId,
      text: tail.text,
      strategy: tail.strategy,
      sources: [...tail.sources.values()],
      citations: [...tail.citations],
      fallbacks: [...tail.fallbacks],
      complete,
      grounded: complete?.grounded ?? false,
    };
  }

  /** Have the server end the request. */
  cancel() {
    this.#cancel();
  }

  /** Something has happened to the request. */
  changed() {
    this.#changes += 1;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /**
   * The states of the answer; the last has `complete`.
   *
   * @returns {AsyncGenerator<Answer, void, void>}
   * @throws {AnswerFailed}
   */
  async *[Symbol.asyncIterator]() {
    for (let seen = -1; ; ) {
      if (seen !== this.#changes) {
        seen = this.#changes;
        this.#throwFailure();
        const answer = this.current;
        yield answer;
        if (answer.complete) return;
      } else {
        await new Promise((/** @type {(value?: undefined) => void} */ resolve) => this.#waiting.push(resolve));
      }
    }
  }

  /**
   * The whole answer.
   *
   * @returns {Promise<Answer>}
   * @throws {AnswerFailed}
   */
  async answer() {
    for await (const answer of this) if (answer.complete) return answer;
    throw new Error("the answer ended without its last event");
  }

  #throwFailure() {
    const { tail, failure } = this.#exchange;
    if (failure) throw new AnswerFailed(failure, tail.text);
    if (tail.terminal?.type === "error") throw new AnswerFailed(tail.terminal, tail.text);
  }
}

/**
 * A client of one deployment. The first question opens the connection; a lost one is opened again, and open requests are
 * resumed.
 */
export class CicadaClient {
  #token;
  #timing;
  #connection;
  /** @type {string[] | null} null while a token is being fetched */
  #protocols;
  /** @type {Map<string, AnswerStream>} */
  #streams = new Map();

  /**
   * @param {string} url  the deployment's WebSocket URL, `wss://…`
   * @param {object} [options]
   * @param {Token} [options.token]  not needed where the deployment asks for none
   * @param {Partial<Timing>} [options.timing]
   * @param {(status: Status) => void} [options.onStatus]
   * @param {typeof WebSocket} [options.WebSocket]  for Node.js before 22, such as the one of the package `ws`
   */
  constructor(url, options = {}) {
    const { token, timing, onStatus } = options;
    this.#token = token;
    this.#timing = { ...DEFAULT_TIMING, ...timing };
    this.#protocols = typeof token === "function" ? null : subprotocols(token);
    this.#connection = new Connection(url, {
      timing: this.#timing,
      onChange: (exchange) => this.#changed(exchange),
      onStatus: onStatus ?? (() => undefined),
      protocols: () => this.#protocols,
      onUnauthorized: () => void this.refreshToken(),
      ...(options.WebSocket ? { WebSocket: options.WebSocket } : {}),
    });
    this.#connection.attend(false); // opened when it is needed
    if (typeof token === "function") void this.refreshToken();
  }

  /**
   * Ask a question.
   *
   * @param {string} query
   * @param {AskOptions} [options]
   * @returns {AnswerStream}
   * @throws {RangeError} the question is blank or too long
   */
  ask(query, { signal, requestId = uuid(), ...options } = {}) {
    if (isBlank(query) || query.length > MAX_QUERY_CHARS) {
      throw new RangeError(`a question has 1 to ${MAX_QUERY_CHARS} characters, and at least one of them is visible`);
    }
    const ask = /** @type {Ask} */ ({ action: "ask", requestId: requestId.toLowerCase(), query, ...options });
    return this.#begin(ask, false, signal);
  }

  /**
   * Take up a request of the same user again, from its first event on.
   *
   * @param {string} requestId
   * @returns {AnswerStream}
   */
  resume(requestId) {
    return this.#begin({ action: "ask", requestId: requestId.toLowerCase(), query: "" }, true);
  }

  /**
   * Send an action that one reply answers.
   *
   * @param {Call} action
   * @returns {Promise<CallReply>}
   */
  call(action) {
    return this.#connection.call(action);
  }

  /** Get a fresh token, and connect with it. Does nothing where the token is fixed. */
  async refreshToken() {
    if (typeof this.#token !== "function") return;
    this.#protocols = null;
    const token = await this.#token();
    this.#protocols = subprotocols(token);
    this.#connection.authorized();
  }

  /** Close the connection. Requests that are open go on at the server. */
  close() {
    this.#connection.close();
  }

  /**
   * @param {Ask} ask
   * @param {boolean} known
   * @param {AbortSignal} [signal]
   */
  #begin(ask, known, signal) {
    const { requestId } = ask;
    const exchange = new Exchange(ask, { known, timing: this.#timing });
    const stream = new AnswerStream(exchange, () => this.#connection.cancel(requestId));
    this.#streams.set(requestId, stream);
    signal?.addEventListener("abort", () => stream.cancel(), { once: true });
    this.#connection.add(exchange);
    return stream;
  }

  /** @param {Exchange} exchange */
  #changed(exchange) {
    this.#streams.get(exchange.requestId)?.changed();
    if (exchange.ended) this.#streams.delete(exchange.requestId);
  }
}

/**
 * @param {string | null | undefined} token
 * @returns {string[]}
 */
function subprotocols(token) {
  return token ? (bearer(token) ?? []) : [];
}
