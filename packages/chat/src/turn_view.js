/** One question and its answer. */

import { languageOf } from "./answer_text.js";
import { AnswerView } from "./answer_view.js";
import { ChangesView } from "./changes_view.js";
import { copyText, el, icon, setText } from "./dom.js";
import { FeedbackView } from "./feedback_view.js";
import { t } from "./i18n.js";
import { leftNotices } from "./limit_words.js";
import { withoutMarkers } from "../../client/src/markers.js";
import { SourcesView } from "./sources_view.js";
import { VerdictView } from "./verdict_view.js";
import {
  failureNotice,
  fallbackNotice,
  figures,
  groundedness,
  phaseOf,
  reusedNotice,
  routeName,
  statusOf,
  wayOf,
} from "./words.js";

/**
 * @import { Turn } from "../../client/src/conversation.js"
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 * @import { Status } from "../../client/src/connection.js"
 * @import { Reading } from "./sources_view.js"
 * @import { Phase } from "./words.js"
 */

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
    this.#verdict = new VerdictView((n, marker) => this.#sources.show(n, marker));
    this.#answer = new AnswerView({
      onOpen: (n, marker) => this.#sources.show(n, marker),
      copy: async (text) => announce(t((await copyText(text)) ? "answer.copied" : "answer.notCopied")),
    });
    this.#stop.addEventListener("click", cancel);
    this.#again.addEventListener("click", askAgain);
    this.status.append(el("span", { class: "pulse", "aria-hidden": "true" }), this.#words, this.#stop, this.#again);
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
        this.#feedback.element,
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
    this.#again.hidden = phase !== "failed" && phase !== "cancelled" && phase !== "limited";
    if (phase === "complete" && this.#phase !== "complete") this.#drawFacts();
    if (!this.#silent) this.#tell(phase);
    else if (connection === "open" && exchange.known && !exchange.catchingUp) this.#silent = false;
    this.#phase = phase;
  }

  #drawNotices() {
    const { exchange } = this.#turn;
    const { tail } = exchange;
    const missing = tail.citations.filter(({ n }) => !tail.sources.has(n)).map(({ n }) => (n ? `[${n}]` : t("source.marker")));
    const failure = failureNotice(exchange);
    /** @type {{ kind: string, text: string, quoted?: string }[]} */
    const notices = [
      ...tail.fallbacks.map((fallback) => ({ kind: "fallback", text: fallbackNotice(fallback) })),
      ...(tail.reused ? [{ kind: "reused", text: reusedNotice(tail.reused), quoted: tail.reused.question }] : []),
      ...(missing.length ? [{ kind: "missing", text: t("source.missing", { markers: missing.join(", ") }) }] : []),
      ...(failure ? [{ kind: "failure", text: failure }] : []),
    ];
    const shown = JSON.stringify(notices);
    if (this.#notices.dataset.shown === shown) return;
    this.#notices.dataset.shown = shown;
    this.#notices.hidden = notices.length === 0;
    this.#notices.replaceChildren(
      ...notices.map(({ kind, text, quoted }) => {
        const quote = quoted ? [" ", el("q", { dir: "auto", lang: languageOf(quoted) }, quoted)] : [];
        return el("li", { class: kind }, icon(quoted ? "again" : "unverified"), el("span", {}, text, ...quote));
      }),
    );
  }

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
    const badge = el("p", { class: "badge" }, icon(grounded ? "verified" : "unverified"), text);
    const list = el("dl", {}, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    const left = leftNotices(tail.terminal.limits).map((text) => el("p", { class: "left" }, text));
    this.#facts.replaceChildren(badge, list, ...left);
    this.#facts.hidden = false;
  }

  /**
   * Tell those who do not see it: each step, and the answer once it is whole.
   *
   * @param {Phase} phase
   */
  #tell(phase) {
    if (phase === this.#phase) return;
    const { exchange } = this.#turn;
    const { tail } = exchange;
    switch (phase) {
      case "accepted":
        return this.#announce(`${routeName(tail)}.`);
      case "searching":
      case "writing":
        return this.#announce(statusOf(exchange, "open"));
      case "complete":
        return this.#announce(`${withoutMarkers(tail.text)} ${groundedness(tail).text}.`);
      case "cancelled":
        return this.#announce(t("status.cancelled"));
      case "limited":
      case "blocked":
        return this.#announce(statusOf(exchange, "open"));
      case "failed":
        return this.#announce(failureNotice(exchange));
    }
  }
}
