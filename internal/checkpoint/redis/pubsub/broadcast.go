package pubsub

import (
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// broadcasts are the messages to all servers, not to the followers of a thread:
// they go on the channel for greetings, which every server reads.
type broadcasts struct {
	announcements     []string // threads that are followed since the last exchange
	wakes             []wakeRequest
	interruptsChanged bool // an interrupt was changed
	// hasInterruptFollowers says that another server follows the interrupts
	// of all threads, as far as is known.
	hasInterruptFollowers  bool
	interruptFollowerSince time.Time // when the newest began to
}

// wakeRequest asks a server to look at a thread.
type wakeRequest struct{ owner, thread string }

// maxWakeRequests bounds the pending requests. A server that is not woken finds the
// thread with its next scan.
const maxWakeRequests = 4096

// WakeServers asks another server to look at a thread.
func (s *subscription) WakeServers(owner, thread string) {
	subscriber := s.subscriber
	subscriber.mu.Lock()
	defer subscriber.mu.Unlock()
	if len(subscriber.broadcasts.wakes) < maxWakeRequests {
		subscriber.broadcasts.wakes = append(subscriber.broadcasts.wakes, wakeRequest{owner, thread})
		subscriber.requestFlush()
	}
}

// announceThread announces to other servers that this server follows a thread.
func (s *Subscriber) announceThread(thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broadcasts.announcements = append(s.broadcasts.announcements, thread)
	s.requestFlush()
}

// AnnounceInterruptChange queues a refresh for followers of interrupts.
func (s *Subscriber) AnnounceInterruptChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broadcasts.hasInterruptFollowers {
		s.broadcasts.interruptsChanged = true
		s.requestFlush()
	}
}

// encodeText encodes the message to all servers, "" = none.
func (c *broadcasts) encodeText() string {
	var b strings.Builder
	for _, thread := range c.announcements {
		b.WriteString(string(messageAnnouncement) + layout.AddLength(thread))
	}
	for _, w := range c.wakes { // last: an older server reads up to the first unknown kind
		b.WriteString(string(messageWake) + layout.AddLength(string(messageWake)+layout.AddLength(w.owner)+w.thread))
	}
	return b.String()
}

// broadcastRound is the part of an exchange that goes to all servers.
type broadcastRound struct {
	sent            broadcasts
	serversReply    *goredis.IntCmd // nil = there was nothing
	interruptsReply *goredis.IntCmd // likewise
}

// takeBroadcasts takes the pending broadcasts. The caller holds mu.
func (s *Subscriber) takeBroadcasts() broadcasts {
	count := s.broadcasts
	s.broadcasts.announcements, s.broadcasts.wakes, s.broadcasts.interruptsChanged = nil, nil, false
	return count
}

// finishRound records the outcome of a round, and keeps unsent messages.
func (s *Subscriber) finishRound(o *broadcastRound) (done bool) {
	done = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.serversReply != nil && o.serversReply.Err() != nil && !script.IsPermissionDenied(o.serversReply.Err()) {
		done = false
		s.broadcasts.announcements = append(o.sent.announcements, s.broadcasts.announcements...)
		s.broadcasts.wakes = append(o.sent.wakes, s.broadcasts.wakes...)
	}
	if o.interruptsReply == nil {
		return done
	}
	listeners, err := o.interruptsReply.Result()
	if err != nil && !script.IsPermissionDenied(err) {
		s.broadcasts.interruptsChanged = true
		return false
	}
	if f := s.followed[checkpoint.AllThreads]; f != nil && f.subscribed {
		listeners-- // that is us
	}
	// A caller that has just begun may not have been counted yet.
	s.broadcasts.hasInterruptFollowers = listeners > 0 || time.Since(s.broadcasts.interruptFollowerSince) < time.Second
	return done
}

// handleBroadcast reads a message to all servers.
func (s *Subscriber) handleBroadcast(text string) {
	for text != "" {
		letter, body, rest, ok := cutItem(text)
		if !ok {
			return
		}
		text = rest
		switch letter {
		case messageAnnouncement:
			s.handleAnnouncement(body)
		case messageWake:
			if _, owner, thread, ok := cutItem(body); ok {
				s.deliverSignal(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake, Owner: owner})
			}
		case messageMembership:
			s.registrations.requestSyncs()
		}
	}
}

// handleAnnouncement notes that a follower on another server has begun to listen.
func (s *Subscriber) handleAnnouncement(thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if thread == checkpoint.AllThreads {
		s.broadcasts.hasInterruptFollowers, s.broadcasts.interruptFollowerSince = true, time.Now()
	}
	if v := s.publishers[thread]; v != nil {
		v.enqueuePosition()
		s.requestFlush()
	}
}

// assumeFollowers assumes that every thread has followers: this server may have
// missed announcements.
func (s *Subscriber) assumeFollowers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.broadcasts.hasInterruptFollowers, s.broadcasts.interruptFollowerSince = true, now
	for _, v := range s.publishers {
		v.enqueuePosition()
	}
	s.requestFlush()
}
