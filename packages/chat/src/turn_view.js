/** One question and its answer. */

import { languageOf } from "./answer_text.js";
import { AnswerView } from "./answer_view.js";
import { ChangesView } from "./changes_view.js";
import { copyText, el, icon, setText } from "./dom.js";
import { FeedbackView } from "./feedback_view.js";
import { t } from "./i18n.js";
import { leftNotices } from "./limit_words.js";
import { withoutMarkers } from "../../client/src/markers.js";
import { note } from "./note.js";
import { answerMarkdown } from "./shared_answer.js";
import { SourcesView } from "./sources_view.js";
import { VerdictView } from "./verdict_view.js";
import {
  fallbackLine,
  fallbackNotice,
  figures,
  groundedness,
  phaseOf,
  reusedNotice,
  statusOf,
  triedNotices,
  wayOf,
} from "./words.js";

/**
 * @import { Turn } from "../../client/src/conversation.js"
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 * @import { Status } from "../../client/src/connection.js"
 * @import { Reading } from "./sources_view.js"
 * @import { Phase } from "./words.js"
 */

/** A longer answer is not read out by itself. */
const MAX_ANNOUNCED_CHARS = 400;

/** Shows a turn as it stands, whatever has happened in between. */
export class TurnView {
  element = el("article", { class: "turn" });
  /** The end of what is being written: what to keep in sight. */
  status = el("div", { class: "status" });

  #turn;
  #announce;
  #moveFocus;
  #answer;
  #sources;
  #understood = el("p", { class: "understood", hidden: true }, t("answer.understood"));
  #query = el("q", { dir: "auto" });
  #notices = el("ul", { class: "notices" });
  #changes;
  #feedback;
  #verdict;
  #words = el("span");
  #stop = el("button", { type: "button", class: "stop" }, icon("stop"), t("answer.stop"));
  #again = el("button", { type: "button", class: "again" }, icon("again"), t("answer.again"));
  #copy = el("button", { type: "button", class: "copy" }, icon("copy"), t("answer.copy"));
  #actions = el("div", { class: "turn-actions", hidden: true }, this.#copy, this.#again);
  #facts = el("div", { class: "facts", hidden: true });
  /** @type {Phase | null} */
  #phase = null;
  /** What was there before the page was loaded is not announced again. */
  #silent;

  /**
   * @param {Turn} turn
   * @param {object} does
   * @param {() => void} does.cancel
   * @param {() => void} does.askAgain
   * @param {(text: string) => void} does.announce
   * @param {string[]} does.scope  names of what was searched; none if it was everything
   * @param {(action: Call) => Promise<CallReply>} does.call  sends an action, and brings its reply
   * @param {() => void} does.moveFocus  what has the focus is about to vanish
   * @param {(reading: Reading) => void} does.read  shows a source in its document
   */
  constructor(turn, { cancel, askAgain, announce, scope, call, moveFocus, read }) {
    const { requestId, query } = turn.ask;
    this.#turn = turn;
    this.#silent = turn.restored;
    this.#announce = announce;
    this.#moveFocus = moveFocus;
    this.#sources = new SourcesView(requestId, read);
    this.#changes = new ChangesView(requestId, { call, announce });
    this.#feedback = new FeedbackView(requestId, call);
    this.#actions.append(this.#feedback.element);
    this.#verdict = new VerdictView((n, marker) => this.#sources.show(n, marker));
    this.#stop.addEventListener("click", cancel);
    this.#again.addEventListener("click", askAgain);
    const copy = async (/** @type {string} */ text) => announce(t((await copyText(text)) ? "answer.copied" : "answer.notCopied"));
    this.#answer = new AnswerView({
      onOpen: (n, marker) => this.#sources.show(n, marker),
      copy,
    });
    this.#copy.addEventListener("click", () => void copy(answerMarkdown(turn.exchange.tail)));
    this.status.append(el("span", { class: "pulse", "aria-hidden": "true" }), this.#words, this.#stop);
    const heading = el("h2", { id: `question-${requestId}`, dir: "auto", lang: languageOf(query) }, query);
    const within = el("p", { class: "scope" }, scope.length ? t("answer.scope", { names: scope.join(", ") }) : "");
    within.hidden = scope.length === 0;
    this.#understood.append(this.#query);
    this.element.setAttribute("aria-labelledby", heading.id);
    this.element.dataset.requestId = requestId;
    this.element.append(
      el("header", {}, heading, within, this.#understood),
      el(
        "div",
        { class: "written" },
        this.#notices,
        this.#answer.element,
        this.#verdict.element,
        this.#changes.element,
        this.status,
        this.#facts,
        this.#actions,
      ),
      this.#sources.element,
    );
  }

  get ended() {
    return this.#turn.exchange.ended;
  }

  /** @param {Status["state"]} connection */
  update(connection) {
    const { exchange } = this.#turn;
    const { tail } = exchange;
    const phase = phaseOf(exchange);
    this.element.dataset.phase = phase;
    this.element.setAttribute("aria-busy", String(!exchange.ended));
    this.#understood.hidden = tail.query === "";
    this.#query.lang = languageOf(tail.query);
    setText(this.#query, tail.query);
    this.#drawNotices();
    this.#sources.update(tail);
    this.#changes.update(tail);
    this.#answer.update(tail, (n) => this.#sources.anchorOf(n));
    this.#verdict.update(tail, (n) => this.#sources.anchorOf(n));
    this.#answer.element.hidden = tail.text === "";
    setText(this.#words, statusOf(exchange, connection));
    this.#stop.disabled = exchange.cancelling;
    if (exchange.ended && this.#stop.matches(":focus")) this.#moveFocus();
    this.#stop.hidden = exchange.ended;
    this.status.hidden = phase === "complete";
    this.#feedback.element.hidden = phase !== "complete";
    this.#copy.hidden = tail.text === "";
    this.#again.hidden = phase === "blocked";
    this.#actions.hidden = !exchange.ended || (this.#copy.hidden && this.#again.hidden);
    if (phase === "complete" && this.#phase !== "complete") this.#drawFacts();
    if (phase === "failed" && this.#phase !== "failed") this.#drawTried();
    if (!this.#silent) this.#tell(phase);
    else if (connection === "open" && exchange.known && !exchange.catchingUp) this.#silent = false;
    this.#phase = phase;
  }

  #drawNotices() {
    const { exchange } = this.#turn;
    const { tail } = exchange;
    const missing = tail.citations.filter(({ n }) => !tail.sources.has(n)).map(({ n }) => (n ? `[${n}]` : t("source.marker")));
    const shown = JSON.stringify([tail.fallbacks, tail.reused, missing]);
    if (this.#notices.dataset.shown === shown) return;
    this.#notices.dataset.shown = shown;
    /** @type {[string, HTMLElement][]} */
    const notes = [];
    if (tail.fallbacks.length) {
      notes.push(["fallback", note("again", [fallbackLine(tail.fallbacks)], tail.fallbacks.map(fallbackNotice))]);
    }
    if (tail.reused) {
      const { question } = tail.reused;
      const quote = el("q", { dir: "auto", lang: languageOf(question) }, question);
      notes.push(["reused", note("again", [reusedNotice(tail.reused), " ", quote])]);
    }
    if (missing.length) notes.push(["missing", note("unverified", [t("source.missing", { markers: missing.join(", ") })])]);
    this.#notices.hidden = notes.length === 0;
    this.#notices.replaceChildren(...notes.map(([kind, line]) => el("li", { class: kind }, line)));
  }

  #drawTried() {
    const tried = triedNotices(this.#turn.exchange);
    this.#facts.hidden = tried.length === 0;
    this.#facts.replaceChildren(note("again", [t("failure.tried")], tried));
  }

  /** How the answer came about: whether it is grounded, and in the details what answered, and at what cost. */
  #drawFacts() {
    const { tail } = this.#turn.exchange;
    if (tail.terminal?.type !== "complete") return;
    const { grounded, text } = groundedness(tail);
    /** @type {[string, string][]} */
    const facts = [
      [t("facts.strategy"), wayOf(tail)],
      [t("facts.model"), tail.terminal.model],
      ...figures(tail.terminal.metrics),
    ];
    this.element.dataset.grounded = String(grounded);
    const list = el("dl", {}, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    const badge = el("span", { class: "badge" }, text || t("facts.title"));
    const sign = grounded ? "verified" : text ? "unverified" : "unchecked";
    const left = leftNotices(tail.terminal.limits).map((text) => el("p", { class: "left" }, text));
    this.#facts.dataset.tone = text ? (grounded ? "good" : "doubt") : "none";
    this.#facts.replaceChildren(note(sign, [badge], [list]), ...left);
    this.#facts.hidden = false;
  }

  /**
   * Tell those who do not see it: that it begins, and how it ends.
   *
   * @param {Phase} phase
   */
  #tell(phase) {
    if (phase === this.#phase) return;
    const { exchange } = this.#turn;
    switch (phase) {
      case "accepted":
        return this.#announce(t("answer.started"));
      case "complete":
        return this.#announce(this.#wholeWords());
      case "cancelled":
      case "limited":
      case "blocked":
      case "failed":
        return this.#announce(statusOf(exchange, "open"));
    }
  }

  /** A short answer is read out; of a long one is told that it is there. */
  #wholeWords() {
    const { tail } = this.#turn.exchange;
    const words = withoutMarkers(this.#answer.element.innerText);
    const { text } = groundedness(tail);
    const told = words.length <= MAX_ANNOUNCED_CHARS ? words : t("answer.done");
    return text ? `${told} ${text}.` : told;
  }
}
