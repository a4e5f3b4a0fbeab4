/** Messages about limits on use. */

/**
 * @import { Limit } from "../../client/src/protocol.js"
 */

/** What follows the number of each limit. @type {Record<string, string>} */
const UNITS = {
  requestsMinute: "questions a minute",
  requestsOpen: "questions at a time",
  tokensDay: "tokens a day",
  tokensMonth: "tokens a month",
  usdDay: "a day",
  usdMonth: "a month",
};
/** From how much of a limit on what is left of it is told. */
const NEARLY = 0.2;

/**
 * Which limit is reached, what is left of it, and when the asker can go on.
 *
 * @param {Limit} limit
 * @param {number} [now]  milliseconds since the epoch
 * @returns {string}
 */
export function limitNotice(limit, now = Date.now()) {
  if (limit.limit === "stopped") return "No question is taken at the moment: an administrator has stopped answering.";
  const unit = UNITS[limit.limit] ?? limit.limit;
  const units = limit.most === 1 ? unit.replace("questions", "question") : unit;
  const what = limit.most === null ? `${isMoney(limit) ? "cost " : ""}${unit}` : `${quantity(limit, limit.most)} ${units}`;
  const reached = {
    user: `Your limit of ${what} is reached.`,
    group: `The limit of the group ${limit.group}, ${what}, is reached.`,
  }[limit.account] ?? `The limit on ${what} of all users together is reached.`;
  if (limit.most === 0) return reached;
  if (limit.limit === "requestsOpen") return `${reached} Ask again when an answer has ended.`;
  const left = limit.left ? ` ${quantity(limit, limit.left)} left: too little for a question.` : "";
  return `${reached}${left}${limit.resetsAtMs === null ? "" : ` You can ask again ${moment(limit.resetsAtMs, now)}.`}`;
}

/**
 * What is left of each limit that is nearly reached, a sentence each.
 *
 * @param {Limit[]} limits
 * @param {number} [now]  milliseconds since the epoch
 * @returns {string[]}
 */
export function leftNotices(limits, now = Date.now()) {
  return limits.flatMap((limit) => {
    const { account, group, most, left, resetsAtMs } = limit;
    const unit = UNITS[limit.limit];
    if (!unit || !most || left === null || left >= most * NEARLY || resetsAtMs === null || resetsAtMs <= now) return [];
    const whose = account === "group" ? ` for the group ${group}` : "";
    return [`${quantity(limit, left)} of ${quantity(limit, most)} ${unit} left${whose} until ${moment(resetsAtMs, now, "")}.`];
  });
}

/** @param {Limit} limit */
function isMoney({ limit }) {
  return limit.startsWith("usd");
}

/**
 * @param {Limit} limit
 * @param {number} value
 */
function quantity(limit, value) {
  if (!isMoney(limit)) return Math.floor(value).toLocaleString("en");
  return (Math.floor(value * 100 + 1e-6) / 100).toLocaleString("en", { style: "currency", currency: "USD" });
}

/**
 * A time of the asker's own clock: *at 14:05*, *tomorrow at 01:00*, *on 1 December at 01:00*. Never too early.
 *
 * @param {number} ms  since the epoch
 * @param {number} now
 * @param {string} [at]  before a time of today
 */
function moment(ms, now, at = "at ") {
  const when = new Date(Math.ceil(ms / 60_000) * 60_000);
  const time = when.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const today = new Date(now);
  if (when.toDateString() === today.toDateString()) return `${at}${time}`;
  today.setDate(today.getDate() + 1);
  if (when.toDateString() === today.toDateString()) return `tomorrow at ${time}`;
  return `${at && "on "}${when.toLocaleDateString("en", { day: "numeric", month: "long" })} at ${time}`;
}
