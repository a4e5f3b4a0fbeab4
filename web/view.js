/** The page: the conversation, the connection's state, and the question box. */

import { ComposerView } from "../packages/chat/src/composer_view.js";
import { byId, el, icon, setText } from "../packages/chat/src/dom.js";
import { said, t } from "../packages/chat/src/i18n.js";
import { TurnView } from "../packages/chat/src/turn_view.js";
import { connectionNotice } from "../packages/chat/src/words.js";

/**
 * @import { Status } from "../packages/client/src/connection.js"
 * @import { Turn } from "../packages/client/src/conversation.js"
 * @import { Call, CallReply } from "../packages/client/src/protocol.js"
 * @import { SessionState } from "../packages/client/src/session.js"
 * @import { Episode } from "./settings.js"
 *
 * @typedef {object} Handlers
 * @property {(query: string, episodes: string[]) => void} ask
 * @property {(turn: Turn) => void} cancel
 * @property {(turn: Turn) => void} drop
 * @property {(action: Call) => Promise<CallReply>} call
 * @property {() => void} clear
 * @property {() => void} retry  the connection
 * @property {() => void} signIn
 * @property {() => void} signOut
 * @property {(token: string) => void} useToken
 */

/** How long the good news stays that the connection is back. */
const RECONNECTED_MS = 1_500;
/** How far the end of the answer may be out of sight and still be followed, in CSS pixels. */
const FOLLOW_PX = 80;

/** Draws once a frame, whatever has changed since the last. */
export class View {
  #composer;
  #handlers;
  #connection = byId("connection", HTMLElement);
  #banner = byId("banner", HTMLElement);
  #bannerText = byId("banner-text", HTMLElement);
  #retry = byId("retry", HTMLButtonElement);
  #signIn = byId("sign-in", HTMLButtonElement);
  #account = byId("account", HTMLElement);
  #accountName = byId("account-name", HTMLElement);
  #tokenForm = byId("token-form", HTMLFormElement);
  #token = byId("token", HTMLInputElement);
  #welcome = byId("welcome", HTMLElement);
  #turns = byId("turns", HTMLElement);
  #announcer = byId("announcer", HTMLElement);
  #latest = byId("latest", HTMLButtonElement);
  #clear = byId("clear", HTMLButtonElement);

  /** @type {Map<Turn, TurnView>} */
  #views = new Map();
  /** What is to be drawn. @type {Set<TurnView>} */
  #changed = new Set();
  /** @type {Status["state"]} */
  #state = "idle";
  /** Null if this page signs nobody in. @type {SessionState | null} */
  #session = null;
  #isLost = false;
  #following = true;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #bannerTimer;

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
    this.#composer = new ComposerView((query, episodes) => this.#ask(query, episodes));
    this.#retry.addEventListener("click", () => {
      this.#composer.focus();
      handlers.retry();
    });
    this.#signIn.addEventListener("click", () => handlers.signIn());
    byId("sign-out", HTMLButtonElement).addEventListener("click", () => handlers.signOut());
    this.#tokenForm.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#token.value.trim()) handlers.useToken(this.#token.value);
    });
    this.#clear.addEventListener("click", () => this.forget());
    this.#latest.addEventListener("click", () => {
      this.#following = true;
      this.#composer.focus();
      this.#follow();
    });
    addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#measure()).observe(this.#composer.element);
  }

  /**
   * The page knows whom to ask.
   *
   * @param {string[]} examples
   * @param {Episode[]} episodes
   */
  ready(examples, episodes) {
    const offers = examples.map((example) => {
      const button = el("button", { type: "button", dir: "auto" }, el("span", {}, example), icon("send"));
      button.addEventListener("click", () => this.#ask(example, []));
      return el("li", {}, button);
    });
    const list = byId("examples", HTMLElement);
    list.replaceChildren(...offers);
    list.hidden = offers.length === 0;
    this.#composer.episodes.offer(episodes);
    this.#composer.enable();
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
      moveFocus: () => this.#composer.focus(),
      askAgain: () => {
        if (turn.exchange.failure?.limit) this.#drop(turn); // nothing came of it that could be looked at
        this.#ask(turn.ask.query, turn.ask.episodes ?? []);
      },
      announce: (text) => this.announce(text),
      nameEpisode: (id) => this.#composer.episodes.nameOf(id),
    });
    this.#views.set(turn, view);
    this.#turns.append(view.element);
    view.update(this.#state);
    this.#welcome.hidden = true;
    this.#clear.hidden = false;
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
      if (locator.episode) this.#composer.episodes.learn(locator.episode);
    }
  }

  /** @param {Status} status */
  showStatus(status) {
    this.#state = status.state;
    this.#connection.dataset.state = status.state;
    setText(this.#connection, t(`connection.${status.state}`));
    for (const view of this.#views.values()) if (!view.ended) this.#draw(view);
    const notice = connectionNotice(status, navigator.onLine, this.#session?.state === "in");
    if (status.state === "locked") {
      this.#isLost = false;
    } else if (notice) {
      this.#isLost = true;
      // A browser is not told why a socket was refused: it may be for the lack of a token.
      this.#tokenForm.hidden = this.#session !== null || (status.state !== "refused" && status.everOpen);
      this.showBanner(notice, status.state === "refused" ? "refused" : "lost");
    } else if (this.#isLost && status.state === "open") {
      this.#isLost = status.catchingUp;
      this.showBanner(t(status.catchingUp ? "connection.catchingUp" : "connection.back"), "back");
    }
  }

  /**
   * @param {SessionState} session
   */
  showSession(session) {
    const before = this.#session;
    this.#session = session;
    this.#account.hidden = !session.name;
    setText(this.#accountName, session.name);
    if (session.state === "in" && !session.reason) {
      if (before && (before.state !== "in" || before.reason)) this.hideBanner();
      if (before?.state === "busy") this.announce(t("page.signedIn", { name: session.name }));
      return;
    }
    const kinds = /** @type {const} */ ({ out: "locked", busy: "waiting", in: "waiting", refused: "refused" });
    this.showBanner(said(session.reason), kinds[session.state]);
    this.#signIn.hidden = session.state === "busy" || session.state === "in";
    this.#retry.hidden = this.#tokenForm.hidden = true;
  }

  /** What is written and not sent. */
  get draft() {
    return this.#composer.draft;
  }

  set draft(text) {
    this.#composer.draft = text;
  }

  /**
   * @param {string} text
   * @param {"lost" | "refused" | "back" | "waiting" | "broken" | "locked"} kind  what is back is soon no news any more
   */
  showBanner(text, kind) {
    clearTimeout(this.#bannerTimer);
    if (this.#banner.hidden || this.#bannerText.textContent !== text) this.announce(text);
    setText(this.#bannerText, text);
    this.#banner.dataset.kind = kind;
    this.#signIn.hidden = true;
    if (kind !== "lost" && kind !== "refused") this.#tokenForm.hidden = true;
    this.#retry.hidden = kind !== "lost" && kind !== "refused";
    this.#banner.hidden = false;
    if (kind === "back" && !this.#isLost) {
      this.#bannerTimer = setTimeout(() => this.hideBanner(), RECONNECTED_MS);
    }
  }

  hideBanner() {
    this.#banner.hidden = true;
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
   * @param {string[]} episodes
   */
  #ask(query, episodes) {
    this.#composer.focus();
    this.#handlers.ask(query, episodes);
  }

  /** @param {Turn} turn */
  #drop(turn) {
    this.#views.get(turn)?.element.remove();
    this.#views.delete(turn);
    this.#handlers.drop(turn);
  }

  /** Show an empty page, and begin a new conversation. */
  forget() {
    this.#views.clear();
    this.#changed.clear();
    this.#turns.replaceChildren();
    this.#welcome.hidden = false;
    this.#clear.hidden = this.#latest.hidden = true;
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
    if (hidden > 0) scrollBy({ top: hidden + 8 });
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
    document.documentElement.style.setProperty("--composer", `${this.#composer.element.offsetHeight}px`);
  }
}
