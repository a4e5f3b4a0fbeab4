/** The user's conversations, which the server keeps. */

import { uuid } from "../../client/src/protocol.js";

/**
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 * @import { ConversationListed, CorpusReply } from "../../client/src/replies.js"
 *
 * @typedef {{ requestId: string, query: string }} KeptRequest
 */

/** Pages that are asked for; a longer list is cut. */
const MAX_PAGES = 5;

/** The list as it was last read, and what can be done with one of it. */
export class Conversations {
  /** "missing" where the server keeps none. @type {"unknown" | "known" | "missing"} */
  state = "unknown";
  /** The last used first. @type {ConversationListed[]} */
  list = [];

  #call;
  #onChange;

  /**
   * @param {(action: Call) => Promise<CallReply>} call
   * @param {() => void} onChange  told when the list was read
   */
  constructor(call, onChange) {
    this.#call = call;
    this.#onChange = onChange;
  }

  /** Read the list. */
  async load() {
    if (this.state === "missing") return;
    /** @type {ConversationListed[]} */
    const found = [];
    let cursor = "";
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const reply = await this.#do("list", cursor ? { cursor } : {});
      if (reply?.type !== "conversations") break;
      found.push(...reply.conversations);
      this.state = "known";
      cursor = reply.next;
      if (!cursor) break;
    }
    if (this.state === "known") this.list = found;
    this.#onChange();
  }

  /**
   * The requests of a conversation, in order; null if the server has no such conversation.
   *
   * @param {string} sessionId
   * @returns {Promise<KeptRequest[] | null>}
   */
  async show(sessionId) {
    const reply = await this.#do("show", { sessionId });
    return reply?.type === "conversation" ? reply.requests : null;
  }

  /**
   * @param {string} sessionId
   * @param {string} title
   */
  async rename(sessionId, title) {
    await this.#do("rename", { sessionId, title });
    await this.load();
  }

  /**
   * Delete one. It can be restored for some minutes.
   *
   * @param {string} sessionId
   * @returns {Promise<boolean>} whether it was deleted
   */
  async delete(sessionId) {
    const reply = await this.#do("delete", { sessionId });
    await this.load();
    return reply !== null;
  }

  /** @param {string} sessionId */
  async restore(sessionId) {
    await this.#do("restore", { sessionId });
    await this.load();
  }

  /**
   * @param {string} operation
   * @param {Record<string, unknown>} fields
   * @returns {Promise<CorpusReply | null>} null if it was refused
   */
  async #do(operation, fields) {
    const answer = await this.#call({ action: "conversations", requestId: uuid(), operation, ...fields });
    if (answer.kind === "refused" && answer.code === "unknown_action") this.state = "missing";
    return answer.kind === "reply" ? answer.reply : null;
  }
}
