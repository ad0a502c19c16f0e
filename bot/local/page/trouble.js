// What a person reads when something they did was not answered.

/** In: an answer that is not `ok`, the bot's name. Out: words. */
export function words(answer, bot) {
  switch (answer.error) {
    case "operation_timeout":
      return `${bot} did not answer in time. Try again. (operation_timeout)`;
    case "dispatch_failed":
      return `${bot} is not running, so nothing was sent. Try again once it is back. (dispatch_failed)`;
    case "not_connected":
      return "The workspace cannot be reached just now, so nothing was sent. Try again once it is back.";
    case "connection_lost":
      return "The connection broke before an answer came. See whether it took effect before you try again.";
    case "not_supported_in_threads":
      return "Slash commands do not work in threads. Use the message box of the channel. (not_supported_in_threads)";
    case "invalid_command":
      return "There is no such command. (invalid_command)";
    case "person_cannot":
      return `That is not possible: ${answer.detail}.`;
    default:
      return `That went wrong. (${[answer.error, answer.detail].filter(Boolean).join(": ")})`;
  }
}
