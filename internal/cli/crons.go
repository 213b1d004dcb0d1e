package cli

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// CronsOptions are the flags of `crons list`.
type CronsOptions struct {
	Graph  string // "" = any
	Thread string // "" = any
	Limit  int    // 0 = all
}

// ListCrons lists crons, the newest first. Errors: gRPC statuses, and those of the output.
func (s *Session) ListCrons(ctx context.Context, o CronsOptions) error {
	all, err := client.CollectPages(o.Limit, func(token string, size int32) ([]*graphdv1.Cron, string, error) {
		resp, err := s.Crons.ListCrons(ctx, &graphdv1.ListCronsRequest{PageSize: size, PageToken: token, Graph: o.Graph, ThreadId: o.Thread})
		return resp.GetCrons(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return output.ShowList(&s.Output, &graphdv1.ListCronsResponse{Crons: all}, all)
	}
	p := s.NewPrinter()
	rows := [][]string{{"CRON", "SCHEDULE", "GRAPH", "THREAD", "NEXT", "LAST"}}
	for _, c := range all {
		rows = append(rows, []string{
			c.GetCronId(), describeSchedule(c), c.GetRun().GetGraph(), output.OrDash(c.GetRun().GetThreadId()), describeNext(c), describeFiring(c.GetLastFiring()),
		})
	}
	p.PrintTable(rows)
	return p.WriteError()
}

// describeSchedule returns the schedule of a cron with its time zone.
func describeSchedule(c *graphdv1.Cron) string {
	return strings.TrimSpace(c.GetSchedule() + " " + c.GetTimeZone())
}

// describeNext says when a cron fires next.
func describeNext(c *graphdv1.Cron) string {
	switch {
	case c.GetPaused():
		return "paused"
	case c.GetNextTime() == nil:
		return "never"
	}
	return output.FormatTime(c.GetNextTime())
}

// describeFiring says what came of a firing.
func describeFiring(f *graphdv1.CronFiring) string {
	switch {
	case f == nil:
		return output.OrDash("")
	case f.GetRefusalReason() != "":
		return output.FormatTime(f.GetFireTime()) + " refused: " + f.GetRefusalReason()
	}
	return output.FormatTime(f.GetFireTime()) + " run " + f.GetRunId()
}

// CronOptions are the flags of `crons create`.
type CronOptions struct {
	RunOptions

	ID        string // "" = made by the server
	Schedule  string
	TimeZone  string // "" = UTC
	End       string // "" = none
	Paused    bool
	ThreadTTL time.Duration // 0 = for good
}

// CreateCron makes a cron. Errors: *exit.UsageError, gRPC statuses, and those of the output.
func (s *Session) CreateCron(ctx context.Context, o CronOptions) error {
	spec, err := buildRunSpec(s.In, o.RunOptions)
	if err != nil {
		return err
	}
	c := &graphdv1.Cron{Schedule: o.Schedule, TimeZone: o.TimeZone, Run: spec, Paused: o.Paused}
	if o.ThreadTTL > 0 {
		c.ThreadTtl = durationpb.New(o.ThreadTTL)
	}
	if o.End != "" {
		at, err := time.Parse(time.RFC3339, o.End)
		if err != nil {
			return exit.Usagef("--end is %q", o.End).WithHint("want a time like 2030-01-31T09:00:00Z")
		}
		c.EndTime = timestamppb.New(at)
	}
	made, err := s.Crons.CreateCron(ctx, &graphdv1.CreateCronRequest{CronId: o.ID, Cron: c, RequestId: requestIDOrNew(o.RequestID)})
	if err != nil {
		return err
	}
	return s.showCronLine("fires first at", made)
}

// showCronLine shows a cron that was made or changed.
func (s *Session) showCronLine(fires string, c *graphdv1.Cron) error {
	if s.Format != output.Text {
		return s.ShowMessage(c)
	}
	p := s.NewPrinter()
	switch next := describeNext(c); next {
	case "paused", "never":
		p.PrintLine("cron %s  %s", c.GetCronId(), next)
	default:
		p.PrintLine("cron %s  %s %s", c.GetCronId(), fires, next)
	}
	return p.WriteError()
}

// ShowCron shows a cron. Errors: gRPC statuses, and those of the output.
func (s *Session) ShowCron(ctx context.Context, id string) error {
	c, err := s.Crons.GetCron(ctx, &graphdv1.GetCronRequest{CronId: id})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(c)
	}
	p := s.NewPrinter()
	rows := [][]string{
		{"cron", c.GetCronId()},
		{"schedule", describeSchedule(c)},
		{"graph", c.GetRun().GetGraph()},
		{"thread", output.OrDash(c.GetRun().GetThreadId())},
		{"input", output.OrDash(c.GetRun().GetInput().GetJson())},
		{"next", describeNext(c)},
		{"last", describeFiring(c.GetLastFiring())},
		{"started by", output.OrDash(c.GetStartedBy())},
		{"labels", output.OrDash(output.FormatLabels(c.GetMetadata()))},
	}
	if message := c.GetLastFiring().GetRefusalMessage(); message != "" {
		rows = append(rows, []string{"refusal", message})
	}
	p.PrintTable(rows)
	return p.WriteError()
}

// PauseCron pauses a cron, or has it fire again. Errors: gRPC statuses, and those of the output.
func (s *Session) PauseCron(ctx context.Context, id string, isPaused bool) error {
	changed, err := s.Crons.UpdateCron(ctx, &graphdv1.UpdateCronRequest{
		Cron: &graphdv1.Cron{CronId: id, Paused: isPaused}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"paused"}},
	})
	if err != nil {
		return err
	}
	return s.showCronLine("fires next at", changed)
}

// DeleteCron deletes a cron. Errors: gRPC statuses, and those of the output.
func (s *Session) DeleteCron(ctx context.Context, id string) error {
	if _, err := s.Crons.DeleteCron(ctx, &graphdv1.DeleteCronRequest{CronId: id}); err != nil || s.Format != output.Text {
		return err
	}
	p := s.NewPrinter()
	p.PrintLine("deleted %s", id)
	return p.WriteError()
}
