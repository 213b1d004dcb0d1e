package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

func (p *program) runCommand() *cobra.Command {
	var o cli.RunOptions
	cmd := &cobra.Command{
		Use:   "run GRAPH[@VERSION]",
		Short: "Run a graph and show what it does until it stops",
		Example: `  graphd run refund-review --thread ticket-1 --input '{"user_id": 42, "user_request": "refund, please"}'
  graphd run refund-review --thread ticket-2 --ask
  graphd run refund-review --thread ticket-3 --input @ticket.json --events updates,values -o jsonl`,
		Args: exactArgs("GRAPH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Graph = args[0]
			if given := p.connection.takeRunContext(); given != "" {
				if o.Context != "" {
					return exit.Usagef("--context and --run-context both have a context of the run").WithHint("leave out --context")
				}
				o.Context = given
				_ = output.WriteLine(p.Err, "note: the context of a run is --run-context now; --context names a server") // the run says more
			}
			return p.withSession(func(s *cli.Session) error { return s.Run(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Thread, "thread", "t", "", "thread to run on; made when there is none (default: the server chooses)")
	f.StringVarP(&o.Input, "input", "i", "", "JSON object, @FILE, or - for standard input; without it the thread goes on")
	f.BoolVar(&o.Ask, "ask", false, "ask for the input at the terminal, field by field")
	f.StringVar(&o.From, "from-checkpoint", "", "run again from this earlier checkpoint, or take --input at it")
	f.StringVar(&o.Context, "run-context", "", "`JSON` that expressions and nodes read as context in this run")
	f.StringSliceVarP(&o.Events, "events", "e", nil,
		"kinds of events: updates, values, messages, custom, tasks, checkpoints, debug")
	f.StringSliceVar(&o.Before, "interrupt-before", nil, "stop before these nodes; * means all")
	f.StringSliceVar(&o.After, "interrupt-after", nil, "stop after these nodes; * means all")
	f.StringArrayVar(&o.Metadata, "metadata", nil, "label KEY=VALUE of the run (repeatable)")
	f.StringVar(&o.OnBusy, "on-busy", "", "when another run is active: reject, enqueue, cancel or rollback")
	f.StringVar(&o.OnOpen, "on-open", "", "when the thread waits for an answer: reject, discard or enqueue")
	f.Uint32Var(&o.StepLimit, "step-limit", 0, "supersteps the run may take (default: the graph's)")
	f.DurationVar(&o.Delay, "after", 0, "begin the run so long after it was accepted, like 10m; it is queued until then")
	f.DurationVar(&o.Timeout, "timeout", 0, "how long the run may work, without the time it waits for people")
	f.BoolVarP(&o.Detach, "detach", "d", false, "return as soon as the run is stored")
	f.StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	cmd.MarkFlagsMutuallyExclusive("input", "ask")
	return cmd
}
