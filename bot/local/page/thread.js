// A thread, or the beginning of one: three things to ask, so that nobody stands before an empty box.

import { Composer } from "./composer.js";
import { h, icon, iconButton, keep, kept, rebuild } from "./dom.js";
import { isWaiting, isCard } from "./message.js";
import { MessageList, pendingNode } from "./list.js";
import { withEmoji } from "./inline.js";

const HINT = "hint about killing, read";

export class ThreadPane {
  constructor(app) {
    this.app = app;
    this.node = document.getElementById("thread");
    this.head = h("header", { class: "pane-head" });
    this.list = new MessageList(app, "thread");
    this.foot = h("div", { class: "foot" });
    this.composer = new Composer(app, "thread-composer");
    this.node.append(this.head, this.list.node, this.foot, this.composer.node);
  }

  render() {
    const { app } = this;
    const { store } = app;
    const { thread } = app.at;
    this.node.hidden = !thread || thread === "home";
    if (this.node.hidden) return;
    const channel = store.channels.get(app.at.channel);
    const name = store.channelName(channel);
    const fresh = thread === "new";
    rebuild(this.head, [fresh, name, channel.kind], () => [
      iconButton("back", "Back to the channel", () => app.closeThread(), { class: "icon-button narrow-only", "data-testid": "back-to-channel", "data-focus": "back-to-channel" }),
      h("h2", { tabindex: -1, "data-focus": "thread-title" }, fresh ? "New thread" : "Thread", h("span", { class: "quiet", text: channel.kind === "im" ? name : `#${name}` })),
      iconButton("close", "Close the thread", () => app.closeThread(), { class: "icon-button wide-only", "data-testid": "close-thread", "data-focus": "close-thread" }),
    ]);
    fresh ? this.#fresh(channel) : this.#going(channel, thread);
  }

  #fresh(channel) {
    const { app } = this;
    const bot = app.botName();
    const there = channel.members.includes(app.store.hello.bot);
    this.list.render("new", "A new thread", [], { before: [there ? this.#welcome(bot) : h("p", { class: "start", text: `${bot} is not in this channel, so it cannot work here.` })],
      after: app.outbox.waiting(channel.id, null).map((item) => pendingNode(item, app)) });
    rebuild(this.foot, [], () => []);
    this.composer.render({ channel, thread: "new" }, `Ask ${bot} for something`, there && channel.kind !== "im" ? `@${bot} ` : "");
  }

  #welcome(bot) {
    // Built once: it has nothing that changes, and a rebuilt button would lose the focus.
    this.welcome ??= h("section", { class: "welcome", "aria-labelledby": "welcome-title" },
      h("span", { class: "avatar bot large", "aria-hidden": "true" }),
      h("h3", { id: "welcome-title", text: `What shall ${bot} do?` }),
      h("p", { text: "It works in a thread with real tools on this machine. What only reads, it does at once; for everything else a card asks first, and you decide." }),
      h("ul", { class: "prompts" }, this.app.store.hello.prompts.map((prompt, number) => h("li", {},
        h("button", { type: "button", class: "prompt", "data-testid": `prompt-${number + 1}`, "data-focus": `prompt-${number + 1}`, on: { click: () => this.#ask(prompt) } },
          h("span", {}, coded(prompt)), icon("send", 16))))),
      h("p", { class: "tip" }, icon("warn", 16), h("span", {}, "A card outlives its process: when one waits, ", h("strong", { text: "press Ctrl-C, start again, click." }), " Nothing is lost, and nothing runs twice.")));
    return this.welcome;
  }

  #ask(prompt) {
    const channel = this.app.store.channels.get(this.app.at.channel);
    this.composer.say(channel.kind === "im" ? prompt : `@${this.app.botName()} ${prompt}`);
  }

  #going(channel, root) {
    const { app } = this;
    const { store, reads } = app;
    const replies = store.board(channel.id).threads.get(root) ?? [];
    const first = store.message(channel.id, root);
    const shown = [first, ...replies].filter((message) => message && !app.dismissed(message));
    this.list.render(`${channel.id} ${root}`, "Messages of this thread", shown, {
      before: first ? [] : [h("p", { class: "start", text: "The message that began this thread is gone." })],
      after: app.outbox.waiting(channel.id, root).map((item) => pendingNode(item, app)),
    });
    const session = store.sessions[`${channel.id}:${root}`] ?? {};
    const hint = !kept(localStorage, HINT, false) && shown.some((each) => isWaiting(each) && isCard(each, store.hello.bot));
    rebuild(this.foot, [session, hint], () => [session.status && this.#status(session), hint && this.#hint(), session.prompts?.length && this.#prompts(session)]);
    if (app.looks("thread")) reads.mark(`${channel.id}:${root}`, replies.at(-1)?.ts);
    this.composer.render({ channel, thread: root }, "Reply in this thread", "");
  }

  #status(session) {
    return h("p", { class: "status", role: "status", "data-testid": "status" }, h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), `${this.app.botName()} ${session.status}`);
  }

  #hint() {
    const read = () => (keep(localStorage, HINT, true), this.app.redraw());
    return h("p", { class: "tip", "data-testid": "kill-hint" }, icon("warn", 16),
      h("span", {}, "This process can be killed: ", h("strong", { text: "press Ctrl-C now, start again, click." })), iconButton("close", "Hide this hint", read, { "data-focus": "hide-hint" }));
  }

  #prompts(session) {
    return h("div", { class: "row chips" }, session.prompts.map((each) => h("button", { type: "button", class: "button", "data-focus": `chip-${each.title}`, on: { click: () => this.composer.say(each.message) } }, withEmoji(each.title))));
  }
}

/** A prompt with its `code` shown as code. */
const coded = (text) => text.split(/`([^`]+)`/).map((part, number) => (number % 2 ? h("code", { text: part }) : part));
