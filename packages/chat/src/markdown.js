/**
 * An answer's Markdown as plain data: a tree of allowed elements and text. Nothing here touches a document.
 *
 * `marked` finds the tokens. Raw HTML, references, relative addresses and everything unknown stay text. Citation markers
 * are found before all else, so that no construct takes one apart; in code and in a link's label they stay text.
 */

import { getDefaults, Lexer, Tokenizer } from "marked";

import { markersIn } from "../../client/src/markers.js";

/**
 * @import { Token, Tokens } from "marked"
 * @import { Marker } from "../../client/src/markers.js"
 *
 * @typedef {{ text: string }} TextNode
 * @typedef {{ tag: string, attributes: Record<string, string>, children: TreeNode[] }} ElementNode
 * @typedef {TextNode | ElementNode} TreeNode
 *
 * @typedef {object} Block  One construct of the top level.
 * @property {string} raw
 * @property {number} level  of a heading: below the page's own, and never more than one deeper than the heading before
 *
 * @typedef {object} Drawing  What the tree needs to know of the page.
 * @property {(n: number) => string | null} anchorOf  the id of a source's element; null where there is no such source
 * @property {{ copy: string, table: string }} words
 */

/** A longer text is shown as it is written: reading it as Markdown could keep the page busy. */
const MAX_MARKDOWN_CHARS = 50_000;
/** Lists, quotations and emphasis within each other; what is deeper stays text. */
const MAX_DEPTH = 12;
/** The page's own headings above an answer's. */
const HEADINGS_ABOVE = 2;
const MAX_MARKER_CHARS = 402;

const PROTOCOLS = ["http:", "https:", "mailto:"];
const LINE_BREAK = /^<br\s*\/?>/i;
const MATH = [
  /^\$\$[^$]{1,4000}\$\$/,
  /^\$(?=\S)[^$\n]{1,1000}(?<=\S)\$(?![\d$])/,
  /^\\\([^\n]{1,1000}?\\\)/,
  /^\\\[(?!\s*\d+\s*\\\])[\s\S]{1,4000}?\\\]/,
];
const MATH_BLOCK = /^ {0,3}(?:\$\$[\s\S]{1,4000}?\$\$|\\\[[\s\S]{1,4000}?\\\]) *(?:\n+|$)/;

/** The lexer's own tokenizer, without what is not allowed, and no deeper than allowed. */
class BoundedTokenizer extends Tokenizer {
  #depth = 0;

  /** @param {string} src */
  blockquote(src) {
    return this.#within(() => super.blockquote(src));
  }

  /** @param {string} src */
  list(src) {
    return this.#within(() => super.list(src));
  }

  /**
   * @param {string} src
   * @param {string} masked
   * @param {string} [before]
   */
  emStrong(src, masked, before) {
    return this.#within(() => super.emStrong(src, masked, before));
  }

  /**
   * @param {string} src
   * @param {string} masked
   * @param {string} [before]
   */
  del(src, masked, before) {
    return this.#within(() => super.del(src, masked, before));
  }

  /** @param {string} src */
  link(src) {
    return this.#within(() => super.link(src));
  }

  html() {
    return undefined;
  }

  def() {
    return undefined;
  }

  reflink() {
    return undefined;
  }

  /**
   * @param {string} src
   * @returns {any}
   */
  tag(src) {
    const [raw] = LINE_BREAK.exec(src) ?? [];
    return raw ? { type: "br", raw } : undefined;
  }

  /**
   * @template T
   * @param {() => T} read
   * @returns {T | undefined}
   */
  #within(read) {
    if (this.#depth >= MAX_DEPTH) return undefined;
    this.#depth += 1;
    try {
      return read();
    } finally {
      this.#depth -= 1;
    }
  }
}

/**
 * @param {string} src
 * @returns {any}
 */
function markerToken(src) {
  const end = src.startsWith("[") ? src.slice(0, MAX_MARKER_CHARS).indexOf("]") : -1;
  const [marker] = markersIn(src.slice(0, end + 1));
  return marker?.start === 0 && marker.numbers.length ? { type: "marker", raw: marker.text, marker } : undefined;
}

/**
 * @param {string} src
 * @returns {any}
 */
function mathToken(src) {
  if (!src.startsWith("$") && !src.startsWith("\\")) return undefined;
  const raw = MATH.map((pattern) => pattern.exec(src)?.[0]).find(Boolean);
  return raw && !markersIn(raw.slice(1)).some(({ numbers }) => numbers.length) ? { type: "math", raw } : undefined;
}

/**
 * @param {string} src
 * @returns {any}
 */
function mathBlockToken(src) {
  const [raw] = MATH_BLOCK.exec(src) ?? [];
  return raw ? { type: "math", raw } : undefined;
}

function lexer() {
  const extensions = {
    block: [mathBlockToken],
    inline: [markerToken, mathToken],
    startInline: [(/** @type {string} */ src) => src.indexOf("$")],
    renderers: {},
    childTokens: {},
  };
  return new Lexer({ ...getDefaults(), gfm: true, breaks: true, tokenizer: new BoundedTokenizer(), extensions });
}

/**
 * Divide a text into the constructs of its top level. Those of a growing text stay as they are, but for the last ones.
 *
 * @param {string} text
 * @returns {Block[]}
 */
export function blocksOf(text) {
  if (text.length > MAX_MARKDOWN_CHARS) return [{ raw: text, level: 0 }];
  /** Depths of the headings that a heading stands below. @type {number[]} */
  const open = [];
  const tokens = lexer().blockTokens(text.replaceAll("\r", ""), []);
  return tokens.flatMap((token) => {
    if (token.type === "space") return [];
    if (token.type !== "heading") return [{ raw: token.raw, level: 0 }];
    while ((open.at(-1) ?? 0) >= token.depth) open.pop();
    open.push(token.depth);
    return [{ raw: token.raw, level: Math.min(6, HEADINGS_ABOVE + open.length) }];
  });
}

/**
 * @param {Block} block
 * @param {Drawing} drawing
 * @returns {TreeNode[]}
 */
export function treeOf({ raw, level }, drawing) {
  if (raw.length > MAX_MARKDOWN_CHARS) return [element("p", [{ text: raw }], { class: "plain" })];
  return new TreeBuilder(drawing, level).blocks(lexer().lex(raw));
}

/** Builds the tree of one block. */
class TreeBuilder {
  #drawing;
  #level;

  /**
   * @param {Drawing} drawing
   * @param {number} level  of a heading
   */
  constructor(drawing, level) {
    this.#drawing = drawing;
    this.#level = level;
  }

  /**
   * @param {Token[]} tokens
   * @param {boolean} [isNested]
   * @returns {TreeNode[]}
   */
  blocks(tokens, isNested = false) {
    return tokens.flatMap((token) => this.#block(/** @type {any} */ (token), isNested));
  }

  /**
   * @param {any} token
   * @param {boolean} isNested
   * @returns {TreeNode[]}
   */
  #block(token, isNested) {
    switch (token.type) {
      case "space":
      case "checkbox":
        return [];
      case "heading": {
        const title = this.#inline(token.tokens);
        if (isNested) return [element("p", [element("strong", title)], AUTO)];
        return [element(`h${this.#level || 6}`, title, AUTO)];
      }
      case "paragraph":
        return [element("p", this.#inline(token.tokens), AUTO)];
      case "text":
        return token.tokens ? this.#inline(token.tokens) : [{ text: token.text }];
      case "blockquote":
        return [element("blockquote", this.blocks(token.tokens, true), AUTO)];
      case "list":
        return [this.#list(token)];
      case "table":
        return [this.#table(token)];
      case "code":
        return [this.#code(token)];
      case "hr":
        return [element("hr", [])];
      default:
        return [element("p", [{ text: token.raw.trimEnd() }], { ...AUTO, class: token.type === "math" ? "math" : "plain" })];
    }
  }

  /**
   * @param {Tokens.List} list
   * @returns {ElementNode}
   */
  #list({ ordered, start, items }) {
    const children = items.map((item) => {
      const box = item.task ? [{ text: item.checked ? "\u2611 " : "\u2610 " }] : [];
      return element("li", merged([...box, ...this.blocks(item.tokens, true)]), item.task ? { ...AUTO, class: "task" } : AUTO);
    });
    /** @type {Record<string, string>} */
    const from = ordered && start !== 1 && start !== "" ? { start: String(start) } : {};
    return element(ordered ? "ol" : "ul", children, from);
  }

  /**
   * @param {Tokens.Table} table
   * @returns {ElementNode}
   */
  #table({ header, rows }) {
    /** @type {(cell: Tokens.TableCell, tag: string) => ElementNode} */
    const cell = ({ tokens, align }, tag) => {
      const cell = element(tag, this.#inline(tokens), { ...AUTO });
      if (tag === "th") cell.attributes.scope = "col";
      if (align) cell.attributes.class = `at-${align}`;
      return cell;
    };
    const head = element("thead", [element("tr", header.map((one) => cell(one, "th")))]);
    const body = rows.map((row) => element("tr", row.map((one) => cell(one, "td"))));
    const table = element("table", [head, ...(body.length ? [element("tbody", body)] : [])]);
    return element("div", [table], { class: "table", role: "region", tabindex: "0", "aria-label": this.#drawing.words.table });
  }

  /**
   * @param {Tokens.Code} code
   * @returns {ElementNode}
   */
  #code({ text, lang }) {
    const language = (lang ?? "").trim().split(/\s/)[0];
    const copy = element("button", [{ text: this.#drawing.words.copy }], { type: "button", class: "copy-code" });
    const head = element("div", [element("span", [{ text: language }]), copy], { class: "code-head" });
    const body = element("pre", [element("code", [{ text }])], { tabindex: "0", dir: "ltr" });
    return element("div", [head, body], { class: "code" });
  }

  /**
   * @param {Token[] | undefined} tokens
   * @param {boolean} [inLink]
   * @returns {TreeNode[]}
   */
  #inline(tokens, inLink = false) {
    return merged((tokens ?? []).flatMap((token) => this.#span(/** @type {any} */ (token), inLink)));
  }

  /**
   * @param {any} token
   * @param {boolean} inLink
   * @returns {TreeNode[]}
   */
  #span(token, inLink) {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return [element(token.type, this.#inline(token.tokens, inLink))];
      case "codespan":
        return [element("code", [{ text: token.text }])];
      case "br":
        return [element("br", [])];
      case "text":
        return token.tokens ? this.#inline(token.tokens, inLink) : [{ text: token.text }];
      case "escape":
        return [{ text: token.text }];
      case "link":
        return this.#link(token, inLink, () => this.#inline(token.tokens, true));
      case "image":
        return this.#link(token, inLink, () => [{ text: token.text || token.href }]);
      case "marker":
        return inLink ? [{ text: token.raw }] : [this.#marker(token.marker)];
      case "math":
        return [element("span", [{ text: token.raw }], { class: "math" })];
      case "checkbox":
        return [];
      default:
        return [{ text: token.raw }];
    }
  }

  /**
   * @param {Tokens.Link | Tokens.Image} token
   * @param {boolean} inLink
   * @param {() => TreeNode[]} label
   * @returns {TreeNode[]}
   */
  #link({ href, raw, text }, inLink, label) {
    const url = addressOf(href);
    if (url === null) return [{ text: raw }];
    if (inLink) return label();
    /** @type {Record<string, string>} */
    const attributes = { class: "link", href: url.href, rel: "noopener noreferrer nofollow", target: "_blank" };
    if (![text, `http://${text}`, `mailto:${text}`].includes(href)) attributes["data-to"] = url.host || url.pathname;
    return [element("a", label(), attributes)];
  }

  /**
   * `[1, 4]` as two links. The characters around the numbers are there for copied text, and not seen.
   *
   * @param {Marker} marker
   * @returns {ElementNode}
   */
  #marker({ numbers, parts, text }) {
    if (!numbers.some((n) => this.#drawing.anchorOf(n) !== null)) return element("span", [{ text }], {});
    const children = parts.map((part) => {
      if (part.n === null) return element("span", [{ text: part.text }], { class: "bracket" });
      const anchor = this.#drawing.anchorOf(part.n);
      if (anchor === null) return element("span", [{ text: part.text }], { class: "marker missing" });
      return element("a", [{ text: part.text }], { class: "marker", href: `#${anchor}`, "data-n": String(part.n) });
    });
    return element("span", children, { class: "markers" });
  }
}

const AUTO = { dir: "auto" };

/**
 * @param {string} tag
 * @param {TreeNode[]} children
 * @param {Record<string, string>} [attributes]
 * @returns {ElementNode}
 */
function element(tag, children, attributes = {}) {
  return { tag, attributes, children };
}

/**
 * Join texts that follow each other.
 *
 * @param {TreeNode[]} nodes
 * @returns {TreeNode[]}
 */
function merged(nodes) {
  /** @type {TreeNode[]} */
  const joined = [];
  for (const node of nodes) {
    const last = joined.at(-1);
    if (last && "text" in last && "text" in node) joined[joined.length - 1] = { text: last.text + node.text };
    else joined.push(node);
  }
  return joined;
}

/**
 * @param {string} href
 * @returns {URL | null} null where it is no address that may be followed
 */
function addressOf(href) {
  try {
    const url = new URL(href);
    return PROTOCOLS.includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/**
 * The text of a tree as it is read, with a line feed after each block.
 *
 * @param {TreeNode[]} nodes
 * @returns {string}
 */
export function textOf(nodes) {
  return nodes.map((node) => ("text" in node ? node.text : node.tag === "br" ? "\n" : textOf(node.children))).join("");
}
