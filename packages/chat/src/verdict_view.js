/** The verdict on a theory: what speaks for it beside what speaks against it. */

import { languageOf } from "./answer_text.js";
import { el } from "./dom.js";
import { known, t } from "./i18n.js";
import { note } from "./note.js";

/**
 * @import { VerdictPassage } from "../../client/src/protocol.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 */

/** Drawn from the event alone: the answer's text has no say in it. */
export class VerdictView {
  element = el("section", { class: "ruling", "aria-label": t("ruling.label"), hidden: true });

  #onOpen;
  #drawn = "";

  /** @param {(n: number, marker: HTMLElement) => void} onOpen  told of a passage that was followed */
  constructor(onOpen) {
    this.#onOpen = onOpen;
  }

  /**
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf  the id of a source's element
   */
  update(tail, anchorOf) {
    const { verdict } = tail;
    const wanted = JSON.stringify(verdict);
    if (wanted === this.#drawn) return;
    this.#drawn = wanted;
    this.element.hidden = verdict === null;
    if (!verdict) return this.element.replaceChildren();
    this.element.dataset.verdict = verdict.verdict;
    const is = known(`ruling.is.${verdict.verdict}`) ? t(`ruling.is.${verdict.verdict}`) : verdict.verdict;
    const counts = t("ruling.counts", { for: verdict.for.length, against: verdict.against.length });
    const line = [el("strong", {}, t("ruling.title", { verdict: is })), ` ${counts}`];
    const sides = el(
      "div",
      { class: "sides" },
      this.#side("for", verdict.for, tail, anchorOf),
      this.#side("against", verdict.against, tail, anchorOf),
    );
    this.element.replaceChildren(note("scales", line, [...(verdict.given ? [] : [t("ruling.none")]), sides]));
  }

  /**
   * @param {"for" | "against"} side
   * @param {VerdictPassage[]} passages
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf
   * @returns {HTMLElement}
   */
  #side(side, passages, { sources }, anchorOf) {
    const items = passages.map(({ n, strength }) => {
      const source = sources.get(n);
      if (!source) return el("li", {}, `[${n}] ${strength}`);
      const link = el("a", { class: "marker", href: `#${anchorOf(n)}`, "aria-label": t("source.number", { n }) }, String(n));
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.#onOpen(n, link);
      });
      const quoted = el("q", { dir: "auto", lang: languageOf(source.text) }, source.text);
      return el("li", {}, link, el("span", { class: "strength" }, strength), quoted);
    });
    const list = items.length ? el("ul", {}, ...items) : el("p", {}, t("ruling.nothing"));
    return el("div", { class: side }, el("h3", {}, t(`ruling.${side}`)), list);
  }
}
