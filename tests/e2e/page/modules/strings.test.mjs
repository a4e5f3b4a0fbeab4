/** The texts of the four languages: the same ids and values in each, all of them used. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { known, LANGUAGES, said, t, told, useLanguage } from "../../../../packages/chat/src/i18n.js";

const ROOT = new URL("../../../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, ROOT), "utf8");
const strings = Object.fromEntries(LANGUAGES.map((tag) => [tag, JSON.parse(read(`packages/chat/strings/${tag}.json`))]));
const translated = (id) => id.startsWith("code.") || id.startsWith("said.");
const plural = (id) => /\.(one|other)$/.test(id) && `${id.replace(/\.\w+$/, "")}.one` in strings.en;
const base = (id) => (plural(id) ? id.replace(/\.\w+$/, "") : id);
const folders = ["web/", "packages/chat/src/", "packages/client/src/"];
const sources = folders.flatMap((folder) =>
  readdirSync(new URL(folder, ROOT))
    .filter((name) => /\.(js|html)$/.test(name))
    .map((name) => read(folder + name)),
);

test("no text is there twice", () => {
  for (const tag of LANGUAGES) {
    const lines = read(`packages/chat/strings/${tag}.json`).match(/^ {2}"/gm);
    assert.equal(lines.length, Object.keys(strings[tag]).length, tag);
  }
});

test("every language has every text, with the same values in it", () => {
  const values = (text) => [...new Set(text.match(/\{\w+\}/g) ?? [])].filter((one) => one !== "{count}").sort();
  for (const tag of LANGUAGES) {
    const own = Object.keys(strings[tag]).filter((id) => !translated(id));
    assert.deepEqual([...new Set(own.map(base))].sort(), [...new Set(Object.keys(strings.en).map(base))].sort(), tag);
    for (const id of own) {
      const english = strings.en[id] ?? strings.en[`${base(id)}.other`];
      assert.deepEqual(values(strings[tag][id]), values(english), `${tag}: ${id}`);
      assert.ok(strings[tag][id].trim(), `${tag}: ${id}`);
    }
    for (const category of new Intl.PluralRules(tag).resolvedOptions().pluralCategories) {
      if (category === "many") continue; // Spanish millions: as `other`
      for (const id of own.filter((one) => plural(one) && one.endsWith(".other"))) assert.ok(`${base(id)}.${category}` in strings[tag], id);
    }
  }
});

test("the other languages translate the same sentences and codes", () => {
  const ids = (tag) => Object.keys(strings[tag]).filter(translated).sort();
  const [first, ...others] = LANGUAGES.filter((tag) => tag !== "en");
  for (const tag of others) assert.deepEqual(ids(tag), ids(first), tag);
  for (const id of ids(first).filter((one) => one.startsWith("said."))) {
    const sentence = id.slice("said.".length).replace(/ (Try again\.|Trying again…)$/, "");
    assert.ok(sources.some((source) => source.includes(sentence)), `nothing says ${sentence}`);
  }
});

test("every text that is named exists, and every text is named", () => {
  const code = sources.join("\n");
  const named = [...code.matchAll(/\b(?:t|known)\(\s*"([\w.]+)"/g), ...code.matchAll(/data-t(?:-[\w-]+)?="([\w.]+)"/g)];
  for (const [, id] of named) assert.ok(known(id), id);
  const prefixes = [...code.matchAll(/`([a-z]+(?:\.\w+)*\.)\$\{/g)].map((found) => found[1]);
  for (const id of Object.keys(strings.en)) {
    const is = code.includes(`"${base(id)}"`) || code.includes(`"${id}"`) || prefixes.some((prefix) => id.startsWith(prefix));
    assert.ok(is || code.includes(`"${id.replace(/On$/, "")}"`), `nothing shows ${id}`);
  }
});

test("plural forms, values and numbers are those of the language", (context) => {
  context.after(() => useLanguage(["en"]));
  assert.equal(t("sources.count", { count: 1 }), "1 source");
  assert.equal(t("sources.count", { count: 1234 }), "1,234 sources");
  assert.equal(useLanguage(["fr-FR", "de-AT", "en"]), "de");
  assert.equal(t("sources.count", { count: 1 }), "1 Quelle");
  assert.equal(t("status.readingOf", { count: 3, searched: 1234 }), "3 von 1.234 durchsuchten Textstellen werden gelesen…");
  assert.equal(useLanguage(["ja"]), "ja");
  assert.equal(t("sources.count", { count: 1 }), "出典1件");
  assert.equal(useLanguage(["fr"]), "en");
});

test("the server's words are translated by their code, the client's by their sentence", (context) => {
  context.after(() => useLanguage(["en"]));
  assert.equal(told("model_busy", "The model is busy, in detail."), "The model is busy, in detail.");
  useLanguage(["es"]);
  assert.equal(told("model_busy", "The model is busy, in detail."), "El modelo está ocupado. Inténtelo en un momento.");
  assert.equal(told("not_known_here", "Something."), "Something.");
  assert.equal(said("Sign in to ask."), "Inicie sesión para preguntar.");
});
