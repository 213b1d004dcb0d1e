package cli

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// A stream that shows nothing for as long as firstSilence has the server's health
// looked at, then less and less often.
const (
	firstSilence = 2 * time.Second
	mostSilence  = 30 * time.Second
)

// silence looks why a stream shows nothing, and says once when the server's
// store takes no changes: nothing can happen then.
type silence struct {
	health grpc_health_v1.HealthClient
	say    func(reason string)

	heard chan struct{}
	done  sync.WaitGroup
}

// explainSilence begins to look until ctx ends; then wait must be called.
func explainSilence(ctx context.Context, health grpc_health_v1.HealthClient, say func(reason string)) *silence {
	s := &silence{health: health, say: say, heard: make(chan struct{}, 1)}
	s.done.Go(func() { s.lookAtHealth(ctx) })
	return s
}

// noteEvent takes in that something was shown.
func (s *silence) noteEvent(e *graphdv1.Event) {
	if e.GetHeartbeat() != nil {
		return
	}
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// wait returns when nothing is said any more.
func (s *silence) wait() { s.done.Wait() }

func (s *silence) lookAtHealth(ctx context.Context) {
	delay, told := firstSilence, ""
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.heard:
			delay, told = firstSilence, ""
		case <-timer.C:
			delay = min(2*delay, mostSilence)
			if reason := s.refusal(ctx); reason != "" && reason != told && ctx.Err() == nil {
				s.say(reason)
				told = reason
			}
		}
		timer.Reset(delay)
	}
}

// refusal is why the server's store takes no changes, "" when it does or that
// can't be known.
func (s *silence) refusal(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, firstSilence)
	defer cancel()
	var header metadata.MD
	_, err := s.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
	if reasons := header.Get("graphd-refusal"); err == nil && len(reasons) == 1 {
		return reasons[0]
	}
	return ""
}

// noChanges says what a stream waits for while the store takes no changes.
func noChanges(reason string) string {
	switch reason {
	case "STORE_FULL":
		return "the server's store is full (STORE_FULL); what runs goes on by itself when there is space"
	case "STORE_REPLACED":
		return "the server's store is not the one that the server opened (STORE_REPLACED); what runs goes on by itself when that is back, the server's log says how"
	}
	return "the server's store takes no changes (" + reason + "); what runs goes on by itself when it does"
}
