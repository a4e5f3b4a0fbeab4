/** What of a text is seen. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { isBlank } from "../../../../packages/client/src/safe.js";

test("a question that shows nothing is blank", () => {
  for (const text of ["", " \n", "\u2800", "\u3164\ufe0f", "\u200d\u00ad", "\u{e0041}\u{e007f}", "\u0301", "\u115f\u1160 \uffa0"])
    assert.ok(isBlank(text), JSON.stringify(text));
});

test("one character that is seen is enough", () => {
  for (const text of ["?", "\u2800a", "7", "誰", "❤\ufe0f", "\u200dक्"]) assert.ok(!isBlank(text), JSON.stringify(text));
});
