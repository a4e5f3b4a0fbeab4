/** Which episodes are searched: chosen from a list where there is one, typed where there is none. */

import { el, icon, setText } from "./dom.js";
import { MAX_EPISODES, MAX_FILTER_CHARS } from "../../client/src/protocol.js";
import { t } from "./i18n.js";

/** @typedef {{ id: string, name: string }} Episode */

/** Episodes offered because a source has named them. */
const MAX_LEARNED = 30;

/** A filter that is out of the way until it is wanted. */
export class EpisodesView {
  element = el("details", { class: "episodes" });

  #chips = el("div", { class: "chips" });
  #label = el("span");
  #typing = el("div", { class: "typing" });

  constructor() {
    const legend = el("legend", { class: "unseen" }, t("episodes.legend"));
    this.element.append(
      el("summary", {}, icon("filter"), this.#label),
      el("fieldset", {}, legend, this.#chips, this.#typing),
    );
    this.#fillTyping();
    this.#chips.addEventListener("change", () => this.#show());
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.element.open) return;
      event.preventDefault();
      this.element.open = false;
      this.element.querySelector("summary")?.focus();
    });
    this.#show();
  }

  /** The ids of the chosen ones; none means all. @returns {string[]} */
  get chosen() {
    return this.#boxes.filter((box) => box.checked).map((box) => box.value);
  }

  /**
   * The name of an episode, or its id where no name is known.
   *
   * @param {string} id
   * @returns {string}
   */
  nameOf(id) {
    const box = this.#boxes.find((one) => one.value === id);
    return box?.labels?.[0].textContent ?? id;
  }

  /**
   * Offer these, and no others.
   *
   * @param {Episode[]} episodes
   */
  offer(episodes) {
    if (episodes.length === 0) return;
    this.#typing.hidden = true;
    for (const episode of episodes) this.#box(episode);
  }

  /**
   * Offer an episode that a source has named, where they have to be typed otherwise.
   *
   * @param {Episode} episode
   */
  learn(episode) {
    if (!this.#typing.hidden && episode.id && this.#boxes.length < MAX_LEARNED) this.#box(episode);
  }

  #fillTyping() {
    const field = el("input", {
      type: "text",
      id: "episode",
      maxlength: String(MAX_FILTER_CHARS),
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      placeholder: "ep1",
    });
    const add = el("button", { type: "button" }, t("episodes.add"));
    const take = () => {
      const id = field.value.trim();
      field.value = "";
      field.focus();
      if (!id) return;
      this.#box({ id, name: id }).checked = true;
      this.#show();
    };
    add.addEventListener("click", take);
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      take();
    });
    this.#typing.append(el("label", { for: field.id }, t("episodes.id")), field, add);
  }

  /** @returns {HTMLInputElement[]} */
  get #boxes() {
    return [...this.#chips.querySelectorAll("input")];
  }

  /**
   * The box of an episode, made if there is none.
   *
   * @param {Episode} episode
   * @returns {HTMLInputElement}
   */
  #box({ id, name }) {
    const there = this.#boxes.find((box) => box.value === id);
    if (there) return there;
    const box = el("input", { type: "checkbox", value: id });
    this.#chips.append(el("label", { class: "chip" }, box, el("span", { dir: "auto" }, name)));
    return box;
  }

  #show() {
    const many = this.chosen.length;
    setText(this.#label, many ? t("episodes.chosen", { count: many }) : t("episodes.all"));
    this.element.toggleAttribute("data-chosen", many > 0);
    for (const box of this.#boxes) box.disabled = !box.checked && many >= MAX_EPISODES;
    this.#typing.inert = many >= MAX_EPISODES;
  }
}
