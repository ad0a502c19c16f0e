// The connection to the workspace. It comes back by itself, and nothing that was asked for is lost without a word.

const FIRST = 250; // milliseconds before the first try to come back; doubled with each
const LAST = 4000; // and never longer, since the workspace is on this machine

export class Socket extends EventTarget {
  #socket = null;
  #waiting = new Map(); // number of a request -> its promise's ends
  #made = 0;
  #tries = 0;
  #timer = 0;

  /** In: gives the query of the next connection: who acts, and what the page has already. */
  constructor(query) {
    super();
    this.query = query;
    this.open = false;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.hurry());
  }

  connect() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/_page?${new URLSearchParams(this.query())}`);
    this.#socket = socket;
    socket.addEventListener("message", (event) => socket === this.#socket && this.#received(JSON.parse(event.data)));
    socket.addEventListener("close", () => socket === this.#socket && this.#lost());
  }

  /** Drop this connection and begin another, such as for another person. */
  renew() {
    const old = this.#socket;
    this.#socket = null;
    old?.close();
    this.#fail();
    this.connect();
  }

  hurry() {
    if (!this.open && this.#timer) this.connect();
  }

  /** Ask for something. Out: the workspace's answer; `{ok: false, error: "not_connected"}` where there is none. */
  ask(verb, facts) {
    if (!this.open) return Promise.resolve({ ok: false, error: "not_connected" });
    const id = (this.#made += 1);
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, verb, ...facts }));
    });
  }

  #received(frame) {
    if (frame.type === "answer") {
      this.#waiting.get(frame.id)?.(frame);
      this.#waiting.delete(frame.id);
      return;
    }
    if (frame.type === "hello") {
      this.open = true;
      this.#tries = 0;
      this.#timer = 0;
    }
    this.dispatchEvent(new CustomEvent(frame.type, { detail: frame }));
  }

  #lost() {
    this.open = false;
    this.#fail();
    // Some chance in it, so that many tabs do not come back in the same moment.
    const pause = Math.min(FIRST * 2 ** this.#tries, LAST) * (0.75 + Math.random() / 4);
    this.#tries += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.connect(), pause);
    this.dispatchEvent(new CustomEvent("lost"));
  }

  #fail() {
    this.open = false;
    for (const resolve of this.#waiting.values()) resolve({ ok: false, error: "connection_lost" });
    this.#waiting.clear();
  }
}
