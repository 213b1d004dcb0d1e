package redis

import (
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// calls are what is told to servers, not to those who follow a thread: on the
// channel for greetings, which every server hears.
type calls struct {
	greetings []string // threads that are heard since the others were told last
	wakes     []wake
	asked     bool // a question was changed
	// inbox says that somebody elsewhere follows the questions of all threads,
	// as far as is known.
	inbox   bool
	greeted time.Time // when somebody began to
}

// wake asks a server to look at a thread.
type wake struct{ owner, thread string }

// maxWakes bounds what waits to be told. Who is not woken looks by itself, some
// time later.
const maxWakes = 4096

// Wake asks another server to look at a thread.
func (t *tuner) Wake(owner, thread string) {
	r := t.ear
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls.wakes) < maxWakes {
		r.calls.wakes = append(r.calls.wakes, wake{owner, thread})
		r.wake()
	}
}

// greet tells the others that this server has begun to listen.
func (r *ear) greet(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.greetings = append(r.calls.greetings, thread)
	r.wake()
}

// ask tells those who follow questions that one has changed.
func (r *ear) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls.inbox {
		r.calls.asked = true
		r.wake()
	}
}

// text is what servers are told, "" = nothing.
func (c *calls) text() string {
	var b strings.Builder
	for _, thread := range c.greetings {
		b.WriteString(string(newsGreeting) + sized(thread))
	}
	for _, w := range c.wakes { // last: an older server reads up to what it does not know
		b.WriteString(string(newsWake) + sized(string(newsWake)+sized(w.owner)+w.thread))
	}
	return b.String()
}

// round is what is told to servers in one exchange.
type round struct {
	told     calls
	calls    *goredis.IntCmd // nil = there was nothing
	question *goredis.IntCmd // likewise
}

// takeCalls takes what is to be told to servers. The caller holds mu.
func (r *ear) takeCalls() calls {
	told := r.calls
	r.calls.greetings, r.calls.wakes, r.calls.asked = nil, nil, false
	return told
}

// settle notes what became of a round, and keeps what was not told.
func (r *ear) settle(o *round) (done bool) {
	done = true
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.calls != nil && o.calls.Err() != nil && !refused(o.calls.Err()) {
		done = false
		r.calls.greetings = append(o.told.greetings, r.calls.greetings...)
		r.calls.wakes = append(o.told.wakes, r.calls.wakes...)
	}
	if o.question == nil {
		return done
	}
	listeners, err := o.question.Result()
	if err != nil && !refused(err) {
		r.calls.asked = true
		return false
	}
	if f := r.threads[checkpoint.AllThreads]; f != nil && f.heard {
		listeners-- // that is us
	}
	// Who has just begun may not have been counted yet.
	r.calls.inbox = listeners > 0 || time.Since(r.calls.greeted) < time.Second
	return done
}

// called reads what another server tells all servers.
func (r *ear) called(text string) {
	for text != "" {
		letter, body, rest, ok := item(text)
		if !ok {
			return
		}
		text = rest
		switch letter {
		case newsGreeting:
			r.greeted(body)
		case newsWake:
			if _, owner, thread, ok := item(body); ok {
				r.pass(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalWake, Owner: owner})
			}
		case newsRoster:
			r.store.posts.look()
		}
	}
}

// greeted notes that somebody elsewhere has begun to listen.
func (r *ear) greeted(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if thread == checkpoint.AllThreads {
		r.calls.inbox, r.calls.greeted = true, time.Now()
	}
	if v := r.voices[thread]; v != nil {
		v.greet()
		r.wake()
	}
}

// attentive assumes that somebody listens to everything: this server could not
// hear greetings for a while.
func (r *ear) attentive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.calls.inbox, r.calls.greeted = true, now
	for _, v := range r.voices {
		v.greet()
	}
	r.wake()
}
