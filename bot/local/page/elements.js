// What can be clicked in messages and modals. Each shows that it waits for the app, and what went wrong.

import { confirmed } from "./confirm.js";
import { control, holdsValue, initial, optionName, told } from "./controls.js";
import { h, icon, isDrawn, raw } from "./dom.js";
import { emoji, fromPoints } from "./emoji.js";
import { link } from "./inline.js";
import { withMenu } from "./menu.js";
import { textLine } from "./mrkdwn.js";

/** In: the element, its block, and the surface: store, act(part, block_id, value), standing(block_id, action_id) with
 *  `pending` and `error`, prefix for ids, about (id of what the card says), values (what stateful elements hold). */
export function element(part, block, surface) {
  if (part.visible_to_user_ids && !part.visible_to_user_ids.includes(surface.store.hello.you)) return null;
  if (part.type === "image") return imagePlaceholder(part, true);
  const standing = surface.standing(block.block_id, part.action_id);
  const name = `${surface.prefix}-${block.block_id}-${part.action_id}`;
  const act = async (value) => !standing.pending && (!part.confirm || (await confirmed(part.confirm, surface))) && surface.act(part, block.block_id, value);
  const shared = {
    "data-testid": "action", "data-action-id": part.action_id, "data-block-id": block.block_id, "data-focus": name,
    "aria-describedby": [surface.about, standing.error && `${name}-error`].filter(Boolean).join(" ") || null,
    "aria-busy": standing.pending ? "true" : null, "aria-disabled": standing.pending ? "true" : null,
  };
  const make = kinds[part.type] ?? (holdsValue(part) ? stateful : null);
  const node = make ? make(part, { act, shared, name, surface, block }) : h("span", { class: "odd", text: `(${part.type})` });
  if (!standing.error) return node;
  const trouble = h("span", { class: "trouble", role: "alert", id: `${name}-error`, "data-testid": "action-error", "data-error": standing.code }, icon("warn", 15), standing.error);
  return h("span", { class: "failed" }, node, trouble);
}

function button(part, { act, shared }) {
  const look = part.style === "primary" ? "primary" : part.style === "danger" ? "danger" : "";
  const label = textLine(part.text);
  if (part.url) {
    const made = link(raw(part.url), label);
    made.className = `button ${look}`;
    for (const [key, value] of Object.entries(shared)) if (value !== null) made.setAttribute(key, value);
    made.addEventListener("click", () => act(null));
    return made;
  }
  return h("button", { type: "button", class: `button ${look}`, "aria-label": part.accessibility_label, ...shared, on: { click: () => act(null) } },
    h("span", { class: "label" }, label));
}

function overflow(part, { act, shared }) {
  const made = h("button", { type: "button", class: "button square", "aria-label": "More actions", ...shared }, icon("more"));
  return withMenu(made, () => part.options.map((option) => ({ label: textLine(option.text), name: optionName(option), data: { value: option.value }, pick: () => act(option.value) })));
}

function stateful(part, { act, shared, name, surface, block }) {
  const key = `${block.block_id} ${part.action_id}`;
  const before = surface.values.has(key) ? surface.values.get(key) : initial(part, surface.state?.[block.block_id]?.[part.action_id]);
  const done = async (value) => {
    if ((await act(told(part, value))) === false) {
      surface.values.set(key, before);
      surface.redraw();
    }
  };
  const label = raw(part.placeholder?.text ?? "") || LABELS[part.type] || "Choose";
  return control(part, {
    id: name, value: before, store: surface.store, change: (value) => surface.values.set(key, value), done,
    attributes: { ...shared, "aria-label": label },
  });
}

function feedback(part, { act, shared }) {
  return h("span", { class: "row" }, [part.positive_button, part.negative_button].filter(Boolean).map((each) =>
    h("button", { type: "button", class: "button", ...shared, "data-focus": `${shared["data-focus"]}-${each.value}`, on: { click: () => act(each.value) } }, textLine(each.text))));
}

const iconic = (part, { act, shared }) =>
  h("button", { type: "button", class: "button", ...shared, on: { click: () => act(part.value ?? null) } }, textLine(part.text));

const LABELS = { datepicker: "Date", timepicker: "Time", datetimepicker: "Date and time", checkboxes: "Options", radio_buttons: "Options" };
const kinds = { button, workflow_button: button, overflow, feedback_buttons: feedback, icon_button: iconic };

/** Images are never fetched: an address may tell its owner who looks. */
export function imagePlaceholder(part, small) {
  const label = raw(part.alt_text || part.title?.text || "image");
  return h("span", { class: small ? "image small" : "image", role: "img", "aria-label": `Image: ${label}` }, icon("image"), small ? null : h("span", { text: label }));
}

/** One emoji to react with, as a node or text. In: name and code points. */
export const sign = (name, points) => (isDrawn(name) ? icon(name, 16) : emoji(name) ?? fromPoints(points));
