package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) threadsCommand() *cobra.Command {
	cmd := p.threadsListCommand("threads", "List, copy, fork, prune and delete threads")
	cmd.Args = refuseArgs
	cmd.AddCommand(
		p.threadsListCommand("list", "List threads, last changed first; with a filter last created first"),
		p.threadsCopyCommand(), p.threadsForkCommand(), p.threadsPruneCommand(), p.threadsDeleteCommand(),
	)
	return cmd
}

func (p *program) threadsListCommand(use, short string) *cobra.Command {
	var o cli.ThreadsOptions
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSession(func(s *cli.Session) error { return s.ListThreads(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.State, "state", "", "only threads that are idle, busy, interrupted or failed")
	f.StringVar(&o.Filter, "filter", "", `which threads, like 'graph = "g" AND metadata.user = "u1"'`)
	f.IntVarP(&o.Limit, "limit", "n", 0, "show at most this many; 0 shows all")
	return cmd
}

func (p *program) threadsCopyCommand() *cobra.Command {
	var o cli.CopyOptions
	cmd := &cobra.Command{
		Use: "copy THREAD [NEW]", Short: "Copy a thread with its history and its open questions",
		Args: argsBetween(1, "THREAD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Source = args[0]
			if len(args) > 1 {
				o.Thread = args[1]
			}
			return p.withSession(func(s *cli.Session) error { return s.CopyThread(cmd.Context(), o) })
		},
	}
	cmd.Flags().StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	return cmd
}

func (p *program) threadsForkCommand() *cobra.Command {
	var o cli.ForkOptions
	cmd := &cobra.Command{
		Use: "fork THREAD [NEW]", Short: "Begin a thread where another one is, or was at a checkpoint",
		Args: argsBetween(1, "THREAD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Source = args[0]
			if len(args) > 1 {
				o.Thread = args[1]
			}
			return p.withSession(func(s *cli.Session) error { return s.ForkThread(cmd.Context(), o) })
		},
	}
	cmd.Flags().StringVar(&o.Checkpoint, "at", "", "last checkpoint to copy (default: the newest)")
	cmd.Flags().StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	return cmd
}

func (p *program) threadsPruneCommand() *cobra.Command {
	var keep int32
	cmd := &cobra.Command{
		Use: "prune THREAD", Short: "Remove all but the newest checkpoints of a thread, and the events before them",
		Args: exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(func(s *cli.Session) error { return s.PruneThread(cmd.Context(), args[0], keep) })
		},
	}
	cmd.Flags().Int32Var(&keep, "keep", 1, "how many checkpoints to keep; what the thread needs to go on is kept in any case")
	return cmd
}

func (p *program) threadsDeleteCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "delete THREAD", Short: "Delete a thread with everything that belongs to it",
		Args: exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(func(s *cli.Session) error { return s.DeleteThread(cmd.Context(), args[0], force) })
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when a run is active, which is stopped")
	return cmd
}
