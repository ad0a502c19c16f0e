// A button with a menu: arrows move, Escape closes and gives the focus back, a click elsewhere closes.

import { h } from "./dom.js";

let made = 0;

/** In: the button, and what gives its items ({label or node, pick, checked, danger}). Out: the button with its menu. */
export function withMenu(button, items, { wide = false, align = "end" } = {}) {
  const id = `menu-${(made += 1)}`;
  const wrap = h("span", { class: "menu-wrap" }, button);
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  let list = null;

  const close = (back) => {
    if (!list) return;
    list.remove();
    list = null;
    button.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside, true);
    if (back) button.focus();
  };
  const outside = (event) => !wrap.contains(event.target) && close(false);
  const move = (step) => {
    const all = [...list.children];
    const now = all.indexOf(document.activeElement);
    all[(now + step + all.length) % all.length].focus();
  };
  const keys = {
    ArrowDown: () => move(1), ArrowRight: () => move(1), ArrowUp: () => move(-1), ArrowLeft: () => move(-1),
    Home: () => list.firstChild.focus(), End: () => list.lastChild.focus(), Escape: () => close(true), Tab: () => close(true),
  };
  const open = () => {
    list = h("span", { role: "menu", id, class: `menu ${wide ? "wide" : ""} ${align}` }, items().map((item) => one(item, () => close(true))));
    list.addEventListener("keydown", (event) => {
      if (!keys[event.key]) return;
      event.stopPropagation();
      if (event.key !== "Tab") event.preventDefault();
      keys[event.key]();
    });
    wrap.append(list);
    button.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", outside, true);
    (list.querySelector("[aria-checked=true]") ?? list.firstChild)?.focus();
    list.scrollIntoView({ block: "nearest" });
  };
  button.addEventListener("click", () => (list ? close(true) : open()));
  button.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && !list) {
      event.preventDefault();
      open();
    }
  });
  return wrap;
}

function one(item, close) {
  return h("button", {
    type: "button", role: item.checked === undefined ? "menuitem" : "menuitemradio", tabindex: -1, class: item.danger ? "danger" : null,
    "aria-checked": item.checked === undefined ? null : String(item.checked), "aria-label": item.name, data: item.data ?? {},
    on: { click: () => { close(); item.pick(); } },
  }, item.node ?? item.label);
}
