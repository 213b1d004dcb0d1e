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

func newConnection(s *Subscriber) *connection {
	return &connection{
		subscriber: s, updateNeeded: make(chan struct{}, 1), wantedChannels: make(map[string]struct{}),
		changedChannels: make(map[string]struct{}), pendingLeaves: make(map[string]int),
	}
}

// setWanted adds or removes a channel. It does not wait.
func (c *connection) setWanted(channel string, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wanted {
		c.wantedChannels[channel] = struct{}{}
	} else {
		delete(c.wantedChannels, channel)
	}
	c.changedChannels[channel] = struct{}{}
	select {
	case c.updateNeeded <- struct{}{}:
	default:
	}
}

// keepListening reconnects until ctx ends.
func (c *connection) keepListening(ctx context.Context) {
	// Jitter, because a Redis that goes away ends the connections of all servers at the same moment.
	reconnects := backoff.Policy{First: 50 * time.Millisecond, Max: time.Second, Factor: 1.5, Jitter: 50 * time.Millisecond}
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		var err error
		if p := contain.Call(func() { err = c.listenOnce(ctx) }); p != nil {
			c.subscriber.config.Log.Error("hearing other servers panicked; it begins anew", p.Fields()...)
		}
		c.reportDisconnected()
		if script.IsPermissionDenied(err) { // until an operator grants the permission
			script.SleepContext(ctx, idleTimeout)
			continue
		}
		if time.Since(began) > 10*time.Second {
			n = 1
		}
		if cluster, ok := c.subscriber.config.Client.(*goredis.ClusterClient); ok {
			cluster.ReloadState(ctx)
		}
		_ = reconnects.Wait(ctx, n)
	}
}

// reportDisconnected reports the loss to followers and queues every channel for
// resubscription.
func (c *connection) reportDisconnected() {
	c.mu.Lock()
	channels := make([]string, 0, len(c.wantedChannels))
	clear(c.changedChannels)
	clear(c.pendingLeaves)
	for channel := range c.wantedChannels {
		channels = append(channels, channel)
		c.changedChannels[channel] = struct{}{}
	}
	if len(channels) > 0 {
		select {
		case c.updateNeeded <- struct{}{}:
		default:
		}
	}
	c.mu.Unlock()
	for _, channel := range channels {
		c.subscriber.loseChannel(channel)
	}
}

// listenOnce uses a connection until it breaks, and returns the cause.
func (c *connection) listenOnce(ctx context.Context) error {
	select { // no connection without a channel
	case <-c.updateNeeded:
	case <-ctx.Done():
		return ctx.Err()
	}
	subscription := c.subscriber.config.Client.SSubscribe(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	sent := make(map[string]struct{})
	if err := c.updateSubscriptions(ctx, subscription, sent); err != nil {
		_ = subscription.Close()
		return err
	}
	writer.Go(contain.Func(func() {
		defer func() { _ = subscription.Close() }() // wakes the reader
		for {
			select {
			case <-c.updateNeeded:
			case <-ctx.Done():
				return
			}
			if c.updateSubscriptions(ctx, subscription, sent) != nil {
				return
			}
		}
	}, contain.LogPanic(c.subscriber.config.Log, "subscribing panicked")))
	return c.readMessages(ctx, subscription)
}

// updateSubscriptions subscribes to wanted channels and unsubscribes from the
// others.
func (c *connection) updateSubscriptions(ctx context.Context, to *goredis.PubSub, sent map[string]struct{}) error {
	var add, leave []string
	c.mu.Lock()
	for channel := range c.changedChannels {
		_, wanted := c.wantedChannels[channel]
		_, there := sent[channel]
		switch {
		case wanted: // once more if it was left and wanted again meanwhile: that is confirmed anew
			add = append(add, channel)
			sent[channel] = struct{}{}
		case !wanted && there:
			leave = append(leave, channel)
			delete(sent, channel)
			c.pendingLeaves[channel]++
		}
	}
	clear(c.changedChannels)
	c.mu.Unlock()
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

func (c *connection) readMessages(ctx context.Context, from *goredis.PubSub) error {
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
			c.subscriber.handleMessage(m.Channel, m.Payload)
		case *goredis.Subscription:
			if err := c.handleConfirmation(m); err != nil {
				return err
			}
		}
	}
}

// handleConfirmation handles the confirmation of a subscription or its end.
func (c *connection) handleConfirmation(m *goredis.Subscription) error {
	if m.Kind == "ssubscribe" {
		c.subscriber.confirmChannel(m.Channel)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pendingLeaves[m.Channel] > 1 {
		c.pendingLeaves[m.Channel]--
		return nil
	}
	if c.pendingLeaves[m.Channel] == 1 {
		delete(c.pendingLeaves, m.Channel)
		return nil
	}
	return errChannelMoved
}
