/** Which part of the corpus is searched: collections, and the episodes, sections and files in them. */

import { MAX_EPISODES, MAX_FILTER_CHARS } from "../../client/src/protocol.js";
import { el, icon, setText } from "./dom.js";
import { t } from "./i18n.js";

/**
 * @import { CollectionListed } from "../../client/src/replies.js"
 * @import { Corpus } from "./corpus.js"
 *
 * @typedef {{ id: string, name: string }} Episode
 * @typedef {"collections" | "episodes" | "sections" | "documents"} Kind
 * @typedef {{ collections?: string[], episodes?: string[], sections?: string[], documents?: string[] }} Scope  All of the
 *   corpus where there are none.
 * @typedef {{ kind: Kind, value: string, name: string }} Choice
 */

/** @type {Kind[]} */
const KINDS = ["collections", "episodes", "sections", "documents"];
/** Episodes offered because a source has named them, where the server does not list them. */
const MAX_LEARNED = 30;
/** Names that are shown of what is chosen; more are counted. */
const MAX_NAMED = 2;
/** Without a further letter, until files are looked for. */
const TYPING_MS = 250;

/** A filter that is out of the way until it is wanted. */
export class ScopeView {
  element = el("details", { class: "within" });

  #label = el("span");
  #groups = el("div", { class: "groups" });
  /** @type {Map<string, Choice>} */
  #chosen = new Map();
  /** What was offered, for its names. @type {Map<string, string>} */
  #names = new Map();
  /** Where the server lists none. @type {Map<string, Episode>} */
  #episodes = new Map();
  #fixed = false;
  /** @type {Corpus | null} */
  #corpus = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing;

  constructor() {
    this.element.append(
      el("summary", {}, icon("filter"), el("span", { class: "unseen" }, `${t("within.label")}: `), this.#label),
      this.#groups,
    );
    this.#groups.addEventListener("change", (event) => this.#changed(event));
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.element.open) return;
      event.stopPropagation();
      this.element.open = false;
      this.element.querySelector("summary")?.focus();
    });
    this.#draw();
  }

  /** What is chosen. @returns {Scope} */
  get scope() {
    const chosen = [...this.#chosen.values()];
    const kinds = KINDS.map((kind) => [kind, chosen.filter((one) => one.kind === kind).map(({ value }) => value)]);
    return Object.fromEntries(kinds.filter(([, values]) => values.length));
  }

  /**
   * What a scope is called.
   *
   * @param {Scope} scope
   * @returns {string[]}
   */
  namesOf(scope) {
    return KINDS.flatMap((kind) => (scope[kind] ?? []).map((value) => this.#names.get(keyOf(kind, value)) ?? value));
  }

  /**
   * Offer these episodes, where the server lists none.
   *
   * @param {Episode[]} episodes
   */
  offer(episodes) {
    this.#fixed = episodes.length > 0;
    for (const episode of episodes) this.#learn(episode);
    this.#draw();
  }

  /**
   * Offer an episode that a source has named, where the server lists none and they have to be typed.
   *
   * @param {Episode} episode
   */
  learn(episode) {
    const { id } = episode;
    if (this.#fixed || !id || this.#episodes.has(id) || this.#episodes.size >= MAX_LEARNED) return;
    this.#learn(episode);
    if (!this.#corpus) this.#draw();
  }

  /**
   * Offer what the corpus holds.
   *
   * @param {Corpus} corpus
   */
  show(corpus) {
    if (corpus.state !== "known") return;
    this.#corpus = corpus;
    this.#draw();
  }

  /** @param {Episode} episode */
  #learn({ id, name }) {
    this.#episodes.set(id, { id, name: name || id });
    this.#names.set(keyOf("episodes", id), name || id);
  }

  /** @param {Event} event */
  #changed({ target }) {
    if (!(target instanceof HTMLInputElement) || target.type !== "checkbox") return;
    const { kind, name = "" } = target.dataset;
    const choice = { kind: /** @type {Kind} */ (kind), value: target.value, name };
    if (target.checked) this.#chosen.set(keyOf(choice.kind, choice.value), choice);
    else this.#chosen.delete(keyOf(choice.kind, choice.value));
    if (kind === "collections") {
      this.#forgetOutside();
      this.#draw();
      const { value } = target;
      [...this.#groups.querySelectorAll("input")].find((box) => box.dataset.kind === kind && box.value === value)?.focus();
    } else {
      this.#tell();
    }
  }

  /** What lies in none of the chosen collections is not searched in them. */
  #forgetOutside() {
    const inside = new Set(this.#shown().map(({ name }) => name));
    const kept = this.#shown().flatMap(({ episodes, sections }) => [
      ...episodes.map(({ id }) => keyOf("episodes", id)),
      ...sections.map(({ path }) => keyOf("sections", path)),
    ]);
    for (const [key, { kind, value }] of this.#chosen) {
      const isInside = kind === "collections" ? inside.has(value) || !inside.size : kept.includes(key);
      if (!isInside) this.#chosen.delete(key);
    }
  }

  /** The collections whose parts can be chosen. @returns {CollectionListed[]} */
  #shown() {
    const { collections } = this.#corpus ?? { collections: [] };
    if (collections.length === 1) return collections;
    return collections.filter(({ name }) => this.#chosen.has(keyOf("collections", name)));
  }

  #draw() {
    this.#groups.replaceChildren(...(this.#corpus ? this.#corpusGroups() : [this.#episodesGroup()]));
    this.#tell();
  }

  /** @returns {HTMLElement[]} */
  #corpusGroups() {
    const { collections } = /** @type {Corpus} */ (this.#corpus);
    const several = collections.length > 1;
    const all = collections.map(({ name, title }) => ({ value: name, name: title }));
    const groups = several ? [this.#group(t("within.collections"), "collections", all)] : [];
    for (const { name, title, documents, episodes, sections } of this.#shown()) {
      const of = (/** @type {string} */ kind) => (several ? t("within.of", { kind, collection: title }) : kind);
      const ids = episodes.map(({ id, name: shown }) => ({ value: id, name: shown }));
      const paths = sections.map(({ path }) => ({ value: path, name: path }));
      if (ids.length > 1) groups.push(this.#group(of(t("within.episodes")), "episodes", ids));
      if (!ids.length && paths.length > 1) groups.push(this.#group(of(t("within.sections")), "sections", paths));
      if (!ids.length && documents > 1) groups.push(this.#finder(of(t("within.documents")), name));
    }
    return groups.length ? groups : [el("p", {}, t("within.nothing"))];
  }

  /**
   * @param {string} legend
   * @param {Kind} kind
   * @param {{ value: string, name: string }[]} values
   * @returns {HTMLElement}
   */
  #group(legend, kind, values) {
    const chips = values.map(({ value, name }) => this.#chip(kind, value, name));
    return el("fieldset", {}, el("legend", {}, legend), el("div", { class: "chips" }, ...chips));
  }

  /**
   * @param {Kind} kind
   * @param {string} value
   * @param {string} name
   * @returns {HTMLElement}
   */
  #chip(kind, value, name) {
    this.#names.set(keyOf(kind, value), name);
    const box = el("input", { type: "checkbox", value, "data-kind": kind, "data-name": name });
    box.checked = this.#chosen.has(keyOf(kind, value));
    return el("label", { class: "chip" }, box, el("span", { dir: "auto" }, name));
  }

  /**
   * A collection may have thousands of files: they are found by the beginning of their names.
   *
   * @param {string} legend
   * @param {string} collection
   * @returns {HTMLElement}
   */
  #finder(legend, collection) {
    const field = el("input", { type: "search", "aria-label": legend, placeholder: t("within.find"), autocomplete: "off" });
    const chips = el("div", { class: "chips" });
    const find = async () => {
      const prefix = field.value.trim();
      const found = (await this.#corpus?.documents(collection, prefix)) ?? [];
      if (prefix !== field.value.trim()) return;
      const chosen = [...this.#chosen.values()].filter(({ kind }) => kind === "documents");
      const others = found.filter(({ source }) => !this.#chosen.has(keyOf("documents", source)));
      chips.replaceChildren(
        ...chosen.map(({ value, name }) => this.#chip("documents", value, name)),
        ...others.map(({ source, title }) => this.#chip("documents", source, title)),
      );
      this.#tell();
    };
    field.addEventListener("focus", () => chips.childElementCount || void find());
    field.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => void find(), TYPING_MS);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault(); // it would send the question
    });
    return el("fieldset", {}, el("legend", {}, legend), el("div", { class: "typing" }, field), chips);
  }

  /** Where the server lists nothing: those that are known, and a field to type others. */
  #episodesGroup() {
    const values = [...this.#episodes.values()].map(({ id, name }) => ({ value: id, name }));
    const group = this.#group(t("within.episodes"), "episodes", values);
    if (this.#fixed) return group;
    const field = el("input", {
      type: "text",
      "aria-label": t("within.episode"),
      maxlength: String(MAX_FILTER_CHARS),
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      placeholder: "ep1",
    });
    const add = el("button", { type: "button" }, t("within.add"));
    const take = () => {
      const id = field.value.trim();
      if (!id) return field.focus();
      this.#learn({ id, name: this.#episodes.get(id)?.name ?? id });
      this.#chosen.set(keyOf("episodes", id), { kind: "episodes", value: id, name: id });
      this.#draw();
      /** @type {HTMLInputElement | null} */ (this.#groups.querySelector(".typing input"))?.focus();
    };
    add.addEventListener("click", take);
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      take();
    });
    group.append(el("div", { class: "typing" }, field, add));
    return group;
  }

  /** Say what is chosen, and let no more be chosen than a question may carry. */
  #tell() {
    const many = this.#chosen.size;
    const names = [...this.#chosen.values()].map(({ name }) => name);
    const named = many > MAX_NAMED ? t("within.count", { count: many }) : names.join(", ");
    setText(this.#label, many ? named : t("within.all"));
    this.element.toggleAttribute("data-chosen", many > 0);
    for (const box of this.#groups.querySelectorAll("input")) {
      if (box.type === "checkbox") box.disabled = !box.checked && many >= MAX_EPISODES;
    }
  }
}

/**
 * @param {Kind} kind
 * @param {string} value
 */
function keyOf(kind, value) {
  return `${kind} ${value}`;
}
