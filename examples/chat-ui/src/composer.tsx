/** Where a person writes. */
import { type KeyboardEvent, useState } from "react";

type Props = { isBusy: boolean; isAsked: boolean; onSay: (text: string) => void; onStop: () => void };

export function Composer({ isBusy, isAsked, onSay, onStop }: Props) {
  const [text, setText] = useState("");

  function send() {
    if (isBusy || text.trim() === "") return;
    onSay(text.trim());
    setText("");
  }

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        aria-label="Message"
        rows={1}
        disabled={isAsked} // a model takes no message between a call and its result
        value={text}
        placeholder={isAsked ? "Please decide first" : "Which order is it, and what is wrong with it?"}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => sendOnEnter(event, send)}
      />
      {isBusy ? (
        <button type="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit" className="main" disabled={text.trim() === ""}>
          Send
        </button>
      )}
    </form>
  );
}

/** Enter sends, and with Shift it begins a line. */
export function sendOnEnter(event: KeyboardEvent, send: () => void) {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  send();
}
