import assert from "node:assert/strict";
import { test } from "node:test";

import { UploadRefused, Uploads } from "../../../../packages/chat/src/uploads.js";

test("a file that cannot be read is refused like others, and nothing is asked of the server", async () => {
  const calls = [];
  const uploads = new Uploads(async (action) => calls.push(action));
  const folder = { name: "folder", size: 4096, arrayBuffer: async () => Promise.reject(new DOMException("", "NotFoundError")) };
  await assert.rejects(uploads.send("shelf", folder, () => {}), (error) => error instanceof UploadRefused && error.code === "upload_failed");
  assert.deepEqual(calls, []);
});
