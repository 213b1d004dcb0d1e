// People in small.

import type { ComponentChildren } from "preact";
import { hueOf, shortName } from "../text/people";
import { Icon, type IconName } from "./icons";

/** Shows the first letter of a principal; their name stands beside it. */
export function Avatar({ principal, size = 20 }: { principal: string; size?: number }): ComponentChildren {
  return (
    <span class="av" title={principal} aria-hidden="true" style={{ "--h": hueOf(principal), width: size + "px", height: size + "px", fontSize: size * 0.46 + "px" }}>
      {[...shortName(principal)][0]}
    </span>
  );
}

/** Shows an icon in the place of a person. */
export function Place({ icon, size = 20, open = false }: { icon: IconName; size?: number; open?: boolean }): ComponentChildren {
  return (
    <span class={open ? "av vacant" : "av sys"} aria-hidden="true" style={{ width: size + "px", height: size + "px" }}>
      <Icon name={icon} size={size * 0.6} />
    </span>
  );
}
