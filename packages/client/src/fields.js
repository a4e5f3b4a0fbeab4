/** Reading values of frames leniently: what is missing or of another type becomes empty. */

import { safe } from "./safe.js";

/** @typedef {Record<string, unknown>} Json */

/**
 * @param {unknown} value
 * @returns {Json | null}
 */
export function asObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? /** @type {Json} */ (value) : null;
}

/**
 * @template T
 * @param {unknown} value
 * @param {(one: Json) => T | null} read
 * @returns {T[]}
 */
export function list(value, read) {
  const all = Array.isArray(value) ? value : [];
  return all.flatMap((one) => {
    const object = asObject(one);
    const item = object && read(object);
    return item === null ? [] : [item];
  });
}

/**
 * @param {unknown} value
 * @returns {string}
 */
export function text(value) {
  return typeof value === "string" ? safe(value) : "";
}

/**
 * @param {unknown} value
 * @returns {value is number}
 */
export function isCount(value) {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/**
 * @param {unknown} value
 * @returns {number | null}
 */
export function count(value) {
  return isCount(value) ? value : null;
}

/**
 * @param {unknown} value
 * @returns {number | null}
 */
export function amount(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

/**
 * @param {unknown} value
 * @returns {string[]}
 */
export function texts(value) {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string").map(safe) : [];
}
