// A list of messages that rebuilds only what changed, and stays at its end while its reader is there.

import { h, iconButton, keepFocus, place } from "./dom.js";
import { messageNode } from "./message.js";
import { day, dayKey } from "./when.js";

const NEAR = 80; // pixels from the end that still count as being there
const TOGETHER = 300; // seconds within which one author's messages stand together

export class MessageList {
  #nodes = new Map(); // ts -> {message, how, node}
  #days = new Map();
  #place = "";
  #last = "";

  constructor(app, where) {
    Object.assign(this, { app, where });
    this.inner = h("div", { class: "messages" });
    this.node = h("div", { class: "scroll", tabindex: 0, role: "region", "data-testid": `messages-${where}` }, this.inner);
    this.stay = true;
    let before = 0;
    this.node.addEventListener("scroll", () => {
      const { scrollTop: top, scrollHeight: height, clientHeight: shown } = this.node;
      // Only scrolling up leaves the end; a pane that shrinks under its reader does not.
      if (height - top - shown < NEAR) this.stay = true;
      else if (top < before) this.stay = false;
      before = top;
    });
    // What is above may change its height later (a card grows a complaint), and so may the pane.
    new ResizeObserver(() => this.stay && this.end()).observe(this.inner);
    new ResizeObserver(() => this.stay && this.end()).observe(this.node);
  }

  end() {
    this.node.scrollTop = this.node.scrollHeight;
  }

  /** In: a name for what is shown, its messages, what stands before and after them, and how(message) for each. */
  render(shown, label, messages, { before = [], after = [], how = () => ({}) }) {
    this.node.setAttribute("aria-label", label);
    const changed = shown !== this.#place;
    if (changed) {
      this.#nodes.clear();
      this.#place = shown;
    }
    const nodes = [...before];
    const seen = new Set();
    let last = null;
    for (const message of messages) {
      if (!last || dayKey(last.ts) !== dayKey(message.ts)) nodes.push(this.#day(message.ts));
      nodes.push(this.#message(message, { where: this.where, follows: together(last, message), ...how(message) }, !changed));
      seen.add(message.ts);
      last = message;
    }
    for (const ts of this.#nodes.keys()) if (!seen.has(ts)) this.#nodes.delete(ts);
    const newest = messages.at(-1)?.ts ?? "";
    keepFocus(this.inner, () => place(this.inner, [...nodes, ...after]), (held) => this.#heir(held));
    // Whoever has just written wants to see it.
    const mine = newest > this.#last && messages.at(-1)?.user === this.app.store.hello.you;
    this.#last = newest;
    if (changed || mine) this.stay = true;
    if (this.stay) this.end();
  }

  // The control is gone, for instance since its card was decided: stay with the message.
  #heir(held) {
    const ts = held.closest?.("[data-ts]")?.dataset.ts;
    return ts ? this.inner.querySelector(`[data-ts="${ts}"]`) : this.inner.querySelector(".message:last-of-type");
  }

  #message(message, how, rises) {
    const place = `message ${message.channel}:${message.ts}`;
    const facts = JSON.stringify([how.follows, how.unread, how.replies?.map((each) => each.ts + (each.blocks?.length ?? 0) + (each.blocks ?? []).some((b) => b.type === "actions")),
      this.app.acts.version(place), this.app.version(place), this.app.editing === message.ts]);
    const old = this.#nodes.get(message.ts);
    if (old && old.message === message && old.facts === facts) return old.node;
    const node = messageNode(message, this.app, how);
    if (rises && !old) node.classList.add("fresh");
    this.#nodes.set(message.ts, { message, facts, node });
    return node;
  }

  #day(ts) {
    const text = day(ts);
    if (!this.#days.has(text)) this.#days.set(text, h("h3", { class: "day" }, h("span", { text })));
    return this.#days.get(text);
  }
}

function together(last, message) {
  if (!last || last.user !== message.user || last.notice !== message.notice || message.subtype || last.subtype) return false;
  return dayKey(last.ts) === dayKey(message.ts) && Number(message.ts) - Number(last.ts) < TOGETHER;
}

/** A message on its way, or one that could not be sent. */
export function pendingNode(item, app) {
  return h("article", { class: item.error ? "message pending failed" : "message pending", "data-testid": "pending" },
    h("span", { class: "avatar ghost", "aria-hidden": "true" }),
    h("div", { class: "content" },
      h("div", { class: "text", text: item.text }),
      h("small", { class: item.error ? "trouble" : "edited", role: item.error ? "alert" : null, text: item.error ? `Not sent. ${item.error}` : app.socket.open ? "Sending…" : "Will be sent when the workspace is back." })),
    item.error && iconButton("close", "Remove", () => app.outbox.drop(item.key)));
}
