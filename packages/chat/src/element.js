/** `<cicada-chat>`: a chat with one deployment, as a web component. */

import { bearer } from "../../client/src/session.js";
import { Chat } from "./chat.js";
import { el, setText } from "./dom.js";
import { said, useLanguage } from "./i18n.js";
import { connectionNotice } from "./words.js";

import answer from "./answer.css";
import chatStyle from "./chat.css";
import component from "./component.css";
import composer from "./composer.css";
import markdown from "./markdown.css";
import reader from "./reader.css";
import feedback from "./feedback.css";
import sources from "./sources.css";
import theme from "./theme.css";

/**
 * @import { Turn } from "../../client/src/conversation.js"
 * @import { Status } from "../../client/src/connection.js"
 * @import { Token } from "../../client/src/index.js"
 *
 * @typedef {object} AnswerDetail  Of the event `cicada-answer`.
 * @property {string} requestId
 * @property {string} question
 * @property {string} text
 * @property {boolean} grounded
 *
 * @typedef {object} ErrorDetail  Of the event `cicada-error`.
 * @property {string} requestId
 * @property {string} question
 * @property {string} code
 * @property {string} message
 */

const STYLES = [theme, component, chatStyle, composer, answer, feedback, markdown, sources, reader];

/**
 * Attributes: `url` (the deployment's WebSocket URL), `token`, `lang`, `episodes` (ids, separated by commas, to choose from).
 * `<option>` children are questions to offer. The property `token` also takes a function that gets a fresh token.
 *
 * Events, which bubble: `cicada-answer` (AnswerDetail), `cicada-error` (ErrorDetail), `cicada-status` (Status).
 */
export class CicadaChat extends HTMLElement {
  /** @type {Chat | null} */
  #chat = null;
  /** @type {Token | undefined} */
  #token;
  /** @type {string[] | null} */
  #protocols = [];
  /** Requests whose end was told. @type {Set<string>} */
  #ended = new Set();
  #notice = el("p", { class: "notice", role: "status", hidden: true });

  connectedCallback() {
    if (this.#chat) return;
    useLanguage([this.lang, document.documentElement.lang, ...navigator.languages].filter(Boolean));
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = STYLES.map(sheet);
    const scroller = el("div", { class: "scroller" });
    const chat = new Chat({
      scroller,
      onStatus: (status) => this.#status(status),
      onTurn: (turn) => this.#turn(turn),
    });
    this.#chat = chat;
    scroller.append(this.#notice, chat.view.element);
    root.replaceChildren(scroller);
    addEventListener("online", this.#check);
    document.addEventListener("visibilitychange", this.#check);
    void this.#connect(chat);
  }

  disconnectedCallback() {
    removeEventListener("online", this.#check);
    document.removeEventListener("visibilitychange", this.#check);
    this.#chat?.close();
    this.#chat = null;
  }

  /** @returns {Token | undefined} */
  get token() {
    return this.#token ?? this.getAttribute("token") ?? undefined;
  }

  set token(token) {
    this.#token = token;
    if (this.#chat) void this.#refresh();
  }

  /**
   * Ask a question, as if the user had written it.
   *
   * @param {string} question
   */
  ask(question) {
    this.#chat?.ask(question);
  }

  /** Begin a new conversation. */
  clear() {
    this.#chat?.view.forget();
  }

  /** @param {Chat} chat */
  async #connect(chat) {
    const webSocketUrl = this.getAttribute("url");
    if (!webSocketUrl) throw new Error("<cicada-chat> needs the attribute url: the deployment's WebSocket URL");
    await this.#refresh();
    if (this.#chat !== chat) return;
    const ids = (this.getAttribute("episodes") ?? "").split(",").map((id) => id.trim());
    chat.connect({
      webSocketUrl,
      examples: [...this.querySelectorAll("option")].map((option) => option.text.trim()).filter(Boolean),
      episodes: ids.filter(Boolean).map((id) => ({ id, name: id })),
      protocols: () => this.#protocols,
      onUnauthorized: () => void this.#refresh(),
    });
  }

  async #refresh() {
    const { token } = this;
    if (typeof token === "function") this.#protocols = null;
    const value = typeof token === "function" ? await token() : token;
    this.#protocols = value ? (bearer(value) ?? []) : [];
    this.#chat?.connection?.authorized();
  }

  #check = () => this.#chat?.check();

  /** @param {Status} status */
  #status(status) {
    const words = connectionNotice(status, navigator.onLine);
    setText(this.#notice, said(words));
    this.#notice.hidden = words === "";
    this.#tell("cicada-status", status);
  }

  /** @param {Turn} turn */
  #turn({ ask: { requestId, query: question }, exchange, restored }) {
    if (!exchange.ended || restored || this.#ended.has(requestId)) return;
    this.#ended.add(requestId);
    const { terminal, text } = exchange.tail;
    if (terminal?.type === "complete") {
      this.#tell("cicada-answer", { requestId, question, text, grounded: terminal.grounded });
    } else {
      const { code = "", message = "" } = exchange.failure ?? terminal ?? {};
      this.#tell("cicada-error", { requestId, question, code, message });
    }
  }

  /**
   * @param {string} name
   * @param {unknown} detail
   */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}

/** @param {string} text */
function sheet(text) {
  const made = new CSSStyleSheet();
  made.replaceSync(text);
  return made;
}

if (!customElements.get("cicada-chat")) customElements.define("cicada-chat", CicadaChat);
