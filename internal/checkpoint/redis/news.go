package redis

import (
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
)

// A message on a thread's channel begins with who tells it, of originLen
// characters. What it tells follows, each thing as a letter, a length, a colon
// and a text.
const (
	newsEvent    = 'e' // durable events: an element of the log
	newsWhisper  = 'w' // an ephemeral event: voice, space, number, space, record
	newsPlace    = 'p' // how far ephemeral events are: voice, space, number, space, '1' = one came a moment ago
	newsGreeting = 'h' // to all servers: a thread that is listened to
	newsWake     = 'k' // to all servers: the letter once more with whose attention is wanted, then the thread
	newsRoster   = 'r' // to all servers: the workers of one take something else than before
	newsLook     = 'l' // what happened is too long to be told
	newsDeleted  = 'x' // the thread is gone
)

const originLen = 16

// item takes the first thing off a message.
func item(text string) (letter byte, body, rest string, ok bool) {
	if text == "" {
		return 0, "", "", false
	}
	length, rest, found := strings.Cut(text[1:], ":")
	n, err := strconv.Atoi(length)
	if !found || err != nil || n < 0 || n > len(rest) {
		return 0, "", "", false
	}
	return text[0], rest[:n], rest[n:], true
}

func (r *ear) found(channel string) {
	if channel == r.store.keys.greetings() {
		r.attentive()
		r.store.posts.look()
		return
	}
	r.turn(threadOf(channel), true)
}

func (r *ear) lost(channel string) {
	if channel != r.store.keys.greetings() {
		r.turn(threadOf(channel), false)
	}
}

// message passes on what another server tells. What can't be read, from a
// newer graphd say, sends the followers to the log.
func (r *ear) message(channel, text string) {
	if len(text) < originLen || text[:originLen] == r.store.origin {
		return
	}
	origin, rest := text[:originLen], text[originLen:]
	if channel == r.store.keys.greetings() {
		r.called(rest)
		return
	}
	thread := threadOf(channel)
	signal := func(k checkpoint.SignalKind, events ...checkpoint.Event) {
		r.pass(checkpoint.Signal{Thread: thread, Kind: k, Events: events})
	}
	var durable []checkpoint.Event
	for rest != "" {
		letter, body, after, ok := item(rest)
		rest = after
		switch {
		case ok && letter == newsEvent:
			list, _, err := r.store.decodeEvents(thread, body)
			if err == nil {
				durable = append(durable, list...)
				continue
			}
			signal(checkpoint.SignalLook)
		case ok && letter == newsWhisper:
			voice, n, e, ok := r.parseWhisper(thread, body)
			isNew, gap := r.fresh(thread, origin+voice, n)
			if gap || !ok {
				signal(checkpoint.SignalGap)
			}
			if isNew && ok {
				signal(checkpoint.SignalEvents, e)
			}
		case ok && letter == newsPlace:
			voice, n, spoke, ok := parsePlace(body)
			if !ok || r.place(thread, origin+voice, n, spoke) {
				signal(checkpoint.SignalGap)
			}
		case ok && letter == newsDeleted:
			signal(checkpoint.SignalDeleted)
		default:
			signal(checkpoint.SignalLook)
		}
	}
	if len(durable) > 0 {
		signal(checkpoint.SignalEvents, durable...)
	}
}

// parsePlace reads how far ephemeral events are.
func parsePlace(body string) (voice string, n uint64, spoke, ok bool) {
	voice, rest, _ := strings.Cut(body, " ")
	number, mark, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	return voice, n, mark == "1", err == nil
}

// parseWhisper reads an ephemeral event.
func (r *ear) parseWhisper(thread, body string) (voice string, n uint64, e checkpoint.Event, ok bool) {
	voice, rest, _ := strings.Cut(body, " ")
	number, record, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return voice, 0, e, false
	}
	list, err := decode(r.store, thread, kindEvent, "", record, codec.DecodeEvents)
	if err != nil || len(list) != 1 {
		return voice, n, e, false
	}
	e = list[0]
	e.Ephemeral = true
	return voice, n, e, true
}
