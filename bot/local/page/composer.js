// The message box: mentions, channels and commands are completed; Enter sends, Shift+Enter begins a new line.

import { announce, h, iconButton, keep, kept } from "./dom.js";
import { words } from "./trouble.js";

const MOST = 8; // suggestions at once

export class Composer {
  #target = null;
  #found = null; // {from, items, at}: what the list under the box offers
  #sending = false;

  /** In: the app, and a name for this box. */
  constructor(app, name) {
    this.app = app;
    this.list = h("div", { role: "listbox", id: `${name}-list`, class: "suggestions", "aria-label": "Suggestions", hidden: true });
    this.trouble = h("p", { class: "trouble", role: "alert", "data-testid": `${name}-trouble`, hidden: true });
    this.hint = h("p", { class: "usage", id: `${name}-hint`, "data-testid": `${name}-hint`, hidden: true });
    this.area = h("textarea", { id: name, rows: 1, "data-testid": name, "data-focus": name, role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false",
      "aria-controls": `${name}-list`, "aria-describedby": `${name}-hint`, on: {
        input: () => this.#changed(), keydown: (event) => this.#key(event), click: () => this.#suggest(), blur: () => this.#offer(null) } });
    this.button = iconButton("send", "Send", () => this.#submit(), { class: "icon-button send", "data-testid": name === "composer" ? "send" : `${name}-send` });
    this.node = h("div", { class: "composer" }, this.trouble, this.hint, this.list, h("div", { class: "box" }, this.area, this.button));
    // A pane that is not shown has no height to measure; another width breaks the lines elsewhere.
    let width = 0;
    new ResizeObserver(() => this.node.clientWidth !== width && ((width = this.node.clientWidth), this.#grow())).observe(this.node);
  }

  /** In: where it writes to ({channel, thread: null, "new" or a ts}), what it is called, and its text to begin with. */
  render(target, label, start) {
    const place = `draft ${this.app.store.hello.you} ${target.channel.id} ${target.thread ?? ""}`;
    this.start = start;
    this.area.setAttribute("aria-label", label);
    this.area.placeholder = label;
    if (this.#target?.place === place) return;
    this.#target = { ...target, place };
    this.area.value = kept(sessionStorage, place, start);
    this.#show(this.trouble, "");
    this.#grow();
    this.#offer(null);
    this.#usage();
  }

  focus() {
    this.area.focus();
    this.area.setSelectionRange(this.area.value.length, this.area.value.length);
  }

  /** Send a text as if it had been typed here. */
  say(text) {
    this.area.value = text;
    this.#submit();
  }

  get #inThread() {
    return Boolean(this.#target.thread) && this.#target.thread !== "new";
  }

  get #empty() {
    return !this.area.value.trim() || this.area.value.trim() === this.start.trim();
  }

  #show(part, text) {
    part.textContent = text;
    part.hidden = !text;
  }

  #changed() {
    keep(sessionStorage, this.#target.place, this.area.value);
    this.#grow();
    this.#suggest();
    this.#usage();
    this.#show(this.trouble, "");
  }

  #grow() {
    if (!this.#target) return;
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(this.area.scrollHeight, 240)}px`;
    this.button.setAttribute("aria-disabled", String(this.#empty));
  }

  #usage() {
    const [command] = this.area.value.split(/\s/);
    const hint = command.startsWith("/") ? this.app.store.hello.commands[command] : undefined;
    const text = hint === undefined ? "" : this.#inThread ? `${command} works in the channel's own message box, not in threads.` : hint ? `Try ${command} ${hint}` : "";
    this.#show(this.hint, text);
  }

  // --- completing ---

  #suggest() {
    const caret = this.area.selectionStart;
    const before = this.area.value.slice(0, caret);
    const name = before.match(/(?:^|[\s(])([@#])([\w.-]*)$/);
    const command = before.match(/^\/\S*$/);
    if (name) return this.#offer({ from: caret - name[2].length - 1, items: this.#names(name[1], name[2].toLowerCase()), at: 0 });
    if (command) return this.#offer({ from: 0, items: this.#commands(command[0]), at: 0 });
    return this.#offer(null);
  }

  #names(mark, part) {
    const { store } = this.app;
    const all = mark === "#"
      ? [...store.channels.values()].filter((each) => each.kind !== "im").map((each) => ({ text: `#${each.name}`, note: "" }))
      : this.#target.channel.members.map((id) => store.people.get(id)).filter((each) => each && !each.deleted)
          .sort((a, b) => (a.id === store.hello.bot ? -1 : b.id === store.hello.bot ? 1 : 0)).map((each) => ({ text: `@${each.name}`, note: each.real_name }));
    return all.filter((each) => each.text.slice(1).startsWith(part) || each.note.toLowerCase().startsWith(part)).slice(0, MOST);
  }

  #commands(part) {
    return Object.entries(this.app.store.hello.commands).filter(([name]) => name.startsWith(part)).map(([text, note]) => ({ text, note: note && `${text} ${note}` }));
  }

  #offer(found) {
    this.#found = found?.items.length ? found : null;
    this.list.hidden = !this.#found;
    this.area.setAttribute("aria-expanded", String(Boolean(this.#found)));
    this.list.replaceChildren(...(this.#found?.items ?? []).map((item, number) =>
      h("div", { role: "option", id: `${this.list.id}-${number}`, "aria-selected": String(number === this.#found.at),
        on: { pointerdown: (event) => (event.preventDefault(), this.#take(number)) } }, h("strong", { text: item.text }), h("span", { text: item.note }))));
    if (this.#found) this.area.setAttribute("aria-activedescendant", `${this.list.id}-${this.#found.at}`);
    else this.area.removeAttribute("aria-activedescendant");
  }

  #take(number) {
    const { from, items } = this.#found;
    this.area.setRangeText(`${items[number].text} `, from, this.area.selectionStart, "end");
    this.#changed();
    this.#offer(null);
  }

  #key(event) {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (this.#found && step) {
      event.preventDefault();
      this.#offer({ ...this.#found, at: (this.#found.at + step + this.#found.items.length) % this.#found.items.length });
    } else if (this.#found && event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.#offer(null);
    } else if (this.#found && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) {
      event.preventDefault();
      this.#take(this.#found.at);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#submit();
    }
  }

  // --- sending ---

  async #submit() {
    if (this.#empty || this.#sending) return;
    const { channel, thread } = this.#target;
    const text = this.area.value.trim();
    if (/^\/\S/.test(text)) return this.#command(text);
    const { store } = this.app;
    const follow = !this.#inThread && (channel.kind === "im" || text.toLowerCase().includes(`@${store.name(store.hello.bot)}`));
    this.#reset();
    this.app.outbox.add(channel.id, thread === "new" ? null : thread, text, follow);
  }

  async #command(text) {
    const { channel, thread, place } = this.#target;
    const [command, ...rest] = text.split(" ");
    this.#sending = true;
    this.button.setAttribute("aria-busy", "true");
    const answer = await this.app.socket.ask("command", { channel: channel.id, command, text: rest.join(" "), thread_ts: this.#inThread ? thread : undefined });
    this.#sending = false;
    this.button.removeAttribute("aria-busy");
    if (this.#target.place !== place) return undefined; // the person went elsewhere meanwhile
    if (answer.ok) return this.#reset();
    // The text stays, so that nobody has to type it again.
    this.#show(this.trouble, `${command}: ${words(answer, this.app.botName())}`);
    return announce(this.trouble.textContent);
  }

  #reset() {
    this.area.value = this.start;
    this.#changed();
    this.#offer(null);
  }
}
