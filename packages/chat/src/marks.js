/** The words of a passage that an answer's sentences rest on. */

/**
 * @typedef {[number, number]} Range  in UTF-16 units, without the end
 * @typedef {{ word: string, start: number, end: number }} Word
 */

/** What stands between quotation marks, of several languages. */
const QUOTED = /[“”„"«»‹›「『‘‚](?!\s)([^“”„"«»‹›「」『』]{2,600}?)[“”"«»‹›」』’]/g;
/** Scripts written without spaces: each character counts. */
const WORDS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}\p{M}]+/gu;
/** So many words in a row that are the same are no accident; of a quotation fewer do. */
const MIN_RUN = 5;
const MIN_QUOTED_RUN = 2;

/**
 * Find the words that sentences of an answer have in common with a passage: what they quote, and what they repeat.
 *
 * @param {string} passage
 * @param {string[]} sentences
 * @returns {Range[]} in order, apart from each other
 */
export function marksIn(passage, sentences) {
  const words = wordsOf(passage);
  const ranges = sentences.flatMap((sentence) => {
    const quoted = [...sentence.matchAll(QUOTED)].flatMap(([, quote]) => {
      const own = wordsOf(quote);
      return runsIn(words, own, Math.min(own.length, MIN_RUN)).filter(() => own.length >= MIN_QUOTED_RUN);
    });
    return quoted.length ? quoted : runsIn(words, wordsOf(sentence), MIN_RUN);
  });
  return joined(ranges);
}

/**
 * @param {string} text
 * @returns {Word[]}
 */
function wordsOf(text) {
  return [...text.matchAll(WORDS)].map(({ 0: word, index }) => {
    return { word: word.toLowerCase(), start: index, end: index + word.length };
  });
}

/**
 * @param {Word[]} passage
 * @param {Word[]} sentence
 * @param {number} least  words of a run
 * @returns {Range[]} the longest run at each place of the passage
 */
function runsIn(passage, sentence, least) {
  /** @type {Map<string, number[]>} */
  const places = new Map();
  sentence.forEach(({ word }, at) => places.set(word, [...(places.get(word) ?? []), at]));
  /** @type {Range[]} */
  const ranges = [];
  for (let at = 0; at < passage.length; ) {
    const length = Math.max(0, ...(places.get(passage[at].word) ?? []).map((from) => sameFrom(passage, at, sentence, from)));
    if (least > 0 && length >= least) {
      ranges.push([passage[at].start, passage[at + length - 1].end]);
      at += length;
    } else {
      at += 1;
    }
  }
  return ranges;
}

/**
 * @param {Word[]} passage
 * @param {number} at
 * @param {Word[]} sentence
 * @param {number} from
 */
function sameFrom(passage, at, sentence, from) {
  let length = 0;
  while (passage[at + length] && passage[at + length].word === sentence[from + length]?.word) length += 1;
  return length;
}

/**
 * @param {Range[]} ranges
 * @returns {Range[]}
 */
function joined(ranges) {
  /** @type {Range[]} */
  const apart = [];
  for (const [start, end] of ranges.sort((one, other) => one[0] - other[0])) {
    const last = apart.at(-1);
    if (last && start <= last[1] + 1) last[1] = Math.max(last[1], end);
    else apart.push([start, end]);
  }
  return apart;
}

/**
 * A part of a long passage to begin with: what is marked, and what is around it.
 *
 * @param {string} text
 * @param {Range[]} marks
 * @param {number} most  characters
 * @returns {Range} the whole where it is not much longer
 */
export function excerptOf(text, marks, most) {
  if (text.length <= most * 1.3) return [0, text.length];
  const [first = 0, last = 0] = [marks[0]?.[0], marks[0]?.[1]];
  const from = last <= most ? 0 : Math.max(0, first - Math.floor(most / 4));
  const start = from && from + text.slice(from, first).search(/(?<=\s)\S|$/);
  const cut = text.slice(start, start + Math.max(most, last - start + 40));
  const length = start + cut.length >= text.length ? cut.length : cut.search(/\s\S*$/);
  return [start, start + (length > 0 ? length : cut.length)];
}
