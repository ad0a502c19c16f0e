// What the workspace told this page. One Map of documents; everything else is read off them.

export class Store {
  constructor() {
    this.hello = null;
    this.epoch = "";
    this.number = 0;
    this.people = new Map();
    this.channels = new Map();
    this.views = new Map();
    this.messages = new Map(); // channel -> Map(ts -> message)
    this.sessions = {};
    this.connections = 0;
    this.ready = false;
  }

  get me() {
    return this.people.get(this.hello?.you);
  }

  /** Take in news. Out: the messages that are new, for whoever announces them. */
  apply(news) {
    const fresh = [];
    if (news.reset) for (const map of [this.people, this.channels, this.views]) map.clear();
    const before = this.messages;
    if (news.reset) this.messages = new Map();
    for (const [place, document] of Object.entries(news.documents)) {
      const at = place.indexOf(":");
      const [kind, key] = [place.slice(0, at), place.slice(at + 1)];
      if (kind === "message") {
        const [channel, ts] = key.split(":");
        if (document && this.ready && !before.get(channel)?.has(ts)) fresh.push(document);
        // An unchanged message stays the same object, so that what shows it can stay as well.
        this.#put(this.#channel(channel), ts, document, before.get(channel)?.get(ts));
      } else {
        if (kind === "channel" && !document) this.messages.delete(key);
        this.#put({ person: this.people, channel: this.channels, view: this.views }[kind], key, document);
      }
    }
    Object.assign(this, { epoch: news.epoch, number: news.number, sessions: news.sessions, connections: news.connections });
    this.ready = true;
    return fresh;
  }

  #channel(key) {
    if (!this.messages.has(key)) this.messages.set(key, new Map());
    return this.messages.get(key);
  }

  #put(map, key, document, old) {
    if (!document) map.delete(key);
    else map.set(key, old && JSON.stringify(old) === JSON.stringify(document) ? old : document);
  }

  /** Messages of a channel, oldest first: what stands in the channel itself, and every thread by its root. */
  board(channel) {
    const all = [...(this.messages.get(channel)?.values() ?? [])].sort((a, b) => (a.ts < b.ts ? -1 : 1));
    const threads = new Map();
    const top = [];
    for (const message of all) {
      const root = message.thread_ts;
      if (root && root !== message.ts) {
        if (!threads.has(root)) threads.set(root, []);
        threads.get(root).push(message);
        if (message.subtype !== "thread_broadcast") continue;
      }
      top.push(message);
    }
    return { top, threads };
  }

  message(channel, ts) {
    return this.messages.get(channel)?.get(ts);
  }

  /** The newest message that begins a thread in which the bot spoke, or null. */
  latestThread(channel) {
    const { threads } = this.board(channel);
    const spoken = [...threads].filter(([, replies]) => replies.some((reply) => reply.user === this.hello.bot));
    return spoken.sort((a, b) => (a[1].at(-1).ts < b[1].at(-1).ts ? 1 : -1))[0]?.[0] ?? null;
  }

  /** Open modals, the bottom one first. */
  modals() {
    return [...this.views.values()].filter((view) => view.type === "modal");
  }

  home() {
    return [...this.views.values()].find((view) => view.type === "home") ?? null;
  }

  channelName(channel) {
    if (!channel) return "";
    if (channel.kind !== "im") return channel.name;
    return channel.with === this.hello.you ? this.name(this.hello.bot) : this.name(channel.with);
  }

  name(user) {
    return this.people.get(user)?.name ?? user;
  }

  author(message) {
    const person = this.people.get(message.user);
    return person?.bot ? person.name : person?.real_name ?? message.username ?? "Somebody";
  }
}
