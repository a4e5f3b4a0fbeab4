/** What outlives a reload of the tab: which questions were asked, so that their answers can be had again. */

/**
 * @import { Failure } from "./exchange.js"
 * @import { Ask } from "./protocol.js"
 *
 * @typedef {object} Kept
 * @property {Ask} ask
 * @property {boolean} known  whether the server is known to have it
 * @property {Failure | null} [limited]  the limit that it was refused for: it is not asked again by itself
 */

/** The tab's own storage; where the browser forbids it, one that forgets at a reload. @type {Pick<Storage, "getItem" | "setItem" | "removeItem">} */
export const tabStorage = findStorage();

/** Questions kept; older ones leave the page at the next reload. */
const MAX_KEPT = 20;

/** The questions of one conversation with one server, oldest first. */
export class Store {
  #place;

  /** @param {string} webSocketUrl */
  constructor(webSocketUrl) {
    this.#place = `cicada:conversation:${webSocketUrl}`;
  }

  /** @returns {Kept[]} */
  read() {
    try {
      const kept = JSON.parse(tabStorage.getItem(this.#place) ?? "[]");
      return kept.filter((/** @type {any} */ one) => one?.ask?.requestId && one.ask.query);
    } catch {
      return []; // written by something else
    }
  }

  /** @param {Kept[]} questions */
  write(questions) {
    const kept = questions.slice(-MAX_KEPT);
    try {
      tabStorage.setItem(this.#place, JSON.stringify(kept));
    } catch {
      // full: the page works on, without outliving a reload
    }
  }
}

function findStorage() {
  try {
    return sessionStorage;
  } catch {
    /** @type {Map<string, string>} */
    const values = new Map();
    return {
      getItem: (/** @type {string} */ key) => values.get(key) ?? null,
      setItem: (/** @type {string} */ key, /** @type {string} */ value) => void values.set(key, value),
      removeItem: (/** @type {string} */ key) => void values.delete(key),
    };
  }
}
