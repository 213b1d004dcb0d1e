package pubsub

import (
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// A message on the channel of a thread begins with its origin, OriginLen
// characters. Items follow, each as a letter, a length, a colon and a text.
const (
	messageEvents       = 'e' // durable events: an element of the log
	messageEphemeral    = 'w' // an ephemeral event: publisher, space, number, space, record
	messagePosition     = 'p' // position of a publisher: publisher, space, number, space, '1' = an event was sent a moment ago
	messageAnnouncement = 'h' // to all servers: a thread that the sender follows
	messageWake         = 'k' // to all servers: the letter once more with the owner to wake, then the thread
	messageMembership   = 'r' // to all servers: the capabilities of a member have changed
	messageRefresh      = 'l' // the change is too long for a message
	messageDeleted      = 'x' // the thread is gone
)

// OriginLen is how many characters an origin has.
const OriginLen = 16

// cutItem cuts the first item off a message.
func cutItem(text string) (letter byte, body, rest string, ok bool) {
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

func (s *Subscriber) confirmChannel(channel string) {
	if channel == s.config.Keys.AnnouncementChannel() {
		s.assumeFollowers()
		s.registrations.requestSyncs()
		return
	}
	s.setSubscribed(layout.ThreadOfChannel(channel), true)
}

func (s *Subscriber) loseChannel(channel string) {
	if channel != s.config.Keys.AnnouncementChannel() {
		s.setSubscribed(layout.ThreadOfChannel(channel), false)
	}
}

// handleMessage delivers the items of a message. For an item that it can't
// read, as of a newer graphd, followers read the log.
func (s *Subscriber) handleMessage(channel, text string) {
	if len(text) < OriginLen || text[:OriginLen] == s.config.Origin {
		return
	}
	origin, rest := text[:OriginLen], text[OriginLen:]
	if channel == s.config.Keys.AnnouncementChannel() {
		s.handleBroadcast(rest)
		return
	}
	thread := layout.ThreadOfChannel(channel)
	signal := func(k checkpoint.SignalKind, events ...checkpoint.Event) {
		s.deliverSignal(checkpoint.Signal{Thread: thread, Kind: k, Events: events})
	}
	signalGap := func(g gap) {
		if g.isThere {
			s.deliverSignal(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalGap, Missing: g.missing})
		}
	}
	var durable []checkpoint.Event
	for rest != "" {
		letter, body, after, ok := cutItem(rest)
		rest = after
		switch {
		case ok && letter == messageEvents:
			list, _, err := layout.DecodeEvents(s.config.Box, thread, body)
			if err == nil {
				durable = append(durable, list...)
				continue
			}
			signal(checkpoint.SignalRefresh)
		case ok && letter == messageEphemeral:
			publisherID, n, e, ok := s.parseEphemeral(thread, body)
			isNew, before := s.recordEphemeral(thread, origin+publisherID, n)
			switch {
			case !ok:
				signalGap(gap{isThere: true})
			case isNew:
				signalGap(before)
				signal(checkpoint.SignalEvents, e)
			}
		case ok && letter == messagePosition:
			publisherID, n, published, ok := parsePosition(body)
			if !ok {
				signalGap(gap{isThere: true})
				continue
			}
			signalGap(s.recordPosition(thread, origin+publisherID, n, published))
		case ok && letter == messageDeleted:
			signal(checkpoint.SignalDeleted)
		default:
			signal(checkpoint.SignalRefresh)
		}
	}
	if len(durable) > 0 {
		signal(checkpoint.SignalEvents, durable...)
	}
}

// parsePosition reads the position of a publisher.
func parsePosition(body string) (publisherID string, n uint64, published, ok bool) {
	publisherID, rest, _ := strings.Cut(body, " ")
	number, mark, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	return publisherID, n, mark == "1", err == nil
}

// parseEphemeral reads an ephemeral event.
func (s *Subscriber) parseEphemeral(thread, body string) (publisherID string, n uint64, e checkpoint.Event, ok bool) {
	publisherID, rest, _ := strings.Cut(body, " ")
	number, record, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return publisherID, 0, e, false
	}
	list, err := layout.DecodeRecord(s.config.Box, thread, layout.KindEvent, "", record, codec.DecodeEvents)
	if err != nil || len(list) != 1 {
		return publisherID, n, e, false
	}
	e = list[0]
	e.Ephemeral = true
	return publisherID, n, e, true
}
