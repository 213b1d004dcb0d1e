package server

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/notify/cursor"
	"github.com/graphd-dev/graphd/internal/notify/endpointfile"
	"github.com/graphd-dev/graphd/internal/notify/webhook"
	"github.com/graphd-dev/graphd/internal/telemetry"
	"github.com/graphd-dev/graphd/internal/transport/cloudevent"
)

// createPlaces stores where each new endpoint begins, before a run goes on or a call is served: so
// it is told of all that this server does.
func (s *Server) createPlaces(ctx context.Context, list []endpointfile.Endpoint) error {
	for i := range list {
		if err := cursor.CreatePlace(ctx, s.store, list[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// newNotifiers makes what sends to the endpoints of webhooks. isShared says that other servers may
// use the store.
func (s *Server) newNotifiers(list []endpointfile.Endpoint, lease time.Duration, isShared bool, version string, metrics *telemetry.Metrics) {
	server := rand.Text()
	for i := range list {
		to := &list[i]
		client := webhook.New(webhook.Options{
			URL: to.URL, Secrets: to.Secrets, Render: cloudevent.Render, Transport: webhook.NewTransport(to.CheckAddress),
			Now: time.Now, UserAgent: "graphd/" + version, TraceOf: s.traceOfEvent(),
		})
		s.notifiers = append(s.notifiers, notify.New(notify.Options{
			Endpoint: to.Endpoint, Sender: client, Hold: lease,
			Keeper: cursor.New(cursor.Options{Store: s.store, Endpoint: to.Name, Server: server, Hold: lease, IsShared: isShared}),
			Follow: func(tenant string, after uint64) notify.Source {
				return s.Engine.FollowInterrupts(nil, checkpoint.InterruptQuery{Tenant: tenant}, after)
			},
			Now: s.Engine.Now, Observer: metrics, Logger: s.log.Named("webhooks"),
		}))
	}
	if len(list) > 0 {
		metrics.WatchWebhooks(s.oldestUnsent)
	}
}

// oldestUnsent returns the time of the oldest entry that each endpoint has not got, zero = there is
// none that this server has to send.
func (s *Server) oldestUnsent() map[string]time.Time {
	oldest := make(map[string]time.Time, len(s.notifiers))
	for _, n := range s.notifiers {
		oldest[n.Name()] = n.OldestUnsent()
	}
	return oldest
}

// startNotifiers sends to the endpoints until ctx ends.
func (s *Server) startNotifiers(ctx context.Context, tasks *sync.WaitGroup) {
	for _, n := range s.notifiers {
		tasks.Go(contain.Func(func() { n.Run(ctx) }, contain.LogPanic(s.log, "sending to an endpoint panicked")))
	}
}
