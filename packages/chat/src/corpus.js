/** What the corpus holds for this user, asked of the server when it is needed. */

import { uuid } from "../../client/src/protocol.js";

/**
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 * @import { CollectionListed, DocumentListed } from "../../client/src/replies.js"
 */

/** Pages of collections that are asked for; a longer list is cut. */
const MAX_PAGES = 10;

/** The latest known state of the corpus. */
export class Corpus {
  /** "unknown" until the server has answered; "missing" where it does not offer this. @type {"unknown" | "known" | "missing"} */
  state = "unknown";
  /** @type {CollectionListed[]} */
  collections = [];
  /** @type {string[]} */
  examples = [];
  /** Collections that the user may create by an upload; `*` for any name. @type {string[]} */
  uploadTo = [];
  indexVersion = "";
  empty = false;

  #call;
  #onChange;
  #loading = false;

  /**
   * @param {(action: Call) => Promise<CallReply>} call
   * @param {() => void} onChange  told when something is known anew
   */
  constructor(call, onChange) {
    this.#call = call;
    this.#onChange = onChange;
  }

  /** Whether this user may upload to some collection. */
  get mayUpload() {
    return this.uploadTo.length > 0 || this.collections.some(({ upload }) => upload);
  }

  /** Ask the server, unless it is being asked. */
  async load() {
    if (this.#loading || this.state === "missing") return;
    this.#loading = true;
    try {
      await this.#load();
    } finally {
      this.#loading = false;
    }
    this.#onChange();
  }

  /**
   * An answer was searched for in this version: what is known of an older one is asked anew.
   *
   * @param {string} indexVersion
   */
  searched(indexVersion) {
    if (this.state === "known" && indexVersion && indexVersion !== this.indexVersion) void this.load();
  }

  /**
   * A page of a collection's documents.
   *
   * @param {string} collection
   * @param {string} prefix  of their sources
   * @returns {Promise<DocumentListed[]>}
   */
  async documents(collection, prefix) {
    const fields = prefix ? { collection, prefix } : { collection };
    const reply = await this.#call({ action: "documents", requestId: uuid(), ...fields });
    return reply.kind === "reply" && reply.reply.type === "documents" ? reply.reply.documents : [];
  }

  async #load() {
    /** @type {CollectionListed[]} */
    const collections = [];
    let cursor = "";
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const reply = await this.#call({ action: "collections", requestId: uuid(), ...(cursor ? { cursor } : {}) });
      if (reply.kind !== "reply" || reply.reply.type !== "collections") {
        // An older server does not know the action; after another failure the next load may do better.
        if (reply.kind === "refused" && reply.code === "unknown_action") this.state = "missing";
        return;
      }
      const { reply: found } = reply;
      collections.push(...found.collections);
      Object.assign(this, { examples: found.examples, uploadTo: found.uploadTo });
      Object.assign(this, { indexVersion: found.indexVersion, empty: found.empty });
      cursor = found.next;
      if (!cursor) break;
    }
    this.collections = collections;
    this.state = "known";
  }
}
