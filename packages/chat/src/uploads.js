/** Uploading documents to a collection. */

import { uuid } from "../../client/src/protocol.js";

/**
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 * @import { CorpusReply, UploadListed } from "../../client/src/replies.js"
 *
 * @typedef {{ code: string, message: string }} Refusal
 */

/** Pages that are asked for; a longer list is cut. */
const MAX_PAGES = 10;

/** An upload was refused. */
export class UploadRefused extends Error {
  /** @param {Refusal} refusal */
  constructor({ code, message }) {
    super(message);
    this.name = "UploadRefused";
    this.code = code;
  }
}

/** The user's uploads to the deployment. */
export class Uploads {
  #call;

  /** @param {(action: Call) => Promise<CallReply>} call */
  constructor(call) {
    this.#call = call;
  }

  /**
   * Upload a file.
   *
   * @param {string} collection
   * @param {File} file
   * @param {(share: number) => void} onProgress  told what share is sent, 0 to 1
   * @throws {UploadRefused}
   */
  async send(collection, file, onProgress) {
    const sha256 = hex(await crypto.subtle.digest("SHA-256", await contentOf(file)));
    const fields = { operation: "begin", collection, name: file.name, bytes: file.size, sha256 };
    const begun = await this.#do(fields);
    if (begun.type !== "upload") throw new UploadRefused({ code: "internal", message: `The server answered ${begun.type}.` });
    const form = new FormData();
    for (const [name, value] of Object.entries(begun.fields)) form.append(name, value);
    form.append("file", file);
    await post(begun.url, form, onProgress);
  }

  /**
   * The documents of a collection's folder, with what became of them.
   *
   * @param {string} collection
   * @returns {Promise<UploadListed[]>}
   * @throws {UploadRefused}
   */
  async list(collection) {
    /** @type {UploadListed[]} */
    const found = [];
    let cursor = "";
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const reply = await this.#do({ operation: "list", collection, ...(cursor ? { cursor } : {}) });
      if (reply.type !== "uploads") break;
      found.push(...reply.documents);
      cursor = reply.next;
      if (!cursor) break;
    }
    return found;
  }

  /**
   * @param {string} collection
   * @param {string} name
   * @throws {UploadRefused}
   */
  async delete(collection, name) {
    await this.#do({ operation: "delete", collection, name });
  }

  /**
   * @param {Record<string, unknown>} fields
   * @returns {Promise<CorpusReply>}
   */
  async #do(fields) {
    const answer = await this.#call({ action: "upload", requestId: uuid(), ...fields });
    if (answer.kind === "reply") return answer.reply;
    throw new UploadRefused(answer.kind === "refused" ? answer : { code: "internal", message: "" });
  }
}

/**
 * @param {File} file  may be a folder, gone by now, or too large for memory
 * @returns {Promise<ArrayBuffer>}
 * @throws {UploadRefused}
 */
async function contentOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new UploadRefused({ code: "upload_failed", message: "" });
  }
}

/**
 * Post a form; `fetch` does not tell what share is sent.
 *
 * @param {string} url
 * @param {FormData} form
 * @param {(share: number) => void} onProgress
 * @returns {Promise<void>}
 * @throws {UploadRefused}
 */
function post(url, form, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) return resolve();
      const said = /<Message>([^<]*)</.exec(request.responseText)?.[1] ?? `HTTP ${request.status}`;
      reject(new UploadRefused({ code: "upload_failed", message: said }));
    };
    request.onerror = () => reject(new UploadRefused({ code: "upload_failed", message: "" }));
    request.open("POST", url);
    request.send(form);
  });
}

/** @param {ArrayBuffer} bytes */
function hex(bytes) {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
