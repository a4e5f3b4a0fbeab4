/** What was retrieved for one answer: the passages that it cites, open to read, and the others below them. */

import { citationsOf, languageOf } from "./answer_text.js";
import { el, icon, setText } from "./dom.js";
import { formatted, t } from "./i18n.js";
import { excerptOf, marksIn } from "./marks.js";
import { markersIn } from "../../client/src/markers.js";
import { markedText } from "./passage_text.js";
import { placeOf, reasonsOf, sourcesNotes, sourcesTitle } from "./words.js";

/**
 * @import { Citation, Source } from "../../client/src/protocol.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 * @import { Range } from "./marks.js"
 *
 * @typedef {object} Row
 * @property {Source} source
 * @property {HTMLElement} item
 * @property {HTMLDetailsElement} element
 * @property {HTMLElement} summary
 * @property {HTMLElement} verdict
 * @property {HTMLElement} text
 * @property {HTMLElement} uses
 * @property {Range[]} marks
 * @property {boolean} isWhole  the whole passage is shown, not an excerpt
 * @property {string} shown
 *
 * @typedef {object} Reading  A source to be read in its document.
 * @property {Source} source
 * @property {Source[]} sources  of the same answer, in the order in which they are listed
 * @property {string} indexVersion  in which the answer has them
 * @property {(source: Source) => Range[]} marksOf
 * @property {HTMLElement} origin  where the focus returns to
 */

/** Where there is room beside the answer, the list is open from the start; see answer.css. */
const BESIDE = matchMedia("(min-width: 60rem)");
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
/** Of a passage, in characters, before it is unfolded. */
const EXCERPT_CHARS = 360;

/** Opens by click and keyboard, and on a marker of the answer. */
export class SourcesView {
  element = el("details", { class: "sources", hidden: true });

  #title = el("h3");
  #notes = el("ul", { class: "degraded", hidden: true });
  #cited = el("ol", { class: "source-list" });
  #others = el("ol", { class: "source-list" });
  #moreTitle = el("span");
  #more = el("details", { class: "more", hidden: true }, el("summary", {}, icon("chevron"), this.#moreTitle), this.#others);
  #prefix;
  #onRead;
  /** By the source's number. @type {Map<number, Row>} */
  #rows = new Map();
  #indexVersion = "";
  /** The marker to go back to. @type {HTMLElement | null} */
  #origin = null;

  /**
   * @param {string} requestId
   * @param {(reading: Reading) => void} onRead  told of a source that is to be read in its document
   */
  constructor(requestId, onRead) {
    this.#prefix = `source-${requestId}-`;
    this.#onRead = onRead;
    this.element.open = BESIDE.matches;
    this.element.append(el("summary", {}, icon("chevron"), this.#title), this.#notes, this.#cited, this.#more);
    this.element.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /**
   * The id of a source's element.
   *
   * @param {number} n
   */
  anchorOf(n) {
    return this.#prefix + n;
  }

  /** @param {RequestTail} tail */
  update(tail) {
    const { sources, citations, searched, notAttributed } = tail;
    const notes = sourcesNotes(tail);
    this.#indexVersion = tail.indexVersion;
    this.element.hidden = searched === null;
    this.#notes.hidden = !notes.length;
    this.#notes.replaceChildren(...notes.map((sentence) => el("li", {}, sentence)));
    for (const [n, row] of this.#rows) {
      if (sources.get(n) !== row.source) {
        row.item.remove();
        this.#rows.delete(n);
      }
    }
    const numbers = [...sources.keys()].sort((a, b) => a - b);
    const cited = citedIn(tail).filter((n) => sources.has(n));
    for (const n of numbers) {
      const row = this.#rows.get(n) ?? this.#add(/** @type {Source} */ (sources.get(n)), !tail.reused?.whole);
      judge(row, citations, notAttributed.includes(n));
    }
    this.#arrange(numbers, cited);
    setText(this.#title, sourcesTitle(tail, numbers.filter((n) => citationsOf(citations, n).verdict).length));
  }

  /**
   * List the cited ones first, and open; the others are folded behind their number. Where none is cited, all are listed.
   *
   * @param {number[]} numbers
   * @param {number[]} cited
   */
  #arrange(numbers, cited) {
    const first = cited.length ? cited : numbers;
    const rest = cited.length ? numbers.filter((n) => !cited.includes(n)) : [];
    for (const [list, members] of /** @type {[HTMLElement, number[]][]} */ ([[this.#cited, first], [this.#others, rest]])) {
      const items = members.map((n) => /** @type {Row} */ (this.#rows.get(n)).item);
      const isSame = items.length === list.children.length && items.every((item, place) => item === list.children[place]);
      if (!isSame) list.replaceChildren(...items);
    }
    for (const n of cited) {
      const { element } = /** @type {Row} */ (this.#rows.get(n));
      if (!("cited" in element.dataset)) element.open = true;
      element.dataset.cited = "";
    }
    this.#more.hidden = rest.length === 0;
    setText(this.#moreTitle, t("sources.more", { count: rest.length }));
  }

  /**
   * Open a source and go there.
   *
   * @param {number} n
   * @param {HTMLElement} origin  where Escape leads back to
   */
  show(n, origin) {
    const row = this.#rows.get(n);
    if (!row) return;
    this.#origin = origin;
    this.element.open = true;
    if (this.#others.contains(row.item)) this.#more.open = true;
    row.element.open = true;
    row.summary.focus({ preventScroll: true });
    row.element.scrollIntoView({ block: "nearest", behavior: STILL.matches ? "auto" : "smooth" });
    row.element.classList.remove("called");
    requestAnimationFrame(() => row.element.classList.add("called"));
  }

  /**
   * @param {Source} source
   * @param {boolean} tellsOrigin  whether to say of it that an earlier answer brought it: all did where that is given again
   * @returns {Row}
   */
  #add(source, tellsOrigin) {
    const { n, locator } = source;
    const [heading, ...places] = placeOf(locator);
    const where = el("span", { class: "where" }, el("span", { class: "speaker", dir: "auto" }, heading));
    const place = el("span", { class: "place", dir: "auto" }, places.map((one) => ` · ${one}`).join(""));
    if (source.earlier && tellsOrigin) place.append(` · ${t("source.earlier")}`);
    where.append(place);
    const verdict = el("span", { class: "verdict" });
    const number = el("span", { class: "number" }, el("span", { class: "unseen" }, `${t("source.name")} `), String(n));
    const summary = el("summary", {}, number, where, verdict);
    const text = el("blockquote", { dir: "auto", lang: languageOf(source.text) });
    const uses = el("ul", { class: "uses" });
    const element = el("details", { class: "source", id: this.anchorOf(n), "data-n": String(n) }, summary);
    const item = el("li", {}, element);
    /** @type {Row} */
    const row = { source, item, element, summary, verdict, text, uses, marks: [], isWhole: false, shown: "" };
    element.append(el("div", { class: "passage" }, text, uses, this.#foot(row)));
    this.#rows.set(n, row);
    return row;
  }

  /**
   * What follows the text: the way to its document, and why it was found.
   *
   * @param {Row} row
   * @returns {HTMLElement}
   */
  #foot(row) {
    const { collection, passageId } = row.source;
    const foot = el("div", { class: "foot" }, foundBecause(row.source));
    if (!passageId || !collection) return foot;
    const label = t("source.read");
    const read = el("button", { type: "button", class: "read", "aria-label": t("source.readNumber", { n: row.source.n }) }, icon("read"), label);
    read.addEventListener("click", () => {
      const listed = [...this.#cited.children, ...this.#others.children];
      const rows = [...this.#rows.values()].sort((one, other) => listed.indexOf(one.item) - listed.indexOf(other.item));
      this.#onRead({
        source: row.source,
        sources: rows.map(({ source }) => source).filter((source) => source.passageId && source.collection),
        indexVersion: this.#indexVersion,
        marksOf: ({ n }) => this.#rows.get(n)?.marks ?? [],
        origin: read,
      });
    });
    foot.prepend(read);
    return foot;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const source = event.target instanceof Element ? event.target.closest("details.source") : null;
    if (event.key !== "Escape" || !(source instanceof HTMLDetailsElement) || !source.open) return;
    if (!this.#origin) return;
    event.preventDefault();
    if (!("cited" in source.dataset)) source.open = false;
    if (this.#origin.isConnected) this.#origin.focus();
    this.#origin = null;
  }
}

/**
 * The numbers that an answer cites so far, in order.
 *
 * @param {RequestTail} tail
 * @returns {number[]}
 */
function citedIn({ text, citations }) {
  const numbers = [...markersIn(text).flatMap((marker) => marker.numbers), ...citations.map(({ n }) => n)];
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/**
 * @param {Source} source
 * @returns {HTMLElement}
 */
function foundBecause({ why, score, locator }) {
  const reasons = reasonsOf(why);
  const parts = [
    `${t("source.relevance")} ${formatted(score, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`,
    ...(locator.messageId ? [t("source.message", { id: locator.messageId })] : []),
    ...(reasons.length ? [t("source.why", { reasons: reasons.join("; ") })] : []),
  ];
  return el("p", { class: "why", dir: "auto" }, parts.join(" · "));
}

/**
 * What became of one use of a source.
 *
 * @param {Citation} use
 * @returns {string}
 */
function useWords({ verdict, reason }) {
  return verdict === "verified" ? t("use.verified") : t(`use.${verdict}`, { reason: reason || t("use.noReason") });
}

/**
 * Say of a source whether the answer cites it, and whether that holds; mark the words that it rests on.
 *
 * @param {Row} row
 * @param {Citation[]} citations
 * @param {boolean} unattributed  the answer has no marker to say whether it rests on it
 */
function judge(row, citations, unattributed) {
  const { uses, verdict } = citationsOf(citations, row.source.n);
  const shown = JSON.stringify([uses, unattributed]);
  if (row.shown === shown) return;
  row.shown = shown;
  row.element.dataset.verdict = verdict ?? "";
  row.verdict.replaceChildren();
  if (verdict) row.verdict.append(icon(verdict), t(`verdict.${verdict}`));
  else if (unattributed) row.verdict.append(t("source.notAttributed"));
  const isMarked = (/** @type {Citation} */ use) => marksIn(row.source.text, [use.sentence]).length > 0;
  const trusted = uses.filter((use) => use.verdict !== "unverified");
  row.marks = marksIn(row.source.text, trusted.map((use) => use.sentence));
  drawText(row);
  const told = uses.filter((use) => use.verdict !== "verified" || !isMarked(use));
  row.uses.replaceChildren(
    ...told.map((use) =>
      el(
        "li",
        { "data-verdict": use.verdict },
        icon(use.verdict),
        el("span", {}, useWords(use)),
        el("q", { dir: "auto", lang: languageOf(use.sentence) }, use.sentence),
      ),
    ),
  );
}

/**
 * Show the passage, or the part of it that matters.
 *
 * @param {Row} row
 */
function drawText(row) {
  const { source, text, marks } = row;
  const part = row.isWhole ? /** @type {Range} */ ([0, source.text.length]) : excerptOf(source.text, marks, EXCERPT_CHARS);
  text.replaceChildren(...(part[0] > 0 ? ["… "] : []), ...markedText(source.text, marks, part));
  if (part[0] > 0 || part[1] < source.text.length) {
    const whole = el("button", { type: "button", class: "whole" }, t("source.whole"));
    whole.addEventListener("click", () => {
      row.isWhole = true;
      drawText(row);
      row.summary.focus({ preventScroll: true });
    });
    text.append(" … ", whole);
  } else if (source.clipped) {
    text.append(el("span", { class: "clipped" }, ` … ${t("source.shortened")}`));
  }
}
