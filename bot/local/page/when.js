// Moments in the reader's own time and language.

const moment = (ts) => new Date(Number(String(ts).split(".")[0]) * 1000);
const format = (options) => new Intl.DateTimeFormat(undefined, options);
const TIME = format({ hour: "numeric", minute: "2-digit" });
const SECONDS = format({ hour: "numeric", minute: "2-digit", second: "2-digit" });
const DAY = format({ weekday: "long", day: "numeric", month: "long" });
const FULL = format({ dateStyle: "full", timeStyle: "medium" });
const SHORT = format({ day: "numeric", month: "short", year: "numeric" });
const LONG = format({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
const PLAIN = format({ day: "numeric", month: "long", year: "numeric" });
const NUMBER = format({ year: "numeric", month: "2-digit", day: "2-digit" });
const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

export const time = (ts) => TIME.format(moment(ts));
export const full = (ts) => FULL.format(moment(ts));
export const iso = (ts) => moment(ts).toISOString();
export const dayKey = (ts) => moment(ts).toDateString();

const daysAway = (date) => Math.round((new Date(date).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / 86400000);

/** Today, Yesterday, Tomorrow, or the date by this layout. */
function pretty(date, layout) {
  const away = daysAway(date);
  return Math.abs(away) <= 1 ? AGO.format(away, "day") : layout.format(date);
}

export function day(ts) {
  const text = pretty(moment(ts), DAY);
  return text[0].toUpperCase() + text.slice(1);
}

export function ago(date) {
  const seconds = (date - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, each]) => Math.abs(seconds) >= each) ?? STEPS.at(-1);
  return AGO.format(Math.round(seconds / size), unit);
}

const TOKENS = {
  date: (d) => PLAIN.format(d), date_num: (d) => NUMBER.format(d), date_short: (d) => SHORT.format(d), date_long: (d) => LONG.format(d),
  date_pretty: (d) => pretty(d, PLAIN), date_short_pretty: (d) => pretty(d, SHORT), date_long_pretty: (d) => pretty(d, LONG),
  date_slash: (d) => NUMBER.format(d), time: (d) => TIME.format(d), time_secs: (d) => SECONDS.format(d), ago,
};

/** Slack's date markup. In: seconds since 1970 and a text with {tokens}. Out: the text, or null if it cannot be read. */
export function layout(seconds, text) {
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return null;
  return { iso: date.toISOString(), text: text.replace(/\{(\w+)\}/g, (whole, token) => (Object.hasOwn(TOKENS, token) ? TOKENS[token](date) : whole)) };
}
