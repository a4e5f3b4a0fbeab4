/** The one socket: kept, given up when it is dead, and opened again. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Connection } from "../../../../packages/client/src/connection.js";
import { Exchange } from "../../../../packages/client/src/exchange.js";
import { backoffMs } from "../../../../packages/client/src/timing.js";
import { ASK, Clock, FakeSocket, REQUEST, TIMING, wire } from "./support.mjs";

const PONG = JSON.stringify({ requestId: null, seq: 0, type: "pong" });
const ACCEPTED = wire(1, { type: "accepted", route: "rag", strategy: "rag" });
const COMPLETE = wire(2, { type: "complete", answeredBy: "rag" });

let clock;
let statuses;

beforeEach(() => {
  clock = new Clock();
  statuses = [];
  FakeSocket.all = [];
});

function start({ url = "ws://x/", socket = FakeSocket, open = true, ...options } = {}) {
  const connection = new Connection(url, {
    ...options,
    timing: TIMING,
    onChange: () => {},
    onStatus: (status) => statuses.push(status),
    random: () => 0.999,
    now: () => clock.now,
    timers: clock.timers,
    WebSocket: socket,
  });
  connection.start();
  if (open) FakeSocket.last.open();
  return connection;
}

function ask(connection) {
  const exchange = new Exchange(ASK, { timing: TIMING, random: () => 0 });
  connection.add(exchange);
  return exchange;
}

const state = () => statuses.at(-1).state;

test("it connects, and asks what was asked before", () => {
  const connection = start({ open: false });
  ask(connection);
  assert.equal(state(), "connecting");
  FakeSocket.last.open();
  assert.equal(state(), "open");
  assert.deepEqual(FakeSocket.last.sent, [ASK]);
});

test("it pings when nothing has passed for a while, and is content with any answer", () => {
  start();
  clock.pass(TIMING.pingMs);
  assert.deepEqual(FakeSocket.last.sent, [{ action: "ping" }]);
  FakeSocket.last.bring(PONG);
  clock.pass(TIMING.replyMs);
  assert.equal(state(), "open");
});

test("it gives up a connection that does not answer a ping, though it seems open", () => {
  start();
  clock.pass(TIMING.pingMs + TIMING.replyMs);
  assert.equal(FakeSocket.all[0].isClosed, true);
  clock.pass(TIMING.backoffBaseMs);
  assert.equal(FakeSocket.all.length, 2);
});

test("it gives up a connection that does not open", () => {
  start({ open: false });
  clock.pass(TIMING.openMs + TIMING.backoffBaseMs);
  assert.equal(FakeSocket.all.length, 2);
  assert.equal(statuses.at(-1).failures, 1);
});

test("after a sleep it finds out at once whether the connection is alive", () => {
  const connection = start();
  connection.attend(true);
  assert.deepEqual(FakeSocket.last.sent, [{ action: "ping" }]);
  clock.pass(TIMING.wakeMs + TIMING.backoffBaseMs);
  assert.equal(FakeSocket.all.length, 2);
});

test("it waits longer after each failure, up to a bound, and begins anew once something has come", () => {
  const connection = start();
  ask(connection);
  const waits = [];
  for (let i = 0; i < 5; i += 1) {
    FakeSocket.last.lose();
    const from = clock.now;
    const sockets = FakeSocket.all.length;
    while (FakeSocket.all.length === sockets) clock.pass(0.25);
    waits.push(clock.now - from);
  }
  assert.deepEqual(waits, [1, 2, 4, 4, 4]);
  FakeSocket.last.open();
  FakeSocket.last.bring(ACCEPTED);
  assert.equal(statuses.at(-1).failures, 0);
});

test("the waits are spread over the whole span", () => {
  assert.equal(backoffMs(TIMING, 3, () => 0), 0);
  assert.equal(backoffMs(TIMING, 3, () => 0.5), 2);
  assert.equal(backoffMs(TIMING, 50, () => 0.5), TIMING.backoffCapMs / 2);
});

test("a lost connection is resumed, and the status says until when it catches up", () => {
  const connection = start();
  ask(connection);
  FakeSocket.last.bring(ACCEPTED);
  FakeSocket.last.lose();
  assert.equal(state(), "waiting");
  clock.pass(TIMING.backoffBaseMs);
  FakeSocket.last.open();
  assert.deepEqual(FakeSocket.last.sent, [{ action: "resume", requestId: REQUEST, after: 1 }]);
  assert.equal(statuses.at(-1).catchingUp, true);
  FakeSocket.last.bring(COMPLETE);
  assert.equal(statuses.at(-1).catchingUp, false);
});

test("frames of a connection that was given up count no more", () => {
  const connection = start();
  const exchange = ask(connection);
  const [old] = FakeSocket.all;
  old.lose();
  old.bring(ACCEPTED);
  assert.equal(exchange.tail.applied, 0);
});

test("an asker who is not let in is not sent again until somebody wants it", () => {
  const connection = start();
  const exchange = ask(connection);
  FakeSocket.last.bring(
    JSON.stringify({ requestId: REQUEST, seq: 0, type: "error", code: "unauthorized", message: "No.", retryable: false }),
  );
  assert.deepEqual([state(), statuses.at(-1).reason], ["refused", "No."]);
  clock.pass(10 * TIMING.pingMs);
  assert.equal(FakeSocket.all.length, 1);
  assert.equal(exchange.ended, false);
  connection.retry();
  FakeSocket.last.open();
  assert.deepEqual(FakeSocket.last.sent, [ASK]);
});

test("without a token nothing is opened, and with one it is offered", () => {
  let protocols = null;
  const connection = start({ open: false, protocols: () => protocols });
  ask(connection);
  clock.pass(10 * TIMING.pingMs);
  assert.deepEqual([state(), FakeSocket.all.length], ["locked", 0]);
  protocols = ["cicada.v1", "cicada.bearer.a"];
  connection.authorized();
  assert.deepEqual(FakeSocket.last.protocols, protocols);
  FakeSocket.last.open();
  assert.deepEqual(FakeSocket.last.sent, [ASK]);
});

test("a new token replaces the connection, and the answer goes on", () => {
  let protocols = ["a"];
  const connection = start({ protocols: () => protocols });
  ask(connection);
  FakeSocket.last.bring(ACCEPTED);
  connection.authorized();
  assert.equal(FakeSocket.all.length, 1); // it is the same
  protocols = ["b"];
  connection.authorized();
  assert.deepEqual([FakeSocket.all[0].isClosed, FakeSocket.all.length], [true, 2]);
  FakeSocket.last.open();
  assert.deepEqual([FakeSocket.last.protocols, FakeSocket.last.sent], [["b"], [{ action: "resume", requestId: REQUEST, after: 1 }]]);
});

test("a user who is not accepted any more is told of, and a new token is tried", () => {
  let protocols = ["a"];
  const reasons = [];
  const connection = start({ protocols: () => protocols, onUnauthorized: (reason) => reasons.push(reason) });
  ask(connection);
  FakeSocket.last.bring(JSON.stringify({ requestId: REQUEST, seq: 0, type: "error", code: "unauthorized", message: "No." }));
  assert.deepEqual([reasons, state()], [["No."], "refused"]);
  protocols = ["b"];
  connection.authorized();
  FakeSocket.last.open();
  assert.deepEqual([state(), FakeSocket.last.sent], ["open", [ASK]]);
});

test("who signs out has no connection any more", () => {
  let protocols = ["a"];
  const connection = start({ protocols: () => protocols });
  protocols = null;
  connection.authorized();
  assert.deepEqual([state(), FakeSocket.last.isClosed, FakeSocket.all.length], ["locked", true, 1]);
});

test("an address that the browser does not open is said, and not tried again", () => {
  class Refusing {
    constructor() {
      throw new Error("mixed content");
    }
  }
  start({ socket: Refusing, open: false });
  assert.equal(state(), "refused");
  assert.match(statuses.at(-1).reason, /mixed content/);
});

test("a page that nobody looks at, with nothing open, is not reconnected until somebody does", () => {
  const connection = start();
  connection.attend(false);
  FakeSocket.last.lose();
  assert.equal(state(), "idle");
  clock.pass(10 * TIMING.pingMs);
  assert.equal(FakeSocket.all.length, 1);
  connection.attend(true);
  assert.equal(FakeSocket.all.length, 2);
});

test("a page that nobody looks at is reconnected while an answer is open", () => {
  const connection = start();
  connection.attend(false);
  ask(connection);
  FakeSocket.last.lose();
  clock.pass(TIMING.backoffBaseMs);
  assert.equal(FakeSocket.all.length, 2);
});

test("an old connection is replaced before it is cut, and nothing is called lost", () => {
  const connection = start();
  for (let passed = 0; passed < TIMING.retireMs; passed += 50) {
    clock.pass(50);
    if (FakeSocket.all.length === 1) FakeSocket.last.bring(PONG);
  }
  assert.equal(FakeSocket.all.length, 2);
  assert.ok(statuses.every(({ failures }) => failures === 0));
  FakeSocket.last.open();
  const exchange = ask(connection);
  FakeSocket.last.bring(ACCEPTED, COMPLETE);
  assert.equal(exchange.ended, true);
});

test("one request that finds the connection dead has it given up for all", () => {
  const connection = start();
  ask(connection);
  clock.pass(TIMING.replyMs + TIMING.backoffBaseMs);
  assert.equal(FakeSocket.all.length, 2);
});
