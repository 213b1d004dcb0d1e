package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) cancelCommand() *cobra.Command {
	var o cli.CancelOptions
	cmd := &cobra.Command{
		Use:   "cancel THREAD [RUN]",
		Short: "Stop a run",
		Args:  argsBetween(1, "THREAD", "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			if len(args) > 1 {
				o.Run = args[1]
			}
			return p.withSession(func(s *cli.Session) error { return s.CancelRun(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Rollback, "rollback", false, "remove the run's checkpoints: the thread is as it was before")
	f.BoolVar(&o.Drain, "drain", false, "stop after the superstep under way; questions stay open, and answers are kept")
	f.BoolVar(&o.Pause, "pause", false, "stop at once; questions stay open, and answers are kept")
	f.StringVar(&o.Reason, "reason", "", "why, for the record")
	f.BoolVar(&o.NoWait, "no-wait", false, "return when the request is stored instead of when the run has stopped")
	cmd.MarkFlagsMutuallyExclusive("rollback", "drain", "pause")
	return cmd
}
