// The place for a comment.

import { newRequestId } from "../api/connect";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Interrupt, TrailEntry } from "../api/messages";
import { noteError, ownName } from "../api/session";
import { Icon } from "../ui/icons";
import { Key } from "../ui/key";
import { Avatar } from "../ui/people";
import { showProblem } from "../ui/toast";
import { comment } from "./trail_entries";

export function CommentBox({ question: q, added }: { question: Interrupt; added: (e: TrailEntry) => void }): ComponentChildren {
  const [text, setText] = useState("");
  const requestId = useRef(newRequestId());
  const send = (e: Event): void => {
    e.preventDefault();
    if (text.trim() === "") return;
    comment(q, text, requestId.current).then((entry) => {
      requestId.current = newRequestId();
      setText("");
      added(entry);
    }, (err: unknown) => {
      noteError(err);
      showProblem("The comment is not stored", err);
    });
  };
  return (
    <form class="comment" onSubmit={send}>
      {ownName() ? <Avatar principal={ownName()} size={24} /> : <Icon name="comment" />}
      <input id="comment" dir="auto" placeholder="Comment; the graph does not see it" aria-label="Comment" value={text} maxLength={4000} onInput={(e) => setText(e.currentTarget.value)} />
      {text === "" ? <Key of="M" /> : <button type="submit" class="ghost">Comment</button>}
    </form>
  );
}
