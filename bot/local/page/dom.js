// Builds elements. Text only ever becomes a text node, so nothing that anybody wrote is read as markup.

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  send: "M4 12 20 4l-5 16-3.5-6.5zM11.5 13.5 20 4",
  close: "M6 6l12 12M18 6 6 18",
  back: "M15 5l-7 7 7 7",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  smile: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM8.5 14.5c1.8 2.2 5.2 2.2 7 0M9 9.5h.01M15 9.5h.01",
  reply: "M9 7 4 12l5 5M4 12h10a6 6 0 0 1 6 6v1",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  plus: "M12 5v14M5 12h14",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  hash: "M9 4 7 20M17 4l-2 16M4.5 9h16M3.5 15h16",
  lock: "M7 11V8a5 5 0 0 1 10 0v3M5.5 11h13v9h-13z",
  warn: "M12 4 2.8 20h18.4zM12 10v4M12 17h.01",
  down: "M6 9l6 6 6-6",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  window: "M4 5h16v14H4zM4 9h16",
  menu: "M4 7h16M4 12h16M4 17h16",
  // How the bot marks a request that it has seen, and one that waits. Drawn, since not every machine has a font with emoji.
  eyes: "M7.2 18c2 0 3.6-2.7 3.6-6S9.2 6 7.2 6s-3.6 2.7-3.6 6 1.6 6 3.6 6zM16.8 18c2 0 3.6-2.7 3.6-6s-1.6-6-3.6-6-3.6 2.7-3.6 6 1.6 6 3.6 6zM8.6 13.2v-2.4M18.2 13.2v-2.4",
  hourglass_flowing_sand: "M6 3h12M6 21h12M7.5 3c0 5 3 6.5 4.5 9 1.5-2.5 4.5-4 4.5-9M7.5 21c0-5 3-6.5 4.5-9 1.5 2.5 4.5 4 4.5 9M10 18.5h4M10.5 7h3",
};

/** An element. In: tag, attributes (class, text, data, on, any attribute; null and false leave it out), children. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "on") for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const isDrawn = (name) => Object.hasOwn(PATHS, name);

export function icon(name, size = 18) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", width: size, height: size, "aria-hidden": "true", class: "icon" }))
    svg.setAttribute(key, value);
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** A round button that shows an icon and is named by `label`. */
export function iconButton(name, label, onClick, attributes = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, on: { click: onClick }, ...attributes }, icon(name));
}

/** Make `parent` hold exactly these nodes, in order, and move no node that is in its place already. */
export function place(parent, nodes) {
  let next = parent.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

/** Run `change`, which may rebuild what has the focus, and give the focus to what took its place. */
export function keepFocus(root, change, fallback = () => null) {
  const held = document.activeElement;
  const inside = held && held !== document.body && root.contains(held);
  const name = inside ? held.closest("[data-focus]")?.dataset.focus : null;
  const range = inside && "selectionStart" in held ? [held.selectionStart, held.selectionEnd] : null;
  change();
  if (!inside || held.isConnected) return;
  const heir = (name && root.querySelector(`[data-focus="${CSS.escape(name)}"]`)) || fallback(held);
  if (!heir) return;
  heir.focus({ preventScroll: true });
  if (range && range[0] !== null && heir.setSelectionRange) heir.setSelectionRange(...range);
}

const drawn = new WeakMap();

/** Rebuild what a node holds, but only if these facts are others than last time: a button that is rebuilt between press
 *  and release would lose its click. */
export function rebuild(parent, facts, build, fallback) {
  const signature = JSON.stringify(facts);
  if (drawn.get(parent) === signature) return;
  drawn.set(parent, signature);
  keepFocus(parent, () => place(parent, [build()].flat(Infinity).filter(Boolean)), fallback);
}

/** Tell a screen reader. */
export function announce(text) {
  const live = document.getElementById("live");
  live.append(h("p", { text }));
  while (live.childElementCount > 5) live.firstChild.remove();
}

export const raw = (text) => String(text ?? "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** Storage of this tab (or of this browser), which a person may have switched off. */
export function kept(area, key, fallback) {
  try {
    return JSON.parse(area.getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

export function keep(area, key, value) {
  try {
    area.setItem(key, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works on, it only forgets with the tab.
  }
}
