/** The words of a passage that an answer rests on, which part of a long passage is shown, and the answer as a copy. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { excerptOf, marksIn } from "../../../../packages/chat/src/marks.js";
import { answerMarkdown } from "../../../../packages/chat/src/shared_answer.js";
import { seeded } from "./support.mjs";

const PASSAGE = "I locked the water gate at nine. There is one key, and it hangs on my neck. Nobody else has one.";
const marked = (passage, ...sentences) => marksIn(passage, sentences).map(([start, end]) => passage.slice(start, end));

test("quoted words are marked, whatever the quotation marks and the case", () => {
  for (const quote of ["“there is one key”", '"There is one key,"', "»There is one key«", "„There is one key“", "「There is one key」"]) {
    assert.deepEqual(marked(PASSAGE, `He says: ${quote} [2]`), ["There is one key"], quote);
  }
  assert.deepEqual(marked(PASSAGE, "He has “one” key."), []);
  assert.deepEqual(marked(PASSAGE, "It is “at nine” that he did."), ["at nine"]);
});

test("without a quotation, words that follow each other as in the passage are marked", () => {
  assert.deepEqual(marked(PASSAGE, "Corin locked the water gate at nine, he says."), ["locked the water gate at nine"]);
  assert.deepEqual(marked(PASSAGE, "The gate was locked by Corin at nine."), []);
  const japanese = "水門は九時に閉めた。鍵は一つだけで、首に掛けている。";
  assert.deepEqual(marked(japanese, "彼は鍵は一つだけでと言う。"), ["鍵は一つだけで"]);
});

test("marks are in order, apart, and within the passage", () => {
  const random = seeded(3);
  const words = () => Array.from({ length: 30 }, () => "abc"[Math.floor(random() * 3)]).join(" ");
  for (let round = 0; round < 300; round += 1) {
    const passage = words();
    let end = -1;
    for (const [start, stop] of marksIn(passage, [words(), `“${words()}”`])) {
      assert.ok(start > end && stop > start && stop <= passage.length);
      end = stop;
    }
  }
});

test("an excerpt is short, whole at the ends, and holds the first mark", () => {
  const random = seeded(5);
  for (let round = 0; round < 300; round += 1) {
    const text = Array.from({ length: 400 }, () => "wordings".slice(0, 1 + Math.floor(random() * 8))).join(" ");
    const at = Math.floor(random() * (text.length - 60));
    const [start, end] = excerptOf(text, [[at, at + 50]], 300);
    assert.ok(start <= at && end >= at + 50 && end - start <= 400, `${start} ${end} ${at}`);
    assert.ok(start === 0 || /\s/.test(text[start - 1]));
    assert.ok(end === text.length || /\s/.test(text[end]) || end >= at + 50);
  }
  assert.deepEqual(excerptOf("short", [], 300), [0, 5]);
});

test("a copied answer names the sources that it cites", () => {
  const locator = { heading: "Corin", place: "First Draft", part: "page 2" };
  const sources = new Map([1, 2, 3].map((n) => [n, { n, locator }]));
  const text = "It **was** so [2]. And so [1, 9]. ";
  assert.equal(
    answerMarkdown({ text, sources }),
    "It **was** so [2]. And so [1, 9].\n\nSources:\n\n- [1] Corin · First Draft · page 2\n- [2] Corin · First Draft · page 2\n",
  );
  assert.equal(answerMarkdown({ text: "Hello.", sources }), "Hello.\n");
});
