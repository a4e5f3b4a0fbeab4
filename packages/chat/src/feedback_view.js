/** What the user thinks of an answer: a thumb up or down, and after down a reason. */

import { tabStorage } from "../../client/src/store.js";
import { el, icon, setText } from "./dom.js";
import { t, told } from "./i18n.js";

/**
 * @import { Call, CallReply } from "../../client/src/protocol.js"
 *
 * @typedef {{ rating: string, reason?: string, comment?: string }} Given
 */

const REASONS = ["wrong", "incomplete", "bad_sources", "outdated", "unclear", "other"];
const MAX_COMMENT_CHARS = 1000;
/** Where a tab remembers what was given: the server does not tell. */
const PLACE = "cicada:feedback:";

/** A second click takes a rating back. */
export class FeedbackView {
  element = el("div", { class: "feedback", role: "group", "aria-label": t("feedback.label") });

  #requestId;
  #call;
  #up = el("button", { type: "button", "aria-pressed": "false", "aria-label": t("feedback.up") }, icon("up_thumb"));
  #down = el("button", { type: "button", "aria-pressed": "false", "aria-label": t("feedback.down") }, icon("down_thumb"));
  #reason = el("select", { "aria-label": t("feedback.reason") });
  #comment = el("textarea", {
    rows: "2",
    dir: "auto",
    maxlength: String(MAX_COMMENT_CHARS),
    placeholder: t("feedback.comment"),
    "aria-label": t("feedback.comment"),
  });
  #form = el("form", { hidden: true });
  #outcome = el("span", { class: "outcome", role: "status" });
  #rating = "none";

  /**
   * @param {string} requestId
   * @param {(action: Call) => Promise<CallReply>} call
   */
  constructor(requestId, call) {
    this.#requestId = requestId;
    this.#call = call;
    this.#reason.append(
      el("option", { value: "" }, t("feedback.reason.none")),
      ...REASONS.map((reason) => el("option", { value: reason }, t(`feedback.reason.${reason}`))),
    );
    this.#form.append(this.#reason, this.#comment, el("button", {}, t("feedback.send")));
    this.element.append(this.#up, this.#down, this.#outcome, this.#form);
    this.#up.addEventListener("click", () => void this.#rate("up"));
    this.#down.addEventListener("click", () => void this.#rate("down"));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#give({ rating: "down", reason: this.#reason.value, comment: this.#comment.value.trim() }).then((given) => {
        this.#form.hidden = given;
        if (given) this.#down.focus();
      });
    });
    this.#show(tabStorage.getItem(PLACE + requestId) ?? "none");
  }

  /** @param {"up" | "down"} rating */
  async #rate(rating) {
    const wanted = this.#rating === rating ? "none" : rating;
    const given = await this.#give({ rating: wanted });
    this.#form.hidden = !(given && wanted === "down");
    if (!this.#form.hidden) this.#reason.focus();
  }

  /**
   * @param {Given} feedback
   * @returns {Promise<boolean>} whether the server has it
   */
  async #give({ rating, reason, comment }) {
    const fields = { rating, ...(reason ? { reason } : {}), ...(comment ? { comment } : {}) };
    const reply = await this.#call({ action: "feedback", requestId: this.#requestId, ...fields });
    if (reply.kind === "refused") {
      setText(this.#outcome, told(reply.code, reply.message));
      return false;
    }
    this.#show(rating);
    tabStorage.setItem(PLACE + this.#requestId, rating);
    setText(this.#outcome, t(rating === "none" ? "feedback.taken" : "feedback.thanks"));
    return true;
  }

  /** @param {string} rating */
  #show(rating) {
    this.#rating = rating;
    this.#up.setAttribute("aria-pressed", String(rating === "up"));
    this.#down.setAttribute("aria-pressed", String(rating === "down"));
  }
}
