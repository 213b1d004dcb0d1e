package pubsub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/contain"
)

// connection subscribes to channels. When it breaks, or when a channel moves to
// another server, all channels are subscribed to again on a new connection.
type connection struct {
	subscriber   *Subscriber
	updateNeeded chan struct{} // changed is not empty

	mu              sync.Mutex
	wantedChannels  map[string]struct{}
	changedChannels map[string]struct{} // channels that may have to be subscribed to or left
	pendingLeaves   map[string]int      // confirmations that are still to come
}

func newConnection(r *Subscriber) *connection {
	return &connection{
		subscriber: r, updateNeeded: make(chan struct{}, 1), wantedChannels: make(map[string]struct{}),
		changedChannels: make(map[string]struct{}), pendingLeaves: make(map[string]int),
	}
}

// setWanted adds or removes a channel. It does not wait.
func (l *connection) setWanted(channel string, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wanted {
		l.wantedChannels[channel] = struct{}{}
	} else {
		delete(l.wantedChannels, channel)
	}
	l.changedChannels[channel] = struct{}{}
	select {
	case l.updateNeeded <- struct{}{}:
	default:
	}
}

// keepListening reconnects until ctx ends.
func (l *connection) keepListening(ctx context.Context) {
	// Jitter, because a Redis that goes away ends the connections of all servers at the same moment.
	reconnects := backoff.Policy{First: 50 * time.Millisecond, Max: time.Second, Factor: 1.5, Jitter: 50 * time.Millisecond}
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		var err error
		if p := contain.Call(func() { err = l.listenOnce(ctx) }); p != nil {
			l.subscriber.config.Log.Error("hearing other servers panicked; it begins anew", p.Fields()...)
		}
		l.reportDisconnected()
		if script.IsPermissionDenied(err) { // until an operator grants the permission
			script.SleepContext(ctx, idleTimeout)
			continue
		}
		if time.Since(began) > 10*time.Second {
			n = 1
		}
		if c, ok := l.subscriber.config.Client.(*goredis.ClusterClient); ok {
			c.ReloadState(ctx)
		}
		_ = reconnects.Wait(ctx, n)
	}
}

// reportDisconnected reports the loss to followers and queues every channel for
// resubscription.
func (l *connection) reportDisconnected() {
	l.mu.Lock()
	channels := make([]string, 0, len(l.wantedChannels))
	clear(l.changedChannels)
	clear(l.pendingLeaves)
	for c := range l.wantedChannels {
		channels = append(channels, c)
		l.changedChannels[c] = struct{}{}
	}
	if len(channels) > 0 {
		select {
		case l.updateNeeded <- struct{}{}:
		default:
		}
	}
	l.mu.Unlock()
	for _, c := range channels {
		l.subscriber.loseChannel(c)
	}
}

// listenOnce uses a connection until it breaks, and returns the cause.
func (l *connection) listenOnce(ctx context.Context) error {
	select { // no connection without a channel
	case <-l.updateNeeded:
	case <-ctx.Done():
		return ctx.Err()
	}
	subscription := l.subscriber.config.Client.SSubscribe(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	sent := make(map[string]struct{})
	if err := l.updateSubscriptions(ctx, subscription, sent); err != nil {
		_ = subscription.Close()
		return err
	}
	writer.Go(contain.Func(func() {
		defer func() { _ = subscription.Close() }() // wakes the reader
		for {
			select {
			case <-l.updateNeeded:
			case <-ctx.Done():
				return
			}
			if l.updateSubscriptions(ctx, subscription, sent) != nil {
				return
			}
		}
	}, contain.LogPanic(l.subscriber.config.Log, "subscribing panicked")))
	return l.readMessages(ctx, subscription)
}

// updateSubscriptions subscribes to wanted channels and unsubscribes from the
// others.
func (l *connection) updateSubscriptions(ctx context.Context, to *goredis.PubSub, sent map[string]struct{}) error {
	var add, leave []string
	l.mu.Lock()
	for c := range l.changedChannels {
		_, wanted := l.wantedChannels[c]
		_, there := sent[c]
		switch {
		case wanted: // once more if it was left and wanted again meanwhile: that is confirmed anew
			add = append(add, c)
			sent[c] = struct{}{}
		case !wanted && there:
			leave = append(leave, c)
			delete(sent, c)
			l.pendingLeaves[c]++
		}
	}
	clear(l.changedChannels)
	l.mu.Unlock()
	if len(leave) > 0 {
		if err := to.SUnsubscribe(ctx, leave...); err != nil {
			return fmt.Errorf("unsubscribe: %w", err)
		}
	}
	if len(add) > 0 {
		if err := to.SSubscribe(ctx, add...); err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
	}
	return nil
}

// idleTimeout is the idle time after which a connection is pinged.
const idleTimeout = 5 * time.Second

var errChannelMoved = errors.New("a channel has moved")

func (l *connection) readMessages(ctx context.Context, from *goredis.PubSub) error {
	asked := false
	for {
		message, err := from.ReceiveTimeout(ctx, idleTimeout)
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && !asked && ctx.Err() == nil {
			asked = true
			if err := from.Ping(ctx); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		asked = false
		switch m := message.(type) {
		case *goredis.Message:
			l.subscriber.handleMessage(m.Channel, m.Payload)
		case *goredis.Subscription:
			if err := l.handleConfirmation(m); err != nil {
				return err
			}
		}
	}
}

// handleConfirmation handles the confirmation of a subscription or its end.
func (l *connection) handleConfirmation(m *goredis.Subscription) error {
	if m.Kind == "ssubscribe" {
		l.subscriber.confirmChannel(m.Channel)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pendingLeaves[m.Channel] > 1 {
		l.pendingLeaves[m.Channel]--
		return nil
	}
	if l.pendingLeaves[m.Channel] == 1 {
		delete(l.pendingLeaves, m.Channel)
		return nil
	}
	return errChannelMoved
}
