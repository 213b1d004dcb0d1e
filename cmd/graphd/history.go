package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) historyCommand() *cobra.Command {
	var o cli.HistoryOptions
	cmd := &cobra.Command{
		Use:   "history THREAD",
		Short: "List the checkpoints of a thread, newest first",
		Args:  exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			return p.withSession(func(s *cli.Session) error { return s.ShowHistory(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.Limit, "limit", "n", 0, "show at most this many; 0 shows all")
	f.BoolVar(&o.Values, "values", false, "with the state of each")
	return cmd
}
