package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) inboxCommand() *cobra.Command {
	var o cli.InboxOptions
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the open questions of all threads",
		Long: `List the open questions of all threads that you may see, the oldest first, or those of one thread in full.

At a terminal the table fits: titles are cut, and columns that say nothing or have no room are left out. Elsewhere all
columns are whole. Standard error says how many questions there are. WHO says who has taken a question and who should
answer, DUE when its next step or its end comes, and VOTES how many agree of those that must. The beginning of an ID is
enough where a command takes one.`,
		Example: `  graphd inbox                                # all that you may see
  graphd inbox --mine --sort due              # for you, your groups, or taken by you, if due at a time; what is due next first
  graphd inbox --group finance --due 2h       # of a group, and due within two hours
  graphd inbox --priority urgent --limit 20   # the oldest 20 that are urgent
  graphd inbox --graph refund -o json         # of a graph, for programs
  graphd inbox show ticket-1                  # all of one question, and what happened to it`,
		Args: refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseEmptyFlags(cmd, inboxValueFlags()...); err != nil {
				return err
			}
			return p.withSession(func(s *cli.Session) error { return s.ShowInbox(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Thread, "thread", "", "only the questions of this thread, each in full")
	f.StringVar(&o.Filter, "filter", "", `which questions, like 'assignee = "ann"'; 'state = "*"' shows answered ones too`)
	f.IntVarP(&o.Limit, "limit", "n", 0, "show at most this many; 0 shows all")
	f.BoolVarP(&o.Watch, "watch", "w", false, "go on showing what changes")
	registerQuestionFlags(cmd, &o.Questions)
	cmd.AddCommand(
		p.inboxShowCommand(), p.inboxTakeCommand(), p.inboxGiveCommand(), p.inboxCommentCommand(), p.inboxAssignCommand(), p.inboxDelegateCommand(), p.inboxLinkCommand(),
		p.inboxExtendCommand(), p.inboxTrailCommand(), p.inboxUndoCommand(), p.inboxRevealCommand(), p.inboxAnswerCommand(),
	)
	return cmd
}
