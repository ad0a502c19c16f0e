// One message: who, when, what, its reactions, and what may be done with it.

import { avatar } from "./avatar.js";
import { blocks } from "./blocks.js";
import { ask } from "./confirm.js";
import { h, icon, iconButton, raw } from "./dom.js";
import { sign } from "./elements.js";
import { withMenu } from "./menu.js";
import { mrkdwn } from "./mrkdwn.js";
import { full, iso, time } from "./when.js";

const CARD = new Set(["section", "header", "actions", "input", "table", "card"]);

export const isCard = (message, bot) => message.user === bot && (message.blocks ?? []).some((block) => CARD.has(block.type));
export const isWaiting = (message) => (message.blocks ?? []).some((block) => block.type === "actions");

/** In: a message; the app; how it stands: where (channel or thread), follows (the same author wrote just before),
 *  replies (of its thread, shown in a channel), unread of those. */
export function messageNode(message, app, { where, follows, replies, unread }) {
  const { store } = app;
  const surface = messageSurface(message, app, where);
  const card = isCard(message, store.hello.bot) && !message.notice;
  const stone = message.subtype === "tombstone";
  const author = store.author(message);
  const bot = store.people.get(message.user)?.bot || message.bot_id;
  const editing = app.editing === message.ts;
  const kind = ["message", follows && "follows", message.notice && "notice", card && "has-card", card && isWaiting(message) && "waiting"];
  return h("article", {
    class: kind.filter(Boolean).join(" "), tabindex: -1, "aria-label": `${author}, ${time(message.ts)}`,
    "data-testid": message.notice ? "notice" : "message", "data-ts": message.ts, "data-author": message.user, "data-focus": `message-${where}-${message.ts}`,
  },
    follows ? h("time", { class: "aside", datetime: iso(message.ts), title: full(message.ts), text: time(message.ts) }) : avatar(message.user, store),
    h("div", { class: "content" },
      message.notice && h("p", { class: "only" }, icon("eye", 14), "Only visible to you"),
      !follows && h("header", {}, h("strong", { class: "author", text: author }), bot && h("span", { class: "badge", text: "app" }),
        h("time", { datetime: iso(message.ts), title: full(message.ts), text: time(message.ts) })),
      editing ? editor(message, app) : h("div", { class: card ? "card" : "body" }, stone ? h("p", { class: "odd", text: raw(message.text) }) : said(message, surface)),
      message.edited && !editing && h("small", { class: "edited", text: "(edited)" }),
      reactions(message, app),
      replies?.length > 0 && threadBar(message, app, replies, unread)),
    !stone && !editing && tools(message, app, where));
}

export function messageSurface(message, app, where) {
  const place = `${message.channel}:${message.ts}`;
  return { ...app.surface(), prefix: `${where}-${message.ts}`, values: app.values(place), redraw: () => app.refresh(`message ${place}`),
    standing: (block, action) => app.acts.standing(`message ${place} ${block} ${action}`),
    act: (part, block, value) => app.acts.click(`message ${place} ${block} ${part.action_id}`, {
      channel: message.channel, ts: message.ts, action_id: part.action_id, block_id: block, value }) };
}

function said(message, surface) {
  const body = message.blocks?.length ? blocks(message.blocks, surface) : [h("div", { class: "text" }, mrkdwn(message.text ?? "", surface))];
  const more = (message.attachments ?? []).map((each) => h("div", { class: "attachment" }, each.blocks ? blocks(each.blocks, surface) : mrkdwn(each.text ?? each.fallback ?? "", surface)));
  const files = (message.files ?? []).map((each) => h("span", { class: "file", text: each.name }));
  return [...body, ...more, ...files];
}

function reactions(message, app) {
  const { store } = app;
  if (!message.reactions) return null;
  return h("div", { class: "reactions" }, message.reactions.map((each) => {
    const mine = each.users.includes(store.hello.you);
    const points = store.hello.emoji[each.name];
    const who = each.users.map((user) => store.name(user)).join(", ");
    return h("button", { type: "button", class: "reaction", "aria-pressed": String(mine), title: who, "aria-label": `${each.name.replaceAll("_", " ")}, ${each.count}: ${who}`,
      "data-focus": `reaction-${message.ts}-${each.name}`, "data-testid": `reaction-${each.name}`, disabled: !points, on: { click: () => react(message, app, each.name) } },
      h("span", { class: "sign", "aria-hidden": "true" }, points ? sign(each.name, points) : `:${each.name}:`), h("span", { "aria-hidden": "true", text: each.count }));
  }));
}

const react = (message, app, name) => app.ask("react", { channel: message.channel, ts: message.ts, name });

function threadBar(message, app, replies, unread) {
  const people = [...new Set(replies.map((reply) => reply.user))].slice(0, 4);
  const waiting = replies.filter((reply) => isWaiting(reply) && isCard(reply, app.store.hello.bot)).length;
  return h("button", { type: "button", class: "thread-bar", "data-testid": "open-thread", "data-focus": `bar-${message.ts}`, on: { click: () => app.openThread(message.channel, message.ts) } },
    h("span", { class: "faces" }, people.map((user) => avatar(user, app.store, true))),
    h("span", { class: "count", text: `${replies.length} ${replies.length === 1 ? "reply" : "replies"}` }),
    waiting > 0 && h("span", { class: "pill wait", text: waiting === 1 ? "waits for an answer" : `${waiting} wait for an answer` }),
    unread > 0 && h("span", { class: "pill new", text: `${unread} new` }),
    h("span", { class: "last", text: `last at ${time(replies.at(-1).ts)}` }));
}

function tools(message, app, where) {
  const { store } = app;
  const mine = message.user === store.hello.you;
  const focus = (name) => ({ "data-focus": `${name}-${where}-${message.ts}`, "data-testid": name });
  const made = message.notice
    ? [iconButton("close", "Dismiss", () => app.dismiss(message), focus("dismiss"))]
    : [
        withMenu(iconButton("smile", "Add a reaction", () => {}, focus("react")), () => Object.entries(store.hello.emoji).map(([name, points]) => ({
          label: sign(name, points), name: name.replaceAll("_", " "), data: { emoji: name }, pick: () => react(message, app, name) })), { wide: true }),
        where === "channel" && iconButton("reply", "Reply in thread", () => app.openThread(message.channel, message.thread_ts ?? message.ts), focus("reply")),
        mine && iconButton("edit", "Edit", () => app.edit(message), focus("edit")),
        mine && iconButton("trash", "Delete", () => remove(message, app), focus("delete")),
      ].filter(Boolean);
  return roving(h("div", { role: "toolbar", "aria-label": "Message actions", class: "tools" }, made));
}

/** A toolbar is one stop for the Tab key; arrows move within it. */
function roving(bar) {
  const buttons = () => [...bar.querySelectorAll(".icon-button")];
  buttons().forEach((button, number) => (button.tabIndex = number ? -1 : 0));
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = buttons().indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    buttons()[(at + step + buttons().length) % buttons().length].focus();
  });
  return bar;
}

async function remove(message, app) {
  const sure = await ask({ title: "Delete this message?", body: "It goes for everybody, and cannot come back.", yes: "Delete", no: "Keep", danger: true });
  if (sure) app.ask("delete", { channel: message.channel, ts: message.ts });
}

/** A message's text as its author typed it, near enough to be edited. */
export function typedAgain(text, store) {
  return raw((text ?? "")
    .replace(/<@(\w+)(?:\|[^>]*)?>/g, (_, id) => `@${store.name(id)}`)
    .replace(/<#(\w+)(?:\|([^>]*))?>/g, (_, id, name) => `#${name || store.channels.get(id)?.name || id}`)
    .replace(/<!(\w+)>/g, "@$1")
    .replace(/<([^<>|]+)\|([^<>]+)>/g, "$2")
    .replace(/<([^<>]+)>/g, "$1"));
}

function editor(message, app) {
  const end = () => (app.edit(null), document.querySelector(`[data-focus$="-${message.ts}"][data-testid=edit]`)?.focus());
  const save = async () => {
    const text = area.value.trim();
    if (text && text !== typedAgain(message.text, app.store)) await app.ask("edit", { channel: message.channel, ts: message.ts, text });
    end();
  };
  const area = h("textarea", { "aria-label": "Edit message", rows: 3, value: typedAgain(message.text, app.store), "data-testid": "editor", "data-focus": `editor-${message.ts}`, on: {
    keydown: (event) => {
      if (event.key === "Escape") (event.preventDefault(), event.stopPropagation(), end());
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) (event.preventDefault(), save());
    } } });
  queueMicrotask(() => area.isConnected && document.activeElement !== area && area.focus());
  return h("div", { class: "editor" }, area, h("div", { class: "buttons" },
    h("button", { type: "button", class: "button", on: { click: end }, text: "Cancel" }),
    h("button", { type: "button", class: "button primary", on: { click: save }, text: "Save" })));
}
