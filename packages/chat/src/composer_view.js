/** The question box. */

import { el, icon, setText } from "./dom.js";
import { t } from "./i18n.js";
import { ScopeView } from "./scope_view.js";
import { MAX_QUERY_CHARS } from "../../client/src/protocol.js";
import { isBlank } from "../../client/src/safe.js";

/** @import { Scope } from "./scope_view.js" */

/** From how many characters on the rest is counted. */
const COUNT_FROM = MAX_QUERY_CHARS - 500;

/** Enter sends, Shift+Enter begins a new line. */
export class ComposerView {
  element = el("form", { id: "composer", "aria-label": t("composer.label") });
  scope = new ScopeView();

  #field = el("textarea", {
    id: "question",
    rows: "1",
    dir: "auto",
    placeholder: t("composer.label"),
    "aria-describedby": "hint",
    autocomplete: "off",
    enterkeyhint: "send",
    maxlength: String(MAX_QUERY_CHARS),
  });
  #send = el(
    "button",
    { id: "send", type: "submit", disabled: true },
    icon("send"),
    el("span", { class: "unseen" }, t("composer.send")),
  );
  #hint = el("p", { id: "hint", class: "hint", role: "status" }, t("composer.hint"));
  #onAsk;

  /**
   * @param {(query: string, scope: Scope) => void} onAsk
   * @param {HTMLElement} above  stands above the box
   */
  constructor(onAsk, above) {
    this.#onAsk = onAsk;
    this.element.append(
      above,
      el(
        "div",
        { class: "box" },
        el("label", { class: "unseen", for: "question" }, t("composer.question")),
        this.#field,
        this.#send,
      ),
      el("div", { id: "options", class: "options" }, this.scope.element, this.#hint),
    );
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    this.#field.addEventListener("input", () => this.#drawHint());
  }

  /** Let questions be asked: from now on there is somebody to ask. */
  enable() {
    this.#send.disabled = false;
  }

  /** What is written and not sent. */
  get draft() {
    return this.#field.value;
  }

  set draft(text) {
    this.#field.value = text;
    this.#drawHint();
  }

  focus() {
    this.#field.focus({ preventScroll: true });
  }

  #submit() {
    const query = this.#field.value.trim();
    if (this.#send.disabled) return;
    if (isBlank(query)) {
      setText(this.#hint, t("composer.empty"));
      return;
    }
    this.#field.value = "";
    this.#drawHint();
    this.scope.element.open = false;
    this.#onAsk(query, this.scope.scope);
  }

  #drawHint() {
    const { length } = this.#field.value;
    setText(this.#hint, length < COUNT_FROM ? t("composer.hint") : t("composer.left", { count: MAX_QUERY_CHARS - length }));
  }
}
