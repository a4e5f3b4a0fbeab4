/** The verdict on a theory: what speaks for it beside what speaks against it. */

import { languageOf } from "./answer_text.js";
import { el } from "./dom.js";

/**
 * @import { VerdictPassage } from "../../client/src/protocol.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 */

const NONE_GIVEN = "The agent gave none: these are the passages that were gathered.";

/** Drawn from the event alone: the answer's text has no say in it. */
export class VerdictView {
  element = el("section", { class: "ruling", "aria-label": "Verdict", hidden: true });

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
    this.element.replaceChildren(
      el("h3", {}, `Verdict: ${verdict.verdict}`),
      ...(verdict.given ? [] : [el("p", {}, NONE_GIVEN)]),
      this.#side("For", verdict.for, tail, anchorOf),
      this.#side("Against", verdict.against, tail, anchorOf),
    );
  }

  /**
   * @param {string} heading
   * @param {VerdictPassage[]} passages
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf
   * @returns {HTMLElement}
   */
  #side(heading, passages, { sources }, anchorOf) {
    const items = passages.map(({ n, strength }) => {
      const source = sources.get(n);
      if (!source) return el("li", {}, `[${n}] ${strength}`);
      const link = el("a", { class: "marker", href: `#${anchorOf(n)}`, "aria-label": `Source ${n}` }, String(n));
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.#onOpen(n, link);
      });
      const quoted = el("q", { dir: "auto", lang: languageOf(source.text) }, source.text);
      return el("li", {}, link, el("span", { class: "strength" }, strength), quoted);
    });
    const list = items.length ? el("ul", {}, ...items) : el("p", {}, "Nothing");
    return el("div", { class: heading.toLowerCase() }, el("h4", {}, heading), list);
  }
}
