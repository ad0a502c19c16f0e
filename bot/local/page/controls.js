// Everything of Block Kit that holds a value: texts, choices, dates, numbers.

import { h, raw } from "./dom.js";
import { textLine, plainText } from "./mrkdwn.js";

const TEXTS = { plain_text_input: "text", email_text_input: "email", url_text_input: "url", number_input: "text" };
const DATES = { datepicker: "date", timepicker: "time", datetimepicker: "datetime-local" };
const STATE = {
  datepicker: "selected_date", timepicker: "selected_time", datetimepicker: "selected_date_time", users_select: "selected_user",
  channels_select: "selected_channel", conversations_select: "selected_conversation", rich_text_input: "rich_text_value",
};

export const options = (part) => [...(part.options ?? []), ...(part.option_groups ?? []).flatMap((group) => group.options)];
export const isGroup = (part) => part.type === "radio_buttons" || part.type === "checkboxes" || part.type.startsWith("multi_");
export const holdsValue = (part) => isGroup(part) || part.type in TEXTS || part.type in DATES || part.type.endsWith("_select");

/** What an element holds before anybody touched it. In: the element; its state as the workspace keeps it, if it does. */
export function initial(part, state) {
  if (state?.selected_option || part.initial_option) return (state ? state.selected_option : part.initial_option)?.value ?? "";
  if (state?.selected_options || part.initial_options) return (state?.selected_options ?? part.initial_options).map((each) => each.value);
  if (isGroup(part)) return part.type === "radio_buttons" ? "" : [];
  const key = STATE[part.type] ?? "value";
  return state?.[key] ?? part[`initial_${key.replace(/^selected_/, "")}`] ?? "";
}

/** What the workspace is told of a value; null for nothing. */
export function told(part, value) {
  if (value === "" || (Array.isArray(value) && !value.length)) return Array.isArray(value) ? [] : null;
  return part.type === "datetimepicker" ? Number(value) : value;
}

/** What is wrong with a value, in words, or null. */
export function complaint(block, part, value) {
  const empty = Array.isArray(value) ? !value.length : !String(value).trim();
  if (empty) return block.optional ? null : "Please fill this in.";
  const { max_length: most = 3000, min_length: least = 0 } = part;
  if (part.type === "plain_text_input" && value.length > most) return `That is ${value.length - most} characters too long.`;
  if (part.type === "plain_text_input" && value.length < least) return `At least ${least} characters, please.`;
  if (part.type === "email_text_input" && !/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value)) return "That is no e-mail address.";
  if (part.type === "url_text_input" && !/^https?:\/\/\S+$/i.test(value)) return "An address begins with http:// or https://.";
  return part.type === "number_input" ? wrongNumber(part, value) : null;
}

function wrongNumber(part, value) {
  if (!(part.is_decimal_allowed ? /^-?\d+([.]\d+)?$/ : /^-?\d+$/).test(value)) return part.is_decimal_allowed ? "A number, please." : "A whole number, please.";
  if (part.min_value !== undefined && Number(value) < Number(part.min_value)) return `Not less than ${part.min_value}.`;
  if (part.max_value !== undefined && Number(value) > Number(part.max_value)) return `Not more than ${part.max_value}.`;
  return null;
}

/** A control. In: the element, and how it stands: id, value, change(value) on every change, done(value) when a choice is
 *  made or a text is left or entered, attributes (labels and descriptions), the store. */
export function control(part, { id, value, change, done = () => {}, attributes = {}, store }) {
  const both = (fresh) => (change(fresh), done(fresh));
  if (part.type in TEXTS) return text(part, { id, value, change, done, attributes });
  if (part.type in DATES) return date(part, { id, value, both, attributes });
  if (isGroup(part)) return group(part, { id, value, both, attributes, store });
  return select(part, { id, value, both, attributes, store });
}

function text(part, { id, value, change, done, attributes }) {
  const number = part.type === "number_input";
  const exact = part.type === "plain_text_input" && Boolean(part.initial_value); // what begins with a text is edited to the character
  const shared = {
    id, value, "data-focus": id, placeholder: raw(part.placeholder?.text ?? "") || null, autocomplete: "off", spellcheck: part.multiline && !exact ? "true" : "false",
    ...(exact && { class: "exact", autocapitalize: "off", autocorrect: "off" }),
    on: { input: (event) => change(event.target.value), change: (event) => done(event.target.value) }, ...attributes,
  };
  if (part.multiline) return h("textarea", { rows: 4, ...shared });
  return h("input", { type: TEXTS[part.type], inputmode: number ? (part.is_decimal_allowed ? "decimal" : "numeric") : null, ...shared });
}

function date(part, { id, value, both, attributes }) {
  const moment = part.type === "datetimepicker";
  const local = (seconds) => new Date(seconds * 1000 - new Date(seconds * 1000).getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  const read = (shown) => (moment && shown ? Math.round(new Date(shown).getTime() / 1000) : shown);
  return h("input", {
    type: DATES[part.type], id, value: moment && value ? local(Number(value)) : value, "data-focus": id,
    on: { change: (event) => both(read(event.target.value)) }, ...attributes,
  });
}

/** Options of an element that takes people or channels, or its own. */
function choices(part, store) {
  const label = (name, value) => ({ text: { type: "plain_text", text: name }, value });
  if (part.type.endsWith("users_select")) return [...store.people.values()].filter((each) => !each.nobody && !each.deleted).map((each) => label(`@${each.name}`, each.id));
  if (/(channels|conversations)_select$/.test(part.type)) return [...store.channels.values()].map((each) => label(`#${store.channelName(each)}`, each.id));
  return options(part);
}

function select(part, { id, value, both, attributes, store }) {
  const one = (option) => h("option", { value: option.value, text: raw(option.text.text), selected: option.value === value });
  const inside = part.option_groups
    ? part.option_groups.map((each) => h("optgroup", { label: raw(each.label.text) }, each.options.map(one)))
    : choices(part, store).map(one);
  const empty = h("option", { value: "", text: raw(part.placeholder?.text ?? "Choose…"), selected: !value, hidden: Boolean(value) && attributes.required });
  return h("span", { class: "select" }, h("select", { id, "data-focus": id, on: { change: (event) => both(event.target.value) }, ...attributes }, empty, inside));
}

function group(part, { id, value, both, attributes, store }) {
  const many = part.type !== "radio_buttons";
  const picked = new Set(many ? value : [value]);
  const pick = (option, on) => {
    if (!many) picked.clear();
    on ? picked.add(option.value) : picked.delete(option.value);
    both(many ? [...picked] : [...picked][0] ?? "");
  };
  return h("div", { role: many ? "group" : "radiogroup", id, class: "options", ...attributes }, choices(part, store).map((option, number) =>
    h("label", { class: "option" },
      h("input", { type: many ? "checkbox" : "radio", name: id, value: option.value, checked: picked.has(option.value), "data-focus": `${id}-${number}`,
        on: { change: (event) => pick(option, event.target.checked) } }),
      h("span", {}, h("span", {}, textLine(option.text, { store })), option.description && h("small", {}, textLine(option.description, { store }))))));
}

export const optionName = (option) => plainText(option.text);
