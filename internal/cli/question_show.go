package cli

import (
	"context"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/trail"
)

// ShowQuestion shows all of a question, and what happened to it. Errors: those of
// findQuestion, gRPC statuses, and those of the output.
func (s *Session) ShowQuestion(ctx context.Context, name QuestionName) error {
	q, err := s.findQuestion(ctx, name, true)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(q)
	}
	entries, err := s.ListTrail(ctx, q)
	if err != nil {
		return err
	}
	p := s.NewPrinter()
	all := []*graphdv1.Interrupt{q}
	p.RecordReplaced(s.FetchReplaced(ctx, all)...)
	p.PrintQuestion(q, entries, time.Now())
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		p.PrintLine("%s", p.Colorize(output.Dim, s.answerCommand(name)))
	}
	return p.WriteError()
}

// ShowTrail shows what happened to a question. With verify it checks that each entry follows
// the one before. Errors: those of findQuestion, gRPC statuses, *trail.BrokenError, and
// those of the output.
func (s *Session) ShowTrail(ctx context.Context, name QuestionName, verify bool) error {
	q, err := s.findQuestion(ctx, name, true)
	if err != nil {
		return err
	}
	entries, err := s.ListTrail(ctx, q)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		if err := output.ShowList(&s.Output, &graphdv1.ListTrailResponse{Entries: entries}, entries); err != nil {
			return err
		}
	} else {
		p := s.NewPrinter()
		for _, e := range entries {
			p.PrintTrailEntry(e)
		}
		if err := p.WriteError(); err != nil {
			return err
		}
	}
	if !verify {
		return nil
	}
	digest, err := verifyTrail(entries)
	if err != nil {
		return err
	}
	if q.GetTrailSize() == 0 {
		s.PrintNote("the question keeps no trail: these entries are made of its record")
		return nil
	}
	s.PrintNote("%d entries, each follows the one before; the digest of the last is %s", len(entries), digest)
	return nil
}

// verifyTrail checks the entries of a trail, and returns the digest of the last one.
func verifyTrail(entries []*graphdv1.TrailEntry) (string, error) {
	var log trail.Log
	for _, e := range entries {
		log.Records = append(log.Records, e.GetRecord())
		log.Digest = e.GetDigest()
	}
	_, err := log.Entries()
	return log.Digest, err
}
