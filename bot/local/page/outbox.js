// Messages on their way. They outlive a broken connection, a killed workspace and a reload of this tab.

import { keep, kept } from "./dom.js";
import { words } from "./trouble.js";

export class Outbox {
  #flying = new Set();

  constructor(app) {
    this.app = app;
    this.items = [];
  }

  /** Take up what the tab of this person still had to send. */
  load(user) {
    this.place = `outbox ${user}`;
    this.items = kept(sessionStorage, this.place, []);
  }

  /** Send a text. `follow`: show its thread once it stands there. */
  add(channel, thread_ts, text, follow) {
    // randomUUID exists on secure origins only, which http://localhost and http://127.0.0.1 are.
    this.items.push({ key: crypto.randomUUID(), channel, thread_ts, text, follow, again: false, error: "" });
    this.#changed();
    this.flush();
  }

  drop(key) {
    this.items = this.items.filter((item) => item.key !== key);
    this.#changed();
  }

  flush() {
    for (const item of this.items) if (!item.error && !this.#flying.has(item.key)) this.#send(item);
  }

  /** What waits for one place: a channel, or a thread of it. */
  waiting(channel, thread_ts) {
    const arrived = new Set([...(this.app.store.messages.get(channel)?.values() ?? [])].map((message) => message.client_msg_id));
    return this.items.filter((item) => item.channel === channel && (item.thread_ts ?? null) === thread_ts && !arrived.has(item.key));
  }

  async #send(item) {
    this.#flying.add(item.key);
    const { key, channel, thread_ts, text, again } = item;
    const answer = await this.app.socket.ask("say", { key, channel, thread_ts: thread_ts ?? undefined, text, again });
    this.#flying.delete(key);
    if (answer.ok) {
      this.drop(key);
      if (item.follow) this.app.openThread(channel, answer.ts);
      return;
    }
    if (answer.error === "connection_lost") item.again = true; // perhaps it arrived: the workspace will know the key
    else if (answer.error !== "not_connected") item.error = words(answer, this.app.botName());
    this.#changed();
  }

  #changed() {
    keep(sessionStorage, this.place, this.items);
    this.app.redraw();
  }
}
