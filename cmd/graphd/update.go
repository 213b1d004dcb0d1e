package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) updateCommand() *cobra.Command {
	var o cli.UpdateOptions
	cmd := &cobra.Command{
		Use:     "update THREAD --values JSON",
		Short:   "Write to the state of a thread as if a node had done it",
		Example: `  graphd update ticket-1 --values '{"request_type": "refund"}' --as-node analyze`,
		Args:    exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			return p.withSession(func(s *cli.Session) error { return s.UpdateState(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Values, "values", "", "JSON object of state keys, @FILE, or - for standard input")
	f.StringVar(&o.AsNode, "as-node", "", "the node that counts as the writer (default: the last one that ran)")
	f.StringVar(&o.Checkpoint, "checkpoint", "", "build on this checkpoint (default: the newest)")
	f.BoolVar(&o.Supersede, "supersede", false, "drop open questions")
	f.StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	cobra.CheckErr(cmd.MarkFlagRequired("values"))
	return cmd
}
