// The bar at the top: where this is, whether the bot is there, and who this window acts as.

import { avatar } from "./avatar.js";
import { h, icon, rebuild } from "./dom.js";
import { withMenu } from "./menu.js";

export const role = (person) =>
  person.deleted ? "deactivated" : person.stranger ? "another organisation" : person.guest ? "guest" : person.admin ? "administrator" : "member";

export const people = (store) => [...store.people.values()].filter((each) => !each.bot && !each.nobody);

export class Top {
  constructor(app) {
    this.app = app;
    this.node = document.getElementById("top");
  }

  render() {
    const { store } = this.app;
    const reached = this.app.socket.open;
    const there = reached && store.connections > 0;
    rebuild(this.node, [store.hello.you, reached, there, people(store)], () => [
      h("img", { src: "/page/icon.svg", alt: "", width: 26, height: 26 }),
      h("strong", { class: "team", text: store.hello.team }),
      reached && this.#presence(there),
      h("span", { class: "gap" }),
      this.#switcher(),
    ].filter(Boolean));
  }

  // Without the workspace nobody knows whether the bot runs; the bar below says what is the matter.
  #presence(there) {
    // On a phone the green dot says that it runs; to those who do not see it, the words still do.
    const words = h("span", { class: there ? "wide-seen" : "", text: there ? "is running" : "is off" });
    return h("span", { class: there ? "presence there" : "presence", "data-testid": "bot-presence", title: there ? "" : "Start the bot: it goes on where it stopped." },
      h("span", { class: "dot", "aria-hidden": "true" }), h("span", {}, `${this.app.botName()} `, words));
  }

  #switcher() {
    const { store } = this.app;
    const button = h("button", { type: "button", class: "switcher", "data-testid": "person-switcher", "data-focus": "person-switcher", "aria-label": `You act as ${store.me.real_name}, ${role(store.me)}. Change` },
      avatar(store.me.id, store, true), h("span", { class: "who" }, h("strong", { text: store.me.real_name }), h("small", { text: role(store.me) })), icon("down", 16));
    const other = people(store).find((each) => each.id !== store.me.id && role(each) === "member");
    return withMenu(button, () => [
      ...people(store).map((each) => ({
        node: [avatar(each.id, store, true), h("span", { class: "who" }, h("strong", { text: each.real_name }), h("small", { text: role(each) }))],
        name: `${each.real_name}, ${role(each)}`, checked: each.id === store.me.id, data: { person: each.name }, pick: () => this.app.actAs(each.name),
      })),
      ...(other ? [{ node: [icon("window"), `Second window, as ${other.name}`], name: `Open a second window, as ${other.name}`, data: { testid: "second-window" },
        pick: () => open(`${location.pathname}#/${other.name}`, "_blank", "noopener") }] : []),
    ]);
  }
}
