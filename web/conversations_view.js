/** The list of conversations, in a panel that opens at the side. */

import { el, icon, setText } from "../packages/chat/src/dom.js";
import { formattedDate, t } from "../packages/chat/src/i18n.js";

/**
 * @import { Conversations } from "../packages/chat/src/conversations.js"
 * @import { ConversationListed } from "../packages/client/src/replies.js"
 *
 * @typedef {object} Handlers
 * @property {(sessionId: string) => void} open
 * @property {() => void} begin  a new conversation
 * @property {() => void} download  the one that is shown
 * @property {(sessionId: string) => void} gone  it was deleted
 * @property {(text: string) => void} announce
 */

const MAX_TITLE_CHARS = 100;

/** Shown by the bar's button; Escape closes it. */
export class ConversationsView {
  toggle = el("button", { type: "button", class: "menu", "aria-expanded": "false", "aria-controls": "conversations", hidden: true });
  element = el("aside", { id: "conversations", "aria-label": t("conversations.title"), hidden: true });

  #handlers;
  #list = el("ul");
  #undo = el("p", { class: "undo", role: "status", hidden: true });
  #download = el("button", { type: "button", disabled: true }, icon("download"), t("conversations.download"));
  #begin = el("button", { type: "button" }, icon("new"), t("page.new"));
  /** @type {Conversations | null} */
  #conversations = null;
  #current = "";

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
    this.toggle.append(icon("menu"), el("span", { class: "unseen" }, t("conversations.title")));
    this.toggle.addEventListener("click", () => (this.element.hidden ? this.open() : this.close()));
    this.#begin.addEventListener("click", () => this.#leave(handlers.begin));
    this.#download.addEventListener("click", () => handlers.download());
    this.element.append(
      el("h2", {}, t("conversations.title")),
      el("div", { class: "actions" }, this.#begin, this.#download),
      this.#undo,
      this.#list,
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  open() {
    this.element.hidden = false;
    this.toggle.setAttribute("aria-expanded", "true");
    this.#begin.focus();
  }

  close() {
    this.element.hidden = true;
    this.toggle.setAttribute("aria-expanded", "false");
    this.toggle.focus();
  }

  /**
   * The list was read, or another conversation is shown.
   *
   * @param {Conversations} conversations
   * @param {string} current  the one that is shown
   * @param {boolean} empty  nothing was asked in it
   */
  show(conversations, current, empty) {
    this.#conversations = conversations;
    this.#current = current;
    this.toggle.hidden = conversations.state !== "known";
    this.#download.disabled = empty;
    if (this.#list.querySelector("input")) return; // somebody is writing a title
    const focused = this.#list.querySelector(":focus")?.closest("li")?.dataset.id;
    this.#list.replaceChildren(...conversations.list.map((one) => this.#item(one)));
    if (!conversations.list.length) this.#list.append(el("li", { class: "none" }, t("conversations.none")));
    if (focused) this.#titleOf(focused)?.focus();
  }

  /** @param {ConversationListed} conversation */
  #item({ sessionId, title, updatedAtMs }) {
    const current = sessionId === this.#current;
    const name = title || t("conversations.untitled");
    const opens = el("button", { type: "button", class: "title", dir: "auto", "aria-current": current && "page" }, name);
    opens.addEventListener("click", () => (current ? this.#leave() : this.#leave(() => this.#handlers.open(sessionId))));
    const rename = el("button", { type: "button", "aria-label": t("conversations.rename", { title: name }) }, icon("edit"));
    const remove = el("button", { type: "button", "aria-label": t("conversations.delete", { title: name }) }, icon("bin"));
    const when = updatedAtMs === null ? "" : formattedDate(new Date(updatedAtMs), { dateStyle: "medium", timeStyle: "short" });
    const item = el("li", { "data-id": sessionId }, opens, el("small", {}, when), el("span", { class: "tools" }, rename, remove));
    rename.addEventListener("click", () => this.#rename(item, sessionId, title));
    remove.addEventListener("click", () => void this.#remove(sessionId, name));
    return item;
  }

  /** @param {string} sessionId @returns {HTMLElement | null} */
  #titleOf(sessionId) {
    const items = /** @type {HTMLElement[]} */ ([...this.#list.children]);
    return items.find((item) => item.dataset.id === sessionId)?.querySelector(".title") ?? null;
  }

  /**
   * @param {HTMLElement} item
   * @param {string} sessionId
   * @param {string} title
   */
  #rename(item, sessionId, title) {
    const field = el("input", { type: "text", "aria-label": t("conversations.newTitle"), maxlength: String(MAX_TITLE_CHARS) });
    field.value = title;
    let done = false;
    const end = (/** @type {boolean} */ keep) => {
      if (done) return;
      done = true;
      const wanted = field.value.trim();
      field.remove();
      const renamed = keep && wanted && wanted !== title ? this.#conversations?.rename(sessionId, wanted) : null;
      if (!renamed) this.#redraw();
      void renamed?.then(() => this.#titleOf(sessionId)?.focus());
      this.#titleOf(sessionId)?.focus();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) end(true);
      if (event.key !== "Escape") return;
      event.stopPropagation();
      end(false);
    });
    field.addEventListener("blur", () => end(true));
    item.replaceChildren(field);
    field.select();
  }

  /**
   * @param {string} sessionId
   * @param {string} title
   */
  async #remove(sessionId, title) {
    if (!(await this.#conversations?.delete(sessionId))) return;
    const undo = el("button", { type: "button" }, t("change.undo"));
    undo.addEventListener("click", () => {
      this.#undo.hidden = true;
      void this.#conversations?.restore(sessionId).then(() => this.#titleOf(sessionId)?.focus());
    });
    const said = el("span");
    this.#undo.replaceChildren(said, undo);
    this.#undo.hidden = false;
    setText(said, t("conversations.deleted", { title }));
    undo.focus();
    if (sessionId === this.#current) this.#handlers.gone(sessionId);
  }

  #redraw() {
    if (this.#conversations) this.show(this.#conversations, this.#current, this.#download.disabled);
  }

  /**
   * Go elsewhere. On a narrow screen the panel covers the page, so it closes.
   *
   * @param {() => void} [act]
   */
  #leave(act) {
    if (matchMedia("(max-width: 64rem)").matches) this.close();
    act?.();
  }
}
