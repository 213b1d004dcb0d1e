package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) stateCommand() *cobra.Command {
	var o cli.StateOptions
	cmd := &cobra.Command{
		Use:   "state THREAD",
		Short: "Show the state of a thread, its due nodes and its open questions",
		Args:  exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			return p.withSession(func(s *cli.Session) error { return s.ShowState(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Checkpoint, "checkpoint", "", "an earlier checkpoint, see history (default: the newest)")
	f.StringSliceVar(&o.Keys, "keys", nil, "only these keys")
	f.BoolVar(&o.Subgraphs, "subgraphs", false, "with the states of running subgraphs")
	return cmd
}
