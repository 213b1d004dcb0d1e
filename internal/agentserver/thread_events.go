package agentserver

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
)

// eventRequest is the body of POST /threads/{id}/stream/events, of protocol v2.
type eventRequest struct {
	Channels   []string   `json:"channels"`
	Namespaces [][]string `json:"namespaces"`
	Depth      *int       `json:"depth"`
	Since      *uint64    `json:"since"`
}

// Bounds of a request for events.
const (
	mostChannels   = 100
	mostNamespaces = 100
)

// eventChannels lists the channels of protocol v2, besides custom:NAME. Nothing comes of tools, which
// graphd does not know, and of checkpoints: @langchain/react 1.1 compares the numbers of their steps,
// and shows a branch from an older checkpoint as something old. LangGraph Server sends none either.
func eventChannels() []string {
	return []string{"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"}
}

const customPrefix = "custom:"

func (r *eventRequest) validate() error {
	if len(r.Channels) == 0 {
		return invalidField("channels", "is empty: want one or more of %s, or custom:NAME", strings.Join(eventChannels(), ", "))
	}
	if len(r.Channels) > mostChannels || len(r.Namespaces) > mostNamespaces {
		return invalidField("channels", "and namespaces have %d and %d entries: want at most %d and %d", len(r.Channels), len(r.Namespaces), mostChannels, mostNamespaces)
	}
	for _, channel := range r.Channels {
		if !slices.Contains(eventChannels(), channel) && !strings.HasPrefix(channel, customPrefix) {
			return invalidField("channels", "has %.100q: want %s, or custom:NAME", channel, strings.Join(eventChannels(), ", "))
		}
	}
	if r.Depth != nil && *r.Depth < 0 {
		return invalidField("depth", "is %d: want 0 or more", *r.Depth)
	}
	return nil
}

// wants reports whether an event of a channel and a namespace is asked for. The events of custom:NAME
// are also of the channel custom. A depth counts below one of the namespaces.
func (r *eventRequest) wants(channel string, namespace []string) bool {
	base, _, _ := strings.Cut(channel, ":")
	if !slices.Contains(r.Channels, channel) && !slices.Contains(r.Channels, base) {
		return false
	}
	return len(r.Namespaces) == 0 || slices.ContainsFunc(r.Namespaces, func(prefix []string) bool {
		return isBelow(namespace, prefix) && (r.Depth == nil || len(namespace)-len(prefix) <= *r.Depth)
	})
}

// isBelow reports whether a namespace begins with a prefix. An element without a task stands for all
// tasks of its node.
func isBelow(namespace, prefix []string) bool {
	if len(prefix) > len(namespace) {
		return false
	}
	for i, element := range prefix {
		node, _, _ := strings.Cut(namespace[i], ":")
		if element != namespace[i] && element != node {
			return false
		}
	}
	return true
}

// newFilter returns the filter of the events of graphd that show what is asked for.
func (r *eventRequest) newFilter() *graphdv1.EventFilter {
	needed := map[graphdv1.Channel]bool{graphdv1.Channel_CHANNEL_UPDATES: true} // the ends of subgraphs
	for _, channel := range r.Channels {
		base, _, _ := strings.Cut(channel, ":")
		switch base {
		case "values":
			needed[graphdv1.Channel_CHANNEL_VALUES] = true
		case "messages":
			needed[graphdv1.Channel_CHANNEL_MESSAGES] = true
		case "custom":
			needed[graphdv1.Channel_CHANNEL_CUSTOM] = true
		case "tasks", "lifecycle":
			needed[graphdv1.Channel_CHANNEL_TASKS] = true
		}
	}
	filter := &graphdv1.EventFilter{}
	for channel := range needed {
		filter.Channels = append(filter.Channels, channel)
	}
	slices.Sort(filter.GetChannels())
	return filter
}

// eventStream shows what happens on a thread, across its runs.
type eventStream struct {
	call    *call
	request *eventRequest
	thread  string
	out     *sseWriter
	shown   *eventTranslator
	life    *time.Ticker
}

// streamEvents answers POST /threads/{id}/stream/events. The thread may come later. Without since the
// stream begins with the newest run of the thread.
func streamEvents(c *call) error {
	thread, err := c.pathID("thread")
	if err != nil {
		return err
	}
	request := &eventRequest{}
	if err := c.decodeBody(request); err != nil {
		return err
	}
	if err := request.validate(); err != nil {
		return err
	}
	of, err := c.findThread(thread)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.ctx = ctx
	s := &eventStream{call: c, request: request, thread: thread, out: &sseWriter{call: c}, life: time.NewTicker(lifeInterval)}
	defer s.life.Stop()
	s.out.begin()
	isLater := of == nil
	if isLater {
		if of, err = s.awaitThread(); err != nil || of == nil {
			return err
		}
	}
	s.shown = newEventTranslator(c, request, of.GetGraph())
	return s.follow(of, isLater)
}

// findThread returns a thread, nil when there is none.
func (c *call) findThread(id string) (*graphdv1.Thread, error) {
	of, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: id})
	if reasonOf(err) == "THREAD_NOT_FOUND" {
		return nil, nil //nolint:nilnil // there is none
	}
	return of, err
}

// Bounds of the time between two looks for a thread that is not there yet.
const (
	firstLook  = 50 * time.Millisecond
	latestLook = time.Second
)

// awaitThread waits until there is a thread. It is nil when the client leaves before.
func (s *eventStream) awaitThread() (*graphdv1.Thread, error) {
	pause := firstLook
	look := time.NewTimer(pause)
	defer look.Stop()
	for {
		select {
		case <-s.call.ctx.Done():
			return nil, nil //nolint:nilnil // the client has left
		case <-s.life.C:
			if err := s.out.writeLife(); err != nil {
				return nil, err
			}
		case <-look.C:
			of, err := s.call.findThread(s.thread)
			if err != nil {
				return nil, errBrokenOff // the client connects again, and learns why
			}
			if of != nil {
				return of, nil
			}
			pause = min(pause+pause/8, latestLook) // one that has just opened sees its thread soon
			look.Reset(pause)
		}
	}
}

// follow shows the newest run from where it was last gone on with, or what comes after since, and then
// all that comes. isLater says that the client came before the thread, and has nothing of it.
func (s *eventStream) follow(of *graphdv1.Thread, isLater bool) error {
	newest, err := s.call.findNewestRun(of)
	if err != nil {
		return errBrokenOff
	}
	request := &graphdv1.WatchRequest{ThreadId: s.thread, Filter: s.request.newFilter(), Follow: true, RecentEphemeral: true}
	s.begin(request, newest)
	if newest.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED && s.request.Since == nil && !isLater {
		s.shown.stoppedAt = newest.GetAppliedThrough().GetSequence()
	}
	for {
		end, err := s.relay(request)
		if err != nil || end == nil {
			return err
		}
		switch end.GetCause() {
		case graphdv1.EndOfStream_CAUSE_RUN_STOPPED, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER:
			request.RunId = ""
			request.Start = &graphdv1.WatchRequest_After{After: end.GetResumeAt()}
		default:
			return nil
		}
	}
}

// begin sets where a stream begins.
func (s *eventStream) begin(request *graphdv1.WatchRequest, newest *graphdv1.Run) {
	head := newest.GetAppliedThrough()
	after := &graphdv1.Cursor{LogId: head.GetLogId()}
	if s.request.Since != nil {
		s.out.skip = eventOfNumber(head.GetLogId(), *s.request.Since)
		after.Sequence = max(min(s.out.skip.sequence, head.GetSequence()), 1) - 1 // an event may have been shown in part
	} else if newest != nil {
		legs := readLegs(newest)
		after.Sequence = legs[len(legs)-1].After
		request.RunId = newest.GetRunId() // from its beginning
	}
	if after.GetSequence() > 0 {
		request.RunId, request.Start = "", &graphdv1.WatchRequest_After{After: after}
	} else if request.GetRunId() == "" {
		request.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
	}
}

// relay shows the events of one stream of graphd. It returns how that has ended, nil when the client
// has left.
func (s *eventStream) relay(request *graphdv1.WatchRequest) (*graphdv1.EndOfStream, error) {
	source, err := s.call.graphs.Watch(s.call.ctx, request)
	if err != nil {
		return nil, errBrokenOff
	}
	events := make(chan received)
	go contain.Func(func() { receiveAll(s.call.ctx, source, events) }, s.call.server.opts.OnPanic)()
	var end *graphdv1.EndOfStream
	for {
		select {
		case <-s.call.ctx.Done():
			return nil, nil //nolint:nilnil // the client has left
		case <-s.life.C:
			if err := s.out.writeLife(); err != nil {
				return nil, err
			}
		case got := <-events:
			switch {
			case errors.Is(got.err, io.EOF):
				return end, nil
			case isTrimmed(got.err) && request.GetAfter() != nil: // what is left of the log is all there is
				request.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
				return s.relay(request)
			case got.err != nil:
				return nil, errBrokenOff // the client connects again
			}
			if got.event.GetEnd() != nil {
				end = got.event.GetEnd()
			}
			s.life.Reset(lifeInterval)
			if err := s.show(got.event); err != nil {
				return nil, err
			}
		}
	}
}

// isTrimmed reports whether a cursor is of events that are not there any more.
func isTrimmed(err error) bool {
	return slices.Contains([]string{"CURSOR_TRIMMED", "CURSOR_LOST", "CURSOR_AHEAD", "INVALID_CURSOR"}, reasonOf(err))
}

// show shows an event of graphd.
func (s *eventStream) show(event *graphdv1.Event) error {
	if at := event.GetCursor(); at != nil {
		s.out.moveTo(at)
	}
	list, err := s.shown.translate(event)
	if err != nil {
		return errBrokenOff
	}
	for _, one := range list {
		if err := s.out.writeNumbered(one, event.GetTime().AsTime()); err != nil {
			return err
		}
	}
	return nil
}

// protocolEvent is the envelope of an event of protocol v2.
type protocolEvent struct {
	Type   string         `json:"type"`
	ID     string         `json:"event_id"`
	Number uint64         `json:"seq"`
	Method string         `json:"method"`
	Params protocolParams `json:"params"`
}

// protocolParams say where and when an event has happened, and what it is.
type protocolParams struct {
	Namespace []string `json:"namespace"`
	Timestamp int64    `json:"timestamp"` // ms
	Data      any      `json:"data"`
	Node      string   `json:"node,omitempty"`
}

// mostEventsOfOne is how many events of protocol v2 one of graphd makes at most, with the ephemeral
// ones that follow it. Clients in JavaScript count to 2^53: that leaves 2^33 events of a thread.
const mostEventsOfOne = 1<<20 - 1

// sequenceNumber returns the number of an event, which grows along a thread.
func sequenceNumber(id eventID) uint64 {
	return id.sequence*(mostEventsOfOne+1) + uint64(min(max(id.number, 0), mostEventsOfOne))
}

// eventOfNumber is the reverse of sequenceNumber.
func eventOfNumber(log string, number uint64) eventID {
	return eventID{log: log, sequence: number / (mostEventsOfOne + 1), number: int(number % (mostEventsOfOne + 1))}
}

// writeNumbered writes an event of protocol v2, unless the client has it.
func (w *sseWriter) writeNumbered(one eventOf, at time.Time) error {
	w.last.number++
	if !w.last.follows(w.skip) || !one.isWanted {
		return nil
	}
	number := sequenceNumber(w.last)
	text, err := encodeJSON(protocolEvent{
		Type: "event", ID: w.last.String(), Number: number, Method: one.method,
		Params: protocolParams{Namespace: one.namespace, Timestamp: at.UnixMilli(), Data: one.data, Node: one.node},
	})
	if err != nil {
		return errBrokenOff
	}
	return w.writePart(formatEvent(one.method, text, number))
}

// formatEvent returns a server-sent event with a number as its id.
func formatEvent(name string, data []byte, number uint64) []byte {
	var out strings.Builder
	out.Grow(len(name) + len(data) + 64)
	out.WriteString("event: " + name + "\r\ndata: ")
	out.Write(removeLineBreaks(data))
	out.WriteString("\r\nid: " + formatNumber(number) + "\r\n\r\n")
	return []byte(out.String())
}
