/** A burst that the server cannot take: every question gets an outcome, under the id that it was asked with. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection } from "../../../../packages/client/src/connection.js";
import { Exchange } from "../../../../packages/client/src/exchange.js";
import { uuid } from "../../../../packages/client/src/protocol.js";
import { DEFAULT_TIMING } from "../../../../packages/client/src/timing.js";
import { Clock, FakeSocket, seeded, wire } from "./support.mjs";

const QUESTIONS = 200;
const FAULT = JSON.stringify({ message: "Internal server error", connectionId: "c", requestId: "of-the-gateway" });

function burst(takes, roundMs = 20) {
  const clock = new Clock();
  FakeSocket.all = [];
  const connection = new Connection("ws://x/", {
    timing: DEFAULT_TIMING,
    onChange: () => {},
    onStatus: () => {},
    random: seeded(7),
    now: () => clock.now,
    timers: clock.timers,
    WebSocket: FakeSocket,
  });
  connection.start();
  FakeSocket.last.open();
  const exchanges = Array.from({ length: QUESTIONS }, () => {
    const ask = { action: "ask", requestId: uuid(), query: "Who rang?" };
    const exchange = new Exchange(ask, { timing: DEFAULT_TIMING, random: seeded(ask.requestId.charCodeAt(0)) });
    connection.add(exchange);
    return exchange;
  });
  const taken = new Map();
  let answered = 0;
  for (let round = 0; round < 4_000 && exchanges.some(({ ended }) => !ended); round += 1) {
    const asked = FakeSocket.last.sent.slice(answered).filter(({ action }) => action === "ask");
    answered = FakeSocket.last.sent.length;
    asked.forEach(({ requestId }, place) => {
      if (place >= takes) return FakeSocket.last.bring(FAULT);
      taken.set(requestId, (taken.get(requestId) ?? 0) + 1);
      FakeSocket.last.bring(
        wire(1, { type: "accepted", route: "rag", strategy: "rag" }, requestId),
        wire(2, { type: "complete", answeredBy: "rag" }, requestId),
      );
    });
    clock.pass(roundMs);
  }
  return { exchanges, taken };
}

test("each of 200 questions is answered though most frames are not taken at first", () => {
  const { exchanges, taken } = burst(5);
  assert.deepEqual(new Set(exchanges.map(({ tail }) => tail.terminal?.type)), new Set(["complete"]));
  assert.equal(taken.size, QUESTIONS);
});

test("a server that takes longer than any one question would wait is waited for while it gets on", () => {
  const { exchanges, taken } = burst(2, 500);
  assert.deepEqual(new Set(exchanges.map(({ tail }) => tail.terminal?.type)), new Set(["complete"]));
  assert.equal(taken.size, QUESTIONS);
});

test("what is never taken is refused by name", () => {
  const { exchanges } = burst(0);
  assert.deepEqual(new Set(exchanges.map(({ failure }) => failure?.code)), new Set(["gateway_fault"]));
});
