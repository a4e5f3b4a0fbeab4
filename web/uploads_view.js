/** Adding documents: a dialog with the files under way and what became of those in a collection. */

import { el, icon, setText } from "../packages/chat/src/dom.js";
import { formatted, t, told } from "../packages/chat/src/i18n.js";
import { UploadRefused } from "../packages/chat/src/uploads.js";

/**
 * @import { Corpus } from "../packages/chat/src/corpus.js"
 * @import { Uploads } from "../packages/chat/src/uploads.js"
 * @import { UploadListed } from "../packages/client/src/replies.js"
 */

/** Between two looks while documents are being loaded. */
const LOOK_MS = 3_000;
const UNDER_WAY = ["waiting", "preparing"];

/** Opened by its button, and by files that are dropped on the page. */
export class UploadsView {
  toggle = el("button", { type: "button", class: "menu", hidden: true }, icon("upload"), el("span", { class: "unseen" }, t("uploads.add")));
  element = el("dialog", { id: "uploads", "aria-labelledby": "uploads-title" });

  #collection = el("input", { id: "uploads-collection", list: "uploads-collections", autocomplete: "off", required: true });
  #known = el("datalist", { id: "uploads-collections" });
  #file = el("input", { id: "uploads-files", type: "file", multiple: true });
  #queue = el("ul", { class: "queue" });
  #heading = el("h3");
  #documents = el("ul", { class: "documents" });
  #status = el("p", { role: "status" });
  /** @type {Uploads | null} */
  #uploads = null;
  /** @type {Corpus | null} */
  #corpus = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #look;

  constructor() {
    const close = el("button", { type: "button", "aria-label": t("uploads.close") }, icon("close"));
    close.addEventListener("click", () => this.element.close());
    this.toggle.addEventListener("click", () => this.#open());
    this.element.addEventListener("close", () => clearTimeout(this.#look));
    this.#collection.addEventListener("change", () => void this.#list());
    this.#file.addEventListener("change", () => {
      void this.#send([...(this.#file.files ?? [])]);
      this.#file.value = "";
    });
    this.element.append(
      el("header", {}, el("h2", { id: "uploads-title" }, t("uploads.add")), close),
      el("label", { for: this.#collection.id }, t("uploads.collection")),
      this.#collection,
      this.#known,
      el("label", { for: this.#file.id }, t("uploads.files")),
      this.#file,
      this.#status,
      this.#queue,
      this.#heading,
      this.#documents,
    );
    addEventListener("dragover", (event) => {
      if (!this.toggle.hidden && event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    addEventListener("drop", (event) => {
      if (this.toggle.hidden || !event.dataTransfer?.files.length) return;
      event.preventDefault();
      const files = [...event.dataTransfer.files];
      this.#open();
      void this.#send(files);
    });
  }

  /**
   * What the corpus holds is known, and with it where this user may upload.
   *
   * @param {Corpus} corpus
   * @param {Uploads} uploads
   */
  show(corpus, uploads) {
    this.#corpus = corpus;
    this.#uploads = uploads;
    this.toggle.hidden = !corpus.mayUpload;
    const names = [...corpus.collections.filter(({ upload }) => upload).map(({ name }) => name), ...corpus.uploadTo];
    const named = [...new Set(names)].filter((name) => name !== "*");
    this.#known.replaceChildren(...named.map((name) => el("option", { value: name })));
    this.#collection.value ||= named[0] ?? "";
  }

  #open() {
    if (!this.element.open) this.element.showModal();
    void this.#list();
  }

  /** @param {File[]} files */
  async #send(files) {
    const collection = this.#collection.value.trim();
    if (!collection) {
      setText(this.#status, t("uploads.name"));
      return this.#collection.focus();
    }
    for (const file of files) await this.#sendOne(collection, file);
    await this.#list();
  }

  /**
   * @param {string} collection
   * @param {File} file
   */
  async #sendOne(collection, file) {
    const bar = el("progress", { max: "1", value: "0", "aria-label": file.name });
    const said = el("span", { role: "status" });
    const item = el("li", {}, el("span", { dir: "auto" }, file.name), bar, said);
    this.#queue.append(item);
    try {
      await this.#uploads?.send(collection, file, (share) => {
        bar.value = share;
      });
      item.remove();
    } catch (error) {
      if (!(error instanceof UploadRefused)) throw error;
      bar.remove();
      setText(said, told(error.code, error.message) || t("uploads.failed"));
    }
  }

  /** Show what the chosen collection holds, and look again while something is under way. */
  async #list() {
    clearTimeout(this.#look);
    const collection = this.#collection.value.trim();
    if (!collection || !this.#uploads) return;
    try {
      const documents = await this.#uploads.list(collection);
      this.#draw(collection, documents);
      if (!this.element.open) return;
      if (documents.some(({ state }) => UNDER_WAY.includes(state))) {
        this.#look = setTimeout(() => void this.#list(), LOOK_MS);
      } else {
        void this.#corpus?.load();
      }
    } catch (error) {
      if (!(error instanceof UploadRefused)) throw error;
      this.#draw(collection, []);
      setText(this.#status, told(error.code, error.message));
    }
  }

  /**
   * @param {string} collection
   * @param {UploadListed[]} documents
   */
  #draw(collection, documents) {
    setText(this.#heading, documents.length ? t("uploads.in", { collection }) : "");
    const focused = this.#documents.querySelector(":focus")?.closest("li")?.dataset.name;
    this.#documents.replaceChildren(...documents.map((one) => this.#item(collection, one)));
    const items = /** @type {HTMLElement[]} */ ([...this.#documents.children]);
    if (focused) items.find((item) => item.dataset.name === focused)?.querySelector("button")?.focus();
    const waiting = documents.filter(({ state }) => UNDER_WAY.includes(state)).length;
    setText(this.#status, waiting ? t("uploads.waiting", { count: waiting }) : "");
  }

  /**
   * @param {string} collection
   * @param {UploadListed} document
   */
  #item(collection, { name, bytes, state, code, reason, passages }) {
    const remove = el("button", { type: "button", "aria-label": t("uploads.delete", { name }) }, icon("bin"));
    let sure = false;
    remove.addEventListener("click", () => {
      if (sure) return void this.#delete(collection, name);
      sure = true;
      remove.replaceChildren(t("uploads.sure"));
    });
    remove.addEventListener("blur", () => {
      sure = false;
      remove.replaceChildren(icon("bin"));
    });
    const words = state === "loaded" && passages !== null ? t("holdings.passages", { count: passages }) : t(`upload.${state}`);
    return el(
      "li",
      { "data-name": name, "data-state": state },
      el("span", { dir: "auto" }, name),
      el("small", {}, `${t("uploads.size", { size: formatted(Math.ceil(bytes / 1000)) })} · ${words}`),
      remove,
      ...(reason ? [el("small", { class: "reason" }, told(code, reason))] : []),
    );
  }

  /**
   * @param {string} collection
   * @param {string} name
   */
  async #delete(collection, name) {
    try {
      await this.#uploads?.delete(collection, name);
    } catch (error) {
      if (!(error instanceof UploadRefused)) throw error;
      return setText(this.#status, told(error.code, error.message));
    }
    this.#file.focus();
    await this.#list();
  }
}
