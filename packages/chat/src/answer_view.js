/** An answer's text as it grows: text nodes, and links from its markers to its sources. */

import { citationsOf, languageOf, segmentsOf, settled } from "./answer_text.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";

/**
 * @import { MarkerSegment, Segment } from "./answer_text.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 */

/** Draws only what is new, so that what is being read, or selected, stays where it is. */
export class AnswerView {
  element = el("p", { class: "answer", dir: "auto" });

  #text = el("span");
  #onOpen;
  /** @type {{ segment: Segment, linked: boolean, node: HTMLElement | Text }[]} */
  #drawn = [];

  /** @param {(n: number, marker: HTMLElement) => void} onOpen  told of a marker that was followed */
  constructor(onOpen) {
    this.#onOpen = onOpen;
    this.element.append(this.#text, el("span", { class: "caret", "aria-hidden": "true" }));
  }

  /**
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf  the id of a source's element
   */
  update(tail, anchorOf) {
    this.#drawText(tail, anchorOf);
    this.element.lang = languageOf(tail.text);
    for (const { segment, linked, node } of this.#drawn) {
      if (segment.type === "marker" && linked && node instanceof HTMLElement) this.#judge(node, tail);
    }
  }

  /**
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf
   */
  #drawText({ text, sources, terminal }, anchorOf) {
    const wanted = segmentsOf(terminal ? text : settled(text)).map((segment) => ({
      segment,
      linked: segment.type === "marker" && segment.numbers.some((n) => sources.has(n)),
    }));
    let same = 0;
    for (; same < wanted.length && same < this.#drawn.length; same += 1) {
      const [is, was] = [wanted[same], this.#drawn[same]];
      if (is.segment.type !== was.segment.type || is.linked !== was.linked) break;
      if (is.segment.text === was.segment.text) continue;
      if (!(was.node instanceof Text) || !is.segment.text.startsWith(was.segment.text)) break;
      was.node.appendData(is.segment.text.slice(was.segment.text.length));
      was.segment = is.segment;
    }
    for (const { node } of this.#drawn.splice(same)) node.remove();
    for (const { segment, linked } of wanted.slice(same)) {
      const node =
        linked && segment.type === "marker"
          ? this.#marker(segment, (n) => (sources.has(n) ? anchorOf(n) : null))
          : document.createTextNode(segment.text);
      this.#drawn.push({ segment, linked, node });
      this.#text.append(node);
    }
  }

  /**
   * `[1, 4]` as two links. What stands around the numbers is there for who copies the text, and not seen.
   *
   * @param {MarkerSegment} segment
   * @param {(n: number) => string | null} anchorOf
   * @returns {HTMLElement}
   */
  #marker({ parts }, anchorOf) {
    const group = el("span", { class: "markers" });
    for (const { text, n } of parts) {
      const anchor = n === null ? null : anchorOf(n);
      if (n === null || anchor === null) {
        group.append(el("span", { class: n === null ? "bracket" : "marker missing" }, text));
        continue;
      }
      const link = el("a", { class: "marker", href: `#${anchor}`, "data-n": String(n) }, text);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.#onOpen(n, link);
      });
      group.append(link);
    }
    return group;
  }

  /**
   * Say of each link what the citations say of its source.
   *
   * @param {HTMLElement} group
   * @param {RequestTail} tail
   */
  #judge(group, { citations, sources }) {
    for (const link of group.querySelectorAll("a")) {
      const n = Number(link.dataset.n);
      const { verdict } = citationsOf(citations, n);
      const heading = sources.get(n)?.locator.heading;
      link.setAttribute("aria-label", [t("source.number", { n }), heading, verdict && t(`verdict.${verdict}`)].filter(Boolean).join(", "));
      if (verdict) link.dataset.verdict = verdict;
      else delete link.dataset.verdict;
    }
  }
}
