// Asks who calls. What was typed below stays where it is, and typed answers are kept as drafts.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { session, signIn } from "./api/session";
import { dropOldDrafts } from "./question/drafts";
import { Text } from "./text/marks";
import { Logo } from "./ui/icons";

/** A way to sign in: at an issuer to which path leads, or with a token. */
interface Way {
  kind: string;
  name?: string;
  path?: string;
}

async function askWays(): Promise<readonly Way[]> {
  const answer = await fetch("/session").catch(() => undefined);
  const body: { ways?: readonly Way[] } | undefined = answer?.ok ? await answer.json().catch(() => undefined) : undefined;
  return body?.ways ?? [{ kind: "token" }];
}

/** Signs in with the token of a link, but not where people sign in at an issuer: who sends a link must not decide as whom others answer. */
export async function signInByLink(token: string): Promise<void> {
  const ways = await askWays();
  const signedIn = signIn(ways.some((w) => w.path) ? undefined : token);
  history.replaceState(null, "", location.pathname + location.search); // only now: a reload before would lose the token
  return signedIn;
}

/** Forgets the token, the drafts and what is shown, and ends the session that the browser has with the server. */
export async function signOut(): Promise<void> {
  sessionStorage.clear();
  dropOldDrafts(0); // the next person at this browser is another one
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" };
  const hasEnded = await fetch("/sign-out", request).then((r) => r.ok, () => false);
  if (hasEnded) {
    localStorage.setItem("graphd.left", String(Date.now())); // main.tsx of other tabs hears of it
    location.reload();
  } else session.set({ state: "signed-out", message: "The server can’t be reached: this browser may still be signed in.", caller: undefined });
}

// The longest address to which the server leads back.
const maxAddress = 1024;

/** Leaves the page for that of the issuer, which leads back to this address. */
function goToIssuer(path: string): void {
  const address = location.pathname + location.search;
  location.assign(path + "?to=" + encodeURIComponent(address.length > maxAddress ? location.pathname : address));
}

export function SignIn({ message }: { message: string }): ComponentChildren {
  const dialog = useRef<HTMLDialogElement>(null);
  const [ways, setWays] = useState<readonly Way[]>([]);
  useEffect(() => {
    dialog.current!.showModal();
    void askWays().then(setWays);
  }, []);
  return (
    <dialog ref={dialog} class="sheet sign-in" aria-labelledby="sign-in-title" onCancel={(e) => e.preventDefault()}>
      <div class="ways">
        <Logo />
        <h2 id="sign-in-title">Sign in</h2>
        <p>The server wants to know who you are.</p>
        {message && <span class="problem" role="alert"><Text of={message} /></span>}
        {ways.map((w) => w.path && (
          <button type="button" class="main" onClick={() => goToIssuer(w.path!)}>Sign in with <Text of={w.name ?? ""} /></button>
        ))}
        {ways.some((w) => w.kind === "token") && <TokenForm isMain={ways.length === 1} />}
      </div>
    </dialog>
  );
}

function TokenForm({ isMain }: { isMain: boolean }): ComponentChildren {
  const [token, setToken] = useState("");
  const submit = (e: Event): void => {
    e.preventDefault();
    void signIn(token);
  };
  return (
    <form onSubmit={submit}>
      <div class="field">
        <label class="label" for="token">Token</label>
        <input id="token" type="password" autoComplete="off" value={token} onInput={(e) => setToken(e.currentTarget.value)} />
        <span class="hint">An API key, or a token of your identity provider. It is kept until this tab closes.</span>
      </div>
      <button type="submit" class={isMain ? "main" : ""} disabled={token === ""}>{isMain ? "Sign in" : "Sign in with the token"}</button>
    </form>
  );
}
