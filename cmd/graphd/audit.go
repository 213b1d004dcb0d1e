package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/auditlog"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

func newAuditCommand(p *program) *cobra.Command {
	var r auditlog.Request
	var since string
	cmd := &cobra.Command{
		Use:   "audit FILE...",
		Short: "Show the records of calls that a server has written, and check their chain",
		Long: `Show the records of calls that graphd serve --audit file:FILE has written, and check that no line was changed,
removed, added or moved. Name renamed files before the current one. - is standard input. Defects go to standard
error, and end the command with 1.`,
		Example: `  graphd audit audit.jsonl --since 24h --refused
  graphd audit audit.jsonl.* audit.jsonl --check   # with the files that were renamed
  graphd audit audit.jsonl --thread order-7 -o jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("%s: FILE is missing", cmd.CommandPath()).WithHint("%s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := p.newOutput()
			if err != nil {
				return err
			}
			if r.CheckOnly && r.Follow {
				return exit.Usagef("--check and --follow contradict each other").WithHint("leave one of them out")
			}
			r.Files = args
			if r.Selection.Since, err = auditlog.ParseSince(since, time.Now()); err != nil {
				return err
			}
			if err := auditlog.CheckMethod(r.Selection.Method); err != nil {
				return err
			}
			return auditlog.ShowRecords(cmd.Context(), r, to)
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "show records since a time like 2026-11-23T09:00:00Z, or of the last hours or days, like 24h or 7d")
	f.StringVar(&r.Selection.Principal, "principal", "", "show calls of this caller")
	f.StringVar(&r.Selection.Tenant, "tenant", "", "show calls in this tenant")
	f.StringVar(&r.Selection.Method, "method", "", "show calls of this method, like Resume or ThreadService/DeleteThread")
	f.StringVar(&r.Selection.Thread, "thread", "", "show calls that concern this thread")
	f.StringVar(&r.Selection.Question, "question", "", "show calls that name this question")
	f.BoolVar(&r.Selection.Refused, "refused", false, "show only calls whose caller is not known or may not do this")
	f.BoolVar(&r.CheckOnly, "check", false, "show only defects, and the number and digest of the last line")
	f.BoolVarP(&r.Follow, "follow", "f", false, "wait for further records of the last file")
	return cmd
}
