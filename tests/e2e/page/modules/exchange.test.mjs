/** What the page says about a request, and when; and a simulation of it over a bad wire. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Exchange } from "../../../../packages/client/src/exchange.js";
import { accepted, ASK, cancelled, chunk, complete, refused, REQUEST, resumed, seeded, TIMING } from "./support.mjs";

const resume = (after) => ({ action: "resume", requestId: REQUEST, after });
const CANCEL = { action: "cancel", requestId: REQUEST };

function fresh(known = false) {
  return new Exchange(ASK, { known, timing: TIMING, random: () => 0.5 });
}

/** One whose ask went out at 0. */
function asked() {
  const exchange = fresh();
  assert.deepEqual(exchange.connected(0), [ASK]);
  return exchange;
}

/** One that was accepted at 1. */
function running() {
  const exchange = asked();
  exchange.event(accepted(), 1);
  return exchange;
}

test("an ask whose acceptance is unknown is sent again with its id", () => {
  const exchange = asked();
  exchange.disconnected();
  assert.deepEqual(exchange.connected(5), [ASK]);
});

test("an accepted request is resumed after what was applied", () => {
  const exchange = running();
  exchange.event(chunk(2), 2);
  exchange.event(chunk(4), 2);
  exchange.disconnected();
  assert.deepEqual(exchange.connected(5), [resume(2)]);
});

test("a request from before a reload is resumed from the start", () => {
  assert.deepEqual(fresh(true).connected(0), [resume(0)]);
});

test("a missing event is waited for, then asked for, more and more patiently", () => {
  const exchange = running();
  exchange.event(chunk(3), 2);
  assert.equal(exchange.deadline, 3);
  assert.deepEqual(exchange.tick(2.5), []);
  assert.deepEqual(exchange.tick(3), [resume(1)]);
  exchange.resumed(resumed("live", 3), 4);
  assert.equal(exchange.deadline, 6);
});

test("an event that cannot be had ends the request in the end", () => {
  const exchange = running();
  exchange.event(chunk(3), 2);
  for (let now = 2; !exchange.ended; now = exchange.deadline) {
    if (exchange.tick(now).length) exchange.resumed(resumed("live", 3), now);
    assert.ok(now < 1000);
  }
  assert.equal(exchange.failure.code, "connection_lost");
});

test("silence is broken by a resume, so that the server takes up what it has lost", () => {
  const exchange = running();
  assert.deepEqual(exchange.tick(20), []);
  assert.deepEqual(exchange.tick(21), [resume(1)]);
});

test("a connection that brings no reply is given up", () => {
  const exchange = asked();
  exchange.tick(10);
  assert.equal(exchange.stalled, true);
});

test("a resume whose replay was lost is noticed by its reply", () => {
  const exchange = running();
  exchange.disconnected();
  exchange.connected(2);
  exchange.resumed(resumed("live", 4), 3);
  assert.equal(exchange.catchingUp, true);
  assert.deepEqual(exchange.tick(4), [resume(1)]);
});

test("the reply says finished before the end has come", () => {
  const exchange = running();
  exchange.disconnected();
  exchange.connected(2);
  exchange.resumed(resumed("finished", 1), 3);
  assert.equal(exchange.tail.behind, true);
});

for (const [outcome, code] of [["unknown", "request_unknown"], ["expired", "request_expired"]]) {
  test(`a request that is ${outcome} has failed`, () => {
    const exchange = fresh(true);
    exchange.connected(0);
    exchange.resumed(resumed(outcome), 1);
    assert.equal(exchange.failure.code, code);
    assert.equal(exchange.deadline, Infinity);
  });
}

test("a refusal that may pass is tried again after a while, and not for ever", () => {
  const exchange = asked();
  for (let i = 0; i < TIMING.attempts; i += 1) {
    exchange.refused(refused("delivery_unavailable", { retryable: true }), 1);
    assert.equal(exchange.ended, false);
    assert.deepEqual(exchange.tick(exchange.deadline), [ASK]);
  }
  exchange.refused(refused("delivery_unavailable", { retryable: true }), 1);
  assert.equal(exchange.failure.code, "delivery_unavailable");
});

test("a limit is not tried again: its time frees it, and the asker decides", () => {
  const exchange = asked();
  const limit = { account: "user", limit: "requestsMinute", most: 10, left: 0, resetsAtMs: 60_000 };
  exchange.refused(refused("limit_reached", { retryable: true, limit }), 1);
  assert.deepEqual([exchange.failure.code, exchange.failure.limit], ["limit_reached", { ...limit, group: "" }]);
  assert.equal(exchange.deadline, Infinity);
});

test("any other refusal is final", () => {
  const exchange = asked();
  exchange.refused(refused("invalid_message"), 1);
  assert.equal(exchange.failure.message, "no: invalid_message");
});

test("a fault of the gateway concerns only those who wait for a reply", () => {
  const [waiting, other] = [asked(), running()];
  for (const exchange of [waiting, other]) exchange.fault("Internal server error", 2);
  assert.deepEqual(waiting.tick(waiting.deadline), [ASK]);
  assert.equal(other.deadline, 21);
});

test("a cancel waits until the server is known to have the request", () => {
  const exchange = asked();
  assert.deepEqual(exchange.cancel(1), []);
  assert.deepEqual(exchange.event(accepted(), 2), [CANCEL]);
  assert.equal(exchange.cancelling, true);
  exchange.event(cancelled(2), 3);
  assert.equal(exchange.tail.terminal.code, "cancelled");
});

test("a cancel that was never heard is said again", () => {
  const exchange = running();
  assert.deepEqual(exchange.cancel(2), [CANCEL]);
  exchange.disconnected();
  assert.deepEqual(exchange.connected(3), [CANCEL]);
});

test("a question that was never sent needs no server to be cancelled", () => {
  const exchange = fresh();
  exchange.cancel(0);
  assert.equal(exchange.tail.terminal.code, "cancelled");
});

test("a cancelled question that the server never had is cancelled", () => {
  const exchange = asked();
  exchange.cancel(1);
  exchange.disconnected();
  assert.deepEqual(exchange.connected(2), [CANCEL]);
  exchange.refused(refused("request_unknown"), 3);
  assert.equal(exchange.tail.terminal.code, "cancelled");
});

test("over a wire that loses, doubles, reorders and breaks, the answer is whole", () => {
  for (let seed = 0; seed < 300; seed += 1) simulate(seeded(seed), seed);
});

/** A server that keeps the contract, a wire that keeps nothing, and the page's side between them. */
function simulate(random, seed) {
  const log = [accepted(), ...Array.from({ length: 15 }, (_, i) => chunk(i + 2)), complete(17)];
  const exchange = new Exchange(ASK, { timing: { ...TIMING, attempts: 60 }, random });
  let [held, subscribed, connected, now] = [0, false, false, 0];
  let inFlight = [];
  const push = (...frames) => inFlight.push(...frames.filter(() => random() > 0.15));
  const say = (actions) => {
    for (const action of actions) {
      if (random() < 0.1) continue; // lost on its way
      if (action.action === "ask") held = Math.max(held, 1);
      if (held === 0) continue;
      subscribed = true;
      const after = action.action === "resume" ? action.after : 0;
      push(...log.slice(after, held));
      if (action.action === "resume") push(resumed(held === log.length ? "finished" : "live", held));
    }
  };
  for (let step = 0; step < 5000 && !exchange.ended; step += 1, now += 0.5) {
    if (!connected) {
      connected = true;
      say(exchange.connected(now));
    } else if (random() < 0.03 || exchange.stalled) {
      connected = subscribed = false;
      inFlight = [];
      exchange.disconnected();
    }
    if (held > 0 && held < log.length && random() < 0.3) {
      held += 1;
      if (subscribed) push(log[held - 1]);
    }
    while (inFlight.length && random() < 0.7) {
      const [one] = inFlight.splice(Math.floor(random() * Math.min(3, inFlight.length)), 1);
      if (random() < 0.1) inFlight.push(one);
      if (one.kind === "event") say(exchange.event(one, now));
      else say(exchange.resumed(one, now));
    }
    if (connected) say(exchange.tick(now));
  }
  assert.equal(exchange.failure, null, `seed ${seed}`);
  assert.equal(exchange.tail.terminal?.type, "complete", `seed ${seed}`);
  assert.equal(exchange.tail.text, log.slice(1, -1).map((one) => one.event.content).join(""), `seed ${seed}`);
}

test("connections that break at once bring no storm of resumes", () => {
  const exchange = running();
  exchange.disconnected();
  assert.deepEqual(exchange.connected(5), [resume(1)]);
  exchange.event(chunk(2), 5.1);
  exchange.disconnected();
  assert.deepEqual(exchange.connected(5.2), []);
  assert.equal(exchange.catchingUp, true);
  assert.equal(exchange.deadline, 5 + TIMING.gapMs);
  assert.deepEqual(exchange.tick(5 + TIMING.gapMs), [resume(2)]);
});

test("a resume that is refused is not repeated within the pause", () => {
  const exchange = running();
  exchange.disconnected();
  exchange.connected(5);
  exchange.refused({ kind: "refused", requestId: REQUEST, code: "busy", message: "m", retryable: true }, 5.1);
  assert.ok(exchange.deadline >= 5 + TIMING.gapMs);
});

test("a cancel waits for no resume", () => {
  const exchange = running();
  exchange.disconnected();
  exchange.connected(5);
  exchange.disconnected();
  assert.deepEqual(exchange.connected(5.2), []);
  assert.deepEqual(exchange.cancel(5.3), [CANCEL]);
  assert.deepEqual(exchange.tick(5 + TIMING.gapMs), []);
});
