// Slack's mrkdwn as nodes. The text comes escaped: &, < and > that people wrote are entities, so a "<" is always markup.

import { h, raw } from "./dom.js";
import { channel, date, emojiNode, link, mention, person, withEmoji } from "./inline.js";

const DEEP = 6; // marks within marks; deeper ones are shown as typed
const INLINE =
  /`([^`\n]+)`|<([^<>\n]+)>|(?<![\w*])\*(?!\s)([^*\n]+?)(?<!\s)\*(?![\w*])|(?<![\w_])_(?!\s)([^_\n]+?)(?<!\s)_(?![\w_])|(?<![\w~])~(?!\s)([^~\n]+?)(?<!\s)~(?![\w~])|(?<![\w:]):([a-z0-9_+'-]+):(?!\w)/gi;
const LINES = [
  ["quote", /^(?:&gt;|>) ?/],
  ["bullet", /^\s*[•◦▪] ?(?=\S)|^\s*- (?=\S)/],
  ["ordered", /^\s*\d{1,3}[.)] (?=\S)/],
];

/** In: escaped text; context has the store, and `open`, which shows a channel. Out: nodes. */
export function mrkdwn(text, context) {
  return text.split(/```([\s\S]*?)```/).flatMap((part, number) => {
    if (number % 2) return [h("pre", {}, h("code", {}, codeText(part.replace(/^\n|\n$/g, ""), context)))];
    return lines(number ? part.replace(/^\n/, "") : part, context);
  });
}

function lines(text, context) {
  const groups = [];
  for (const line of text.split("\n")) {
    const [kind, mark] = LINES.find(([, pattern]) => pattern.test(line)) ?? ["", null];
    const rest = mark ? line.replace(mark, "") : line;
    if (groups.at(-1)?.kind === kind) groups.at(-1).lines.push(rest);
    else groups.push({ kind, lines: [rest], first: parseInt(line, 10) || 1 });
  }
  return groups.flatMap((group) => grouped(group, context));
}

function grouped({ kind, lines: texts, first }, context) {
  if (kind === "quote") return [h("blockquote", {}, inline(texts.join("\n"), context))];
  if (kind === "bullet") return [h("ul", {}, texts.map((each) => h("li", {}, inline(each, context))))];
  if (kind === "ordered") return [h("ol", { start: first }, texts.map((each) => h("li", {}, inline(each, context))))];
  const text = texts.join("\n");
  return text.trim() ? [h("p", {}, inline(text.replace(/^\n+|\n+$/g, ""), context))] : [];
}

export function inline(text, context, depth = 0) {
  const nodes = [];
  let start = 0;
  for (const found of depth < DEEP ? text.matchAll(INLINE) : []) {
    nodes.push(...leaf(text.slice(start, found.index)));
    nodes.push(made(found, context, depth));
    start = found.index + found[0].length;
  }
  return [...nodes, ...leaf(text.slice(start))];
}

const leaf = (text) => (text ? [raw(text)] : []);

function made([whole, code, tag, bold, italic, strike, sign], context, depth) {
  if (code) return h("code", {}, codeText(code, context));
  if (tag) return markup(tag, context) ?? raw(whole);
  if (bold) return h("strong", {}, inline(bold, context, depth + 1));
  if (italic) return h("em", {}, inline(italic, context, depth + 1));
  if (strike) return h("s", {}, inline(strike, context, depth + 1));
  return emojiNode(sign.toLowerCase());
}

// In code only Slack's own <…> mean something: an address that Slack found there is a link still.
function codeText(text, context) {
  return text.split(/<([^<>\n]+)>/).map((part, number) => (number % 2 ? markup(part, context) ?? raw(`<${part}>`) : raw(part)));
}

/** What stands between < and >, or null if it is nothing that Slack would have put there. */
function markup(tag, context) {
  const bar = tag.indexOf("|");
  const [target, label] = bar < 0 ? [tag, ""] : [tag.slice(0, bar), raw(tag.slice(bar + 1))];
  if (target.startsWith("@")) return person(target.slice(1), label, context);
  if (target.startsWith("#")) return channel(target.slice(1), label, context);
  if (target.startsWith("!date^")) {
    const [, seconds, text = "", url] = target.split("^");
    return date(seconds, raw(text), label, url && raw(url));
  }
  if (target.startsWith("!subteam^")) return mention(label || "@group", false);
  if (target.startsWith("!")) return mention(`@${label || target.slice(1)}`, true);
  if (!/^[a-z]+:/i.test(target)) return null;
  return link(raw(target), label ? withEmoji(label) : null);
}

/** A text object of Block Kit. Out: nodes. */
export function textObject(part, context) {
  if (!part) return [];
  return part.type === "mrkdwn" ? mrkdwn(part.text, context) : plain(part);
}

/** A plain text; names between colons are emoji unless it says that they are not. */
const plain = (part) => (part?.emoji === false ? [raw(part.text)] : withEmoji(raw(part?.text ?? "")));

/** A text object where there is room for one line only. */
export function textLine(part, context) {
  return part?.type === "mrkdwn" ? inline(part.text, context) : plain(part);
}

/** What a text object says without its marks: for labels and announcements. */
export function plainText(part) {
  return raw(String(part?.text ?? "").replace(/<[^<>|]*\|([^<>]*)>/g, "$1").replace(/[`*~]/g, "")).trim();
}
