/** Reading what the server sends: leniently, and never trusting it to be well-formed. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { citationsOf, languageOf } from "../../../../packages/chat/src/answer_text.js";
import { markersIn, withoutMarkers } from "../../../../packages/client/src/markers.js";
import { parseFrame, uuid } from "../../../../packages/client/src/protocol.js";
import { REQUEST } from "./support.mjs";

const read = (raw) => parseFrame(JSON.stringify(raw));

test("what is no frame is nothing", () => {
  for (const text of ["", "{", "[]", "null", "7", '"x"', "{}", '{"type":"chunk"}', '{"type":"chunk","seq":-1}']) {
    assert.equal(parseFrame(text), null, text);
  }
  assert.equal(parseFrame(new Uint8Array(3)), null);
  assert.equal(read({ type: "chunk", seq: 3 }), null);
  assert.equal(read({ type: "chunk", seq: 1.5, requestId: REQUEST }), null);
  assert.equal(read({ type: "novelty", seq: 0, requestId: REQUEST }), null);
});

test("the gateway's own complaint", () => {
  const raw = { message: "Internal server error", connectionId: "c", requestId: "x" };
  assert.deepEqual(read(raw), { kind: "fault", message: "Internal server error" });
});

test("whatever a frame says is shown without what could hide in it", () => {
  const path = new URL("../../../../docs/protocol/vectors.json", import.meta.url);
  const { sessions } = JSON.parse(readFileSync(path, "utf8"));
  const evil = "\u001b[2J\u0007\u009b\u202e\u2066\u200b\u{e0041}\u{1d173}";
  /** @param {any} raw */
  const poisoned = (raw) =>
    JSON.parse(JSON.stringify(raw), (name, value) =>
      typeof value === "string" && !["type", "requestId", "verdict", "kind", "use", "origin"].includes(name) ? value + evil : value,
    );
  const change = { version: 1, operation: "updated", id: "i", name: "n", fields: [{ field: "f", before: "b", after: "a" }] };
  const event = { requestId: REQUEST, seq: 3, attempt: 1 };
  const others = [
    { message: "Internal server error" },
    { type: "error", seq: 0, requestId: REQUEST, code: "c", message: "No.", detail: "query: blank" },
    { type: "receipt", ...event, change },
    { type: "confirm", ...event, confirmationId: "i", operation: "delete", name: "n", fields: change.fields },
    { type: "verdict", ...event, verdict: "open", for: [{ n: 1, strength: "weak" }] },
  ];
  const frames = [...others, ...sessions.flatMap((/** @type {any} */ one) => one.frames)];
  for (const raw of frames) {
    const shown = JSON.stringify(read(poisoned(raw)));
    assert.equal(shown, JSON.stringify(read(raw)));
  }
});

test("a refusal says what is wrong", () => {
  const raw = { type: "error", seq: 0, requestId: null, code: "c", message: "No.", detail: "query: blank", retryable: false };
  const { kind, requestId, message } = read(raw);
  assert.deepEqual([kind, requestId, message], ["refused", null, "No. query: blank"]);
});

test("fields of the wrong type become harmless ones", () => {
  const { event } = read({
    type: "sources",
    seq: 2,
    requestId: REQUEST,
    attempt: "one",
    searched: null,
    sources: [null, 7, { n: "1" }, { n: 2, score: 99, text: { a: 1 }, locator: "here" }],
  });
  assert.deepEqual([event.attempt, event.searched, event.sources.length], [0, 0, 1]);
  assert.deepEqual([event.sources[0].score, event.sources[0].text, event.sources[0].locator.heading], [1, "", ""]);
});

test("an end is an end, whatever else it says", () => {
  const { event } = read({ type: "complete", seq: 9, requestId: REQUEST, metrics: "none", grounded: "yes" });
  assert.deepEqual([event.type, event.grounded, event.metrics.costUsd], ["complete", false, null]);
});

test("every event of the published protocol is known", () => {
  const path = new URL("../../../../docs/protocol/asyncapi.json", import.meta.url);
  const { operations, components } = JSON.parse(readFileSync(path, "utf8"));
  const names = operations.events.messages.map(({ $ref }) => $ref.split("/").at(-1));
  const types = names.map((name) => components.schemas[name].properties.type.const);
  assert.ok(types.includes("complete"));
  const change = { version: 1 };
  for (const type of types) assert.equal(read({ type, seq: 1, requestId: REQUEST, change }).event.type, type);
});

test("ids are UUIDs of version 4, and differ", () => {
  const ids = new Set(Array.from({ length: 100 }, uuid));
  assert.equal(ids.size, 100);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("a marker can name ranges, and documents with their pages", () => {
  const numbers = (text) => markersIn(text).map((one) => one.numbers).filter((one) => one.length);
  assert.deepEqual(numbers("So [1-3], so [2–2, 9] and so [3-1]."), [[1, 2, 3], [2, 9], [3, 1]]);
  assert.deepEqual(numbers("[Doc 2: report 3.pdf, Page 4] [doc 5] [Doc 1, p. 2; Doc 4: a.md]"), [[2], [5], [1, 4]]);
  assert.deepEqual(numbers("[Doc 1, 2] [Docs 1-3, 5 and 7] [Doc 2: a.pdf, Page 4, 5]"), [[1, 2], [1, 2, 3, 5, 7], [2]]);
  assert.deepEqual(numbers("[report.pdf, Page 4] [documented] [source of it all]"), []);
  const [{ parts }] = markersIn("[Doc 2: report 3.pdf, Page 4]");
  assert.deepEqual(parts.filter(({ n }) => n !== null), [{ text: "2", n: 2 }]);
  assert.equal(parts.map((part) => part.text).join(""), "[Doc 2: report 3.pdf, Page 4]");
});

test("markers are read as the server reads them", () => {
  const path = new URL("../../../data/markers.json", import.meta.url);
  for (const { text, numbers, plain } of JSON.parse(readFileSync(path, "utf8"))) {
    const markers = markersIn(text);
    assert.deepEqual(markers.map((one) => one.numbers), numbers, text);
    assert.equal(withoutMarkers(text), plain);
    for (const one of markers) {
      assert.equal(one.parts.map((part) => part.text).join(""), one.text);
      assert.equal(text.slice(one.start, one.end), one.text);
    }
  }
});

test("markers are not read aloud", () => {
  assert.equal(withoutMarkers("He says so [1]. She,\n\ntoo [2, 3] ."), "He says so. She, too.");
});

test("a source is verified only if every use of it is", () => {
  const citations = [
    { n: 1, verdict: "verified" },
    { n: 1, verdict: "unverified" },
    { n: 2, verdict: "verified" },
  ];
  assert.deepEqual([1, 2, 3].map((n) => citationsOf(citations, n).verdict), ["unverified", "verified", null]);
});

test("the script tells the language, where it does", () => {
  assert.deepEqual(["誰がドアを", "누가", "Who", "誰", "Winifred says: “誰が”"].map(languageOf), ["ja", "ko", "", "", ""]);
});

test("the asker's own note is a source with a place of its own", () => {
  const locator = { kind: "note", profileId: "p", profile: "Ada", field: "trade", notedAtMs: 7 };
  const { event } = read({ type: "sources", seq: 2, requestId: REQUEST, sources: [{ n: 1, locator }] });
  const { heading, place, part, episode } = event.sources[0].locator;
  assert.deepEqual([heading, place, part, episode], ["Your note", "Ada", "trade", null]);
});

test("replies about the corpus are read leniently", () => {
  const read = (body) => parseFrame(JSON.stringify({ seq: 0, requestId: "r1", ...body })).reply;
  const named = { name: "script", passages: 7, episodes: [{ id: "ep1", passages: 7 }, { passages: 1 }], sections: "none" };
  const corpus = read({ type: "collections", indexVersion: null, collections: [named, {}], examples: ["Who?", 7], empty: false });
  assert.deepEqual(corpus.collections.map(({ name, title, documents }) => [name, title, documents]), [["script", "script", 0]]);
  assert.deepEqual(corpus.collections[0].episodes, [{ id: "ep1", name: "ep1", passages: 7 }]);
  assert.deepEqual([corpus.examples, corpus.indexVersion, corpus.uploadTo, corpus.next], [["Who?"], "", [], ""]);
  const passages = [{ passageId: "p1", text: "It rang.\u202e", locator: { kind: "script", speaker: "Ada" } }];
  const document = { source: "a.pdf", title: null, original: { url: "https://x.example/a.pdf", expiresAtMs: 1 } };
  const shown = read({ type: "passages", passages, document, at: 0, hasNext: true });
  assert.deepEqual([shown.passages[0].text, shown.passages[0].locator.heading], ["It rang.", "Ada"]);
  assert.deepEqual(shown.document, { source: "a.pdf", title: "a.pdf", original: "https://x.example/a.pdf" });
  assert.deepEqual([shown.hasPrevious, shown.hasNext], [false, true]);
  assert.equal(parseFrame(JSON.stringify({ seq: 0, requestId: "r1", type: "constructor" })), null);
});
