package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) cronsCommand() *cobra.Command {
	cmd := p.cronsListCommand("crons", "Start runs by a schedule: list, make, pause and delete crons")
	cmd.Args = refuseArgs
	cmd.AddCommand(
		p.cronsListCommand("list", "List crons, the newest first"), p.cronsCreateCommand(),
		p.cronCommand("show", "Show a cron, and what came of its last firing", (*cli.Session).ShowCron),
		p.cronCommand("pause", "Keep a cron from firing", func(s *cli.Session, ctx context.Context, id string) error { return s.PauseCron(ctx, id, true) }),
		p.cronCommand("resume", "Have a cron fire again; what it has missed is left out",
			func(s *cli.Session, ctx context.Context, id string) error { return s.PauseCron(ctx, id, false) }),
		p.cronCommand("delete", "Delete a cron; what it has started stays", (*cli.Session).DeleteCron),
	)
	return cmd
}

func (p *program) cronsListCommand(use, short string) *cobra.Command {
	var o cli.CronsOptions
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSession(func(s *cli.Session) error { return s.ListCrons(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Graph, "graph", "", "only crons of this graph")
	f.StringVarP(&o.Thread, "thread", "t", "", "only crons whose runs go to this thread")
	f.IntVarP(&o.Limit, "limit", "n", 0, "show at most this many; 0 shows all")
	return cmd
}

// cronCommand makes a command that does something to one cron.
func (p *program) cronCommand(verb, short string, do func(s *cli.Session, ctx context.Context, id string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " CRON", Short: short, Args: exactArgs("CRON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(func(s *cli.Session) error { return do(s, cmd.Context(), args[0]) })
		},
	}
}

func (p *program) cronsCreateCommand() *cobra.Command {
	var o cli.CronOptions
	cmd := &cobra.Command{
		Use:   "create GRAPH[@VERSION] SCHEDULE",
		Short: "Make a cron, which starts a run of a graph at the times of a schedule",
		Example: `  graphd crons create report '0 9 * * 1-5' --zone Europe/Berlin --input '{"day": "today"}'
  graphd crons create digest '*/15 * * * *' --thread digest --on-busy reject`,
		Args: exactArgs("GRAPH", "SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Graph, o.Schedule = args[0], args[1]
			return p.withSession(func(s *cli.Session) error { return s.CreateCron(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.ID, "id", "", "id of the cron (default: the server chooses)")
	f.StringVar(&o.TimeZone, "zone", "", "time zone of the schedule, like Europe/Berlin (default: UTC)")
	f.StringVar(&o.End, "end", "", "time after which it does not fire, like 2030-01-31T09:00:00Z")
	f.BoolVar(&o.Paused, "paused", false, "do not fire before `graphd crons resume`")
	f.StringVarP(&o.Thread, "thread", "t", "", "thread to run on; made when there is none (default: a new one for each run)")
	f.DurationVar(&o.ThreadTTL, "thread-ttl", 0, "delete a thread of a run so long after its last change (default: never)")
	f.StringVarP(&o.Input, "input", "i", "", "JSON object, @FILE, or - for standard input; without it the thread goes on")
	f.StringVar(&o.Context, "run-context", "", "`JSON` that expressions and nodes read as context in the runs")
	f.StringArrayVar(&o.Metadata, "metadata", nil, "label KEY=VALUE of the runs (repeatable)")
	f.StringVar(&o.OnBusy, "on-busy", "", "when another run is active: reject, enqueue, cancel or rollback")
	f.StringVar(&o.OnOpen, "on-open", "", "when the thread waits for an answer: reject, discard or enqueue")
	f.Uint32Var(&o.StepLimit, "step-limit", 0, "supersteps a run may take (default: the graph's)")
	f.DurationVar(&o.Timeout, "timeout", 0, "how long a run may work, without the time it waits for people")
	f.StringVar(&o.RequestID, "request-id", "", "makes the call repeatable (default: a random one)")
	return cmd
}
