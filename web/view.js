/** The page around the chat: the bar and the banner. */

import { icon, setText } from "../packages/chat/src/dom.js";
import { said, t } from "../packages/chat/src/i18n.js";
import { connectionNotice } from "../packages/chat/src/words.js";

/**
 * @import { Status } from "../packages/client/src/connection.js"
 * @import { SessionState } from "../packages/client/src/session.js"
 *
 * @typedef {object} Handlers
 * @property {() => void} clear
 * @property {() => void} retry  the connection
 * @property {() => void} signIn
 * @property {() => void} signOut
 * @property {(token: string) => void} useToken
 * @property {(text: string) => void} announce  to those who do not see it
 */

/** How long the news stays that the connection is back. */
const RECONNECTED_MS = 1_500;

/** The bar, with the connection's state and the account, and the banner. */
export class PageView {
  #announce;
  #connection = byId("connection", HTMLElement);
  #banner = byId("banner", HTMLElement);
  #bannerText = byId("banner-text", HTMLElement);
  #retry = byId("retry", HTMLButtonElement);
  #signIn = byId("sign-in", HTMLButtonElement);
  #account = byId("account", HTMLElement);
  #accountName = byId("account-name", HTMLElement);
  #tokenForm = byId("token-form", HTMLFormElement);
  #token = byId("token", HTMLInputElement);
  #clear = byId("clear", HTMLButtonElement);

  /** Null if this page signs nobody in. @type {SessionState | null} */
  #session = null;
  #isLost = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #bannerTimer;

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.#announce = handlers.announce;
    this.#retry.addEventListener("click", () => handlers.retry());
    this.#signIn.addEventListener("click", () => handlers.signIn());
    byId("sign-out", HTMLButtonElement).addEventListener("click", () => handlers.signOut());
    this.#tokenForm.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#token.value.trim()) handlers.useToken(this.#token.value);
    });
    this.#clear.prepend(icon("new"));
    this.#clear.addEventListener("click", () => handlers.clear());
  }

  /** @param {boolean} empty  nothing was asked: there is nothing to begin anew */
  showEmpty(empty) {
    this.#clear.hidden = empty;
  }

  /** @param {Status} status */
  showStatus(status) {
    this.#connection.dataset.state = status.state;
    setText(this.#connection, t(`connection.${status.state}`));
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
      if (before?.state === "busy") this.#announce(t("page.signedIn", { name: session.name }));
      return;
    }
    const kinds = /** @type {const} */ ({ out: "locked", busy: "waiting", in: "waiting", refused: "refused" });
    this.showBanner(said(session.reason), kinds[session.state]);
    this.#signIn.hidden = session.state === "busy" || session.state === "in";
    this.#retry.hidden = this.#tokenForm.hidden = true;
  }

  /**
   * @param {string} text
   * @param {"lost" | "refused" | "back" | "waiting" | "broken" | "locked"} kind  what is back is soon no news any more
   */
  showBanner(text, kind) {
    clearTimeout(this.#bannerTimer);
    if (this.#banner.hidden || this.#bannerText.textContent !== text) this.#announce(text);
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
}

/**
 * An element of index.html.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
function byId(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`index.html has no #${id}`);
  return element;
}
