package pubsub

import (
	"context"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// publisher sends the ephemeral events of a thread that this server drives.
// Events are numbered: an event that a change carries, so that it arrives
// before the change, may arrive a second time on its own.
type publisher struct {
	name          string // unique among the publishers of this server
	lastNumber    uint64 // number of the newest event, sent or not
	hasListeners  bool   // another server follows the thread, as far as is known
	listenerSince time.Time
	lastEventTime time.Time // time of the newest event
	lastPosition  uint64    // place of the newest of waiting, ever
	pending       []pendingMessage
	pendingBytes  int // of waiting, in bytes
}

// pendingMessage is a message that Redis has not acknowledged: an event, or the
// position of the publisher. Its position in the queue is not the number of the
// event: the position of the publisher follows the event and may have to be
// sent again.
type pendingMessage struct {
	position uint64
	text     string
}

// Bounds of the pending messages of a thread. Older events are dropped;
// followers notice the gap by the numbers.
const (
	maxPendingMessages = 512
	maxPendingBytes    = 128 << 10
)

// PublishEphemeral queues an ephemeral event for other servers that follow the
// thread. For a new thread they are assumed to.
func (s *subscription) PublishEphemeral(thread string, e checkpoint.Event) {
	subscriber := s.subscriber
	subscriber.mu.Lock()
	defer subscriber.mu.Unlock()
	v := subscriber.publishers[thread]
	if v == nil {
		subscriber.publisherCount++
		v = &publisher{name: strconv.FormatUint(subscriber.publisherCount, 10), hasListeners: true}
		subscriber.publishers[thread] = v
	}
	v.lastNumber++
	v.lastEventTime = time.Now()
	if !v.hasListeners {
		return
	}
	record := layout.NewRecordSealer(subscriber.config.Box, thread).SealRecord(layout.KindEvent, "", string(codec.PackEvents(nil, []checkpoint.Event{e})))
	v.enqueueMessage(string(messageEphemeral) + layout.AddLength(v.name+" "+strconv.FormatUint(v.lastNumber, 10)+" "+record))
	subscriber.requestFlush()
}

// enqueueMessage appends a message and drops the oldest beyond the bounds.
func (p *publisher) enqueueMessage(text string) {
	p.lastPosition++
	p.pending = append(p.pending, pendingMessage{p.lastPosition, text})
	p.pendingBytes += len(text)
	for len(p.pending) > maxPendingMessages || (p.pendingBytes > maxPendingBytes && len(p.pending) > 1) {
		p.dropAcknowledged(p.pending[0].position)
	}
}

// recentEventAge is the age up to which a new follower may have missed an
// event.
const recentEventAge = 5 * time.Second

// enqueuePosition sends the position of the publisher to a new follower, and
// whether an event was sent a moment ago.
func (p *publisher) enqueuePosition() {
	now := time.Now()
	p.hasListeners, p.listenerSince = true, now
	if p.lastNumber == 0 {
		return
	}
	spoke := "0"
	if now.Sub(p.lastEventTime) < recentEventAge {
		spoke = "1"
	}
	p.enqueueMessage(string(messagePosition) + layout.AddLength(p.name+" "+strconv.FormatUint(p.lastNumber, 10)+" "+spoke))
}

// StopPublishing drops the publisher of a thread that this server no longer
// drives.
func (s *subscription) StopPublishing(thread string) {
	s.subscriber.mu.Lock()
	defer s.subscriber.mu.Unlock()
	delete(s.subscriber.publishers, thread)
}

// dropAcknowledged drops pending messages up to a position.
func (p *publisher) dropAcknowledged(place uint64) {
	for len(p.pending) > 0 && p.pending[0].position <= place {
		p.pendingBytes -= len(p.pending[0].text)
		p.pending = p.pending[1:]
	}
}

// PendingText returns the messages that are not acknowledged, "" = none, and
// the last position.
func (s *Subscriber) PendingText(thread string) (text string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.publishers[thread]
	if v == nil || len(v.pending) == 0 {
		return "", 0
	}
	return v.joinPending(), v.pending[len(v.pending)-1].position
}

func (p *publisher) joinPending() string {
	var b strings.Builder
	for _, w := range p.pending {
		b.WriteString(w.text)
	}
	return b.String()
}

// AcknowledgeMessages records that Redis delivered the messages up to a
// position, and to how many connections.
func (s *Subscriber) AcknowledgeMessages(thread string, last uint64, listeners int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.publishers[thread]
	if v == nil {
		return
	}
	if f := s.followed[thread]; f != nil && f.subscribed {
		listeners-- // this server
	}
	v.dropAcknowledged(last)
	// A new follower may not be counted yet.
	v.hasListeners = listeners > 0 || time.Since(v.listenerSince) < time.Second
	if !v.hasListeners {
		v.pending, v.pendingBytes = nil, 0
	}
}

func (s *Subscriber) requestFlush() {
	select {
	case s.flushNeeded <- struct{}{}:
	default:
	}
}

// keepFlushing sends pending messages in consecutive exchanges. Messages that
// arrive during an exchange go with the next one.
func (s *Subscriber) keepFlushing(ctx context.Context) {
	for {
		select {
		case <-s.flushNeeded:
		case <-ctx.Done():
			// The last message asks other servers to take the threads of this
			// server.
			s.flushMessages(context.WithoutCancel(ctx))
			return
		}
		if !s.flushMessages(ctx) {
			if !script.SleepContext(ctx, 100*time.Millisecond) {
				return
			}
			s.mu.Lock()
			s.requestFlush()
			s.mu.Unlock()
		}
	}
}

// flushedThread is the part of an exchange that belongs to a thread.
type flushedThread struct {
	thread       string
	lastPosition uint64
	reply        *goredis.IntCmd
}

// exchangeTimeout bounds an exchange.
const exchangeTimeout = time.Second

// flushMessages makes an exchange, and reports whether all messages were sent.
func (s *Subscriber) flushMessages(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	pipe := s.config.Client.Pipeline()
	var all []flushedThread
	s.mu.Lock()
	for thread, v := range s.publishers {
		if len(v.pending) == 0 {
			continue
		}
		channel, text := s.config.Keys.ThreadChannel(thread), s.config.Origin+v.joinPending()
		all = append(all, flushedThread{thread, v.pending[len(v.pending)-1].position, pipe.SPublish(ctx, channel, text)})
	}
	around := &broadcastRound{sent: s.takeBroadcasts()}
	s.mu.Unlock()
	if text := around.sent.encodeText(); text != "" {
		around.serversReply = pipe.SPublish(ctx, s.config.Keys.AnnouncementChannel(), s.config.Origin+text)
	}
	if around.sent.interruptsChanged {
		channel := s.config.Keys.ThreadChannel(checkpoint.AllThreads)
		around.interruptsReply = pipe.SPublish(ctx, channel, s.config.Origin+string(messageRefresh)+layout.AddLength(""))
	}
	if pipe.Len() == 0 {
		return true
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	done := s.finishRound(around)
	for _, flushed := range all {
		n, err := flushed.reply.Result()
		if err == nil || script.IsPermissionDenied(err) {
			s.AcknowledgeMessages(flushed.thread, flushed.lastPosition, n)
			continue
		}
		done = false
	}
	return done
}
