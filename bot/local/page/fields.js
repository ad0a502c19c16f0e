// Input blocks: a label, a control, a hint, a counter, and what is wrong.

import { control, initial, isGroup } from "./controls.js";
import { h, icon } from "./dom.js";
import { textLine } from "./mrkdwn.js";

/** In: an input block; the surface (see elements.js); `error`, if any; `changed()` is told of every change, `done(value)`
 *  when a choice is made or a text is left. */
export function field(block, surface, { error, changed = () => {}, done = () => {} }) {
  const part = block.element;
  const key = `${block.block_id} ${part.action_id}`;
  const id = `${surface.prefix}-${block.block_id}-${part.action_id}`;
  const value = surface.values.has(key) ? surface.values.get(key) : initial(part, surface.state?.[block.block_id]?.[part.action_id]);
  const counter = part.max_length ? h("span", { class: "counter", id: `${id}-counter` }) : null;
  const count = (text) => {
    if (!counter) return;
    counter.textContent = `${text.length} / ${part.max_length}`;
    counter.classList.toggle("over", text.length > part.max_length);
  };
  count(value);
  const describedby = [error && `${id}-error`, block.hint && `${id}-hint`, counter && `${id}-counter`].filter(Boolean).join(" ");
  const attributes = { "aria-invalid": error ? "true" : null, "aria-describedby": describedby || null, "aria-required": block.optional ? null : "true" };
  const label = [textLine(block.label), block.optional && h("span", { class: "optional", text: "optional" })];
  if (isGroup(part)) attributes["aria-labelledby"] = `${id}-label`;
  const made = control(part, { id, value, store: surface.store, attributes, done, change: (fresh) => {
    surface.values.set(key, fresh);
    count(fresh);
    changed();
  } });
  return h("div", { class: error ? "field wrong" : "field", "data-testid": `field-${block.block_id}` },
    h("div", { class: "field-head" }, isGroup(part) ? h("span", { class: "label", id: `${id}-label` }, label) : h("label", { class: "label", for: id }, label), counter),
    made,
    block.hint && h("p", { class: "hint", id: `${id}-hint` }, textLine(block.hint)),
    error && h("p", { class: "error", id: `${id}-error`, "data-testid": `error-${block.block_id}` }, icon("warn", 15), error));
}
