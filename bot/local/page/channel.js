// A channel: its messages, and the box to write into it.

import { blocks } from "./blocks.js";
import { Composer } from "./composer.js";
import { h, icon, iconButton, rebuild } from "./dom.js";
import { MessageList, pendingNode } from "./list.js";

export class ChannelPane {
  constructor(app) {
    this.app = app;
    this.node = document.getElementById("channel");
    this.head = h("header", { class: "pane-head" });
    this.list = new MessageList(app, "channel");
    this.composer = new Composer(app, "composer");
    this.home = h("div", { class: "scroll home", tabindex: 0, role: "region", "aria-label": "Home", "data-testid": "home" });
    this.node.append(this.head, this.list.node, this.home, this.composer.node);
  }

  render() {
    const { app } = this;
    const { store, reads } = app;
    const channel = store.channels.get(app.at.channel);
    const name = store.channelName(channel);
    const bot = channel.members.includes(store.hello.bot);
    const home = app.at.thread === "home";
    rebuild(this.head, [channel, name, home, Boolean(store.home())], () => this.#head(channel, name, home));
    this.list.node.hidden = this.composer.node.hidden = home;
    this.home.hidden = !home;
    if (home) return this.#home();
    const { top, threads } = store.board(channel.id);
    const shown = top.filter((message) => !app.dismissed(message));
    this.list.render(channel.id, channel.kind === "im" ? `Messages with ${name}` : `Messages in #${name}`, shown, {
      before: [this.#start(channel, name, bot)],
      after: app.outbox.waiting(channel.id, null).map((item) => pendingNode(item, app)),
      how: (message) => {
        const replies = (threads.get(message.ts) ?? []).filter((reply) => !reply.notice);
        return { replies, unread: reads.inThread(channel.id, message.ts, replies) };
      },
    });
    if (app.looks("channel")) reads.mark(channel.id, shown.at(-1)?.ts);
    this.composer.render({ channel, thread: null }, channel.kind === "im" ? `Message ${name}` : `Message #${name}`, bot && channel.kind !== "im" ? `@${app.botName()} ` : "");
  }

  #head(channel, name, home) {
    const { app } = this;
    const tab = (text, on, pick) => h("button", { type: "button", class: "tab", "aria-current": on ? "true" : null, "data-focus": `tab-${text}`, "data-testid": `tab-${text.toLowerCase()}`, on: { click: pick }, text });
    const im = channel.kind === "im";
    return [
      iconButton("menu", "Channels", () => app.showList(), { class: "icon-button narrow-only", "data-testid": "back-to-list", "data-focus": "back-to-list" }),
      h("h1", {}, im ? null : icon(channel.kind === "group" ? "lock" : "hash", 18), name),
      im && app.store.home() && h("div", { class: "tabs" }, tab("Messages", !home, () => app.openChannel(channel.id)), tab("Home", home, () => app.openHome(channel.id))),
      !im && h("span", { class: "quiet", text: `${channel.members.length} members` }),
    ].filter(Boolean);
  }

  #start(channel, name, bot) {
    const text = channel.kind === "im" ? `This is the beginning of your conversation with ${name}.`
      : bot ? `This is the beginning of #${name}. Mention @${this.app.botName()} and it works on what you ask, in a thread.`
        : `This is the beginning of #${name}. ${this.app.botName()} is not in this channel.`;
    this.started ??= h("p", { class: "start" });
    this.started.textContent = text;
    return this.started;
  }

  #home() {
    const { app } = this;
    const view = app.store.home();
    const at = `view ${view.id}`;
    const surface = { ...app.surface(), prefix: `home-${view.id}`, values: app.values(at), state: view.values, redraw: () => app.redraw(),
      standing: (block, action) => app.acts.standing(`${at} ${block} ${action}`),
      act: (part, block, value) => app.acts.click(`${at} ${block} ${part.action_id}`, { view_id: view.id, action_id: part.action_id, block_id: block, value }) };
    rebuild(this.home, [view, app.acts.version(at)], () => h("div", { class: "card" }, blocks(view.blocks, surface)));
  }
}
