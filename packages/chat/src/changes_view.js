/** What an answer has changed of the asker's profiles, and what it asks them to confirm. */

import { el, setText } from "./dom.js";
import { uuid } from "../../client/src/protocol.js";
import { t, told } from "./i18n.js";
import { note } from "./note.js";
import { changeWords, confirmWords, fieldWords } from "./words.js";

/**
 * @import { Call, CallReply, Change, Confirm } from "../../client/src/protocol.js"
 * @import { RequestTail } from "../../client/src/tail.js"
 */

/** One item a receipt or confirmation; each is drawn once, and then says what became of it. */
export class ChangesView {
  element = el("ul", { class: "changes", hidden: true });

  #requestId;
  #call;
  #announce;
  /** Those that are drawn, by what they are of. @type {Set<string>} */
  #drawn = new Set();
  #nothing = el("li", { class: "nothing" }, note("unchecked", [t("change.nothing")]));

  /**
   * @param {string} requestId
   * @param {object} does
   * @param {(action: Call) => Promise<CallReply>} does.call
   * @param {(text: string) => void} does.announce
   */
  constructor(requestId, { call, announce }) {
    this.#requestId = requestId;
    this.#call = call;
    this.#announce = announce;
  }

  /** @param {RequestTail} tail */
  update(tail) {
    for (const [key, change] of tail.receipts) this.#draw(key, () => this.#receipt(change));
    for (const [id, confirm] of tail.confirmations) this.#draw(id, () => this.#confirmation(confirm));
    if (tail.terminal?.type === "complete" && tail.terminal.changes === 0) this.element.append(this.#nothing);
    this.element.hidden = this.element.childElementCount === 0;
  }

  /**
   * @param {string} key
   * @param {() => HTMLElement} make
   */
  #draw(key, make) {
    if (this.#drawn.has(key)) return;
    this.#drawn.add(key);
    this.element.append(make());
  }

  /**
   * @param {Change} change
   * @returns {HTMLElement}
   */
  #receipt(change) {
    const undo = el("button", { type: "button" }, t("change.undo"));
    undo.hidden = !change.undoable;
    const { id, version } = change;
    const item = this.#item("receipt", "verified", changeWords(change), change.fields.map(fieldWords), [undo]);
    undo.addEventListener("click", () => {
      const action = /** @type {Call} */ ({ action: "profile", requestId: uuid(), operation: "undo", id, version });
      void this.#act(item, action, () => t("change.undo.done"));
    });
    return item;
  }

  /**
   * @param {Confirm} confirm
   * @returns {HTMLElement}
   */
  #confirmation(confirm) {
    const yes = el("button", { type: "button", class: "danger" }, t("confirm.yes"));
    const no = el("button", { type: "button" }, t("confirm.no"));
    const lost = confirm.fields.map(({ field, before }) => fieldWords({ field, before: null, after: before }));
    const item = this.#item("confirm", "unverified", confirmWords(confirm), lost, [yes, no]);
    for (const [button, accept] of /** @type {[HTMLElement, boolean][]} */ ([[yes, true], [no, false]])) {
      button.addEventListener("click", () => {
        const { confirmationId } = confirm;
        const action = /** @type {Call} */ ({ action: "confirm", requestId: this.#requestId, confirmationId, accept });
        void this.#act(item, action, () => t(accept ? "confirm.deleted" : "confirm.kept"));
      });
    }
    this.#announce(confirmWords(confirm));
    return item;
  }

  /**
   * @param {string} kind
   * @param {string} sign  the icon's name
   * @param {string} words
   * @param {string[]} details
   * @param {HTMLElement[]} buttons
   * @returns {HTMLElement}
   */
  #item(kind, sign, words, details, buttons) {
    const lines = details.map((detail) => el("li", { dir: "auto" }, detail));
    const line = note(sign, [words], lines.length ? [el("ul", {}, ...lines)] : []);
    if (kind === "confirm") line.setAttribute("open", ""); // what would be lost is seen before it is confirmed
    const outcome = el("span", { class: "outcome", role: "status" });
    return el("li", { class: kind }, line, ...buttons, outcome);
  }

  /**
   * Do it once, whatever is clicked meanwhile; a refusal is told, and can be tried again.
   *
   * @param {HTMLElement} item
   * @param {Call} action
   * @param {() => string} done
   */
  async #act(item, action, done) {
    const buttons = [...item.querySelectorAll("button")];
    const outcome = item.querySelector(".outcome");
    for (const button of buttons) button.disabled = true;
    const reply = await this.#call(action);
    const refused = reply.kind === "refused";
    if (outcome) setText(outcome, refused ? told(reply.code, reply.message) : done());
    for (const button of buttons) {
      button.disabled = false;
      button.hidden = !refused;
    }
  }
}
