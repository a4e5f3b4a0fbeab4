/** Draws a tree of elements and text, and changes only what differs: selection and focus in the rest stay. */

import { el } from "./dom.js";

/**
 * @import { TreeNode } from "./markdown.js"
 *
 * @typedef {{ tree: TreeNode, node: Element | Text, children: Drawn[] }} Drawn
 */

export class TreeView {
  #parent;
  /** @type {Drawn[]} */
  #drawn = [];

  /** @param {Element} parent  whose only children these are */
  constructor(parent) {
    this.#parent = parent;
  }

  /** @param {TreeNode[]} trees  a tree that was not made anew is not looked at */
  update(trees) {
    this.#drawn = changed(this.#parent, this.#drawn, trees);
  }
}

/**
 * @param {Element} parent
 * @param {Drawn[]} drawn
 * @param {TreeNode[]} trees
 * @returns {Drawn[]}
 */
function changed(parent, drawn, trees) {
  const now = trees.map((tree, place) => {
    const was = drawn[place];
    if (was && fits(was, tree)) return was;
    const is = build(tree);
    if (was) was.node.replaceWith(is.node);
    else parent.append(is.node);
    return is;
  });
  for (const { node } of drawn.slice(trees.length)) node.remove();
  return now;
}

/**
 * Change what is drawn to be like a tree, where it can be.
 *
 * @param {Drawn} was
 * @param {TreeNode} tree
 * @returns {boolean}
 */
function fits(was, tree) {
  if (was.tree === tree) return true;
  if ("text" in tree) {
    if (!("text" in was.tree)) return false;
    const before = was.tree.text;
    const node = /** @type {Text} */ (was.node);
    if (tree.text.startsWith(before)) node.appendData(tree.text.slice(before.length));
    else node.data = tree.text;
  } else {
    if ("text" in was.tree || was.tree.tag !== tree.tag) return false;
    if (JSON.stringify(was.tree.attributes) !== JSON.stringify(tree.attributes)) return false;
    was.children = changed(/** @type {Element} */ (was.node), was.children, tree.children);
  }
  was.tree = tree;
  return true;
}

/**
 * @param {TreeNode} tree
 * @returns {Drawn}
 */
function build(tree) {
  if ("text" in tree) return { tree, node: document.createTextNode(tree.text), children: [] };
  const children = tree.children.map(build);
  const node = el(/** @type {any} */ (tree.tag), tree.attributes, ...children.map((child) => child.node));
  return { tree, node, children };
}
