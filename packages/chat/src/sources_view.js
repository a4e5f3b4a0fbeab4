/** What was retrieved for one answer: a list of passages that open. */

import { citationsOf, languageOf } from "./answer_text.js";
import { el, icon, setText } from "./dom.js";
import { t, told } from "./i18n.js";
import { reasonsOf, sourcesTitle } from "./words.js";

/**
 * @import { Citation, Source } from "../../client/src/protocol.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 *
 * @typedef {{ source: Source, element: HTMLDetailsElement, summary: HTMLElement, verdict: HTMLElement, uses: HTMLElement }} Row
 */

/** Where there is room beside the answer, the list is open from the start; see answer.css. */
const BESIDE = matchMedia("(min-width: 60rem)");
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/** Opens by click and keyboard, and on a marker of the answer. */
export class SourcesView {
  element = el("details", { class: "sources", hidden: true });

  #summary = el("span");
  #degraded = el("ul", { class: "degraded", hidden: true });
  #list = el("ol", { class: "source-list" });
  #prefix;
  /** By the source's number. @type {Map<number, Row>} */
  #rows = new Map();
  /** The marker to go back to. @type {HTMLElement | null} */
  #origin = null;

  /** @param {string} requestId */
  constructor(requestId) {
    this.#prefix = `source-${requestId}-`;
    this.element.open = BESIDE.matches;
    this.element.append(el("summary", {}, icon("chevron"), this.#summary), this.#degraded, this.#list);
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
    const { sources, citations, searched, degraded, offered, notAttributed } = tail;
    const told = [...(offered ? [t("sources.offered.note")] : []), ...(notAttributed.length ? [t("sources.notAttributed.note")] : []), ...degraded];
    this.element.hidden = searched === null;
    this.#degraded.hidden = !told.length;
    this.#degraded.replaceChildren(...told.map((sentence) => el("li", {}, sentence)));
    for (const [n, row] of this.#rows) {
      if (sources.get(n) !== row.source) {
        row.element.parentElement?.remove();
        this.#rows.delete(n);
      }
    }
    const numbers = [...sources.keys()].sort((a, b) => a - b);
    for (const n of numbers) {
      const row = this.#rows.get(n) ?? this.#add(/** @type {Source} */ (sources.get(n)), !tail.reused?.whole);
      judge(row, citations, notAttributed.includes(n));
    }
    const cited = numbers.filter((n) => citationsOf(citations, n).verdict).length;
    setText(this.#summary, sourcesTitle(tail, cited));
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
    const { n, locator, score } = source;
    const place = el("span", { class: "place", dir: "auto" }, locator.place);
    if (locator.part) place.append("\u00a0· ", el("span", { class: "chapter" }, locator.part));
    if (source.earlier && tellsOrigin) place.append(" · ", el("span", { class: "earlier", dir: "ltr" }, t("source.earlier")));
    const reasons = reasonsOf(source.why);
    if (reasons.length) place.append(" · ", el("span", { class: "why", dir: "auto" }, reasons[0]));
    const gauge = el("span", { class: "gauge" });
    gauge.style.setProperty("--score", String(score));
    const verdict = el("span", { class: "verdict" });
    const summary = el(
      "summary",
      {},
      el("span", { class: "number" }, el("span", { class: "unseen" }, `${t("source.name")} `), String(n)),
      el(
        "span",
        { class: "where" },
        el("span", { class: "speaker", dir: "auto" }, locator.heading || t("source.name")),
        place,
      ),
      el(
        "span",
        { class: "rating" },
        verdict,
        el("span", { class: "score" }, el("span", { class: "unseen" }, `${t("source.relevance")} `), score.toFixed(2), gauge),
      ),
    );
    const text = el("blockquote", { dir: "auto", lang: languageOf(source.text) }, source.text);
    if (source.clipped) text.append(el("span", { class: "clipped" }, ` … ${t("source.shortened")}`));
    const uses = el("ul", { class: "uses" });
    const message = locator.messageId && el("p", { class: "message" }, t("source.message", { id: locator.messageId }));
    const why = reasons.length > 1 && el("p", { class: "why", dir: "auto" }, t("source.why", { reasons: reasons.join("; ") }));
    const body = el("div", { class: "passage" }, text, ...(why ? [why] : []), ...(message ? [message] : []), uses);
    const element = el("details", { class: "source", id: this.anchorOf(n), "data-n": String(n) }, summary, body);
    const row = { source, element, summary, verdict, uses };
    const item = el("li", {}, element);
    const next = [...this.#rows.keys()].filter((other) => other > n).sort((a, b) => a - b)[0];
    this.#list.insertBefore(item, next === undefined ? null : (this.#rows.get(next)?.element.parentElement ?? null));
    this.#rows.set(n, row);
    return row;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const source = event.target instanceof Element ? event.target.closest("details.source") : null;
    if (event.key !== "Escape" || !(source instanceof HTMLDetailsElement) || !source.open) return;
    source.open = false;
    if (this.#origin?.isConnected) this.#origin.focus();
    this.#origin = null;
  }
}

/**
 * What became of one use of a source.
 *
 * @param {Citation} use
 * @returns {string}
 */
function useWords({ verdict, code, reason }) {
  return t(`use.${verdict}`, { reason: told(code, reason) || t("use.noReason") });
}

/**
 * Say of a source whether the answer cites it, and whether that holds.
 *
 * @param {Row} row
 * @param {Citation[]} citations
 * @param {boolean} unattributed  the answer has no marker to say whether it rests on it
 */
function judge(row, citations, unattributed) {
  const { uses, verdict } = citationsOf(citations, row.source.n);
  const shown = JSON.stringify([uses, unattributed]);
  if (row.element.dataset.shown === shown) return;
  row.element.dataset.shown = shown;
  row.element.dataset.verdict = verdict ?? "";
  row.verdict.replaceChildren();
  if (verdict) row.verdict.append(icon(verdict), t(`verdict.${verdict}`));
  else if (unattributed) row.verdict.append(t("source.notAttributed"));
  else row.verdict.append(el("span", { class: "unseen" }, t("source.notCited")));
  row.uses.replaceChildren(
    ...uses.map((use) =>
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
