// "Are you sure?", as an app words it.

import { h } from "./dom.js";
import { textLine, textObject } from "./mrkdwn.js";

let made = 0;

/** In: a confirm object. Out: whether the person went on. The browser gives the focus back where it was. */
export function confirmed(part, context) {
  return ask({
    title: textLine(part.title), body: textObject(part.text, context), yes: textLine(part.confirm), no: textLine(part.deny), danger: part.style === "danger",
  });
}

export function ask({ title, body, yes, no, danger }) {
  const id = `confirm-${(made += 1)}`;
  return new Promise((resolve) => {
    const end = (answer) => (dialog.close(), dialog.remove(), resolve(answer));
    const dialog = h("dialog", { class: "confirm", "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-text`, "data-testid": "confirm",
      on: { cancel: (event) => (event.preventDefault(), end(false)) } },
      h("h2", { id: `${id}-title` }, title),
      h("div", { id: `${id}-text`, class: "text" }, body),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "button", "data-testid": "confirm-no", on: { click: () => end(false) } }, no),
        h("button", { type: "button", class: `button ${danger ? "danger" : "primary"}`, "data-testid": "confirm-yes", on: { click: () => end(true) } }, yes)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
