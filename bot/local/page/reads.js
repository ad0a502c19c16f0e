// What this person has read, kept by the browser: one mark per channel and per thread.

import { keep, kept } from "./dom.js";

export class Reads {
  constructor(app) {
    this.app = app;
    this.marks = {};
  }

  /** What was said before a person first looked counts as read. */
  load(user) {
    this.place = `read ${user}`;
    this.marks = kept(localStorage, this.place, {});
    for (const channel of this.app.store.channels.keys()) this.marks[channel] ??= this.#newest(channel);
  }

  #newest(channel) {
    return [...(this.app.store.messages.get(channel)?.keys() ?? [])].reduce((a, b) => (a > b ? a : b), "0");
  }

  mark(place, ts) {
    if (!ts || (this.marks[place] ?? "0") >= ts) return;
    this.marks[place] = ts;
    keep(localStorage, this.place, this.marks);
  }

  /** Unread replies of a thread. */
  inThread(channel, root, replies) {
    const mark = [this.marks[`${channel}:${root}`] ?? "0", this.#start(channel)].reduce((a, b) => (a > b ? a : b));
    return replies.filter((reply) => reply.ts > mark && this.#foreign(reply)).length;
  }

  // Threads have marks of their own; what was there when the person first came is read without one.
  #start(channel) {
    this.marks[`start ${channel}`] ??= this.marks[channel] ?? "0";
    return this.marks[`start ${channel}`];
  }

  /** Unread messages of a channel, with those in threads that concern this person. */
  inChannel(channel) {
    const { top, threads } = this.app.store.board(channel);
    const fresh = top.filter((message) => message.ts > (this.marks[channel] ?? "0") && this.#foreign(message)).length;
    const mine = [...threads].filter(([root, replies]) => [this.app.store.message(channel, root), ...replies].some((each) => each && this.#concerns(each)));
    return fresh + mine.reduce((sum, [root, replies]) => sum + this.inThread(channel, root, replies), 0);
  }

  #foreign(message) {
    return message.user !== this.app.store.hello.you;
  }

  #concerns(message) {
    const me = this.app.store.hello.you;
    return message.user === me || (message.text ?? "").includes(`<@${me}>`);
  }
}
