// rich_text blocks as nodes. Nothing in them is escaped.

import { h } from "./dom.js";
import { channel, date, emojiNode, link, mention, person, withEmoji } from "./inline.js";

const MARKS = [["code", "code"], ["bold", "strong"], ["italic", "em"], ["strike", "s"], ["underline", "u"]];
const BULLETS = ["disc", "circle", "square"];

export function richText(block, context) {
  return block.elements.map((part) => parts[part.type]?.(part, context) ?? h("p", { class: "odd", text: `(${part.type})` }));
}

const leaves = (part, context) => part.elements.map((leaf) => styled(leaf, context));

const parts = {
  rich_text_section: (part, context) => h("p", {}, leaves(part, context)),
  rich_text_quote: (part, context) => h("blockquote", {}, leaves(part, context)),
  // Nothing in it is parsed: a name between colons is no emoji here.
  rich_text_preformatted: (part, context) => h("pre", {}, h("code", {}, isDiff(part) ? diff(part.elements[0].text) : part.elements.map((leaf) => (leaf.type === "text" ? leaf.text : styled(leaf, context))))),
  rich_text_list: (part, context) => {
    const indent = Math.min(part.indent ?? 0, 5);
    const items = part.elements.map((item) => h("li", {}, item.type === "rich_text_section" ? leaves(item, context) : richText({ elements: [item] }, context)));
    const list = part.style === "ordered" ? h("ol", { start: (part.offset ?? 0) + 1 }, items) : h("ul", {}, items);
    list.classList.add(`indent-${indent}`, `mark-${BULLETS[indent % BULLETS.length]}`);
    return list;
  },
};

// A diff is known by its form, as the bot writes them; colours are all that depends on it.
const FILE = /^--- [^\n]*\n\+\+\+ [^\n]*\n@@ /m;
const EDIT = /^(?:[-+ ] [^\n]*|⋯)(?:\n(?:[-+ ] [^\n]*|⋯))*$/;
const isDiff = ({ elements: [leaf, ...more] }) => leaf?.type === "text" && !more.length && (FILE.test(leaf.text) || (EDIT.test(leaf.text) && /^\+ /m.test(leaf.text)));

const COLOURS = { "+": "came", "-": "went", "@": "where", "\\": "where", "⋯": "where" };

function diff(text) {
  let header = FILE.test(text); // and whatever is said before it
  return text.split("\n").flatMap((line, number) => {
    if (line.startsWith("@@ ")) header = false;
    const kind = header ? /^(---|\+\+\+) /.test(line) && "where" : COLOURS[line[0]];
    return [number ? "\n" : "", kind ? h("span", { class: `line ${kind}`, text: line }) : line];
  });
}

function styled(leaf, context) {
  const node = kinds[leaf.type]?.(leaf, context) ?? `(${leaf.type})`;
  return MARKS.reduce((inside, [style, tag]) => (leaf.style?.[style] ? h(tag, {}, inside) : inside), node);
}

const kinds = {
  text: (leaf) => (leaf.style?.code ? [leaf.text] : withEmoji(leaf.text)),
  link: (leaf) => link(leaf.url, leaf.text),
  user: (leaf, context) => person(leaf.user_id, null, context),
  channel: (leaf, context) => channel(leaf.channel_id, null, context),
  emoji: (leaf) => emojiNode(leaf.name, leaf.unicode),
  broadcast: (leaf) => mention(`@${leaf.range}`, true),
  usergroup: (leaf) => mention(`@${leaf.usergroup_id}`, false),
  color: (leaf) => h("code", { text: leaf.value }),
  date: (leaf) => date(leaf.timestamp, leaf.format, leaf.fallback, leaf.url),
};
