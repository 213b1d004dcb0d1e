package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// voice tells the other servers of the ephemeral events of a thread that is
// driven here. They are numbered: what a change carries with it, so that it
// comes before the change, may come a second time on its own.
type voice struct {
	name    string // differs from those of this server before
	n       uint64 // number of the newest event, whether anybody heard it or not
	listens bool   // somebody elsewhere does, as far as is known
	greeted time.Time
	spoke   time.Time // when the newest event came
	said    uint64    // place of the newest of waiting, ever
	waiting []whisper
	size    int // of waiting, in bytes
}

// whisper is what the server has not yet acknowledged: an event, or where the
// voice stands. Its place among them is not the number of the event: where the
// voice stands is told after the event, and may have to be told once more.
type whisper struct {
	place uint64
	text  string
}

// What a server keeps of what it could not yet tell; older events are dropped,
// and the others notice by the numbers.
const (
	maxWaiting     = 512
	maxWaitingSize = 128 << 10
)

// Tell tells the others of an ephemeral event, if they listen. Of a thread
// that nothing was told of before, it is not known yet whether anybody does.
func (t *tuner) Tell(thread string, e checkpoint.Event) {
	r := t.ear
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.voices[thread]
	if v == nil {
		r.named++
		v = &voice{name: strconv.FormatUint(r.named, 10), listens: true}
		r.voices[thread] = v
	}
	v.n++
	v.spoke = time.Now()
	if !v.listens {
		return
	}
	record := writer{r.store.box, thread}.write(kindEvent, "", string(codec.PackEvents(nil, []checkpoint.Event{e})))
	v.say(string(newsWhisper) + sized(v.name+" "+unum(v.n)+" "+record))
	r.wake()
}

// say puts what is told of an event behind what is told before.
func (v *voice) say(text string) {
	v.said++
	v.waiting = append(v.waiting, whisper{v.said, text})
	v.size += len(text)
	for len(v.waiting) > maxWaiting || (v.size > maxWaitingSize && len(v.waiting) > 1) {
		v.heard(v.waiting[0].place)
	}
}

// lately is how old an event may be that somebody has missed who wanted to
// listen already.
const lately = 5 * time.Second

// greet tells somebody who has begun to listen where the voice stands, and
// whether it has just spoken.
func (v *voice) greet() {
	now := time.Now()
	v.listens, v.greeted = true, now
	if v.n == 0 {
		return
	}
	spoke := "0"
	if now.Sub(v.spoke) < lately {
		spoke = "1"
	}
	v.say(string(newsPlace) + sized(v.name+" "+unum(v.n)+" "+spoke))
}

// Hush forgets a thread that is not driven here any more.
func (t *tuner) Hush(thread string) {
	t.ear.mu.Lock()
	defer t.ear.mu.Unlock()
	delete(t.ear.voices, thread)
}

// heard drops what waits up to a place.
func (v *voice) heard(place uint64) {
	for len(v.waiting) > 0 && v.waiting[0].place <= place {
		v.size -= len(v.waiting[0].text)
		v.waiting = v.waiting[1:]
	}
}

// untold is what was not acknowledged yet, "" = nothing, and its last place.
func (r *ear) untold(thread string) (text string, last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.voices[thread]
	if v == nil || len(v.waiting) == 0 {
		return "", 0
	}
	return v.text(), v.waiting[len(v.waiting)-1].place
}

func (v *voice) text() string {
	var b strings.Builder
	for _, w := range v.waiting {
		b.WriteString(w.text)
	}
	return b.String()
}

// told notes that the server has passed on what waited up to a place, and to how
// many connections.
func (r *ear) told(thread string, last uint64, listeners int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.voices[thread]
	if v == nil {
		return
	}
	if f := r.threads[thread]; f != nil && f.heard {
		listeners-- // that is us
	}
	v.heard(last)
	// Who has just begun may not have been counted yet.
	v.listens = listeners > 0 || time.Since(v.greeted) < time.Second
	if !v.listens {
		v.waiting, v.size = nil, 0
	}
}

func (r *ear) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// speak tells what is to be told, in one exchange after the other. While one
// is under way the next one gathers.
func (r *ear) speak(ctx context.Context) {
	for {
		select {
		case <-r.kick:
		case <-ctx.Done():
			// What a server says last is that others shall take its threads.
			if r.store.client != nil {
				r.say(context.WithoutCancel(ctx))
			}
			return
		}
		if !r.say(ctx) {
			if !pause(ctx, 100*time.Millisecond) {
				return
			}
			r.mu.Lock()
			r.wake()
			r.mu.Unlock()
		}
	}
}

// speech is what is told of one thread in one exchange.
type speech struct {
	thread string
	last   uint64
	answer *goredis.IntCmd
}

// sayLimit bounds one exchange.
const sayLimit = time.Second

// say makes one exchange, and reports whether all of it was done.
func (r *ear) say(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	pipe := r.store.client.Pipeline()
	var all []speech
	r.mu.Lock()
	for thread, v := range r.voices {
		if len(v.waiting) == 0 {
			continue
		}
		channel, text := r.store.keys.channel(thread), r.store.origin+v.text()
		all = append(all, speech{thread, v.waiting[len(v.waiting)-1].place, pipe.SPublish(ctx, channel, text)})
	}
	around := &round{told: r.takeCalls()}
	r.mu.Unlock()
	if text := around.told.text(); text != "" {
		around.calls = pipe.SPublish(ctx, r.store.keys.greetings(), r.store.origin+text)
	}
	if around.told.asked {
		channel := r.store.keys.channel(checkpoint.AllThreads)
		around.question = pipe.SPublish(ctx, channel, r.store.origin+string(newsLook)+sized(""))
	}
	if pipe.Len() == 0 {
		return true
	}
	_, _ = pipe.Exec(ctx) // each command says what became of it
	done := r.settle(around)
	for _, s := range all {
		n, err := s.answer.Result()
		if err == nil || refused(err) {
			r.told(s.thread, s.last, n)
			continue
		}
		done = false
	}
	return done
}

// refused reports that a server understood and does not want: trying again
// would not help.
func refused(err error) bool { return goredis.HasErrorPrefix(err, "NOPERM") }
