import { ParentCommand } from "../errors/index.js";

/** A graph that was called inside a node sent a command to its parent. `outcome` is the `TaskCompleted` of the server. */
export class CalledCommand extends ParentCommand {
  constructor(readonly outcome: unknown) {
    super(undefined);
  }
}
