// Asks who calls. What was typed below stays where it is.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signIn } from "./api/session";
import { Text } from "./text/marks";
import { Logo } from "./ui/icons";

export function SignIn({ message }: { message: string }): ComponentChildren {
  const dialog = useRef<HTMLDialogElement>(null);
  const [token, setToken] = useState("");
  useEffect(() => dialog.current!.showModal(), []);
  const submit = (e: Event): void => {
    e.preventDefault();
    void signIn(token);
  };
  return (
    <dialog ref={dialog} class="sheet sign-in" aria-labelledby="sign-in-title" onCancel={(e) => e.preventDefault()}>
      <form onSubmit={submit}>
        <Logo />
        <h2 id="sign-in-title">Sign in</h2>
        <p>The server wants to know who you are.</p>
        <div class="field">
          <label class="label" for="token">Token</label>
          <input id="token" type="password" autoComplete="off" value={token} onInput={(e) => setToken(e.currentTarget.value)} />
          <span class="hint">An API key, or a token of your identity provider. It is kept until this tab closes.</span>
          {message && <span class="problem" role="alert"><Text of={message} /></span>}
        </div>
        <button type="submit" class="main" disabled={token === ""}>Sign in</button>
      </form>
    </dialog>
  );
}
