// The small parts that every kind of text is made of: links, mentions, emoji, dates.

import { h } from "./dom.js";
import { emoji, fromPoints } from "./emoji.js";
import { iso, layout } from "./when.js";

const SAFE = /^(?:https?:|mailto:|tel:)/i;

/** A link that leaves this page, or plain text where the address is none that may be followed. */
export function link(url, children) {
  const inside = children ?? url.replace(/^mailto:/, "");
  if (!SAFE.test(url)) return h("span", {}, inside);
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer", title: url }, inside);
}

export function emojiNode(name, points) {
  const sign = points ? fromPoints(points) : emoji(name);
  return sign ? h("span", { class: "emoji", role: "img", "aria-label": name.replaceAll("_", " "), title: `:${name}:`, text: sign }) : `:${name}:`;
}

export const mention = (text, mine) => h("span", { class: mine ? "mention mine" : "mention", text });

/** A person's name. In: their id, what the text itself calls them, and the store. */
export function person(id, label, { store }) {
  return mention(`@${store.people.get(id)?.name ?? label ?? id}`, id === store.hello?.you);
}

export function channel(id, label, { store, open }) {
  const known = store.channels.get(id);
  if (!known) return mention(`#${label || id}`, false);
  return h("button", { type: "button", class: "mention", on: { click: () => open?.(id) }, text: `#${store.channelName(known)}` });
}

export function date(seconds, text, fallback, url) {
  const shown = layout(seconds, text);
  if (!shown) return fallback || text;
  const node = h("time", { datetime: shown.iso, title: iso(seconds), text: shown.text });
  return url ? link(url, node) : node;
}

/** Text in which only :names: of emoji mean something. */
export function withEmoji(text) {
  return text.split(/(:[a-z0-9_+'-]+:)/i).map((part) => {
    const name = part.length > 2 && part.startsWith(":") && part.endsWith(":") ? part.slice(1, -1).toLowerCase() : null;
    return name && emoji(name) ? emojiNode(name) : part;
  });
}
