// Clicks that wait for the app, and those that went wrong; shown at the very control.

import { announce } from "./dom.js";
import { words } from "./trouble.js";

export class Acts {
  #standing = new Map(); // "surface id block action" -> {pending} or {error, code}
  #versions = new Map(); // "surface id" -> how often something of it changed

  constructor(app) {
    this.app = app;
  }

  standing(key) {
    return this.#standing.get(key) ?? {};
  }

  version(surface) {
    return this.#versions.get(surface) ?? 0;
  }

  /** A control is used. In: its key, and what the workspace needs to know. */
  async click(key, facts) {
    this.#set(key, { pending: true });
    const answer = await this.app.socket.ask("click", facts);
    if (answer.ok) return this.#set(key, null);
    const error = words(answer, this.app.botName());
    this.#set(key, { error, code: answer.error });
    announce(error);
  }

  /** What went wrong on a surface is no longer of interest: it says something else now. */
  forget(surface) {
    for (const [key, standing] of this.#standing) if (key.startsWith(`${surface} `) && standing.error) this.#set(key, null, false);
  }

  #set(key, standing, redraw = true) {
    const surface = key.split(" ", 2).join(" ");
    this.#versions.set(surface, this.version(surface) + 1);
    if (standing) this.#standing.set(key, standing);
    else this.#standing.delete(key);
    if (redraw) this.app.redraw();
  }
}
