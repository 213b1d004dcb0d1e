// A message that stands in the flow of a screen.

import type { ComponentChildren } from "preact";
import { Icon } from "./icons";

export function Banner({ icon, tone, children }: { icon: "cross" | "warn" | "check" | "clock"; tone: "warn" | "no" | "yes" | "mid"; children: ComponentChildren }): ComponentChildren {
  return (
    <div class={"banner " + tone} role="status">
      <Icon name={icon} />
      <div>{children}</div>
    </div>
  );
}
