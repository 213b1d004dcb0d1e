// Finds threads and questions by id, graphs by name, and every action that has a key now.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Interrupt, ListGraphsResponse, ListInterruptsResponse, Thread } from "./api/messages";
import { client } from "./api/session";
import { listKeys } from "./keys";
import { titleOf } from "./question/title";
import { addressOf, navigate } from "./route";
import { plainText } from "./text/marks";
import { useModal } from "./ui/dialog";
import { Icon, type IconName } from "./ui/icons";
import { Key } from "./ui/key";

interface Choice {
  icon: IconName;
  title: string;
  about: string;
  key?: string | undefined;
  run: () => void;
}

const most = 12;
const settleFor = 150;

export function Palette({ close }: { close: () => void }): ComponentChildren {
  const dialog = useModal(close);
  const actions = useRef(listKeys().filter((a) => a.about !== "find or do")); // those of what is below
  const [text, setText] = useState("");
  const [found, setFound] = useState<readonly Choice[]>([]);
  const [at, setAt] = useState(0);
  useEffect(() => {
    const closing = new AbortController();
    const timer = setTimeout(() => void find(text.trim(), closing.signal).then((all) => closing.signal.aborted || setFound(all), () => undefined), settleFor);
    return () => {
      clearTimeout(timer);
      closing.abort();
    };
  }, [text]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const doable: Choice[] = actions.current
    .filter((a) => words.every((w) => a.about.toLowerCase().includes(w)))
    .map((a) => ({ icon: "play", title: a.about.charAt(0).toUpperCase() + a.about.slice(1), about: "", key: a.keys[0], run: a.run }));
  const choices = [...found, ...doable].slice(0, most);
  const chosen = Math.min(at, choices.length - 1);
  const run = (c: Choice | undefined): void => {
    if (!c) return;
    dialog.current!.close();
    close();
    c.run();
  };
  const move = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    e.preventDefault();
    setAt((chosen + step + choices.length) % Math.max(1, choices.length));
  };
  return (
    <dialog ref={dialog} class="sheet palette" aria-label="Find or do" onClick={(e) => e.target === dialog.current && dialog.current!.close()}>
      <form onSubmit={(e) => { e.preventDefault(); run(choices[chosen]); }}>
        <input
          placeholder="A thread, a question, a graph, or what to do"
          aria-label="Find or do"
          role="combobox"
          aria-expanded="true"
          aria-controls="choices"
          aria-activedescendant={choices[chosen] && "choice-" + chosen}
          autoComplete="off"
          value={text}
          onKeyDown={move}
          onInput={(e) => { setText(e.currentTarget.value); setAt(0); }}
        />
      </form>
      <ul id="choices" role="listbox" aria-label="Choices">
        {choices.map((c, i) => (
          <li id={"choice-" + i} role="option" aria-selected={i === chosen} onClick={() => run(c)} onMouseMove={() => setAt(i)}>
            <Icon name={c.icon} /><span>{plainText(c.title)}</span><small>{plainText(c.about)}</small>
            {c.key?.split(" ").map((k) => <Key of={k.length === 1 ? k.toUpperCase() : k} />)}
          </li>
        ))}
        {choices.length === 0 && <li role="option" aria-selected="false" aria-disabled="true">Nothing is like this.</li>}
      </ul>
    </dialog>
  );
}

/** Finds what has this name: a thread, its questions, and graphs. */
async function find(text: string, signal: AbortSignal): Promise<Choice[]> {
  if (text === "") return [];
  const isId = /^[\w.:-]{1,128}$/.test(text);
  const [thread, questions, graphs] = await Promise.all([
    isId ? client.call<Thread>("ThreadService/GetThread", { threadId: text }, signal).catch(() => undefined) : undefined,
    isId ? client.call<ListInterruptsResponse>("InterruptService/ListInterrupts", { threadId: text, pageSize: 5 }, signal).catch(() => undefined) : undefined,
    client.call<ListGraphsResponse>("RegistryService/ListGraphs", { pageSize: 500 }, signal).catch(() => undefined),
  ]);
  const choices: Choice[] = [];
  if (thread) choices.push({ icon: "threads", title: thread.threadId ?? "", about: thread.graph ?? "", run: () => navigate(addressOf("threads", [thread.threadId!])) });
  for (const q of questions?.interrupts ?? []) choices.push({ icon: "ask", title: titleOf(q), about: q.threadId ?? "", run: () => openQuestion(q) });
  for (const g of graphs?.graphs ?? []) {
    if (g.graph?.toLowerCase().includes(text.toLowerCase())) choices.push({ icon: "graphs", title: g.graph, about: g.description ?? "", run: () => navigate(addressOf("graphs", [g.graph!])) });
  }
  return choices;
}

function openQuestion(q: Interrupt): void {
  navigate(addressOf("inbox", [q.threadId!, q.interruptId!]));
}
