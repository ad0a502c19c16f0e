// Channels and direct messages, with marks on what is unread.

import { avatar } from "./avatar.js";
import { h, icon, rebuild } from "./dom.js";

export class Sidebar {
  constructor(app) {
    this.app = app;
    this.node = document.getElementById("sidebar");
  }

  render() {
    const { store } = this.app;
    const all = [...store.channels.values()];
    const facts = [all, this.app.at.channel, all.map((each) => this.app.reads.inChannel(each.id)), [...store.people.values()]];
    const entries = (title, list) => list.length > 0 && [h("h2", { text: title }), h("ul", {}, list.map((each) => h("li", {}, this.#entry(each))))];
    rebuild(this.node, facts, () => [
      h("button", { type: "button", class: "button primary new-thread", "data-testid": "new-thread", "data-focus": "new-thread", on: { click: () => this.app.newThread() } }, icon("plus"), "New thread"),
      h("div", {}, entries("Channels", all.filter((each) => each.kind !== "im"))),
      h("div", {}, entries("Direct messages", all.filter((each) => each.kind === "im"))),
    ]);
  }

  #entry(channel) {
    const { store, reads } = this.app;
    const name = store.channelName(channel);
    const unread = reads.inChannel(channel.id);
    const here = this.app.at.channel === channel.id;
    const sign = channel.kind === "im" ? avatar(channel.with === store.hello.you ? store.hello.bot : channel.with, store, true) : icon(channel.kind === "group" ? "lock" : "hash", 16);
    return h("button", { type: "button", class: unread ? "entry unread" : "entry", "aria-current": here ? "page" : null, "data-testid": `channel-${name}`, "data-focus": `channel-${channel.id}`,
      on: { click: () => this.app.openChannel(channel.id) } },
      sign, h("span", { class: "name", text: name }),
      channel.shared && h("span", { class: "badge", text: "shared" }),
      unread > 0 && h("span", { class: "unread-mark", "data-testid": "unread", "aria-label": `${unread} unread`, text: unread > 99 ? "99+" : unread }));
  }
}
