/** Markdown of answers as data: what is allowed, what stays text, how it grows, and how long it takes at worst. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { blocksOf, textOf, treeOf } from "../../../../packages/chat/src/markdown.js";
import { completed } from "../../../../packages/chat/src/markdown_stream.js";
import { seeded } from "./support.mjs";

const SOURCES = 5;
const drawing = { anchorOf: (n) => (n <= SOURCES ? `s${n}` : null), words: { copy: "", table: "Table" } };
const TAGS = new Set(
  "p h3 h4 h5 h6 ul ol li blockquote hr br strong em del code pre a span div table thead tbody tr th td button".split(" "),
);
/** As Markdown; a longer text is shown as it is. */
const MAX_CHARS = 50_000;
/** Of the processor, in microseconds: whatever else the machine does. */
const MAX_CPU_US = 3_000_000;

const trees = (text) => blocksOf(text).flatMap((block) => treeOf(block, drawing));
const all = (nodes) => nodes.flatMap((node) => ("text" in node ? [] : [node, ...all(node.children)]));
const elements = (text, tag) => all(trees(text)).filter((node) => node.tag === tag);
const shown = (node) =>
  "text" in node ? node.text : `<${node.tag}>${node.children.map(shown).join("")}</${node.tag}>`;
const html = (text) => trees(text).map(shown).join("");
const chips = (text) =>
  all(trees(text)).filter((node) => node.attributes.class === "marker").map((node) => Number(node.attributes["data-n"]));

test("headings stand below the page's own, and none is skipped", () => {
  const tags = (text) => trees(text).map(({ tag }) => tag);
  assert.deepEqual(tags("# A\n\n### B\n\n## C\n\n# D"), ["h3", "h4", "h4", "h3"]);
  assert.deepEqual(tags("#### A\n\n## B\n\n### C\n\n#### D\n\n##### E\n\n###### F"), ["h3", "h3", "h4", "h5", "h6", "h6"]);
  assert.equal(html("> # Q"), "<blockquote><p><strong>Q</strong></p></blockquote>");
});

test("lists, tasks, tables, code, emphasis and breaks are drawn", () => {
  assert.equal(html("- a\n- **b** *c* ~~d~~ `e`"), "<ul><li>a</li><li><strong>b</strong> <em>c</em> <del>d</del> <code>e</code></li></ul>");
  assert.equal(elements("3. c\n4. d", "ol")[0].attributes.start, "3");
  assert.equal(html("- [x] a\n- [ ] b"), "<ul><li>☑ a</li><li>☐ b</li></ul>");
  assert.equal(html("a\nb<br>c"), "<p>a<br></br>b<br></br>c</p>");
  const [table] = elements("| a | b |\n|:-:|--:|\n| 1 | 2 |", "table");
  assert.deepEqual(all([table]).filter(({ tag }) => tag === "td").map((cell) => cell.attributes.class), ["at-center", "at-right"]);
  const code = html("```py title\nx = [1]\n```");
  assert.ok(code.includes("<span>py</span>") && code.includes("<code>x = [1]</code>"), code);
  assert.equal(html("a\n\n---\n\nb"), "<p>a</p><hr></hr><p>b</p>");
});

test("citation markers are links wherever they stand, but in code and in links", () => {
  const text = "# T [1]\n\na **b [2]**\n\n- c [3, 4]\n\n| x |\n|---|\n| y [Doc 5: my_file_a.pdf, Page 4] |\n\n> q [1-3]";
  assert.deepEqual(chips(text), [1, 2, 3, 4, 5, 1, 3]);
  assert.deepEqual(chips("`[1]`\n\n```\n[1]\n```\n\n[a [2]](https://x.org) \\[3\\] [9]"), []);
  assert.deepEqual(chips("[1](https://x.org) and\n[2]: https://x.org"), [1, 2]);
  assert.deepEqual(chips("*so [1]* and __[2]__ [3][4] [a] [1a] [2024]"), [1, 2, 3, 4]);
});

test("formulas stay as they are written, and prices are no formulas", () => {
  for (const formula of ["$a_1 * b_2 * c_3$", "\\(a*b*c\\)", "$$\na_1\n- b\n$$", "\\[\n*x* = _y_\n\\]"]) {
    assert.equal(textOf(trees(formula)).replace(/\n$/, ""), formula);
    assert.deepEqual(elements(formula, "em"), []);
  }
  assert.equal(html("It costs $5 *or* $10, US$3."), "<p>It costs $5 <em>or</em> $10, US$3.</p>");
  assert.deepEqual(chips("From $5 [1] to 6$ [2]."), [1, 2]);
});

test("links lead to the web and to mail alone; images are links", () => {
  const targets = (text) => elements(text, "a").map(({ attributes }) => attributes.href);
  assert.deepEqual(targets("[a](https://x.org/y) <mailto:a@b.org> ![p](http://x.org/p.png) https://z.org"), [
    "https://x.org/y",
    "mailto:a@b.org",
    "http://x.org/p.png",
    "https://z.org/",
  ]);
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)", "data:text/html,x",
    "vbscript:x", "file:///etc/passwd", "//evil.example", "/here", "#there", "&#106;avascript:alert(1)", "blob:https://x/1", "java%0ascript:x"]) {
    for (const text of [`[x](${href})`, `![x](${href})`, `<${href}>`, `[x](<${href}>)`, `[x]: ${href}\n\n[x]`]) {
      for (const target of targets(text)) assert.match(target, /^(https?:|mailto:)/, text);
    }
  }
  for (const link of elements("[a](https://x.org)", "a")) assert.match(link.attributes.rel, /noopener/);
});

test("a link whose words are not its address names the host", () => {
  const hosts = (text) => elements(text, "a").map(({ attributes }) => attributes["data-to"] ?? null);
  assert.deepEqual(hosts("https://x.org/y www.x.org <mailto:a@b.org> a@b.org"), [null, null, null, null]);
  assert.deepEqual(hosts("[sign in](https://evil.example/?q=secret) ![p](https://evil.example/p.png)"), ["evil.example", "evil.example"]);
  assert.deepEqual(hosts("[https://x.org](https://user@evil.example:8443) [x.org](mailto:a@evil.example)"), ["evil.example:8443", "a@evil.example"]);
  assert.match(hosts("[paypal](https://p\u0430ypal.example)")[0], /^xn--/);
});

test("HTML is text", () => {
  for (const text of ["<img src=x onerror=alert(1)>", "a <script>alert(1)</script> b", "<div>\n**a**\n</div>", "<!-- x -->", "<b onclick=x>"]) {
    assert.ok(all(trees(text)).every(({ tag }) => ["p", "strong", "br", "span"].includes(tag)), html(text));
    assert.ok(textOf(trees(text)).includes(text.split("\n")[0]), text);
  }
});

// --- documents at random ---

const WORDS = ["key", "Corin", "gate", "naïve", "ワード", "1986", "bell.", "don't", "x<y", "A&B", "(so)", "שלום"];

/** A well-formed document. */
function written(random) {
  const pick = (from) => from[Math.floor(random() * from.length)];
  const words = (most) => Array.from({ length: 1 + Math.floor(random() * most) }, () => pick(WORDS)).join(" ");
  const spans = [
    () => words(5),
    () => `**${words(3)}**`,
    () => `*${words(2)}*`,
    () => `**a *${words(2)}* b**`,
    () => `\`${words(2)}\``,
    () => `~~${words(2)}~~`,
    () => `${words(2)} [${1 + Math.floor(random() * 4)}]`,
    () => `${words(2)} [1, 3]`,
    () => `${words(2)} [Doc 2: a_b_c.pdf, Page 4]`,
  ];
  const line = () => Array.from({ length: 1 + Math.floor(random() * 4) }, () => pick(spans)()).join(" ");
  const rows = (make) => Array.from({ length: 1 + Math.floor(random() * 3) }, make).join("\n");
  const blocks = [
    line,
    () => `${line()}\n${line()}`,
    () => `${"#".repeat(1 + Math.floor(random() * 4))} ${words(4)}`,
    () => rows(() => `- ${line()}`),
    () => `- ${line()}\n  - ${line()}`,
    () => `1. ${line()}\n2. ${line()}`,
    () => `> ${line()}`,
    () => `\`\`\`js\n${words(4)}\n\n  **${words(2)}**\n\`\`\``,
    () => `| ${words(2)} | ${line()} |\n|---|:--|\n${rows(() => `| ${line()} | ${words(2)} |`)}`,
    () => "---",
  ];
  return Array.from({ length: 1 + Math.floor(random() * 5) }, () => pick(blocks)()).join("\n\n");
}

/** Characters that mean something, in any order. */
function scrambled(random, length) {
  const pieces = ["*", "**", "_", "`", "```", "~~", "[", "]", "(", ")", "<", ">", "|", "---", "\n", "\n\n", "# ", "- ", "1. ", "> ", "$", "\\",
    "[1]", "a", "b ", " ", "    ", "!", "https://x.org", "javascript:", "<b>", "&lt;", "$$", "\t", "=", "[x] "];
  return Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]).join("");
}

test("whatever is written, only what is allowed is drawn, and no word is lost", () => {
  const random = seeded(7);
  for (let round = 0; round < 600; round += 1) {
    const text = scrambled(random, 1 + Math.floor(random() * 60));
    for (const { tag, attributes } of all([...trees(text), ...trees(completed(text))])) {
      assert.ok(TAGS.has(tag), tag);
      assert.ok(Object.keys(attributes).every((name) => !name.startsWith("on") && name !== "style" && name !== "src"));
      if (tag === "a") assert.match(attributes.href, /^(https?:\/\/|mailto:|#s\d$)/);
    }
    const letters = (from) => from.match(/[ab]/g)?.length ?? 0;
    const links = /https|javascript|<b>/.test(text) || /```/.test(text);
    if (!links) assert.equal(letters(textOf(trees(text))), letters(text), JSON.stringify(text));
  }
});

test("a growing answer shows the beginning of what it will be, without its signs", () => {
  const random = seeded(11);
  for (let round = 0; round < 40; round += 1) {
    const text = written(random);
    const whole = trees(text);
    const [final, tags] = [textOf(whole).replace(/\s/g, ""), whole.map(({ tag }) => tag)];
    for (let end = 1; end <= text.length; end += 1) {
      const now = trees(completed(text.slice(0, end)));
      const seen = textOf(now).replace(/\s/g, "");
      assert.ok(final.startsWith(seen), JSON.stringify([text.slice(0, end), seen.slice(-20)]));
      assert.deepEqual(now.map(({ tag }) => tag), tags.slice(0, now.length), JSON.stringify(text.slice(0, end)));
    }
  }
});

test("blocks before the last two stay as they are", () => {
  const random = seeded(13);
  for (let round = 0; round < 60; round += 1) {
    const text = written(random);
    const final = blocksOf(text).map(({ raw }) => raw.trimEnd());
    for (let end = 1; end <= text.length; end += 3) {
      const now = blocksOf(completed(text.slice(0, end))).map(({ raw }) => raw.trimEnd());
      assert.deepEqual(now.slice(0, -2), final.slice(0, Math.max(0, now.length - 2)));
    }
  }
});

test("no text keeps the page busy, however it is made", () => {
  const makers = ["> ", "- ", "*a ", "**a _b ", "[", "[a](", "`", "` `` ``` ", "word ", "a@b.c", "~~a ", "<", "![", "\\", " ", "a\n", "> a\n",
    "- a\n", "# a\n", "$a ", "[1]", "[1", "|a", "http://a.b/", "$$", "\\(", "_a", "1. ", "  - a\n", "\\[", "&", "<br>"];
  const depth = (nodes) => Math.max(0, ...nodes.slice(0, 9).map((node) => ("text" in node ? 0 : 1 + depth(node.children))));
  for (const piece of makers) {
    for (const length of [MAX_CHARS, 2 * MAX_CHARS]) {
      const text = `${piece.repeat(Math.ceil(length / piece.length)).slice(0, length - 1)}x`;
      const started = process.cpuUsage();
      assert.ok(depth(trees(completed(text))) < 40, piece);
      const { user } = process.cpuUsage(started);
      assert.ok(user < MAX_CPU_US, `${JSON.stringify(piece)} × ${length}: ${user / 1000} ms`);
    }
  }
});
