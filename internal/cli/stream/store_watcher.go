package stream

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// The health of the server is checked when a stream has shown nothing for
// firstCheckDelay, then at growing intervals.
const (
	firstCheckDelay = 2 * time.Second
	maxCheckDelay   = 30 * time.Second
)

// storeWatcher checks the health of the server while a stream shows nothing, and
// reports once that its store takes no changes.
type storeWatcher struct {
	health grpc_health_v1.HealthClient
	report func(reason string)

	eventShown chan struct{}
	goroutines sync.WaitGroup
}

// startStoreWatcher starts the checks, which end with ctx. The caller must call
// waitStopped.
func startStoreWatcher(ctx context.Context, health grpc_health_v1.HealthClient, say func(reason string)) *storeWatcher {
	s := &storeWatcher{health: health, report: say, eventShown: make(chan struct{}, 1)}
	s.goroutines.Go(func() { s.keepChecking(ctx) })
	return s
}

// recordEvent restarts the delay, unless the event is a heartbeat.
func (s *storeWatcher) recordEvent(e *graphdv1.Event) {
	if e.GetHeartbeat() != nil {
		return
	}
	select {
	case s.eventShown <- struct{}{}:
	default:
	}
}

// waitStopped returns when the watcher reports nothing any more.
func (s *storeWatcher) waitStopped() { s.goroutines.Wait() }

func (s *storeWatcher) keepChecking(ctx context.Context) {
	delay, reported := firstCheckDelay, ""
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.eventShown:
			delay, reported = firstCheckDelay, ""
		case <-timer.C:
			delay = min(2*delay, maxCheckDelay)
			if reason := s.fetchRefusal(ctx); reason != "" && reason != reported && ctx.Err() == nil {
				s.report(reason)
				reported = reason
			}
		}
		timer.Reset(delay)
	}
}

// fetchRefusal returns the reason for which the store takes no changes, "" when it
// takes them or the reason is unknown.
func (s *storeWatcher) fetchRefusal(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, firstCheckDelay)
	defer cancel()
	var header metadata.MD
	_, err := s.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
	if reasons := header.Get("graphd-refusal"); err == nil && len(reasons) == 1 {
		return reasons[0]
	}
	return ""
}

// explainRefusal returns the reason why a stream waits while the store takes no
// changes.
func explainRefusal(reason string) string {
	switch reason {
	case "STORE_FULL":
		return "the server's store is full (STORE_FULL); what runs goes on by itself when there is space"
	case "STORE_REPLACED":
		return "the server's store is not the one that the server opened (STORE_REPLACED); " +
			"what runs goes on by itself when that is back, the server's log says how"
	}
	return "the server's store takes no changes (" + reason + "); what runs goes on by itself when it does"
}
