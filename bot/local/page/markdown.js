// Standard Markdown, as markdown blocks carry it: the part of it that models write.

import { h } from "./dom.js";
import { channel, emojiNode, link, mention, person } from "./inline.js";

const DEEP = 6;
const INLINE =
  /\\([\\`*_{}[\]()#+.!~|<>-])|(`+)(?!`)([\s\S]*?[^`])\2(?!`)|!?\[([^\]\n]*)\]\((<[^>\n]*>|[^\s()]+(?:\([^\s()]*\))?)(?:\s+"[^"\n]*")?\)|\*\*(?!\s)([^\n]+?)\*\*(?!\*)|__(?!\s)([^\n]+?)__(?![\w_])|\*(?!\s)([^*\n]+?)(?<!\s)\*|(?<!\w)_(?!\s)([^_\n]+?)(?<!\s)_(?!\w)|~~([^~\n]+)~~|<([@#!][^<>\n]+)>|<?(https?:\/\/[^\s<>`]*[^\s<>`.,;:!?)'"\]*_~])>?|(?<![\w:]):([a-z0-9_+'-]+):(?!\w)/gi;
const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+-]*)/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}> ?/;
const ROW = /^\s*\|.*\|\s*$/;
const DASHES = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/;

/** In: Markdown as it was sent. Out: nodes. */
export function markdown(text, context, depth = 0) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const nodes = [];
  let at = 0;
  const take = (test) => {
    const from = at;
    while (at < lines.length && test(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = line.match(FENCE);
    const heading = line.match(HEADING);
    if (!line.trim()) at += 1;
    else if (fence) {
      at += 1;
      const code = take((each) => !each.trim().startsWith(fence[1]));
      at += 1;
      nodes.push(h("pre", { "data-language": fence[2] || null }, h("code", { text: code.join("\n") })));
    } else if (heading) {
      at += 1;
      // Below the page's own headings, whatever level the writer chose.
      nodes.push(h(`h${Math.min(heading[1].length + 3, 6)}`, { class: `heading-${heading[1].length}` }, inline(heading[2], context)));
    } else if (RULE.test(line)) {
      at += 1;
      nodes.push(h("hr"));
    } else if (QUOTE.test(line) && depth < DEEP) {
      nodes.push(h("blockquote", {}, markdown(take((each) => QUOTE.test(each)).map((each) => each.replace(QUOTE, "")).join("\n"), context, depth + 1)));
    } else if (ROW.test(line) && DASHES.test(lines[at + 1] ?? "")) {
      nodes.push(table(take((each) => ROW.test(each)), context));
    } else if (ITEM.test(line) && depth < DEEP) {
      nodes.push(list(take((each) => ITEM.test(each) || /^\s{2,}\S/.test(each)), context, depth));
    } else {
      const first = at;
      const words = take((each, here = at) => each.trim() && (here === first || !starts(each)));
      nodes.push(h("p", {}, inline(words.join("\n"), context)));
    }
  }
  return nodes;
}

const starts = (line) => [FENCE, HEADING, QUOTE, ITEM, RULE].some((pattern) => pattern.test(line));

function list(lines, context, depth) {
  const [, indent, mark] = lines[0].match(ITEM);
  const items = [];
  for (const line of lines) {
    const found = line.match(ITEM);
    if (found && found[1].length <= indent.length) items.push([found[3]]);
    else items.at(-1).push(line.replace(/^\s{1,4}/, ""));
  }
  const made = items.map(([first, ...rest]) => h("li", {}, task(first, context), rest.length ? markdown(rest.join("\n"), context, depth + 1) : []));
  return /\d/.test(mark) ? h("ol", { start: parseInt(mark, 10) }, made) : h("ul", {}, made);
}

function task(text, context) {
  const found = text.match(/^\[([ xX])\]\s+(.*)$/);
  return found ? [found[1] === " " ? "☐ " : "☑ ", ...inline(found[2], context)] : inline(text, context);
}

function table(lines, context) {
  const rows = lines.map((line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim()));
  const cells = (row, tag) => h("tr", {}, row.map((cell) => h(tag, {}, inline(cell, context))));
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table" },
    h("table", {}, h("thead", {}, cells(rows[0], "th")), h("tbody", {}, rows.slice(2).map((row) => cells(row, "td")))));
}

function inline(text, context, depth = 0) {
  const nodes = [];
  let start = 0;
  for (const found of depth < DEEP ? text.matchAll(INLINE) : []) {
    nodes.push(text.slice(start, found.index), made(found, context, depth));
    start = found.index + found[0].length;
  }
  return [...nodes, text.slice(start)];
}

function made([whole, escaped, , code, label, target, bold, bold2, italic, italic2, strike, slack, url, sign], context, depth) {
  const within = (part) => inline(part, context, depth + 1);
  if (escaped) return escaped;
  if (code) return h("code", { text: code.replace(/^ (.*) $/s, "$1") });
  if (target) return link(target.replace(/^<|>$/g, ""), whole.startsWith("!") ? `🖼 ${label || "image"}` : within(label));
  if (bold ?? bold2) return h("strong", {}, within(bold ?? bold2));
  if (italic ?? italic2) return h("em", {}, within(italic ?? italic2));
  if (strike) return h("s", {}, within(strike));
  if (slack?.startsWith("@")) return person(slack.slice(1).split("|")[0], null, context);
  if (slack?.startsWith("#")) return channel(slack.slice(1).split("|")[0], null, context);
  if (slack) return mention(`@${slack.slice(1)}`, true);
  if (url) return link(url, null);
  return emojiNode(sign.toLowerCase());
}
