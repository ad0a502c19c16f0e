// Block Kit as nodes: one function per kind of block.

import { h, icon, raw } from "./dom.js";
import { element, imagePlaceholder } from "./elements.js";
import { markdown } from "./markdown.js";
import { mrkdwn, plainText, textLine, textObject } from "./mrkdwn.js";
import { richText } from "./rich_text.js";

const LONG = 700; // characters of a section after which Slack folds it, unless the app says `expand`
const TELLING = new Set(["section", "header", "rich_text", "markdown", "context"]); // blocks that say what a button is about

/** In: blocks and the surface they are on (see elements.js); `input` renders input blocks there. Out: nodes. */
export function blocks(list, surface) {
  let about = null;
  return list.map((block) => {
    const id = `${surface.prefix}-${block.block_id}`;
    const node = (kinds[block.type] ?? odd)(block, { ...surface, about });
    node.dataset.blockId = block.block_id ?? "";
    node.classList.add("block", `block-${block.type}`);
    if (TELLING.has(block.type)) {
      node.id = id;
      if (block.type !== "context" || !about) about = id;
    }
    return node;
  });
}

function section(block, surface) {
  const said = block.text ? h("div", { class: "text" }, textObject(block.text, surface)) : null;
  const folds = said && !block.expand && block.text.text.length > LONG;
  return h("div", {},
    h("div", { class: "said" },
      folds ? folded(said, `${surface.prefix}-${block.block_id}`, surface) : said,
      block.fields && h("div", { class: "fields" }, block.fields.map((field) => h("div", { class: "text" }, textObject(field, surface))))),
    block.accessory && h("div", { class: "accessory" }, element(block.accessory, block, surface)));
}

function folded(said, name, surface) {
  const open = surface.values.get(`fold ${name}`) ?? false;
  const show = (on) => {
    surface.values.set(`fold ${name}`, on);
    said.classList.toggle("clamped", !on);
    more.textContent = on ? "See less" : "See more";
    more.setAttribute("aria-expanded", String(on));
  };
  const more = h("button", { type: "button", class: "link", "data-focus": `fold-${name}`, on: { click: () => show(more.getAttribute("aria-expanded") !== "true") } });
  show(open);
  return h("div", {}, said, more);
}

function actions(block, surface) {
  return h("div", { role: "group", "aria-label": "Actions", "aria-describedby": surface.about }, block.elements.map((part) => element(part, block, surface)));
}

function context(block, surface) {
  return h("div", {}, block.elements.map((part) => (part.type === "image" ? imagePlaceholder(part, true) : h("span", { class: "text" }, part.type === "mrkdwn" ? mrkdwn(part.text, surface) : textLine(part)))));
}

function table(block, surface) {
  const cell = (part, tag) => h(tag, {}, part.type === "rich_text" ? richText(part, surface) : raw(part.text ?? ""));
  const [head, ...rest] = block.rows;
  return h("div", { tabindex: 0, role: "region", "aria-label": "Table" },
    h("table", {}, h("thead", {}, h("tr", {}, head.map((part) => cell(part, "th")))), h("tbody", {}, rest.map((row) => h("tr", {}, row.map((part) => cell(part, "td")))))));
}

const either = (part, surface) => (typeof part === "string" ? raw(part) : textObject(part, surface));

function card(block, surface) {
  return h("div", {},
    block.title && h("strong", {}, either(block.title, surface)), block.subtitle && h("small", {}, either(block.subtitle, surface)),
    block.body && h("div", { class: "text" }, either(block.body, surface)),
    block.actions && h("div", { class: "row" }, block.actions.map((part) => element(part, block, surface))));
}

const container = (block, surface) =>
  h("div", {}, block.title && h("strong", {}, either(block.title, surface)), blocks(block.child_blocks ?? block.blocks ?? [], surface));

const odd = (block) => h("p", { class: "odd", text: `(a block of the kind ${block.type}, which this page does not show)` });

const kinds = {
  section, actions, context, table, card, container,
  context_actions: actions,
  header: (block) => h("h4", {}, textLine(block.text)),
  divider: () => h("hr"),
  image: (block) => h("figure", {}, block.title && h("figcaption", {}, textLine(block.title)), imagePlaceholder(block, false)),
  rich_text: (block, surface) => h("div", { class: "text" }, richText(block, surface)),
  markdown: (block, surface) => h("div", { class: "text" }, markdown(block.text, surface)),
  alert: (block, surface) => h("div", { role: "note" }, icon("warn"), h("div", { class: "text" }, either(block.text, surface))),
  input: (block, surface) => surface.input?.(block) ?? odd(block),
};

/** What blocks say, in one line: for announcements. */
export function gist(list) {
  for (const block of list ?? []) {
    const text = block.type === "section" || block.type === "header" ? plainText(block.text) : block.type === "markdown" ? block.text : "";
    if (text) return text.split("\n")[0].slice(0, 160);
  }
  return "";
}
