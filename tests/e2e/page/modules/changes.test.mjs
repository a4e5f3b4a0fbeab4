/** Changes of profiles on the page: receipts stay, confirmations and undos are sent until they are answered. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Connection } from "../../../../packages/client/src/connection.js";
import { parseFrame } from "../../../../packages/client/src/protocol.js";
import { RequestTail } from "../../../../packages/client/src/tail.js";
import { changeWords, confirmWords, fieldWords } from "../../../../packages/chat/src/words.js";
import { accepted, chunk, Clock, FakeSocket, frame, REQUEST, TIMING } from "./support.mjs";

const ID = "5d0c3b1e9f7a24680bce";
const CHANGE = { operation: "updated", id: ID, kind: "character", name: "Tamsin", version: 2, undoable: true };
const FIELDS = [{ field: "hair", before: "red", after: "black" }];
const CONFIRM = { action: "confirm", requestId: REQUEST, confirmationId: "0".repeat(32), accept: true };
const UNDO_ID = "0b8f6c1e-52a7-4d0e-9c3b-7f1d2e3a4b5c";
const UNDO = { action: "profile", requestId: UNDO_ID, operation: "undo", id: ID, version: 2 };

let clock;

beforeEach(() => {
  clock = new Clock();
  FakeSocket.all = [];
});

function start() {
  const connection = new Connection("ws://x/", {
    timing: TIMING,
    onChange: () => {},
    onStatus: () => {},
    random: () => 0.999,
    now: () => clock.now,
    timers: clock.timers,
    WebSocket: FakeSocket,
  });
  connection.start();
  FakeSocket.last.open();
  return connection;
}

const reply = (fields) => FakeSocket.last.bring(JSON.stringify({ requestId: REQUEST, seq: 0, ...fields }));
const sent = () => FakeSocket.last.sent;

test("a receipt stays when its attempt is given up, and is shown once", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(chunk(2, "I noted it."));
  tail.feed(frame(3, { type: "receipt", attempt: 1, change: { ...CHANGE, fields: FIELDS } }));
  tail.feed(frame(4, { type: "fallback", from: "profile_agent", to: "rag", code: "x", reason: "x" }));
  tail.feed(frame(5, { type: "receipt", attempt: 2, change: { ...CHANGE, fields: FIELDS } }));
  assert.equal(tail.text, "");
  assert.equal(tail.receipts.size, 1);
  const [change] = tail.receipts.values();
  assert.equal(changeWords(change), "Tamsin (character) was changed.");
  assert.deepEqual(change.fields.map(fieldWords), ["hair: “red” → “black”"]);
});

test("a confirmation is asked for in words, and stays", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  const asks = { type: "confirm", attempt: 1, confirmationId: "0".repeat(32), operation: "delete", kind: "fragment_group" };
  tail.feed(frame(2, { ...asks, name: "Keys\u202e", version: 1, fields: [], expiresAtMs: 9 }));
  tail.feed(frame(3, { type: "fallback", from: "profile_agent", to: "rag", code: "x", reason: "x" }));
  const [confirm] = tail.confirmations.values();
  assert.equal(confirmWords(confirm), "Delete Keys (fragment group) with its history?");
});

test("a confirmation is sent once and answered", async () => {
  const connection = start();
  const done = connection.call(CONFIRM);
  assert.deepEqual(sent(), [CONFIRM]);
  reply({ type: "confirmed", confirmationId: CONFIRM.confirmationId, outcome: "done" });
  assert.equal((await done).outcome, "done");
});

test("two confirmations of one answer are each answered", async () => {
  const connection = start();
  const other = { ...CONFIRM, confirmationId: "1".repeat(32), accept: false };
  const both = [connection.call(CONFIRM), connection.call(other)];
  assert.deepEqual(sent(), [CONFIRM, other]);
  reply({ type: "confirmed", confirmationId: other.confirmationId, outcome: "declined" });
  reply({ type: "confirmed", confirmationId: CONFIRM.confirmationId, outcome: "done" });
  assert.deepEqual((await Promise.all(both)).map(({ outcome }) => outcome), ["done", "declined"]);
});

test("a burst of the gateway's failures does not keep it from being sent again", () => {
  const connection = start();
  connection.call(CONFIRM);
  for (let n = 0; n < 20; n += 1) {
    FakeSocket.last.bring(JSON.stringify({ message: "Internal server error", connectionId: "c", requestId: "g" }));
    clock.pass(TIMING.backoffBaseMs / 4);
  }
  assert.ok(sent().length > 2);
});

test("it is sent again when no reply comes, and on a new connection", async () => {
  const connection = start();
  const done = connection.call(UNDO);
  clock.pass(TIMING.replyMs);
  assert.equal(sent().length, 2);
  FakeSocket.last.lose();
  clock.pass(TIMING.backoffCapMs);
  FakeSocket.last.open();
  assert.deepEqual(sent(), [UNDO]);
  reply({ type: "profile", requestId: UNDO_ID });
  assert.equal((await done).kind, "profile");
});

test("a refusal that may pass is tried again, another is told", async () => {
  const connection = start();
  const done = connection.call(UNDO);
  reply({ type: "error", requestId: UNDO_ID, code: "profiles_unavailable", message: "Later.", retryable: true });
  clock.pass(TIMING.backoffCapMs);
  assert.equal(sent().length, 2);
  reply({ type: "error", requestId: UNDO_ID, code: "profile_conflict", message: "It was changed.", retryable: true });
  assert.equal((await done).message, "It was changed.");
});

test("it is given up after some tries, and says so", async () => {
  const connection = start();
  const done = connection.call(UNDO);
  for (let n = 0; n <= TIMING.attempts + 1; n += 1) clock.pass(TIMING.replyMs);
  assert.equal((await done).code, "no_reply");
});

test("what the gateway could not handle is sent again", () => {
  const connection = start();
  connection.call(CONFIRM);
  FakeSocket.last.bring(JSON.stringify({ message: "Internal server error", connectionId: "c", requestId: "g" }));
  clock.pass(TIMING.backoffCapMs);
  assert.equal(sent().length, 2);
});

test("a change that cannot be read takes its place in the log all the same", () => {
  const read = parseFrame(JSON.stringify({ requestId: REQUEST, seq: 3, type: "receipt", attempt: 1, change: 7 }));
  assert.equal(read.event.type, "unknown");
});
