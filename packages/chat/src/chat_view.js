/** The conversation, what is there before the first question, and the question box. */

import { ComposerView } from "./composer_view.js";
import { el, icon, setText } from "./dom.js";
import { t } from "./i18n.js";
import { holdings } from "./holdings.js";
import { ReaderView } from "./reader_view.js";
import { TurnView } from "./turn_view.js";

/**
 * @import { Status } from "../../client/src/connection.js"
 * @import { Turn } from "../../client/src/conversation.js"
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 * @import { Corpus } from "./corpus.js"
 * @import { PassageName } from "./reader_view.js"
 * @import { Episode, Scope } from "./scope_view.js"
 *
 * @typedef {object} ChatHandlers
 * @property {(query: string, scope: Scope) => void} ask
 * @property {(turn: Turn) => void} cancel
 * @property {(turn: Turn) => void} drop
 * @property {(action: Call) => Promise<CallReply>} call
 * @property {() => void} clear
 */

/** How far the end of the answer may be out of sight and still be followed, in CSS pixels. */
const FOLLOW_PX = 80;

/** Draws once a frame, whatever has changed since the last. */
export class ChatView {
  element = el("div", { class: "chat" });

  /** Shows a source in its document. */
  reader;

  #handlers;
  #scroller;
  #composer;
  #examples = el("ul", { id: "examples", class: "examples", "aria-label": t("welcome.examples"), hidden: true });
  #holdings = el("div", { class: "holdings" });
  #hasExamples = false;
  #welcome = el(
    "section",
    { id: "welcome", "aria-labelledby": "welcome-title" },
    el("h1", { id: "welcome-title" }, t("welcome.title")),
    el("p", {}, t("welcome.text")),
    this.#examples,
    this.#holdings,
  );
  /** The first heading of the document where the welcome is not shown. */
  #heading = el("h1", { class: "unseen", hidden: true }, t("page.conversation"));
  #turns = el("section", { id: "turns", class: "turns", "aria-label": t("page.conversation") });
  #announcer = el("p", {
    id: "announcer",
    class: "unseen",
    role: "status",
    "aria-live": "polite",
    "aria-atomic": "true",
  });
  #latest = el("button", { id: "latest", class: "latest", type: "button", hidden: true }, icon("down"), t("composer.follow"));

  /** @type {Map<Turn, TurnView>} */
  #views = new Map();
  /** What is to be drawn. @type {Set<TurnView>} */
  #changed = new Set();
  /** @type {Status["state"]} */
  #state = "idle";
  #following = true;

  /**
   * @param {ChatHandlers} handlers
   * @param {object} [options]
   * @param {"main" | "div"} [options.landmark]  `main` where the chat is the document's main content
   * @param {Element} [options.scroller]  what scrolls; the document's own scrolling element if it is left out
   * @param {(name: PassageName | null) => void} [options.onRead]  told of the passage that is shown in its document
   * @param {(name: PassageName) => string} [options.linkOf]  the address that opens a passage
   */
  constructor(handlers, { landmark = "div", scroller, onRead, linkOf } = {}) {
    this.#handlers = handlers;
    this.#scroller = scroller ?? document.scrollingElement ?? document.documentElement;
    this.#composer = new ComposerView((query, scope) => this.#ask(query, scope), this.#latest);
    this.reader = new ReaderView({
      call: (action) => handlers.call(action),
      announce: (text) => this.announce(text),
      onChange: onRead,
      linkOf,
      beside: landmark === "main",
    });
    this.element.append(
      el(landmark, { class: "talk" }, this.#welcome, this.#heading, this.#turns),
      this.#composer.element,
      this.#announcer,
      this.reader.element,
    );
    this.#latest.addEventListener("click", () => {
      this.#following = true;
      this.#composer.focus();
      this.#follow();
    });
    (landmark === "main" ? document : this.element).addEventListener("keydown", (event) => {
      if (event instanceof KeyboardEvent && event.key === "Escape" && !event.isComposing) this.#escape(event);
    });
    (scroller ?? window).addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#measure()).observe(this.#composer.element);
  }

  /**
   * Questions can be asked from now on.
   *
   * @param {string[]} examples  questions to offer; where there are none, those that the corpus brings
   * @param {Episode[]} episodes
   */
  ready(examples, episodes) {
    this.#hasExamples = examples.length > 0;
    this.#offer(examples);
    this.#composer.scope.offer(episodes);
    this.#composer.enable();
  }

  /**
   * Show what the corpus holds.
   *
   * @param {Corpus} corpus
   */
  showCorpus(corpus) {
    if (corpus.state !== "known") return;
    this.#composer.scope.show(corpus);
    if (!this.#hasExamples) this.#offer(corpus.empty ? [] : corpus.examples);
    this.#holdings.replaceChildren(...holdings(corpus));
  }

  /** @param {string[]} examples */
  #offer(examples) {
    const offers = examples.map((example) => {
      const button = el("button", { type: "button", dir: "auto" }, el("span", {}, example), icon("send"));
      button.addEventListener("click", () => this.#ask(example, this.#composer.scope.scope));
      return el("li", {}, button);
    });
    this.#examples.replaceChildren(...offers);
    this.#examples.hidden = offers.length === 0;
  }

  /**
   * Show a turn at the end.
   *
   * @param {Turn} turn
   */
  add(turn) {
    const view = new TurnView(turn, {
      cancel: () => {
        this.#composer.focus();
        this.#handlers.cancel(turn);
      },
      call: (action) => this.#handlers.call(action),
      read: (reading) => this.reader.read(reading),
      moveFocus: () => this.#composer.focus(),
      askAgain: () => {
        if (turn.exchange.failure?.limit) this.#drop(turn); // nothing came of it that could be looked at
        this.#ask(turn.ask.query, scopeOf(turn));
      },
      announce: (text) => this.announce(text),
      scope: this.#composer.scope.namesOf(scopeOf(turn)),
    });
    this.#views.set(turn, view);
    this.#turns.append(view.element);
    view.update(this.#state);
    this.#welcome.hidden = true;
    this.#heading.hidden = false;
    this.#following = true;
    this.#measure();
    view.element.scrollIntoView({ block: "start" });
  }

  /**
   * Something has happened to a turn.
   *
   * @param {Turn} turn
   */
  changed(turn) {
    const view = this.#views.get(turn);
    if (view) this.#draw(view);
    for (const { locator } of turn.exchange.tail.sources.values()) {
      if (locator.episode) this.#composer.scope.learn(locator.episode);
    }
  }

  /** @param {Status["state"]} state */
  showConnection(state) {
    this.#state = state;
    for (const view of this.#views.values()) if (!view.ended) this.#draw(view);
  }

  /** Whether a question was asked. */
  get isEmpty() {
    return this.#views.size === 0;
  }

  /** What is written and not sent. */
  get draft() {
    return this.#composer.draft;
  }

  set draft(text) {
    this.#composer.draft = text;
  }

  /**
   * Tell those who do not see it.
   *
   * @param {string} text
   */
  announce(text) {
    setText(this.#announcer, text);
  }

  focus() {
    this.#composer.focus();
  }

  /**
   * @param {string} query
   * @param {Scope} scope
   */
  #ask(query, scope) {
    this.#composer.focus();
    this.#handlers.ask(query, scope);
  }

  /** @param {Turn} turn */
  #drop(turn) {
    this.#views.get(turn)?.element.remove();
    this.#views.delete(turn);
    this.#handlers.drop(turn);
  }

  /**
   * Close what is open; otherwise stop the answer under way.
   *
   * @param {KeyboardEvent} event  that nothing else has handled
   */
  #escape(event) {
    if (event.defaultPrevented) return;
    if (this.reader.isOpen) return this.reader.close();
    const under = [...this.#views].findLast(([, view]) => !view.ended);
    if (!under) return;
    event.preventDefault();
    this.#composer.focus();
    this.#handlers.cancel(under[0]);
  }

  /** Show no question. */
  empty() {
    this.#views.clear();
    this.#changed.clear();
    this.#turns.replaceChildren();
    this.#welcome.hidden = false;
    this.#heading.hidden = true;
    this.#latest.hidden = true;
  }

  /** Show an empty conversation, and begin a new one. */
  forget() {
    this.empty();
    this.#handlers.clear();
    this.announce(t("page.new.done"));
    this.#composer.focus();
  }

  /** @param {TurnView} view */
  #draw(view) {
    if (this.#changed.size === 0) requestAnimationFrame(() => this.#drawChanged());
    this.#changed.add(view);
  }

  #drawChanged() {
    for (const view of this.#changed) view.update(this.#state);
    this.#changed.clear();
    if (this.#following) this.#follow();
    else this.#showLatest();
  }

  // --- keeping the end of the answer in sight, unless the reader has gone elsewhere ---

  #last() {
    return [...this.#views.values()].at(-1);
  }

  /** How far the end of the last answer is below what is seen, in CSS pixels. */
  #hiddenPx() {
    const end = this.#last()?.element.querySelector(".written")?.getBoundingClientRect().bottom ?? 0;
    return end - this.#composer.element.getBoundingClientRect().top;
  }

  #follow() {
    const hidden = this.#hiddenPx();
    if (hidden > 0) this.#scroller.scrollBy({ top: hidden + 8 });
    this.#showLatest();
  }

  #scrolled() {
    this.#following = this.#hiddenPx() < FOLLOW_PX;
    this.#showLatest();
  }

  #showLatest() {
    this.#latest.hidden = this.#following || (this.#last()?.ended ?? true);
  }

  #measure() {
    /** @type {HTMLElement} */ (this.#scroller).style.setProperty("--composer", `${this.#composer.element.offsetHeight}px`);
  }
}

/**
 * What a question searched in.
 *
 * @param {Turn} turn
 * @returns {Scope}
 */
function scopeOf({ ask: { collections, episodes, sections, documents } }) {
  return Object.fromEntries(Object.entries({ collections, episodes, sections, documents }).filter(([, values]) => values));
}
