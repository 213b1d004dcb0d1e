package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/contain"
)

// lane is a connection on which channels are heard. When it breaks, or when a
// channel moves to another server, it is made anew for all of them.
type lane struct {
	ear  *ear
	kick chan struct{} // changed is not empty

	mu      sync.Mutex
	wanted  map[string]struct{}
	changed map[string]struct{} // channels that may have to be subscribed to or left
	leaving map[string]int      // confirmations that are still to come
}

func newLane(r *ear) *lane {
	return &lane{
		ear: r, kick: make(chan struct{}, 1), wanted: make(map[string]struct{}),
		changed: make(map[string]struct{}), leaving: make(map[string]int),
	}
}

// want says whether a channel is to be heard. It does not wait.
func (l *lane) want(channel string, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wanted {
		l.wanted[channel] = struct{}{}
	} else {
		delete(l.wanted, channel)
	}
	l.changed[channel] = struct{}{}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run listens until ctx ends.
func (l *lane) run(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		var err error
		if p := contain.Call(func() { err = l.listen(ctx) }); p != nil {
			l.ear.store.log.Error("hearing other servers panicked; it begins anew", p.Fields()...)
		}
		l.deaf()
		if refused(err) { // until somebody allows it
			pause(ctx, silence)
			continue
		}
		if time.Since(began) > 10*time.Second {
			n = 1
		}
		if c, ok := l.ear.store.client.(*goredis.ClusterClient); ok {
			c.ReloadState(ctx)
		}
		pause(ctx, time.Duration(min(n, 20))*50*time.Millisecond)
	}
}

// deaf tells that nothing is heard, and has everything subscribed to again.
func (l *lane) deaf() {
	l.mu.Lock()
	channels := make([]string, 0, len(l.wanted))
	clear(l.changed)
	clear(l.leaving)
	for c := range l.wanted {
		channels = append(channels, c)
		l.changed[c] = struct{}{}
	}
	if len(channels) > 0 {
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
	l.mu.Unlock()
	for _, c := range channels {
		l.ear.lost(c)
	}
}

// listen uses one connection until it breaks, and returns why it did.
func (l *lane) listen(ctx context.Context) error {
	select { // no connection before there is something to hear
	case <-l.kick:
	case <-ctx.Done():
		return ctx.Err()
	}
	subscription := l.ear.store.client.SSubscribe(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	sent := make(map[string]struct{})
	if err := l.update(ctx, subscription, sent); err != nil {
		_ = subscription.Close()
		return err
	}
	writer.Go(contain.Func(func() {
		defer func() { _ = subscription.Close() }() // wakes the reader
		for {
			select {
			case <-l.kick:
			case <-ctx.Done():
				return
			}
			if l.update(ctx, subscription, sent) != nil {
				return
			}
		}
	}, contain.Log(l.ear.store.log, "subscribing panicked")))
	return l.read(ctx, subscription)
}

// update subscribes to what is wanted and leaves what is not.
func (l *lane) update(ctx context.Context, to *goredis.PubSub, sent map[string]struct{}) error {
	var add, leave []string
	l.mu.Lock()
	for c := range l.changed {
		_, wanted := l.wanted[c]
		_, there := sent[c]
		switch {
		case wanted: // once more if it was left and wanted again meanwhile: that is confirmed anew
			add = append(add, c)
			sent[c] = struct{}{}
		case !wanted && there:
			leave = append(leave, c)
			delete(sent, c)
			l.leaving[c]++
		}
	}
	clear(l.changed)
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

// silence is after how long a connection is asked whether it is still there.
const silence = 5 * time.Second

var errMoved = errors.New("a channel has moved")

func (l *lane) read(ctx context.Context, from *goredis.PubSub) error {
	asked := false
	for {
		message, err := from.ReceiveTimeout(ctx, silence)
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
			l.ear.message(m.Channel, m.Payload)
		case *goredis.Subscription:
			if err := l.confirmed(m); err != nil {
				return err
			}
		}
	}
}

// confirmed takes note of what the server says of a channel.
func (l *lane) confirmed(m *goredis.Subscription) error {
	if m.Kind == "ssubscribe" {
		l.ear.found(m.Channel)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving[m.Channel] > 1 {
		l.leaving[m.Channel]--
		return nil
	}
	if l.leaving[m.Channel] == 1 {
		delete(l.leaving, m.Channel)
		return nil
	}
	return errMoved
}
