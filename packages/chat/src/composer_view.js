/** The question box. */

import { byId, setText } from "./dom.js";
import { EpisodesView } from "./episodes_view.js";
import { t } from "./i18n.js";
import { MAX_QUERY_CHARS } from "../../client/src/protocol.js";
import { isBlank } from "../../client/src/safe.js";

/** From how many characters on the rest is counted. */
const COUNT_FROM = MAX_QUERY_CHARS - 500;

/** Enter sends, Shift+Enter begins a new line. */
export class ComposerView {
  element = byId("composer", HTMLFormElement);
  episodes = new EpisodesView();

  #field = byId("question", HTMLTextAreaElement);
  #send = byId("send", HTMLButtonElement);
  #hint = byId("hint", HTMLElement);
  #onAsk;

  /** @param {(query: string, episodes: string[]) => void} onAsk */
  constructor(onAsk) {
    this.#onAsk = onAsk;
    this.#field.maxLength = MAX_QUERY_CHARS;
    byId("options", HTMLElement).prepend(this.episodes.element);
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
    this.episodes.element.open = false;
    this.#onAsk(query, this.episodes.chosen);
  }

  #drawHint() {
    const { length } = this.#field.value;
    setText(this.#hint, length < COUNT_FROM ? t("composer.hint") : t("composer.left", { count: MAX_QUERY_CHARS - length }));
  }
}
