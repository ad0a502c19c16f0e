// A person's sign: initials on a colour of their own; the bot's is the page's mark.

import { h } from "./dom.js";

export function avatar(user, store, small) {
  const person = store.people.get(user);
  const size = small ? "avatar small" : "avatar";
  if (user === store.hello.bot) return h("span", { class: `${size} bot`, "aria-hidden": "true" });
  const name = person?.real_name ?? "?";
  const initials = name.split(/\s+/).map((word) => word[0]).join("").slice(0, 2).toUpperCase();
  const hue = [...(user ?? "?")].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 8, 3);
  return h("span", { class: `${size} hue-${hue}`, "aria-hidden": "true", text: initials });
}
