/** How long the page waits, and how often it tries. */

/**
 * Times in milliseconds. API Gateway cuts a socket after 10 minutes without a message, and every one after 2 hours.
 *
 * @typedef {object} Timing
 * @property {number} openMs  for opening a connection
 * @property {number} replyMs  for the reply to a frame; a connection that brings nothing at all meanwhile is given up
 * @property {number} silenceMs  without an event of an open request, until it is resumed: the server recovers lost
 *   requests on a resume
 * @property {number} gapMs  for a missing event to come by itself, until the request is resumed; doubled each time that
 *   does not help. Never less lies between two resumes of a request: each has the server read and send its log anew
 * @property {number} pingMs  without a message in either direction, until a `ping` is sent
 * @property {number} wakeMs  for the reply to the `ping` that checks a connection after the computer may have slept
 * @property {number} retireMs  age at which a connection without open requests is replaced, before it is cut
 * @property {number} retireGraceMs  for open requests to end, past `retireMs`, until they are moved too
 * @property {number} stableMs  age at which a connection counts as a good one: earlier failures are forgotten
 * @property {number} backoffBaseMs
 * @property {number} backoffCapMs
 * @property {number} attempts  failures of one request in a row, without progress between them, that are borne
 */

/** @type {Timing} */
export const DEFAULT_TIMING = {
  openMs: 10_000,
  replyMs: 15_000,
  silenceMs: 20_000,
  gapMs: 1_000,
  pingMs: 240_000,
  wakeMs: 5_000,
  retireMs: 6_600_000,
  retireGraceMs: 300_000,
  stableMs: 30_000,
  backoffBaseMs: 250,
  backoffCapMs: 20_000,
  attempts: 8,
};

/**
 * How long to wait after the `failures`-th failure in a row: exponential, with full jitter.
 *
 * Source: M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
 *
 * @param {Timing} timing
 * @param {number} failures  1 or more
 * @param {() => number} random  in [0, 1)
 * @returns {number} milliseconds
 */
export function backoffMs(timing, failures, random) {
  return random() * Math.min(timing.backoffCapMs, timing.backoffBaseMs * 2 ** (failures - 1));
}
