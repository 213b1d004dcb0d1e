// The Markdown of questions: paragraphs, lists, headings, code, emphasis and links. Text becomes
// elements, never HTML: https://spec.commonmark.org is the rule for what is known of it.

import type { ComponentChildren } from "preact";
import { Text } from "./marks";

// No part is searched for again from each character of it: a text of a graph may be a megabyte.
const inline = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\n]+\*|!?\[[^[\]\n]*\]\([^()\s]+\))/;
const fence = /^(```[^\n]*\n[\s\S]*?(?:\n```|(?![\s\S])))/m;
const deepest = 16; // blocks inside of one another

/** Shows a text with Markdown. */
export function Markdown({ text }: { text: string }): ComponentChildren {
  return (
    <div class="md" dir="auto">
      {text.replaceAll("\r\n", "\n").split(fence).map((part) =>
        part.startsWith("```") ? (
          <pre tabIndex={0}>
            <Text of={part.replace(/^```[^\n]*\n/, "").replace(/\n?```$/, "")} />
          </pre>
        ) : (
          part.split(/\n{2,}/).map((block) => showBlock(block))
        ),
      )}
    </div>
  );
}

function showBlock(block: string, depth = 0): ComponentChildren {
  const lines = block.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return null;
  if (depth > deepest) return <p><Text of={block} /></p>;
  const heading = /^#{1,6} +(.*)$/.exec(lines[0]!);
  if (heading) {
    return (
      <>
        <p class="heading">{showInline(heading[1]!)}</p>
        {showBlock(lines.slice(1).join("\n"), depth + 1)}
      </>
    );
  }
  for (const [pattern, List] of [[/^\s*[-*+] +/, "ul"], [/^\s*\d+[.)] +/, "ol"]] as const) {
    if (!lines.every((line) => pattern.test(line))) continue;
    return (
      <List>
        {lines.map((line) => (
          <li>{showInline(line.replace(pattern, ""))}</li>
        ))}
      </List>
    );
  }
  if (lines.every((line) => line.startsWith(">"))) {
    return <blockquote>{showBlock(lines.map((line) => line.replace(/^> ?/, "")).join("\n"), depth + 1)}</blockquote>;
  }
  return (
    <p>
      {lines.map((line, i) => (
        <>
          {i > 0 && <br />}
          {showInline(line)}
        </>
      ))}
    </p>
  );
}

function showInline(text: string): ComponentChildren {
  return text.split(inline).map((part, i) => {
    if (i % 2 === 0) return <Text of={part} />;
    if (part.startsWith("`")) return <code><Text of={part.slice(1, -1)} /></code>;
    if (part.startsWith("**")) return <strong><Text of={part.slice(2, -2)} /></strong>;
    if (part.startsWith("*")) return <em><Text of={part.slice(1, -1)} /></em>;
    return showLink(part);
  });
}

/** Shows a link to another site with its host, because its text may say anything; no image is loaded. */
function showLink(source: string): ComponentChildren {
  const [, label, target] = /^!?\[([^\]]*)\]\(([^()]+)\)$/.exec(source)!;
  const url = URL.canParse(target!) ? new URL(target!) : undefined;
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) return <Text of={source} />;
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow">
      <Text of={label || url.href} /> <span class="host">{url.host}</span>
    </a>
  );
}
