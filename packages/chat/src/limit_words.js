/** Messages about limits on use. */

import { formatted, formattedDate, known, t } from "./i18n.js";

/**
 * @import { Limit } from "../../client/src/protocol.js"
 */

/** What is left of a limit is shown below this share of it. */
const NEARLY = 0.2;

/**
 * Which limit is reached, what is left of it, and when the user can ask again.
 *
 * @param {Limit} limit
 * @param {number} [now]  milliseconds since the epoch
 * @returns {string}
 */
export function limitNotice(limit, now = Date.now()) {
  if (limit.limit === "stopped") return t("limit.stopped");
  const whose = limit.account === "user" || limit.account === "group" ? limit.account : "all";
  const reached = t(`limit.reached.${whose}`, { what: whatOf(limit), group: limit.group ?? "" });
  if (limit.most === 0) return reached;
  if (limit.limit === "requestsOpen") return `${reached} ${t("limit.open")}`;
  const left = limit.left ? ` ${t("limit.tooLittle", { left: quantity(limit, limit.left) })}` : "";
  const again = limit.resetsAtMs === null ? "" : ` ${t("limit.again", { when: moment(limit.resetsAtMs, now, "when") })}`;
  return reached + left + again;
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
    if (!known(`limit.kind.${limit.limit}`) || !most || left === null || left >= most * NEARLY) return [];
    if (resetsAtMs === null || resetsAtMs <= now) return [];
    const values = { left: quantity(limit, left), what: whatOf(limit), when: moment(resetsAtMs, now, "until") };
    return [account === "group" ? t("limit.left.group", { ...values, group: group ?? "" }) : t("limit.left", values)];
  });
}

/**
 * A limit in words: *10 questions a minute*.
 *
 * @param {Limit} limit
 * @returns {string}
 */
function whatOf(limit) {
  if (limit.most === null) return t(`limit.kind.${limit.limit}`);
  if (!known(`limit.of.${limit.limit}`)) return `${quantity(limit, limit.most)} ${limit.limit}`;
  return t(`limit.of.${limit.limit}`, { most: quantity(limit, limit.most), count: limit.most });
}

/**
 * @param {Limit} limit
 * @param {number} value
 */
function quantity({ limit }, value) {
  if (!limit.startsWith("usd")) return formatted(Math.floor(value));
  return formatted(Math.floor(value * 100 + 1e-6) / 100, { style: "currency", currency: "USD" });
}

/**
 * A time by the user's own clock: *at 14:05*, *tomorrow at 01:00*, *on December 1 at 01:00*. Never too early.
 *
 * @param {number} ms  since the epoch
 * @param {number} now
 * @param {"when" | "until"} form
 */
function moment(ms, now, form) {
  const when = new Date(Math.ceil(ms / 60_000) * 60_000);
  const time = formattedDate(when, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const values = { date: formattedDate(when, { day: "numeric", month: "long" }), time };
  const day = dayOf(when, new Date(now));
  return form === "when" ? t(`when.${day}`, values) : t(`until.${day}`, values);
}

/**
 * @param {Date} when
 * @param {Date} now
 * @returns {"today" | "tomorrow" | "date"}
 */
function dayOf(when, now) {
  if (when.toDateString() === now.toDateString()) return "today";
  const tomorrow = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
  return when.toDateString() === tomorrow.toDateString() ? "tomorrow" : "date";
}
