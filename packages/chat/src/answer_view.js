/** An answer's text as it grows: Markdown, with links from its markers to its sources. */

import { citationsOf, languageOf } from "./answer_text.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { blocksOf, treeOf } from "./markdown.js";
import { completed } from "./markdown_stream.js";
import { TreeView } from "./tree_view.js";

/**
 * @import { TreeNode } from "./markdown.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 */

/** Draws only what is new, so that what is being read, or selected, stays where it is. */
export class AnswerView {
  element = el("div", { class: "answer", dir: "auto" });

  #view = new TreeView(this.element);
  #caret = el("span", { class: "caret", "aria-hidden": "true" });
  #shown = "";
  /** The trees that are drawn, by what they are made from. @type {Map<string, TreeNode[]>} */
  #trees = new Map();

  /**
   * @param {object} does
   * @param {(n: number, marker: HTMLElement) => void} does.onOpen  told of a marker that was followed
   * @param {(text: string) => Promise<void>} does.copy
   */
  constructor({ onOpen, copy }) {
    this.element.addEventListener("click", (event) => {
      const target = event.target instanceof Element ? event.target.closest("a.marker, button.copy-code") : null;
      if (!(target instanceof HTMLElement)) return;
      if (target.matches("a.marker")) {
        event.preventDefault();
        onOpen(Number(target.dataset.n), target);
      } else {
        void copy(target.closest(".code")?.querySelector("code")?.textContent ?? "");
      }
    });
  }

  /**
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf  the id of a source's element
   */
  update(tail, anchorOf) {
    this.#drawText(tail, anchorOf);
    this.#judge(tail);
  }

  /**
   * @param {RequestTail} tail
   * @param {(n: number) => string} anchorOf
   */
  #drawText({ text, sources, terminal }, anchorOf) {
    const key = `${[...sources.keys()]}`;
    const shown = `${key} ${terminal !== null} ${text}`;
    if (this.#shown === shown) return;
    this.#shown = shown;
    const drawing = {
      anchorOf: (/** @type {number} */ n) => (sources.has(n) ? anchorOf(n) : null),
      words: { copy: t("answer.copy"), table: t("answer.table") },
    };
    const trees = new Map();
    const nodes = blocksOf(terminal ? text : completed(text)).flatMap((block) => {
      const id = `${key} ${block.level} ${block.raw}`;
      const tree = this.#trees.get(id) ?? treeOf(block, drawing);
      trees.set(id, tree);
      return tree;
    });
    this.#trees = trees;
    this.#caret.remove();
    this.#view.update(nodes);
    lastOf(this.element).append(this.#caret);
    this.element.lang = languageOf(text);
  }

  /**
   * Say of each link what the citations say of its source.
   *
   * @param {RequestTail} tail
   */
  #judge({ citations, sources }) {
    for (const link of this.element.querySelectorAll("a.marker")) {
      if (!(link instanceof HTMLElement)) continue;
      const n = Number(link.dataset.n);
      const { verdict } = citationsOf(citations, n);
      const heading = sources.get(n)?.locator.heading;
      const parts = [t("source.number", { n }), heading, verdict && t(`verdict.${verdict}`)];
      link.setAttribute("aria-label", parts.filter(Boolean).join(", "));
      if (verdict) link.dataset.verdict = verdict;
      else delete link.dataset.verdict;
    }
  }
}

/**
 * The element in which a text goes on.
 *
 * @param {Element} element
 * @returns {Element}
 */
function lastOf(element) {
  const last = element.lastElementChild;
  const goesOn = last && last === element.lastChild && !last.matches("a, br, hr, span, button, em, strong, del, p code");
  return goesOn ? lastOf(last) : element;
}
