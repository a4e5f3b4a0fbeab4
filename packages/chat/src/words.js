/** What the page says of a request, in words for the asker. */

import { formatted, formattedDate, known, said, t, told } from "./i18n.js";
import { limitNotice } from "./limit_words.js";
import { markersIn } from "../../client/src/markers.js";
import { WITHHELD } from "../../client/src/tail.js";

/**
 * @import { Exchange } from "../../client/src/exchange.js"
 * @import { Change, ChangedField, Confirm, Failed, Fallback, Limit, Locator, Metrics, Reason, Reused, Strategy } from "../../client/src/protocol.js"
 * @import { Status } from "../../client/src/connection.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 *
 * @typedef {"waiting" | "accepted" | "searching" | "reading" | "writing" | "complete" | "cancelled" | "limited" | "blocked" | "failed"} Phase
 */

/**
 * @param {Strategy} strategy
 * @returns {string}
 */
export function strategyName(strategy) {
  return known(`strategy.${strategy}.name`) ? t(`strategy.${strategy}.name`) : strategy;
}

/** What an end is that is no failure, by its code. @type {Record<string, Phase>} */
const ENDS = { cancelled: "cancelled", [WITHHELD]: "blocked" };

/**
 * Where a request stands.
 *
 * @param {Exchange} exchange
 * @returns {Phase}
 */
export function phaseOf({ tail, failure }) {
  if (failure?.limit) return "limited";
  if (failure) return "failed";
  if (tail.terminal?.type === "complete") return "complete";
  if (tail.terminal) return ENDS[tail.terminal.code] ?? "failed";
  if (tail.text) return "writing";
  if (tail.searched !== null) return "reading";
  if (tail.strategy !== null) return "searching";
  return tail.accepted ? "accepted" : "waiting";
}

/**
 * What happens now, in a line.
 *
 * @param {Exchange} exchange
 * @param {Status["state"]} connection
 * @returns {string}
 */
export function statusOf(exchange, connection) {
  const { tail, failure } = exchange;
  if (!exchange.ended && connection === "locked") return t("status.signIn");
  if (!exchange.ended && connection !== "open") return t("status.connection");
  if (exchange.cancelling) return t("status.stopping");
  switch (phaseOf(exchange)) {
    case "waiting":
      return t("status.waiting");
    case "accepted":
      return t("status.accepted", { route: routeName(tail) });
    case "searching":
      return doingOf(tail.strategy ?? "");
    case "reading":
      return readingOf(tail);
    case "writing":
      return t(tail.citations.length ? "status.checking" : "status.writing");
    case "complete":
      return t("status.complete");
    case "limited":
      return limitNotice(/** @type {Limit} */ (failure?.limit));
    case "blocked":
      return blockedWords(/** @type {Failed} */ (tail.terminal));
    case "cancelled":
      return t("status.cancelled") + partialOf(tail);
    case "failed":
      return failureNotice(exchange) + partialOf(tail);
  }
}

/** @param {string} strategy */
function doingOf(strategy) {
  return known(`strategy.${strategy}.doing`) ? t(`strategy.${strategy}.doing`) : t("status.searching");
}

/**
 * The guardrail's own message, which the deployer may have written.
 *
 * @param {Failed} failed
 */
function blockedWords({ message }) {
  return message ? sentence(message) : t("status.blocked");
}

/** @param {RequestTail} tail */
function partialOf({ text }) {
  return text ? ` ${t("status.partial")}` : "";
}

/** @param {RequestTail} tail */
function readingOf({ sources, searched, reused, offered }) {
  if (offered) return doingOf("direct");
  if (reused?.whole) return t("status.again");
  const count = sources.size;
  return searched ? t("status.readingOf", { count, searched }) : t("status.reading", { count });
}

/**
 * What the classifier has made of the question.
 *
 * @param {RequestTail} tail
 * @returns {string}
 */
export function routeName(tail) {
  const route = tail.accepted?.route ?? "";
  return known(`route.${route}`) ? t(`route.${route}`) : route;
}

/**
 * Why one strategy was given up, and which follows.
 *
 * @param {Fallback} fallback
 * @returns {string}
 */
export function fallbackNotice({ from, to, code, reason }) {
  return t("fallback.notice", {
    strategy: strategyName(from),
    reason: sentence(told(code, reason)),
    next: nextOf(from, to),
  });
}

/**
 * What was given up, and what followed, in a line.
 *
 * @param {Fallback[]} fallbacks  at least one
 * @returns {string}
 */
export function fallbackLine(fallbacks) {
  const { from, to } = fallbacks[fallbacks.length - 1];
  const names = [...new Set(fallbacks.map((fallback) => strategyName(fallback.from)))];
  return t("fallback.line", { strategies: names.join(", "), next: nextOf(from, to) });
}

/**
 * @param {Strategy} from
 * @param {Strategy} to
 */
function nextOf(from, to) {
  if (from === to) return t("fallback.anew");
  return known(`strategy.${to}.next`) ? t(`strategy.${to}.next`) : t("fallback.trying", { strategy: strategyName(to) });
}

/**
 * What an answer owes to an earlier one, up to the question that was asked then.
 *
 * @param {Reused} reused
 * @returns {string}
 */
export function reusedNotice({ whole, answeredAtMs }) {
  const id = whole ? "reused.whole" : "reused.contexts";
  return answeredAtMs === null ? t(id) : t(`${id}On`, { date: day(answeredAtMs) });
}

/**
 * What the list of sources is called, with how many of them are cited.
 *
 * @param {RequestTail} tail
 * @param {number} cited
 * @returns {string}
 */
export function sourcesTitle({ sources, offered, notAttributed }, cited) {
  const count = sources.size;
  if (notAttributed.length) return t("sources.notAttributed", { sources: t("sources.count", { count }) });
  if (offered) return t("sources.before", { count });
  const found = count ? t("sources.count", { count }) : t("sources.none");
  return cited ? t("sources.cited", { sources: found, cited }) : found;
}

/**
 * What is to be said of the sources as a whole, in sentences.
 *
 * @param {RequestTail} tail
 * @returns {string[]}
 */
export function sourcesNotes({ offered, notAttributed, degraded }) {
  const [offer, lack] = [t("sources.offered.note"), t("sources.notAttributed.note")];
  return [...(offered ? [offer] : []), ...(notAttributed.length ? [lack] : []), ...degraded];
}

/**
 * Where a passage stands, from its heading down to its page.
 *
 * @param {Locator} locator
 * @returns {string[]} at least one
 */
export function placeOf({ heading, place, part }) {
  const [, page] = /^page (\d+)$/.exec(part) ?? [];
  const parts = [heading, place, page ? t("source.page", { page }) : part].filter(Boolean);
  return parts.length ? parts.filter((one, at) => parts.indexOf(one) === at) : [t("source.name")];
}

/**
 * Why a passage is here, a phrase a reason; that it is near to the question goes without saying.
 *
 * @param {Reason[]} why
 * @returns {string[]}
 */
export function reasonsOf(why) {
  const phrases = why.map(({ kind, name, matched }) => {
    if (!name) return "";
    if (kind === "entity") {
      return matched && !alike(matched, name) ? t("why.entityAs", { name, matched }) : t("why.entity", { name });
    }
    return kind === "intention" || kind === "tool" ? t(`why.${kind}`, { name: name.replaceAll("_", " ") }) : "";
  });
  return [...new Set(phrases.filter(Boolean))];
}

/**
 * @param {string} one
 * @param {string} other
 */
function alike(one, other) {
  return one.toLowerCase() === other.toLowerCase();
}

/**
 * Which way an answer came: what answered, and what had failed before it.
 *
 * @param {RequestTail} tail  complete
 * @returns {string}
 */
export function wayOf({ terminal, strategy }) {
  const failed = terminal?.type === "complete" ? terminal.failed.map((one) => one.strategy) : [];
  const others = [...new Set(failed)].filter((one) => one !== strategy).map((one) => `${strategyName(one)} (${one})`);
  const name = `${strategyName(strategy ?? "")} (${strategy})`;
  return others.length ? t("facts.way", { strategy: name, failed: others.join(", ") }) : name;
}

/**
 * Why there is no answer.
 *
 * @param {Exchange} exchange  failed
 * @returns {string}
 */
export function failureNotice({ tail, failure }) {
  if (failure) return failure.message ? sentence(told(failure.code ?? "", failure.message)) : t("answer.refused");
  if (tail.terminal?.type !== "error" || !tail.terminal.message) return t("answer.none");
  return sentence(told(tail.terminal.code, tail.terminal.message));
}

/**
 * What was tried before there was no answer, a sentence each.
 *
 * @param {Exchange} exchange
 * @returns {string[]}
 */
export function triedNotices({ tail, failure }) {
  if (failure || tail.terminal?.type !== "error" || tail.terminal.code in ENDS) return [];
  const { message, failed } = tail.terminal;
  const others = failed.filter(({ reason }) => reason !== message); // the strategy that ended it says the same
  return others.map((one) => `${strategyName(one.strategy)}: ${sentence(told(one.code, one.reason))}`);
}

/** Routes of questions that are not about the text: their answers need no passages. */
const WITHOUT_PASSAGES = ["direct", "profile_agent"];

/**
 * Whether an answer rests on passages, in words; "" where it need not.
 *
 * @param {RequestTail} tail  complete
 * @returns {{ grounded: boolean, text: string }}
 */
export function groundedness({ accepted, terminal, text, sources, citations, searched, offered, notAttributed }) {
  const verified = new Set(citations.filter((citation) => citation.verdict === "verified").map(({ n }) => n));
  const unchecked = citations.filter((citation) => citation.verdict === "unchecked");
  const unverified = citations.filter((citation) => citation.verdict === "unverified").length;
  if (terminal?.type === "complete" && terminal.grounded) {
    const checked = [...verified, ...unchecked.map(({ n }) => n)];
    const cited = markersIn(text).flatMap(({ numbers }) => numbers.filter((n) => sources.has(n)));
    const rests = new Set(checked.length ? checked : cited); // an earlier server sends no citations of a repeated answer
    const notes = [
      unverified ? t("grounded.unverified", { count: unverified }) : "",
      unchecked.length ? t("grounded.unchecked", { count: unchecked.length }) : "",
    ];
    return { grounded: true, text: [t("grounded.in", { count: rests.size }), ...notes.filter(Boolean)].join(", ") };
  }
  if (searched === null && WITHOUT_PASSAGES.includes(accepted?.route ?? "")) return { grounded: false, text: "" };
  if (searched === null || offered) return { grounded: false, text: t("grounded.without") };
  const uncited = notAttributed.length ? "grounded.notAttributed" : "grounded.noneCited";
  return { grounded: false, text: t(unverified ? "grounded.noneVerified" : uncited) };
}

/**
 * What an answer took: names and values.
 *
 * @param {Metrics} metrics
 * @returns {[string, string][]}
 */
export function figures({ firstChunkMs, latencyMs, modelCalls, inputTokens, outputTokens, costUsd }) {
  const tokens = t("facts.tokens.value", { input: inputTokens ?? 0, output: outputTokens ?? 0 });
  return [
    [t("facts.first"), seconds(firstChunkMs)],
    [t("facts.total"), seconds(latencyMs)],
    [t("facts.tokens"), modelCalls === 0 ? t("facts.noCall") : tokens],
    [t("facts.cost"), modelCalls === 0 ? dollars(0) : costUsd === null ? t("facts.unknown") : dollars(costUsd)],
  ];
}

/**
 * The banner's words; "" when there is nothing to say.
 *
 * @param {Status} status
 * @param {boolean} online  whether the computer has a network
 * @param {boolean} [isSignedIn]
 * @returns {string}
 */
export function connectionNotice({ state, failures, everOpen, reason }, online, isSignedIn = false) {
  if (state === "refused") return sentence(said(reason));
  if (state === "open" || state === "idle" || state === "locked" || failures === 0) return "";
  if (!online) return t("connection.offline");
  if (everOpen) return t("connection.lost");
  // A browser is not told why a socket was refused.
  return t(isSignedIn ? "connection.account" : "connection.unreachable");
}

/**
 * @param {string} text
 * @returns {string} ending like a sentence
 */
function sentence(text) {
  return /[.!?…。]$/.test(text) ? text : `${text}.`;
}

/** @param {number | null} ms */
function seconds(ms) {
  if (ms === null) return t("facts.unknown");
  const digits = ms < 10_000 ? 2 : 1;
  return `${formatted(ms / 1000, { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
}

/** @param {number} ms  since the epoch */
function day(ms) {
  return formattedDate(new Date(ms), { day: "numeric", month: "long", year: "numeric" });
}

/** @param {number} usd */
function dollars(usd) {
  if (usd === 0) return "$0";
  return formatted(usd, { style: "currency", currency: "USD", maximumSignificantDigits: 2 });
}

/**
 * What was done to a profile: *Tamsin (character) was changed.*
 *
 * @param {Change} change
 * @returns {string}
 */
export function changeWords({ operation, kind, name }) {
  const id = known(`change.${operation}`) ? `change.${operation}` : "change.updated";
  return t(id, { name, kind: kindWords(kind) });
}

/**
 * What the user is asked to confirm.
 *
 * @param {Confirm} confirm
 * @returns {string}
 */
export function confirmWords({ operation, kind, name }) {
  return t(operation === "delete" ? "confirm.delete" : "confirm.remove", { name, kind: kindWords(kind) });
}

/**
 * A field before and after.
 *
 * @param {ChangedField} field
 * @returns {string}
 */
export function fieldWords({ field, before, after }) {
  if (before === null) return t("change.field.set", { field, after: after ?? "" });
  return after === null ? t("change.field.removed", { field, before }) : t("change.field.changed", { field, before, after });
}

/** @param {string} kind */
function kindWords(kind) {
  return kind.replaceAll("_", " ");
}
