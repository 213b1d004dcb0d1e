package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) inboxCommand() *cobra.Command {
	var o cli.InboxOptions
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "Show the open questions of all threads",
		Args:  refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSession(func(s *cli.Session) error { return s.ShowInbox(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Thread, "thread", "", "only the questions of this thread")
	f.StringVar(&o.Filter, "filter", "", `which questions, like 'assignee = "ann"'; 'state = "*"' shows answered ones too`)
	f.IntVarP(&o.Limit, "limit", "n", 0, "show at most this many; 0 shows all")
	f.BoolVarP(&o.Watch, "watch", "w", false, "go on showing what changes")
	cmd.AddCommand(
		p.inboxTakeCommand(), p.inboxGiveCommand(), p.inboxCommentCommand(), p.inboxAssignCommand(), p.inboxExtendCommand(), p.inboxTrailCommand(), p.inboxUndoCommand(),
		p.inboxAnswerCommand(),
	)
	return cmd
}
