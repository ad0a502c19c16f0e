// Names of emoji, as far as people use them with a bot. What is not here is shown by its name.

const TABLE = {
  "+1": "👍", "-1": "👎", thumbsup: "👍", thumbsdown: "👎", x: "❌", white_check_mark: "✅", heavy_check_mark: "✔️", check: "✔️", eyes: "👀",
  wave: "👋", rocket: "🚀", fire: "🔥", tada: "🎉", warning: "⚠️", smile: "😄", grin: "😁", slightly_smiling_face: "🙂", thinking_face: "🤔",
  hourglass_flowing_sand: "⏳", hourglass: "⌛", bug: "🐛", pray: "🙏", heart: "❤️", no_entry: "⛔", no_entry_sign: "🚫", stop_sign: "🛑",
  octagonal_sign: "🛑", double_vertical_bar: "⏸️", pause_button: "⏸️", black_square_for_stop: "⏹️", arrow_forward: "▶️", fast_forward: "⏩",
  black_right_pointing_double_triangle_with_vertical_bar: "⏭️", next_track_button: "⏭️", repeat: "🔁", arrows_counterclockwise: "🔄",
  question: "❓", exclamation: "❗", information_source: "ℹ️", bulb: "💡", memo: "📝", pencil: "📝", pencil2: "✏️", lock: "🔒", unlock: "🔓", key: "🔑",
  shield: "🛡️", gear: "⚙️", wrench: "🔧", hammer: "🔨", hammer_and_wrench: "🛠️", robot_face: "🤖", computer: "💻", keyboard: "⌨️", package: "📦",
  file_folder: "📁", open_file_folder: "📂", page_facing_up: "📄", clipboard: "📋", mag: "🔍", link: "🔗", globe_with_meridians: "🌐", bell: "🔔",
  no_bell: "🔕", hand: "✋", raised_hand: "✋", ok_hand: "👌", point_right: "👉", point_left: "👈", clap: "👏", muscle: "💪", bust_in_silhouette: "👤",
  busts_in_silhouette: "👥", speech_balloon: "💬", thought_balloon: "💭", zzz: "💤", sleeping: "😴", sparkles: "✨", star: "⭐", zap: "⚡", boom: "💥",
  large_green_circle: "🟢", large_yellow_circle: "🟡", large_orange_circle: "🟠", red_circle: "🔴", large_blue_circle: "🔵", white_circle: "⚪",
  black_circle: "⚫", large_green_square: "🟩", large_red_square: "🟥", clock1: "🕐", alarm_clock: "⏰", stopwatch: "⏱️", timer_clock: "⏲️",
  calendar: "📅", date: "📅", chart_with_upwards_trend: "📈", broom: "🧹", wastebasket: "🗑️", floppy_disk: "💾", inbox_tray: "📥", outbox_tray: "📤",
  mailbox: "📫", email: "✉️", envelope: "✉️", books: "📚", label: "🏷️", ballot_box_with_check: "☑️", white_large_square: "⬜", arrow_right: "➡️",
  arrow_left: "⬅️", arrow_up: "⬆️", arrow_down: "⬇️", leftwards_arrow_with_hook: "↩️", heavy_plus_sign: "➕", heavy_minus_sign: "➖", sob: "😭",
  cry: "😢", joy: "😂", sweat_smile: "😅", sunglasses: "😎", face_with_monocle: "🧐", shrug: "🤷", seedling: "🌱", coffee: "☕", checkered_flag: "🏁",
  triangular_flag_on_post: "🚩", construction: "🚧", rotating_light: "🚨", scroll: "📜", compass: "🧭", scissors: "✂️", test_tube: "🧪", brain: "🧠",
  large_blue_diamond: "🔷", white_small_square: "▫️", black_small_square: "▪️", heavy_exclamation_mark: "❗", raising_hand: "🙋", handshake: "🤝",
};

export const emoji = (name) => (Object.hasOwn(TABLE, name) ? TABLE[name] : null);
export const fromPoints = (points) => String.fromCodePoint(...points.split("-").map((each) => parseInt(each, 16)));
