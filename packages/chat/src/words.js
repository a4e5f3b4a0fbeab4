/** What the page says of a request, in words for the asker. */

import { limitNotice } from "./limit_words.js";
import { WITHHELD } from "../../client/src/tail.js";

/**
 * @import { Exchange } from "../../client/src/exchange.js"
 * @import { Change, ChangedField, Confirm, Failed, Fallback, Limit, Metrics, Reason, Reused, Strategy } from "../../client/src/protocol.js"
 * @import { Status } from "../../client/src/connection.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 *
 * @typedef {"waiting" | "accepted" | "searching" | "reading" | "writing" | "complete" | "cancelled" | "limited" | "blocked" | "failed"} Phase
 */

/** @type {Record<string, { name: string, doing: string, next: string }>} */
const STRATEGIES = {
  hybrid: {
    name: "Search and earlier answers",
    doing: "Searching the passages and earlier answers…",
    next: "Searching the passages and earlier answers instead.",
  },
  rag: { name: "Search", doing: "Searching the passages…", next: "Searching the passages instead." },
  cag: { name: "Earlier answers", doing: "Looking in earlier answers…", next: "Looking in earlier answers instead." },
  direct: { name: "Direct answer", doing: "Answering without a search…", next: "Answering without sources instead." },
  profile_agent: { name: "Profile agent", doing: "Reading the profile…", next: "Reading the profile instead." },
  theory_agent: { name: "Theory agent", doing: "Weighing the evidence…", next: "Weighing the evidence instead." },
};

/** @type {Record<string, string>} */
const ROUTES = {
  hybrid: "A question with several sides",
  rag: "A question for the passages",
  cag: "A question that may have been asked before",
  direct: "Small talk",
  profile_agent: "A question about a profile",
  theory_agent: "A question about a theory",
};

/**
 * @param {Strategy} strategy
 * @returns {string}
 */
export function strategyName(strategy) {
  return STRATEGIES[strategy]?.name ?? strategy;
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
  if (!exchange.ended && connection === "locked") return "Waiting for your sign-in…";
  if (!exchange.ended && connection !== "open") return "Waiting for the connection…";
  if (exchange.cancelling) return "Stopping…";
  switch (phaseOf(exchange)) {
    case "waiting":
      return "Sending the question…";
    case "accepted":
      return `${routeName(tail)}. Starting…`;
    case "searching":
      return STRATEGIES[tail.strategy ?? ""]?.doing ?? "Working on the answer…";
    case "reading":
      return readingOf(tail);
    case "writing":
      return tail.citations.length ? "Checking the citations…" : "Writing the answer…";
    case "complete":
      return "Complete";
    case "limited":
      return limitNotice(/** @type {Limit} */ (failure?.limit));
    case "blocked":
      return sentence(/** @type {Failed} */ (tail.terminal).message || "The answer was withheld.");
    case "cancelled":
      return tail.text ? "Stopped. What is written so far is not the whole answer." : "Stopped.";
    case "failed":
      return tail.text ? "Failed. What is written so far is not the whole answer." : "Failed.";
  }
}

/** @param {RequestTail} tail */
function readingOf({ sources, searched, reused, offered }) {
  if (offered) return STRATEGIES.direct.doing;
  if (reused?.whole) return "Giving an earlier answer again…";
  const found = counted(sources.size, "passage");
  return searched ? `Reading ${found} of ${grouped(searched)} searched…` : `Reading ${found}…`;
}

/**
 * What the classifier has made of the question.
 *
 * @param {RequestTail} tail
 * @returns {string}
 */
export function routeName(tail) {
  const route = tail.accepted?.route ?? "";
  return ROUTES[route] ?? route;
}

/**
 * Why one strategy was given up, and which follows.
 *
 * @param {Fallback} fallback
 * @returns {string}
 */
export function fallbackNotice({ from, to, reason }) {
  const next = from === to ? "It begins anew." : (STRATEGIES[to]?.next ?? `Trying ${strategyName(to)} instead.`);
  return `${strategyName(from)} did not work: ${sentence(reason)} ${next}`;
}

/**
 * What an answer owes to an earlier one, up to the question that was asked then.
 *
 * @param {Reused} reused
 * @returns {string}
 */
export function reusedNotice({ whole, answeredAtMs }) {
  const when = answeredAtMs === null ? "" : day(answeredAtMs);
  if (whole) return `Answered before${when && `, on ${when}`}, for:`;
  return `Written from what was found${when && ` on ${when}`} for an earlier question:`;
}

/**
 * What the list of sources is called, with how many of them are cited.
 *
 * @param {RequestTail} tail
 * @param {number} cited
 * @returns {string}
 */
export function sourcesTitle({ sources, offered, notAttributed }, cited) {
  if (notAttributed.length) return `${counted(sources.size, "source")}, not attributed`;
  if (offered) return `${counted(sources.size, "passage")} found before`;
  const found = sources.size ? counted(sources.size, "source") : "No source found";
  return cited ? `${found}, ${cited} cited` : found;
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
    if (kind === "entity") return `names ${name}${matched && !alike(matched, name) ? ` (“${matched}”)` : ""}`;
    if (kind === "intention") return `for ${name.replaceAll("_", " ")}`;
    return kind === "tool" ? `by ${name.replaceAll("_", " ")}` : "";
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

/** What is said of sources that the answer does not cite by any marker. */
export const NOT_ATTRIBUTED = "The answer does not say which of these it rests on.";

/** What is said of sources that are only offered. */
export const OFFERED = "A search had found these before it failed. The answer does not rest on them.";

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
  return others.length ? `${name}, after ${others.join(", ")}` : name;
}

/**
 * Why there is no answer; "" if nothing has failed, or the status says it.
 *
 * @param {Exchange} exchange
 * @returns {string}
 */
export function failureNotice({ tail, failure }) {
  if (failure?.limit) return "";
  if (failure) return sentence(failure.message || "The question was refused.");
  if (tail.terminal?.type !== "error" || tail.terminal.code in ENDS) return "";
  const { message, failed } = tail.terminal;
  const others = failed.filter(({ reason }) => reason !== message); // the strategy that ended it says the same
  const tried = others.map((one) => `${strategyName(one.strategy)}: ${sentence(one.reason)}`);
  return [sentence(message || "There is no answer."), ...tried].join(" ");
}

/**
 * Whether an answer rests on passages, in words.
 *
 * @param {RequestTail} tail  complete
 * @returns {{ grounded: boolean, text: string }}
 */
export function groundedness({ terminal, citations, searched, offered, notAttributed }) {
  const verified = new Set(citations.filter((citation) => citation.verdict === "verified").map(({ n }) => n));
  const unchecked = citations.filter((citation) => citation.verdict === "unchecked");
  const unverified = citations.filter((citation) => citation.verdict === "unverified").length;
  if (terminal?.type === "complete" && terminal.grounded) {
    const rests = new Set([...verified, ...unchecked.map(({ n }) => n)]);
    const notes = [
      unverified ? `${counted(unverified, "citation")} unverified` : "",
      unchecked.length ? `${unchecked.length} unchecked` : "",
    ];
    return { grounded: true, text: [`Grounded in ${counted(rests.size, "passage")}`, ...notes.filter(Boolean)].join(", ") };
  }
  if (searched === null || offered) return { grounded: false, text: "Not grounded: written without passages" };
  const uncited = notAttributed.length ? "its sources are not attributed" : "no passage is cited";
  const why = unverified ? "no citation could be verified" : uncited;
  return { grounded: false, text: `Not grounded: ${why}` };
}

/**
 * What an answer took: names and values.
 *
 * @param {Metrics} metrics
 * @returns {[string, string][]}
 */
export function figures({ firstChunkMs, latencyMs, modelCalls, inputTokens, outputTokens, costUsd }) {
  const tokens = `${grouped(inputTokens ?? 0)} in, ${grouped(outputTokens ?? 0)} out`;
  return [
    ["First text", seconds(firstChunkMs)],
    ["Total", seconds(latencyMs)],
    ["Tokens", modelCalls === 0 ? "no model call" : tokens],
    ["Cost", modelCalls === 0 ? dollars(0) : costUsd === null ? "not known" : dollars(costUsd)],
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
  if (state === "refused") return sentence(reason);
  if (state === "open" || state === "idle" || state === "locked" || failures === 0) return "";
  if (!online) return "You are offline. What is being answered goes on, and is caught up with later.";
  if (everOpen) return "Connection lost, reconnecting…";
  // A browser is not told why a socket was refused.
  if (isSignedIn) return "The server cannot be reached, or does not accept your account. Trying again…";
  return "The server cannot be reached. Trying again…";
}

/**
 * @param {number} many
 * @param {string} noun  whose plural ends in s
 * @returns {string}
 */
export function counted(many, noun) {
  return `${grouped(many)} ${noun}${many === 1 ? "" : "s"}`;
}

/**
 * @param {string} text
 * @returns {string} ending like a sentence
 */
function sentence(text) {
  return /[.!?…。]$/.test(text) ? text : `${text}.`;
}

/** @param {number} value */
function grouped(value) {
  return value.toLocaleString("en");
}

/** @param {number | null} ms */
function seconds(ms) {
  if (ms === null) return "not known";
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** @param {number} ms  since the epoch */
function day(ms) {
  return new Date(ms).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });
}

/** @param {number} usd */
function dollars(usd) {
  if (usd === 0) return "$0";
  return usd.toLocaleString("en", { style: "currency", currency: "USD", maximumSignificantDigits: 2 });
}

const DONE = { created: "created", updated: "changed", undone: "restored", deleted: "deleted" };

/**
 * What was done to a profile: *Tamsin (character) was changed.*
 *
 * @param {Change} change
 * @returns {string}
 */
export function changeWords({ operation, kind, name }) {
  const done = DONE[/** @type {keyof typeof DONE} */ (operation)] ?? "changed";
  return `${name} (${kindWords(kind)}) was ${done}.`;
}

/**
 * What the asker is asked to confirm.
 *
 * @param {Confirm} confirm
 * @returns {string}
 */
export function confirmWords({ operation, kind, name }) {
  const what = `${name} (${kindWords(kind)})`;
  return operation === "delete" ? `Delete ${what} with its history?` : `Remove from ${what}?`;
}

/**
 * A field before and after.
 *
 * @param {ChangedField} field
 * @returns {string}
 */
export function fieldWords({ field, before, after }) {
  if (before === null) return `${field}: “${after ?? ""}”`;
  return after === null ? `${field}: “${before}”, removed` : `${field}: “${before}” → “${after}”`;
}

/** @param {string} kind */
function kindWords(kind) {
  return kind.replaceAll("_", " ");
}
