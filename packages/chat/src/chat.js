/** A chat with one deployment: its connection, its conversation and what is shown of them. */

import { Connection } from "../../client/src/connection.js";
import { Conversation } from "../../client/src/conversation.js";
import { Store } from "../../client/src/store.js";
import { DEFAULT_TIMING } from "../../client/src/timing.js";
import { ChatView } from "./chat_view.js";
import { Conversations } from "./conversations.js";
import { Corpus } from "./corpus.js";
import { t } from "./i18n.js";
import { Uploads } from "./uploads.js";

/**
 * @import { Status } from "../../client/src/connection.js"
 * @import { Turn } from "../../client/src/conversation.js"
 * @import { Timing } from "../../client/src/timing.js"
 * @import { PassageName } from "./reader_view.js"
 * @import { Episode, Scope } from "./scope_view.js"
 *
 * @typedef {object} Deployment
 * @property {string} webSocketUrl
 * @property {string[]} [examples]  questions to offer
 * @property {Episode[]} [episodes]  to choose from; typed if there are none
 * @property {Timing} [timing]
 * @property {() => string[] | null} [protocols]  what a socket offers the server; null if it must not be opened now
 * @property {(reason: string) => void} [onUnauthorized]  told when the server does not accept this user any more
 */

/** Until `connect` is called, the chat is shown and takes no question. */
export class Chat {
  view;
  /** What it answers from; null before `connect`. @type {Corpus | null} */
  corpus = null;
  /** Those that the server keeps; null before `connect`. @type {Conversations | null} */
  conversations = null;
  /** Null before `connect`. @type {Uploads | null} */
  uploads = null;

  /** @type {Conversation | undefined} */
  #conversation;
  /** @type {Connection | undefined} */
  #connection;
  #onStatus;
  #onTurn;
  #onAsk;
  #onConversations;
  #onCorpus;

  /**
   * @param {object} [options]
   * @param {"main" | "div"} [options.landmark]  `main` where the chat is the document's main content
   * @param {Element} [options.scroller]  what scrolls; the document's own scrolling element if it is left out
   * @param {(name: PassageName | null) => void} [options.onRead]  told of the passage that is shown in its document
   * @param {(name: PassageName) => string} [options.linkOf]  the address that opens a passage
   * @param {(status: Status) => void} [options.onStatus]  told when the connection's status has changed
   * @param {(turn: Turn) => void} [options.onTurn]  told of every question that something has happened to
   * @param {(turn: Turn) => void} [options.onAsk]  told of every question that the user asks
   * @param {() => void} [options.onCorpus]  told when something is known anew of the corpus
   * @param {() => void} [options.onConversations]  told when the list of conversations was read
   */
  constructor({ landmark, scroller, onRead, linkOf, onStatus, onTurn, onAsk, onCorpus, onConversations } = {}) {
    this.#onStatus = onStatus ?? (() => undefined);
    this.#onTurn = onTurn ?? (() => undefined);
    this.#onAsk = onAsk ?? (() => undefined);
    this.#onConversations = onConversations ?? (() => undefined);
    this.#onCorpus = onCorpus ?? (() => undefined);
    this.view = new ChatView(
      {
        ask: (query, scope) => void this.ask(query, scope),
        cancel: (turn) => this.#conversation?.cancel(turn),
        drop: (turn) => this.#conversation?.drop(turn),
        call: (action) => this.#connection?.call(action) ?? Promise.reject(new Error("not connected yet")),
        clear: () => this.#conversation?.clear(),
      },
      { landmark, scroller, onRead, linkOf },
    );
  }

  /**
   * Take up the conversation of an earlier load of the document, and answer questions from now on.
   *
   * @param {Deployment} deployment
   */
  connect({ webSocketUrl, examples = [], episodes = [], timing = DEFAULT_TIMING, protocols, onUnauthorized }) {
    const connection = new Connection(webSocketUrl, {
      timing,
      protocols,
      onUnauthorized,
      onChange: (exchange) => {
        conversation.changed(exchange);
        const turn = conversation.turns.find((one) => one.exchange === exchange);
        if (!turn) return;
        this.view.changed(turn);
        corpus.searched(exchange.tail.indexVersion);
        this.#onTurn(turn);
        if (exchange.ended && !turn.restored) void conversations.load();
      },
      onStatus: (status) => {
        this.view.showConnection(status.state);
        if (status.state === "open" && corpus.state === "unknown") {
          void corpus.load();
          void conversations.load();
        }
        this.#onStatus(status);
      },
    });
    const corpus = new Corpus((action) => connection.call(action), () => {
      this.view.showCorpus(corpus);
      this.#onCorpus();
    });
    this.corpus = corpus;
    const conversations = new Conversations((action) => connection.call(action), () => this.#onConversations());
    this.conversations = conversations;
    this.uploads = new Uploads((action) => connection.call(action));
    const conversation = new Conversation(new Store(webSocketUrl), connection, timing);
    this.#connection = connection;
    this.#conversation = conversation;
    this.view.ready(examples, episodes);
    this.#restored(conversation.restore());
    connection.attend(!document.hidden);
  }

  /** The connection; undefined before `connect`. */
  get connection() {
    return this.#connection;
  }

  /**
   * Ask a question.
   *
   * @param {string} query  not blank
   * @param {Scope} [scope]  to search in; everything if it is empty
   * @returns {Turn | undefined} undefined before `connect`
   */
  ask(query, scope = {}) {
    const turn = this.#conversation?.ask(query, scope);
    if (!turn) return undefined;
    this.#show(turn);
    this.#onAsk(turn);
    return turn;
  }

  /** The name of the conversation that is shown; "" before `connect`. */
  get sessionId() {
    return this.#conversation?.sessionId ?? "";
  }

  /** The questions that are shown, in order. @returns {Turn[]} */
  get turns() {
    return this.#conversation?.turns ?? [];
  }

  /**
   * Show a conversation that the server keeps.
   *
   * @param {string} sessionId
   * @returns {Promise<boolean>} whether the server has it
   */
  async openConversation(sessionId) {
    const requests = await this.conversations?.show(sessionId);
    if (!requests || !this.#conversation) return false;
    this.view.empty();
    this.#restored(this.#conversation.open(sessionId, requests));
    return true;
  }

  /** @param {Turn[]} turns */
  #restored(turns) {
    for (const turn of turns) this.#show(turn);
    if (turns.length) this.view.announce(t("page.restored", { count: turns.length }));
  }

  /** @param {Turn} turn */
  #show(turn) {
    this.view.add(turn);
    this.#onTurn(turn);
  }

  /** Look after the connection: the network is back, or the document is shown or hidden. */
  check() {
    this.#connection?.check();
    this.#connection?.attend(!document.hidden);
  }

  /** Close the connection. Answers under way go on at the server. */
  close() {
    this.#connection?.close();
  }
}
