// Puts the page together: what is shown, for whom, and what happens when something changes.

import { Acts } from "./acts.js";
import { gist } from "./blocks.js";
import { ChannelPane } from "./channel.js";
import { announce, h, keep, kept, raw } from "./dom.js";
import { isCard, isWaiting } from "./message.js";
import { Modals } from "./modal.js";
import { Outbox } from "./outbox.js";
import { Reads } from "./reads.js";
import { Sidebar } from "./sidebar.js";
import { Socket } from "./socket.js";
import { Store } from "./store.js";
import { ThreadPane } from "./thread.js";
import { Top } from "./top.js";
import { words } from "./trouble.js";

const NARROW = matchMedia("(max-width: 760px)");
const TOUCH = matchMedia("(pointer: coarse)");

class App {
  #values = new Map();
  #versions = new Map();
  #drawing = false;
  #gone = new Set(kept(sessionStorage, "dismissed", []));

  constructor() {
    this.at = { channel: "", thread: null };
    this.editing = null;
    this.#begin();
    addEventListener("hashchange", () => this.#arrived());
    addEventListener("focus", () => this.redraw()); // what a window shows is read once somebody looks at it
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.#escape(event));
    NARROW.addEventListener("change", () => this.redraw());
  }

  // --- the connection ---

  #begin() {
    this.store = new Store();
    this.acts = new Acts(this);
    this.outbox = new Outbox(this);
    this.reads = new Reads(this);
    this.modals = new Modals(this);
    this.who = this.#route().who || kept(sessionStorage, "me", "ada");
    this.socket = new Socket(() => ({ as: this.who, epoch: this.store.epoch, number: this.store.number }));
    this.socket.addEventListener("hello", (event) => this.#hello(event.detail));
    this.socket.addEventListener("state", (event) => this.#state(event.detail));
    this.socket.addEventListener("lost", () => this.#trouble("Reconnecting… What you write is kept."));
    this.socket.connect();
  }

  #hello(hello) {
    this.store.hello = hello;
    this.#trouble("");
  }

  #state(news) {
    const first = !this.store.ready;
    const before = new Map([...this.store.messages].map(([key, map]) => [key, new Map(map)]));
    const fresh = this.store.apply(news);
    if (first) this.#arrive();
    for (const [channel, map] of this.store.messages)
      for (const [ts, message] of map) if (before.get(channel)?.get(ts) && before.get(channel).get(ts) !== message) this.acts.forget(`message ${channel}:${ts}`);
    this.render();
    for (const message of fresh) this.#tell(message);
    this.outbox.flush();
  }

  #arrive() {
    this.outbox.load(this.store.hello.you);
    this.reads.load(this.store.hello.you);
    keep(sessionStorage, "me", this.store.me.name);
    document.body.classList.add("ready");
    const { channel, thread } = this.#route();
    if (channel && this.store.channels.has(channel)) this.at = { channel, thread };
    else this.at = this.#first();
    this.#write(true);
    queueMicrotask(() => !TOUCH.matches && (this.at.thread ? this.threadPane : this.channelPane).composer.focus());
  }

  /** Where a window opens that was told nothing: at what the bot did last, or at the beginning of something. */
  #first() {
    const { store } = this;
    const channel = store.channels.has(store.hello.start) ? store.hello.start : [...store.channels.keys()][0];
    return { channel, thread: store.latestThread(channel) ?? "new" };
  }

  #trouble(text) {
    const bar = document.getElementById("trouble");
    if (!text && !bar.hidden) announce("Connected again.");
    bar.replaceChildren(...(text ? [h("span", { class: "spinner", "aria-hidden": "true" }), text] : []));
    bar.hidden = !text;
    if (this.store.ready) this.redraw();
  }

  /** Ask for something small; what goes wrong is told in a notice at the top. */
  async ask(verb, facts) {
    const answer = await this.socket.ask(verb, facts);
    if (!answer.ok) this.#flash(words(answer, this.botName()));
    return answer;
  }

  #flash(text) {
    const note = h("div", { class: "flash", role: "alert", "data-testid": "flash" }, h("span", { text }), h("button", { type: "button", class: "link", on: { click: () => note.remove() }, text: "OK" }));
    document.querySelector(".flash")?.remove();
    document.body.append(note);
  }

  // --- where the window is: #/person/channel/thread ---

  #route() {
    const [, who = "", channel = "", thread = ""] = decodeURIComponent(location.hash).split("/");
    return { who, channel, thread: thread || null };
  }

  #write(replace = false) {
    const parts = [this.who, NARROW.matches && this.list ? "" : this.at.channel, this.at.thread].filter(Boolean);
    const hash = `#/${parts.map(encodeURIComponent).join("/")}`;
    if (hash === location.hash) return;
    history[replace ? "replaceState" : "pushState"](null, "", hash);
  }

  #arrived() {
    if (!this.store.ready) return;
    const { who, channel, thread } = this.#route();
    if (who && who !== this.who) return this.actAs(who, channel, thread);
    this.list = !channel;
    if (this.store.channels.has(channel)) this.at = { channel, thread };
    this.redraw();
  }

  #go(channel, thread, focus) {
    this.list = false;
    this.editing = null;
    this.at = { channel, thread };
    this.#write();
    this.render();
    if (focus && !TOUCH.matches) focus();
  }

  openChannel(channel) {
    this.#go(channel, null, () => this.channelPane.composer.focus());
  }

  openThread(channel, thread) {
    this.#go(channel, thread, () => this.threadPane.composer.focus());
  }

  openHome(channel) {
    this.#go(channel, "home");
    this.socket.ask("home", { tab: "home" });
  }

  newThread() {
    const channel = this.store.channels.get(this.at.channel);
    const here = channel.members.includes(this.store.hello.bot);
    this.openThread(here ? channel.id : this.#first().channel, "new");
  }

  closeThread() {
    const { channel, thread } = this.at;
    this.#go(channel, null, () => (document.querySelector(`#channel [data-ts="${thread}"] .thread-bar`) ?? this.channelPane.composer.area).focus());
  }

  showList() {
    this.list = true;
    this.at = { ...this.at, thread: null };
    this.#write();
    this.render();
  }

  /** Be somebody else in this window. */
  actAs(name, channel = this.at.channel, thread = this.at.thread) {
    this.who = name;
    this.list = false;
    Object.assign(this.store, new Store());
    this.#values.clear();
    this.channelPane = this.threadPane = undefined;
    for (const id of ["channel", "thread"]) document.getElementById(id).replaceChildren();
    history.pushState(null, "", `#/${[name, channel, thread].filter(Boolean).map(encodeURIComponent).join("/")}`);
    this.modals.render();
    this.socket.renew();
  }

  #escape(event) {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (this.at.thread) this.closeThread();
  }

  // --- what parts of the page ask for ---

  surface() {
    return { store: this.store, open: (channel) => this.openChannel(channel) };
  }

  botName() {
    return this.store.name(this.store.hello.bot);
  }

  values(place) {
    if (!this.#values.has(place)) this.#values.set(place, new Map());
    return this.#values.get(place);
  }

  version(place) {
    return this.#versions.get(place) ?? 0;
  }

  refresh(place) {
    this.#versions.set(place, this.version(place) + 1);
    this.redraw();
  }

  edit(message) {
    this.editing = message?.ts ?? null;
    this.render();
  }

  dismiss(message) {
    this.#gone.add(`${message.channel}:${message.ts}`);
    keep(sessionStorage, "dismissed", [...this.#gone]);
    this.render();
  }

  dismissed(message) {
    return message.notice && this.#gone.has(`${message.channel}:${message.ts}`);
  }

  /** Does somebody see this pane just now? */
  looks(pane) {
    return document.hasFocus() && (!NARROW.matches || document.body.dataset.pane === pane);
  }

  // --- showing ---

  redraw() {
    if (this.#drawing || !this.store.ready) return;
    this.#drawing = true;
    queueMicrotask(() => {
      this.#drawing = false;
      this.render();
    });
  }

  render() {
    if (!this.store.ready) return;
    if (!this.store.channels.has(this.at.channel)) this.at = this.#first();
    if (this.at.thread === "home" && !this.store.home()) this.at.thread = null;
    this.top ??= new Top(this);
    this.sidebar ??= new Sidebar(this);
    this.channelPane ??= new ChannelPane(this);
    this.threadPane ??= new ThreadPane(this);
    const thread = this.at.thread && this.at.thread !== "home";
    document.body.dataset.pane = this.list ? "list" : thread ? "thread" : "channel";
    document.body.classList.toggle("with-thread", Boolean(thread));
    // The thread before the channel: what is read there is no longer new here.
    for (const part of [this.top, this.threadPane, this.channelPane, this.sidebar, this.modals]) part.render();
    const unread = [...this.store.channels.keys()].reduce((sum, key) => sum + this.reads.inChannel(key), 0);
    document.title = `${unread ? `(${unread}) ` : ""}${this.store.channelName(this.store.channels.get(this.at.channel))} · ${this.store.hello.team}`;
  }

  #tell(message) {
    const { store } = this;
    if (message.user === store.hello.you || this.dismissed(message)) return;
    const text = gist(message.blocks) || raw(message.text ?? "");
    const who = message.notice ? "Only visible to you" : isCard(message, store.hello.bot) && isWaiting(message) ? `${store.author(message)} waits for an answer` : store.author(message);
    const where = message.channel === this.at.channel ? "" : ` in ${store.channelName(store.channels.get(message.channel))}`;
    announce(`${who}${where}: ${text}`);
  }
}

new App();
