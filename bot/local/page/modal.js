// Modals: the one on top of the stack is shown; what was typed into those below is kept.

import { blocks } from "./blocks.js";
import { complaint, initial, told } from "./controls.js";
import { announce, h, iconButton, rebuild } from "./dom.js";
import { field } from "./fields.js";
import { textLine, plainText } from "./mrkdwn.js";
import { words } from "./trouble.js";

const CODES = { required: "Please fill this in.", too_long: "That is too long.", too_short: "That is too short." };

export class Modals {
  #forms = new Map(); // view id -> what was typed, complaints of the page's own, and whether an answer is awaited
  #shown = null;
  #dialog = null;
  #back = null;
  #drawn = 0;

  /** In: the app (see main.js). */
  constructor(app) {
    this.app = app;
  }

  render() {
    const stack = this.app.store.modals();
    for (const id of [...this.#forms.keys()]) if (!stack.some((view) => view.id === id)) this.#forms.delete(id);
    const view = stack.at(-1);
    if (!view) return this.#end();
    if (!this.#dialog) this.#begin();
    if (this.#shown?.id !== view.id) announce(`Dialog: ${plainText(view.title)}`);
    const first = this.#shown?.id !== view.id;
    const wrong = this.#shown !== view && Object.keys(view.errors).length > 0;
    if (this.#shown !== view) this.#form(view).errors = { ...view.errors };
    this.#shown = view;
    // What was typed is not among the facts: a field that is typed into must not be rebuilt under the hands.
    const { errors, pending, trouble } = this.#form(view);
    rebuild(this.#dialog, [view, stack.length, errors, pending, trouble, this.#drawn, this.app.acts.version(`view ${view.id}`)], () => this.#draw(view, stack), () => this.#firstField());
    if (first) this.#firstField()?.focus();
    else if (wrong) this.#firstWrong();
  }

  #begin() {
    this.#back = document.activeElement?.closest("[data-focus]")?.dataset.focus ?? null;
    this.#dialog = h("dialog", { class: "modal", "data-testid": "modal", "aria-labelledby": "modal-title",
      on: { cancel: (event) => (event.preventDefault(), this.#close(false)) } });
    document.body.append(this.#dialog);
    this.#dialog.showModal();
  }

  #end() {
    if (!this.#dialog) return;
    this.#dialog.close();
    this.#dialog.remove();
    this.#dialog = this.#shown = null;
    // The browser gives the focus back to what had it; if that was rebuilt meanwhile, to what took its place.
    if (document.activeElement !== document.body && document.activeElement?.isConnected) return;
    const heir = this.#back && document.querySelector(`[data-focus="${CSS.escape(this.#back)}"]`);
    (heir ?? document.querySelector("#thread:not([hidden]) textarea, #channel textarea"))?.focus();
  }

  #form(view) {
    if (!this.#forms.has(view.id)) this.#forms.set(view.id, { values: new Map(), errors: {}, pending: false, trouble: "" });
    return this.#forms.get(view.id);
  }

  #firstField() {
    return this.#dialog.querySelector("form :is(input, textarea, select)") ?? this.#dialog.querySelector("[data-testid=modal-submit], [data-testid=modal-cancel]");
  }

  #firstWrong() {
    this.#dialog.querySelector(".field.wrong :is(input, textarea, select)")?.focus();
  }

  #draw(view, stack) {
    const form = this.#form(view);
    const surface = { ...this.app.surface(), prefix: `view-${view.id}`, values: form.values, state: view.values, redraw: () => ((this.#drawn += 1), this.render()),
      standing: (block, action) => this.app.acts.standing(`view ${view.id} ${block} ${action}`),
      act: (part, block, value) => this.app.acts.click(`view ${view.id} ${block} ${part.action_id}`, { view_id: view.id, action_id: part.action_id, block_id: block, value }) };
    surface.input = (block) => field(block, surface, {
      error: CODES[form.errors[block.block_id]] ?? form.errors[block.block_id],
      changed: () => this.#changed(form, block.block_id),
      done: (value) => block.dispatch_action && surface.act(block.element, block.block_id, told(block.element, value)),
    });
    const busy = form.pending ? "true" : null;
    return h("form", { class: "sheet", novalidate: true, "data-view-id": view.id, "data-callback": null, on: { submit: (event) => (event.preventDefault(), this.#submit(view)) } },
      h("header", {},
        stack.length > 1 && iconButton("back", "Back", () => this.#close(false), { "data-testid": "modal-back" }),
        h("h2", { id: "modal-title" }, textLine(view.title)),
        iconButton("close", "Close", () => this.#close(true), { "data-testid": "modal-close" })),
      h("div", { class: "body" }, form.trouble && h("p", { class: "trouble", role: "alert", "data-testid": "modal-trouble", text: form.trouble }), blocks(view.blocks, surface)),
      h("footer", {},
        h("button", { type: "button", class: "button", "data-testid": "modal-cancel", "data-focus": "modal-cancel", on: { click: () => this.#close(false) } }, view.close ? textLine(view.close) : view.submit ? "Cancel" : "Close"),
        view.submit && h("button", { type: "submit", class: "button primary", "data-testid": "modal-submit", "data-focus": "modal-submit", disabled: view.submit_disabled, "aria-busy": busy, "aria-disabled": busy },
          h("span", { class: "label" }, textLine(view.submit)))));
  }

  // A complaint goes when its field is touched, without rebuilding what the person types into.
  #changed(form, block) {
    if (!form.errors[block]) return;
    delete form.errors[block];
    const holder = this.#dialog.querySelector(`[data-testid="field-${CSS.escape(block)}"]`);
    holder.classList.remove("wrong");
    holder.querySelector(".error")?.remove();
    holder.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
  }

  async #submit(view) {
    const form = this.#form(view);
    if (form.pending) return;
    const values = {};
    form.errors = {};
    for (const block of view.blocks.filter((each) => each.type === "input")) {
      const key = `${block.block_id} ${block.element.action_id}`;
      const value = form.values.has(key) ? form.values.get(key) : initial(block.element, view.values[block.block_id]?.[block.element.action_id]);
      const wrong = complaint(block, block.element, value);
      if (wrong) form.errors[block.block_id] = wrong;
      values[block.block_id] = told(block.element, value);
    }
    form.trouble = "";
    if (Object.keys(form.errors).length) {
      this.render();
      return this.#firstWrong();
    }
    form.pending = true;
    this.render();
    const answer = await this.app.socket.ask("submit", { view_id: view.id, values });
    form.pending = false;
    // A complaint of the app's comes with the view itself; what else went wrong is said at the top.
    if (!answer.ok && !Object.keys(answer.errors ?? {}).length) form.trouble = words(answer, this.app.botName());
    if (this.#dialog) this.render();
  }

  async #close(all) {
    const view = this.#shown;
    const answer = await this.app.socket.ask("close", { view_id: view.id, clear: all && this.app.store.modals().length > 1 });
    // Closed is closed, whether the app heard of it or not; only without a workspace it stays.
    if (!answer.ok && ["not_connected", "connection_lost"].includes(answer.error) && this.#dialog) {
      this.#form(view).trouble = words(answer, this.app.botName());
      this.render();
    }
  }
}
