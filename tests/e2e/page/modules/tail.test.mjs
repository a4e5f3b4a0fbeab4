/** The page's tail of a request: whatever the wire does, it applies exactly the log. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { parseFrame } from "../../../../packages/client/src/protocol.js";
import { RequestTail } from "../../../../packages/client/src/tail.js";
import { accepted, chunk, complete, frame, seeded } from "./support.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("../../../../docs/protocol/vectors.json", import.meta.url), "utf8"));
const source = (n, text) => ({ n, passageId: `p${n}`, score: 0.8, text, locator: { kind: "script", speaker: "Ada" } });

test("the published sessions", async (all) => {
  assert.ok(VECTORS.sessions.length > 0);
  for (const { name, frames, text, terminal, appliedSeq } of VECTORS.sessions) {
    await all.test(name, () => {
      const tail = new RequestTail();
      for (const raw of frames) tail.feed(parseFrame(JSON.stringify(raw)));
      assert.equal(tail.text, text);
      assert.equal(tail.terminal?.type ?? null, terminal);
      assert.equal(tail.applied, appliedSeq);
    });
  }
});

test("any order, with any doubles, gives the log", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const random = seeded(seed);
    const log = [accepted(), ...Array.from({ length: 12 }, (_, i) => chunk(i + 2)), complete(14)];
    const sent = [...log, ...log.filter(() => random() < 0.5)].sort(() => random() - 0.5);
    const tail = new RequestTail();
    let applied = 0;
    for (const one of sent) {
      applied += tail.feed(one);
      assert.ok("2 3 4 5 6 7 8 9 10 11 12 13 ".startsWith(tail.text), tail.text);
    }
    assert.equal(applied, log.length);
    assert.equal(tail.text, "2 3 4 5 6 7 8 9 10 11 12 13 ");
    assert.equal(tail.behind, false);
  }
});

test("a gap shows, and shows no more once it is filled", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(chunk(3));
  assert.equal(tail.behind, true);
  tail.feed(chunk(2));
  assert.equal(tail.behind, false);
});

test("what the log is known to hold shows as a gap before any of it comes", () => {
  const tail = new RequestTail();
  tail.noteLastSeq(4);
  assert.equal(tail.behind, true);
});

test("a fallback drops text, sources and citations of the attempt before", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(frame(2, { type: "sources", attempt: 1, searched: 9, sources: [source(1, "old")] }));
  tail.feed(chunk(3, "Half"));
  tail.feed(frame(4, { type: "citations", attempt: 1, citations: [{ n: 1, verdict: "verified", sentence: "Half" }] }));
  tail.feed(frame(5, { type: "fallback", from: "rag", to: "direct", code: "x", reason: "It broke." }));
  assert.deepEqual([tail.text, tail.sources.size, tail.citations.length, tail.searched], ["", 0, 0, null]);
  assert.equal(tail.strategy, "direct");
  assert.deepEqual(tail.fallbacks.map((one) => one.reason), ["It broke."]);
});

test("what is told of a search goes with its attempt", () => {
  const tail = new RequestTail();
  const reused = { use: "answer", question: "Who rang?", answeredAtMs: 5, similarity: 0.97 };
  const told = { searched: 0, query: "Who rang the bell?", reused, offered: true, sources: [{ ...source(1, "a"), origin: "cache" }] };
  tail.feed(accepted());
  tail.feed(frame(2, { type: "sources", attempt: 1, ...told }));
  assert.deepEqual([tail.query, tail.offered, tail.sources.get(1).earlier], ["Who rang the bell?", true, true]);
  assert.deepEqual(tail.reused, { whole: true, question: "Who rang?", answeredAtMs: 5 });
  tail.feed(frame(3, { type: "attempt", attempt: 2, strategy: "direct" }));
  assert.deepEqual([tail.query, tail.offered, tail.reused], ["", false, null]);
});

test("a new attempt is never joined to the one before, announced or not", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(chunk(2, "one", 1));
  tail.feed(chunk(3, "two", 2));
  tail.feed(chunk(4, "a zombie's", 1));
  assert.equal(tail.text, "two");
});

test("sources and citations come in several events", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(frame(2, { type: "sources", attempt: 1, searched: 9, sources: [source(1, "a")] }));
  tail.feed(frame(3, { type: "sources", attempt: 1, searched: 9, sources: [source(2, "b")] }));
  tail.feed(frame(4, { type: "citations", attempt: 1, citations: [{ n: 1, verdict: "verified", sentence: "A." }] }));
  tail.feed(frame(5, { type: "citations", attempt: 1, citations: [{ n: 2, verdict: "unverified", sentence: "B." }] }));
  assert.deepEqual([...tail.sources.keys()], [1, 2]);
  assert.deepEqual(tail.citations.map((one) => one.verdict), ["verified", "unverified"]);
});

test("nothing follows the end", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(complete(2));
  assert.equal(tail.feed(chunk(3)), 0);
  assert.equal(tail.text, "");
});

test("an event of a later protocol takes its place in the log, and changes nothing", () => {
  const tail = new RequestTail();
  tail.feed(accepted());
  tail.feed(frame(2, { type: "haiku", lines: [1, 2, 3] }));
  tail.feed(chunk(3, "on"));
  assert.equal(tail.applied, 3);
  assert.equal(tail.text, "on");
});
