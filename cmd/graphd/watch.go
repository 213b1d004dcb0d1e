package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) watchCommand() *cobra.Command {
	var o cli.WatchOptions
	cmd := &cobra.Command{
		Use:   "watch THREAD",
		Short: "Follow the events of a thread or a run",
		Args:  exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			return p.withSession(func(s *cli.Session) error { return s.Watch(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "follow this run and end when it stops")
	f.StringVar(&o.From, "from", "", "beginning, now, or a cursor LOG:SEQUENCE (default: the beginning)")
	f.BoolVar(&o.Snapshot, "snapshot", false, "begin with the present state and open questions")
	f.BoolVar(&o.NoFollow, "no-follow", false, "end at the present end of the log")
	f.StringSliceVarP(&o.Events, "events", "e", nil,
		"kinds of events: updates, values, messages, custom, tasks, checkpoints, debug")
	return cmd
}
