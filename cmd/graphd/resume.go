package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) resumeCommand() *cobra.Command {
	var o cli.ResumeOptions
	cmd := &cobra.Command{
		Use:   "resume THREAD",
		Short: "Answer questions and show the run that goes on",
		Long: `Answer questions and show the run that goes on.

--value answers the only open question, --answer ID=JSON one of several. All answers are stored or none.
Without an answer the command asks at the terminal, field by field; a thread at a breakpoint needs none.
Of several questions it asks the one of --interrupt, or all in turn.`,
		Example: `  graphd resume ticket-1 --value '{"decision": "approved"}'
  graphd resume ticket-1 --answer 3f2a=true --dismiss 9b01='out of date'`,
		Args: exactArgs("THREAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			return p.withSession(func(s *cli.Session) error { return s.Resume(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Value, "value", "", "the answer: JSON, @FILE, or - for standard input")
	f.StringVar(&o.Interrupt, "interrupt", "", "the question that --value answers (default: the only open one), or that is asked at the terminal (default: all open ones)")
	f.StringArrayVar(&o.Answers, "answer", nil, "ID=JSON (repeatable)")
	f.StringArrayVar(&o.Dismiss, "dismiss", nil, "ID or ID=REASON: no answer will come (repeatable)")
	f.StringVar(&o.Note, "note", "", "remark to store next to the answers")
	f.StringVar(&o.Coverage, "coverage", "", "partial: run what is fully answered; all: refuse an incomplete set; collect: wait for the last answer")
	f.StringVar(&o.Update, "update", "", "JSON object of state keys to write on the way")
	f.StringArrayVar(&o.Metadata, "metadata", nil, "label KEY=VALUE to add to the run (repeatable)")
	f.StringSliceVarP(&o.Events, "events", "e", nil,
		"kinds of events: updates, values, messages, custom, tasks, checkpoints, debug")
	f.BoolVarP(&o.Detach, "detach", "d", false, "return as soon as the answers are stored")
	f.StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	return cmd
}
