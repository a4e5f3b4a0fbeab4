/** A passage in its document: the text around it, and from there to the other sources of the same answer. */

import { languageOf } from "./answer_text.js";
import { copyText, el, icon, setText } from "./dom.js";
import { t, told } from "./i18n.js";
import { uuid } from "../../client/src/protocol.js";
import { markedText } from "./passage_text.js";
import { placeOf } from "./words.js";

/**
 * @import { Call, CallReply, RefusedFrame } from "../../client/src/protocol.js"
 * @import { PassageRead, Passages } from "../../client/src/replies.js"
 * @import { Reading } from "./sources_view.js"
 *
 * @typedef {{ collection: string, passageId: string }} PassageName  Ids are unique within a collection.
 */

/** Passages to read at once around one, and beyond the ends of what is shown. */
const AROUND = 5;
const BEYOND = 12;
/** Where the pane stands beside the answer; see reader.css. On smaller screens it is over it. */
const WIDE = matchMedia("(min-width: 60rem)");

/** Opened by a source of an answer, or by a link to a passage. */
export class ReaderView {
  element = el("dialog", { class: "reader", "aria-labelledby": "reader-title" });

  #call;
  #announce;
  #onChange;
  #linkOf;
  #beside;

  #title = el("h2", { id: "reader-title", tabindex: "-1", dir: "auto" });
  #previous = this.#button("before", t("reader.previousSource"), () => this.#step(-1));
  #next = this.#button("after", t("reader.nextSource"), () => this.#step(1));
  #place = el("span", { class: "of" });
  #original = el("a", { class: "original", target: "_blank", rel: "noopener noreferrer", hidden: true }, t("reader.original"));
  #copy = el("button", { type: "button" }, t("reader.copyLink"));
  #note = el("p", { class: "reader-note", role: "status" });
  #retry = el("button", { type: "button", hidden: true }, t("reader.retry"));
  #earlier = el("button", { type: "button", class: "beyond", hidden: true }, t("reader.earlier"));
  #later = el("button", { type: "button", class: "beyond", hidden: true }, t("reader.later"));
  #pieces = el("div", { class: "pieces" });
  #body = el("div", { class: "reader-body", tabindex: "0", role: "region", "aria-label": t("reader.text") });

  /** @type {PassageName | null} */
  #shown = null;
  /** The answer whose sources can be stepped through. @type {Reading | null} */
  #reading = null;
  /** @type {PassageRead[]} */
  #passages = [];
  #at = -1;

  /**
   * @param {object} does
   * @param {(action: Call) => Promise<CallReply>} does.call
   * @param {(text: string) => void} does.announce
   * @param {(name: PassageName | null) => void} [does.onChange]  told of the passage that is shown; null when it closes
   * @param {(name: PassageName) => string} [does.linkOf]  the address that opens a passage; there is none if it is left out
   * @param {boolean} [does.beside]  there is room beside the answer on wide screens
   */
  constructor({ call, announce, onChange, linkOf, beside = false }) {
    this.#call = call;
    this.#announce = announce;
    this.#onChange = onChange ?? (() => undefined);
    this.#linkOf = linkOf;
    this.#beside = beside;
    const close = this.#button("close", t("reader.close"), () => this.close());
    const steps = el("p", { class: "steps" }, this.#previous, this.#place, this.#next);
    const links = el("p", { class: "links" }, this.#original, ...(linkOf ? [this.#copy] : []));
    this.#body.append(this.#note, this.#retry, this.#earlier, this.#pieces, this.#later);
    this.element.append(el("div", { class: "reader-head" }, this.#title, close, steps, links), this.#body);
    this.#retry.addEventListener("click", () => void this.#load());
    this.#earlier.addEventListener("click", () => void this.#extend(-1));
    this.#later.addEventListener("click", () => void this.#extend(1));
    this.#copy.addEventListener("click", () => void this.#copyLink());
    this.element.addEventListener("cancel", (event) => {
      event.preventDefault();
      this.close();
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.close();
    });
    WIDE.addEventListener("change", () => {
      if (!this.element.open) return;
      this.element.close();
      this.#show();
    });
  }

  /** Whether a passage is shown. */
  get isOpen() {
    return this.#shown !== null;
  }

  /** Whether it is over the rest, which cannot be used meanwhile. */
  get isModal() {
    return !(this.#beside && WIDE.matches);
  }

  /** @param {Reading} reading */
  read(reading) {
    this.#reading = reading;
    const { collection, passageId } = reading.source;
    void this.open({ collection, passageId });
  }

  /**
   * Show a passage; of an answer if `read` says so, otherwise on its own.
   *
   * @param {PassageName} name
   */
  async open(name) {
    const of = this.#reading?.source;
    if (of?.passageId !== name.passageId || of.collection !== name.collection) this.#reading = null;
    this.#shown = name;
    if (!this.element.open) this.#show();
    this.#onChange(name);
    this.#title.focus({ preventScroll: true });
    await this.#load();
  }

  close() {
    if (!this.#shown) return;
    const origin = this.#reading?.origin;
    this.#shown = this.#reading = null;
    this.element.close();
    this.element.parentElement?.classList.remove("reading");
    this.#onChange(null);
    if (origin?.isConnected) origin.focus();
  }

  #show() {
    if (this.isModal) this.element.showModal();
    else this.element.show();
    this.element.parentElement?.classList.toggle("reading", !this.isModal);
  }

  /** @param {number} by */
  #step(by) {
    const { sources, source } = this.#reading ?? { sources: [], source: null };
    const to = sources[sources.findIndex((one) => one === source) + by];
    if (this.#reading && to) this.read({ ...this.#reading, source: to });
  }

  async #load() {
    const name = this.#shown;
    if (!name) return;
    this.#passages = [];
    this.#pieces.replaceChildren();
    this.#earlier.hidden = this.#later.hidden = this.#original.hidden = this.#retry.hidden = true;
    this.#drawSteps();
    setText(this.#title, this.#reading ? placeOf(this.#reading.source.locator)[0] : t("reader.title"));
    setText(this.#note, t("reader.loading"));
    const found = await this.#ask(name, AROUND, AROUND);
    if (this.#shown !== name) return;
    if (found.type !== "passages") return this.#refused(found.refused);
    setText(this.#note, "");
    const { document, passages, at, hasPrevious, hasNext } = found;
    this.#passages = passages;
    this.#at = at;
    const { episode } = passages[at]?.locator ?? { episode: null };
    setText(this.#title, episode ? episode.name || episode.id : document.title);
    const address = webAddress(document.original);
    this.#original.hidden = address === null;
    if (address) this.#original.href = address;
    this.#earlier.hidden = !hasPrevious;
    this.#later.hidden = !hasNext;
    this.#draw();
    this.#pieces.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
    this.#announce(t("reader.opened", { title: this.#title.textContent ?? "" }));
  }

  /**
   * Show more of the document, and leave what is read where it is.
   *
   * @param {-1 | 1} side
   */
  async #extend(side) {
    const [name, edge] = [this.#shown, side < 0 ? this.#passages[0] : this.#passages.at(-1)];
    if (!name || !edge) return;
    const button = side < 0 ? this.#earlier : this.#later;
    button.disabled = true;
    const asked = { collection: name.collection, passageId: edge.passageId };
    const found = await this.#ask(asked, side < 0 ? BEYOND : 0, side < 0 ? 0 : BEYOND);
    button.disabled = false;
    if (this.#shown !== name) return;
    if (found.type !== "passages") return setText(this.#note, refusal(found.refused));
    const more = found.passages.filter(({ passageId }) => !this.#passages.some((one) => one.passageId === passageId));
    this.#passages = side < 0 ? [...more, ...this.#passages] : [...this.#passages, ...more];
    if (side < 0) this.#at += more.length;
    if (side < 0) this.#earlier.hidden = !found.hasPrevious;
    else this.#later.hidden = !found.hasNext;
    const before = this.#body.scrollHeight;
    this.#draw();
    if (side < 0) this.#body.scrollTop += this.#body.scrollHeight - before;
    if (button.hidden) this.#body.focus({ preventScroll: true });
  }

  /**
   * @param {PassageName} name
   * @param {number} before
   * @param {number} after
   * @returns {Promise<Passages | { type: "refused", refused: RefusedFrame }>}
   */
  async #ask({ collection, passageId }, before, after) {
    const indexVersion = this.#reading?.indexVersion;
    const asked = { ...(collection ? { collection } : {}), ...(indexVersion ? { indexVersion } : {}) };
    const reply = await this.#call({ action: "read", requestId: uuid(), passageId, before, after, ...asked });
    if (reply.kind === "reply" && reply.reply.type === "passages") return reply.reply;
    if (reply.kind === "refused") return { type: "refused", refused: reply };
    const odd = /** @type {const} */ ({ kind: "refused", requestId: null, code: "", message: "", retryable: false, limit: null });
    return { type: "refused", refused: odd };
  }

  /** @param {RefusedFrame} refused */
  #refused(refused) {
    setText(this.#note, refusal(refused));
    this.#retry.hidden = !(refused.retryable || refused.code === "no_reply");
  }

  #drawSteps() {
    const { sources, source } = this.#reading ?? { sources: [], source: null };
    const at = sources.findIndex((one) => one === source);
    this.#previous.parentElement?.toggleAttribute("hidden", sources.length < 2);
    this.#previous.disabled = at <= 0;
    this.#next.disabled = at === sources.length - 1;
    setText(this.#place, source ? t("source.number", { n: source.n }) : "");
  }

  #draw() {
    /** @type {HTMLElement[]} */
    const nodes = [];
    let above = "";
    this.#passages.forEach((passage, at) => {
      const { locator } = passage;
      const [, ...places] = placeOf(locator);
      const place = (locator.episode ? places.slice(1) : places).join(" · ");
      if (place && place !== above) nodes.push(el("h3", { dir: "auto" }, place));
      above = place;
      nodes.push(this.#piece(passage, at === this.#at));
    });
    this.#pieces.replaceChildren(...nodes);
  }

  /**
   * @param {PassageRead} passage
   * @param {boolean} isAsked
   * @returns {HTMLElement}
   */
  #piece({ locator, text, clipped }, isAsked) {
    const source = isAsked ? this.#reading?.source : undefined;
    const marks = source && source.text === text ? (this.#reading?.marksOf(source) ?? []) : [];
    const speaker = locator.episode ? locator.heading : "";
    const words = el("p", { dir: "auto", lang: languageOf(text) }, ...markedText(text, marks));
    if (clipped) words.append(` … ${t("source.shortened")}`);
    return el(
      "div",
      { class: isAsked ? "piece here" : "piece", "aria-current": isAsked ? "true" : false },
      ...(source ? [el("span", { class: "number" }, el("span", { class: "unseen" }, `${t("source.name")} `), String(source.n))] : []),
      ...(speaker ? [el("p", { class: "speaker", dir: "auto" }, speaker)] : []),
      words,
    );
  }

  async #copyLink() {
    const link = this.#shown && this.#linkOf?.(this.#shown);
    if (link) this.#announce(t((await copyText(link)) ? "answer.copied" : "answer.notCopied"));
  }

  /**
   * @param {string} sign  the icon's name
   * @param {string} label
   * @param {() => void} act
   * @returns {HTMLButtonElement}
   */
  #button(sign, label, act) {
    const button = el("button", { type: "button", class: "sign", "aria-label": label, title: label }, icon(sign));
    button.addEventListener("click", act);
    return button;
  }
}

/** @param {RefusedFrame} refused */
function refusal({ code, message }) {
  if (code === "unknown_action") return t("reader.unavailable");
  return told(code, message) || t("reader.failed");
}

/**
 * @param {string} url
 * @returns {string | null} null where it is no address of the web
 */
function webAddress(url) {
  try {
    const { protocol, href } = new URL(url);
    return protocol === "https:" || protocol === "http:" ? href : null;
  } catch {
    return null;
  }
}
