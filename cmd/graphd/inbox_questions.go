package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// questionCommand makes a command about one question of a thread.
func (p *program) questionCommand(use, short string, run func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, args []string) error) *cobra.Command {
	var name cli.QuestionName
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name.Thread = args[0]
			return p.withSession(func(s *cli.Session) error { return run(cmd, s, name, args[1:]) })
		},
	}
	cmd.Flags().StringVar(&name.Interrupt, "interrupt", "", "id of the question, or its beginning (default: the only open one)")
	return cmd
}

func (p *program) inboxShowCommand() *cobra.Command {
	cmd := p.questionCommand("show THREAD", "Show all of a question: its text, who may answer, votes, the answer it takes, and what happened to it",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.ShowQuestion(cmd.Context(), name)
		})
	cmd.Long = `Show all of a question: its text, who may answer, votes, the answer it takes, and what happened to it.

Without --interrupt it is the only open question of the thread, or the last one when none is open. -o json prints the
question; graphd inbox trail -o json prints what happened to it.`
	cmd.Example = `  graphd inbox show ticket-1
  graphd inbox show ticket-1 --interrupt 05da50a0   # the beginning of an id, as the table shows it`
	return cmd
}

func (p *program) inboxTakeCommand() *cobra.Command {
	var duration daysValue
	cmd := p.questionCommand("take THREAD", "Take a question: others see that you look after it",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.TakeQuestion(cmd.Context(), name, time.Duration(duration))
		})
	cmd.Flags().Var(&duration, "for", "how long, like 2h or 3d; then the question is free again (default 15m)")
	return cmd
}

func (p *program) inboxGiveCommand() *cobra.Command {
	var note string
	var force bool
	cmd := p.questionCommand("give THREAD", "Give a question back that you have taken",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.GiveQuestion(cmd.Context(), name, note, force)
		})
	cmd.Flags().StringVar(&note, "note", "", "why, for the trail")
	cmd.Flags().BoolVar(&force, "force", false, "end the claim of another holder; for operators")
	cmd.MarkFlagsMutuallyExclusive("note", "force")
	return cmd
}

func (p *program) inboxCommentCommand() *cobra.Command {
	var requestID string
	cmd := p.questionCommand("comment THREAD TEXT", "Say something about a question without answering it",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, args []string) error {
			return s.CommentQuestion(cmd.Context(), name, args[0], requestID)
		})
	cmd.Args = exactArgs("THREAD", "TEXT")
	cmd.Example = "  graphd inbox comment ticket-1 'is the receipt the right one?'"
	cmd.Flags().StringVar(&requestID, "request-id", "", "makes the call repeatable")
	return cmd
}

func (p *program) inboxDelegateCommand() *cobra.Command {
	var note string
	cmd := p.questionCommand("delegate THREAD PERSON", "Hand your part in a question to another person",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, args []string) error {
			return s.DelegateQuestion(cmd.Context(), name, args[0], note)
		})
	cmd.Args = exactArgs("THREAD", "PERSON")
	cmd.Long = `Hand your part in a question to another person: it is assigned to them, and no longer to you.

Where the question allows delegates, the other person answers in your place, and you may not answer any more. Until they
have answered you take the place back by delegating to yourself.`
	cmd.Example = "  graphd inbox delegate ticket-1 ben --note 'on leave until Monday'"
	cmd.Flags().StringVar(&note, "note", "", "why, for the trail")
	return cmd
}

func (p *program) inboxAssignCommand() *cobra.Command {
	cmd := p.questionCommand("assign THREAD [PERSON…]", "Say who should answer a question; without a person, no one is assigned",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, people []string) error {
			return s.AssignQuestion(cmd.Context(), name, people)
		})
	cmd.Args = cobra.MinimumNArgs(1)
	return cmd
}

func (p *program) inboxExtendCommand() *cobra.Command {
	var by daysValue
	var never bool
	cmd := p.questionCommand("extend THREAD", "Change when a question expires",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			if (by > 0) == never {
				return exit.Usagef("%s: give --to or --never", cmd.CommandPath()).WithHint("%s --to 2h", cmd.CommandPath()+" "+name.Thread)
			}
			return s.ExtendQuestion(cmd.Context(), name, time.Duration(by))
		})
	cmd.Flags().Var(&by, "to", "so long from now, like 2h or 3d")
	cmd.Flags().BoolVar(&never, "never", false, "it never expires")
	return cmd
}

func (p *program) inboxUndoCommand() *cobra.Command {
	var note string
	cmd := p.questionCommand("undo THREAD", "Take your answer or your vote back, before it takes effect",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.UndoAnswer(cmd.Context(), name, note)
		})
	cmd.Long = `Take your answer or your vote back, before it takes effect.

A question says how long its answer can be taken back, or the server does (graphd serve --undo). Until then the run
waits, and the question is open again afterwards. An answer in effect can't be taken back: the run has used it.`
	cmd.Example = "  graphd inbox undo ticket-1 --note 'the wrong ticket'"
	cmd.Flags().StringVar(&note, "note", "", "why, for the trail")
	return cmd
}

func (p *program) inboxRevealCommand() *cobra.Command {
	var note string
	var pointers []string
	cmd := p.questionCommand("reveal THREAD", "Show the secret parts of a question, and record that you have seen them",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.RevealQuestion(cmd.Context(), name, pointers, note)
		})
	cmd.Long = `Show the secret parts of a question, and record that you have seen them.

The question says who may see them, or else it is who may answer; those see of the answer only their own. Each call has
an entry in the trail of the question.`
	cmd.Example = "  graphd inbox reveal ticket-1 --note 'to compare the card with the form'"
	cmd.Flags().StringVar(&note, "note", "", "why, for the trail")
	cmd.Flags().StringArrayVar(&pointers, "part", nil, "JSON pointer to one of the parts, like /card; may be repeated (default: all)")
	return cmd
}

func (p *program) inboxTrailCommand() *cobra.Command {
	var verify bool
	cmd := p.questionCommand("trail THREAD", "Show what happened to a question: who asked, voted, answered or said something",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.ShowTrail(cmd.Context(), name, verify)
		})
	cmd.Flags().BoolVar(&verify, "verify", false, "check that each entry follows the one before, and show the digest of the last")
	return cmd
}

func (p *program) inboxAnswerCommand() *cobra.Command {
	var o cli.BulkOptions
	cmd := &cobra.Command{
		Use:   "answer",
		Short: "Give one answer to many questions, after showing them",
		Long: `Give one answer to many questions, after showing them.

Each question is answered as it was shown: one that shows something else by then, that is answered already, or that
does not take the answer, is skipped and named. graphd resume answers one question.`,
		Example: `  graphd inbox answer --filter 'graph = "refund"' --value '{"decision": "approved"}'`,
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSession(func(s *cli.Session) error { return s.AnswerQuestions(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Filter, "filter", "", `which open questions, like 'graph = "refund"' (default: all)`)
	f.StringVar(&o.Value, "value", "", "the answer: JSON, @FILE, or - for standard input")
	f.StringVar(&o.Dismiss, "dismiss", "", "REASON: no answer will come")
	f.StringVar(&o.Note, "note", "", "remark to store next to the answers")
	f.BoolVarP(&o.Yes, "yes", "y", false, "answer without asking first")
	f.StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	return cmd
}
