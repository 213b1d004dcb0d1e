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
	r := s.subscriber
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.broadcasts.wakes) < maxWakeRequests {
		r.broadcasts.wakes = append(r.broadcasts.wakes, wakeRequest{owner, thread})
		r.requestFlush()
	}
}

// announceThread announces to other servers that this server follows a thread.
func (r *Subscriber) announceThread(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broadcasts.announcements = append(r.broadcasts.announcements, thread)
	r.requestFlush()
}

// AnnounceInterruptChange queues a refresh for followers of interrupts.
func (r *Subscriber) AnnounceInterruptChange() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broadcasts.hasInterruptFollowers {
		r.broadcasts.interruptsChanged = true
		r.requestFlush()
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
func (r *Subscriber) takeBroadcasts() broadcasts {
	count := r.broadcasts
	r.broadcasts.announcements, r.broadcasts.wakes, r.broadcasts.interruptsChanged = nil, nil, false
	return count
}

// finishRound records the outcome of a round, and keeps unsent messages.
func (r *Subscriber) finishRound(o *broadcastRound) (done bool) {
	done = true
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.serversReply != nil && o.serversReply.Err() != nil && !script.IsPermissionDenied(o.serversReply.Err()) {
		done = false
		r.broadcasts.announcements = append(o.sent.announcements, r.broadcasts.announcements...)
		r.broadcasts.wakes = append(o.sent.wakes, r.broadcasts.wakes...)
	}
	if o.interruptsReply == nil {
		return done
	}
	listeners, err := o.interruptsReply.Result()
	if err != nil && !script.IsPermissionDenied(err) {
		r.broadcasts.interruptsChanged = true
		return false
	}
	if f := r.followed[checkpoint.AllThreads]; f != nil && f.subscribed {
		listeners-- // that is us
	}
	// A caller that has just begun may not have been counted yet.
	r.broadcasts.hasInterruptFollowers = listeners > 0 || time.Since(r.broadcasts.interruptFollowerSince) < time.Second
	return done
}

// handleBroadcast reads a message to all servers.
func (r *Subscriber) handleBroadcast(text string) {
	for text != "" {
		letter, body, rest, ok := cutItem(text)
		if !ok {
			return
		}
		text = rest
		switch letter {
		case messageAnnouncement:
			r.handleAnnouncement(body)
		case messageWake:
			if _, owner, thread, ok := cutItem(body); ok {
				r.deliverSignal(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake, Owner: owner})
			}
		case messageMembership:
			r.registrations.requestSyncs()
		}
	}
}

// handleAnnouncement notes that a follower on another server has begun to listen.
func (r *Subscriber) handleAnnouncement(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if thread == checkpoint.AllThreads {
		r.broadcasts.hasInterruptFollowers, r.broadcasts.interruptFollowerSince = true, time.Now()
	}
	if v := r.publishers[thread]; v != nil {
		v.enqueuePosition()
		r.requestFlush()
	}
}

// assumeFollowers assumes that every thread has followers: this server may have
// missed announcements.
func (r *Subscriber) assumeFollowers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.broadcasts.hasInterruptFollowers, r.broadcasts.interruptFollowerSince = true, now
	for _, v := range r.publishers {
		v.enqueuePosition()
	}
	r.requestFlush()
}
