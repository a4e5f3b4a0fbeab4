/** What the page says of a request: which way its answer came, and what it owes to earlier ones. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { leftNotices, limitNotice } from "../../../../packages/chat/src/limit_words.js";
import { RequestTail } from "../../../../packages/client/src/tail.js";
import {
  failureNotice,
  fallbackLine,
  fallbackNotice,
  figures,
  groundedness,
  phaseOf,
  reasonsOf,
  reusedNotice,
  sourcesTitle,
  statusOf,
  triedNotices,
  wayOf,
} from "../../../../packages/chat/src/words.js";
import { accepted, chunk, frame } from "./support.mjs";

const SOURCE = { n: 1, passageId: "p1", score: 0.8, text: "It rang.", locator: { kind: "script", speaker: "Ada" } };

function tailOf(...events) {
  const tail = new RequestTail();
  tail.feed(accepted());
  events.forEach((event, place) => tail.feed(frame(place + 2, event)));
  return tail;
}

const found = (changes) => ({ type: "sources", attempt: 1, searched: 0, sources: [SOURCE], ...changes });
const done = (changes) => ({ type: "complete", answeredBy: "rag", grounded: true, metrics: {}, ...changes });
const reused = (use) => ({ use, question: "Who rang?", answeredAtMs: Date.UTC(2026, 10, 20, 12), similarity: 0.97 });
const status = (tail) => statusOf({ tail, failure: null, ended: false, cancelling: false }, "open");

test("the way of an answer names what failed before it, each once", () => {
  const failed = ["hybrid", "rag", "rag"].map((strategy) => ({ strategy, code: "c", reason: "r" }));
  assert.equal(wayOf(tailOf(done({}))), "Search (rag)");
  assert.equal(
    wayOf(tailOf(done({ answeredBy: "direct", failed }))),
    "Direct answer (direct), after Search and earlier answers (hybrid), Search (rag)",
  );
  assert.equal(wayOf(tailOf(done({ failed: failed.slice(1) }))), "Search (rag)");
});

test("a lost worker's strategy begins anew, and no other answers instead", () => {
  const lost = { from: "rag", to: "rag", reason: "The answer was interrupted." };
  assert.equal(fallbackNotice(lost), "Search failed: The answer was interrupted. It starts again.");
  assert.equal(
    fallbackNotice({ from: "rag", to: "cag", reason: "The model is busy." }),
    "Search failed: The model is busy. Looking in earlier answers instead.",
  );
});

test("an answer that makes use of an earlier one says of which day", () => {
  const whole = tailOf(found({ reused: reused("answer") }));
  assert.equal(reusedNotice(whole.reused), "Answered before, on November 20, 2026, for:");
  assert.equal(status(whole), "Giving an earlier answer again…");
  const part = tailOf(found({ reused: { ...reused("contexts"), answeredAtMs: "long ago" } }));
  assert.equal(reusedNotice(part.reused), "Written from what was found for an earlier question:");
  assert.equal(status(part), "Reading 1 passage…");
});

test("the sources of an answer without markers are not attributed", () => {
  const unmarked = { type: "citations", attempt: 1, citations: [], notAttributed: [1] };
  const tail = tailOf(found({}), unmarked, done({ grounded: false }));
  assert.equal(sourcesTitle(tail, 0), "1 source, not attributed");
  assert.deepEqual(groundedness(tail), { grounded: false, text: "Not grounded: its sources are not attributed" });
});

test("sources that are only offered are none of the answer's", () => {
  const tail = tailOf(found({ offered: true }), done({ grounded: false }));
  assert.equal(sourcesTitle(tail, 0), "1 passage found by the failed search");
  assert.deepEqual(groundedness(tail), { grounded: false, text: "Not grounded: written without passages" });
  assert.equal(status(tailOf(found({ offered: true }))), "Answering without a search…");
});

test("sources are counted, and those that are cited", () => {
  assert.equal(sourcesTitle(tailOf(found({})), 1), "1 source, 1 cited");
  assert.equal(sourcesTitle(tailOf(found({ sources: [] })), 0), "No source found");
});

test("an answer without a model call has no tokens and no cost", () => {
  const { terminal } = tailOf(done({ metrics: { modelCalls: 0, inputTokens: 0, latencyMs: 90 } }));
  assert.deepEqual(Object.fromEntries(figures(terminal.metrics)), {
    "First text": "not known",
    Total: "0.09 s",
    Tokens: "no model call",
    Cost: "$0",
  });
});

test("a request is being read before its text comes, and written after", () => {
  const tail = tailOf(found({ searched: 9 }));
  assert.equal(phaseOf({ tail, failure: null }), "reading");
  tail.feed(chunk(3, "It"));
  assert.equal(phaseOf({ tail, failure: null }), "writing");
});

test("why a passage is here is said in a phrase a reason, each once, and nearness goes without saying", () => {
  const why = [
    { kind: "entity", name: "Gutterflame", section: "combat", matched: "the burning axe", confidence: 0.9 },
    { kind: "entity", name: "Minnow", matched: "minnow" },
    { kind: "intention", name: "combat_info", section: "combat" },
    { kind: "intention", name: "combat_info", section: "story" },
    { kind: "similarity" },
    { kind: "tool", name: "search_script" },
    { kind: "novelty", name: "x" },
    { kind: "entity" },
    7,
  ];
  const tail = tailOf(found({ sources: [{ ...SOURCE, why }, { ...SOURCE, n: 2 }, { ...SOURCE, n: 3, why: "near" }] }));
  assert.deepEqual(reasonsOf(tail.sources.get(1).why), [
    "names Gutterflame (“the burning axe”)",
    "names Minnow",
    "for combat info",
    "by search script",
  ]);
  assert.deepEqual([2, 3].map((n) => reasonsOf(tail.sources.get(n).why)), [[], []]);
});

const limit = (changes) => ({
  account: "user",
  group: "",
  limit: "tokensDay",
  most: 200_000,
  left: 0,
  resetsAtMs: null,
  ...changes,
});
const NOON = new Date(2026, 10, 20, 12, 0).getTime();
const at = (...parts) => new Date(2026, ...parts).getTime();

test("a limit says whose it is, what is left, and when the asker can go on by the own clock", () => {
  const said = (changes) => limitNotice(limit(changes), NOON);
  assert.equal(
    said({ limit: "requestsMinute", most: 10, resetsAtMs: at(10, 20, 12, 1) - 1 }),
    "Your limit of 10 questions a minute is reached. You can ask again at 12:01.",
  );
  assert.equal(
    said({ left: 12_000, resetsAtMs: at(10, 21, 1) }),
    "Your limit of 200,000 tokens a day is reached. 12,000 left: too little for a question. You can ask again tomorrow at 01:00.",
  );
  assert.equal(
    said({ account: "group", group: "writers", limit: "usdMonth", most: 25, left: 0.099, resetsAtMs: at(11, 1, 1) }),
    "The limit of the group writers, $25.00 a month, is reached. $0.09 left: too little for a question. " +
      "You can ask again on December 1 at 01:00.",
  );
  assert.equal(
    said({ account: "deployment", limit: "usdDay", most: null, left: null, resetsAtMs: at(10, 20, 23) }),
    "The limit on cost a day of all users together is reached. You can ask again at 23:00.",
  );
  assert.equal(
    said({ limit: "requestsOpen", most: 2 }),
    "Your limit of 2 questions at a time is reached. Ask again when an answer has ended.",
  );
  assert.match(said({ account: "deployment", limit: "stopped", most: null }), /^An administrator has stopped answering/);
  assert.equal(said({ most: 0, resetsAtMs: NOON }), "Your limit of 0 tokens a day is reached.");
  assert.equal(said({ limit: "requestsOpen", most: 0 }), "Your limit of 0 questions at a time is reached.");
  assert.equal(
    said({ limit: "requestsMinute", most: 1, resetsAtMs: NOON }),
    "Your limit of 1 question a minute is reached. You can ask again at 12:00.",
  );
});

test("what is left is told near a limit's end", () => {
  const limits = [
    limit({ left: 39_999, resetsAtMs: at(10, 21, 1) }),
    limit({ left: 40_000, resetsAtMs: at(10, 21, 1) }),
    limit({ account: "group", group: "writers", limit: "usdDay", most: 5, left: 0.5, resetsAtMs: at(10, 20, 23) }),
    limit({ limit: "requestsMinute", most: 10, resetsAtMs: NOON }),
    limit({ limit: "requestsOpen", most: 2, left: 0 }),
    limit({ account: "deployment", most: null, left: null, resetsAtMs: at(10, 21, 1) }),
  ];
  assert.deepEqual(leftNotices(limits, NOON), [
    "39,999 of 200,000 tokens a day left until tomorrow at 01:00.",
    "$0.50 of $5.00 a day left for the group writers until 23:00.",
  ]);
});

test("a refused limit is a phase of its own, said in the status alone", () => {
  const refused = { tail: tailOf(), failure: { code: "limit_reached", message: "No.", limit: limit({}) } };
  assert.equal(phaseOf(refused), "limited");
  assert.equal(statusOf({ ...refused, ended: true }, "open"), "Your limit of 200,000 tokens a day is reached.");
});

test("an error that ended the request is told once, with what failed before", () => {
  const message = "Unknown episode “ep9”. Available: “ep1”, “ep2”.";
  const failed = [
    { strategy: "hybrid", code: "model_busy", reason: "The model is busy" },
    { strategy: "rag", code: "episode_unknown", reason: message },
  ];
  const tail = tailOf({ type: "error", code: "episode_unknown", message, retryable: false, failed });
  assert.equal(failureNotice({ tail, failure: null }), message);
  assert.deepEqual(triedNotices({ tail, failure: null }), ["Search and earlier answers: The model is busy."]);
});

test("a blocked answer is no failure: its guardrail's message stands quietly in place of the text", () => {
  const failed = [{ strategy: "rag", code: "answer_blocked", reason: "No bells." }];
  const end = { type: "error", code: "answer_blocked", message: "No bells.", retryable: false, failed };
  const tail = tailOf(found({}), { type: "chunk", attempt: 1, content: "The bell" }, end);
  assert.equal(tail.text, "");
  assert.equal(phaseOf({ tail, failure: null }), "blocked");
  assert.equal(status(tail), "No bells.");
  assert.deepEqual(triedNotices({ tail, failure: null }), []);
});
