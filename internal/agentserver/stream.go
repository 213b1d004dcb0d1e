package agentserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
)

// eventSource is a stream of graphd.
type eventSource interface {
	Recv() (*graphdv1.Event, error)
}

// streamRun answers POST /threads/{id}/runs/stream and POST /runs/stream.
func streamRun(c *call) error {
	p, err := c.readPlan()
	if err != nil {
		return err
	}
	if p.doesNothing() {
		return p.streamPresent(c)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel() // a stream that is not read to its end
	c.ctx = ctx
	source, err := p.beginStream(c, newFilter(p.leg))
	if err != nil {
		return err
	}
	first, err := source.Recv()
	if p.hasNothingLeft(err) {
		return p.streamPresent(c)
	}
	if err != nil {
		p.dropThread(c)
		return refuseAssistant(err)
	}
	of := first.GetOpened().GetRun()
	l := p.settleLeg(of)
	c.setLocation(p.thread, l.ID, "stream")
	s := newRunStream(c, of, l, p.leg)
	s.out.showIDs = p.leg.Resumable
	s.out.begin()
	if err := s.writeMetadata(); err != nil {
		return err
	}
	return s.relay(source)
}

// begunStream is a stream whose first event was read.
type begunStream struct {
	eventSource

	first *received // nil = it was returned
}

// Recv returns the next event.
func (s *begunStream) Recv() (*graphdv1.Event, error) {
	if first := s.first; first != nil {
		s.first = nil
		return first.event, first.err
	}
	return s.eventSource.Recv()
}

// beginStream starts the run, or goes on with it, and follows it. Questions are not dropped where the
// caller may not.
func (p *plan) beginStream(c *call, filter *graphdv1.EventFilter) (eventSource, error) {
	for {
		source, err := p.openStream(c, filter)
		if err != nil {
			return nil, err
		}
		event, err := source.Recv()
		if !p.keepsQuestions(err) {
			return &begunStream{source, &received{event, p.explainQuestions(err)}}, nil
		}
	}
}

func (p *plan) openStream(c *call, filter *graphdv1.EventFilter) (eventSource, error) {
	if p.start != nil {
		return c.graphs.Stream(c.ctx, &graphdv1.StreamRequest{Run: p.start, RequestId: p.leg.ID, Filter: filter, OnDisconnect: p.request.disconnect()})
	}
	return c.graphs.Resume(c.ctx, &graphdv1.ResumeRequest{Resume: p.resume, RequestId: p.leg.ID, Filter: filter, OnDisconnect: p.request.disconnect()})
}

// newFilter returns the filter of the events that show a leg.
func newFilter(l *leg) *graphdv1.EventFilter {
	filter := &graphdv1.EventFilter{}
	for _, mode := range l.Modes {
		filter.Channels = append(filter.Channels, channelsOf(mode)...)
	}
	if !l.Subgraphs {
		filter.Depth = new(uint32)
	}
	return filter
}

// channelsOf returns the channels that a mode is made of.
func channelsOf(mode string) []graphdv1.Channel {
	switch mode {
	case "values":
		return []graphdv1.Channel{graphdv1.Channel_CHANNEL_VALUES}
	case "messages", "messages-tuple", "events":
		return []graphdv1.Channel{graphdv1.Channel_CHANNEL_MESSAGES, graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_VALUES}
	case "custom":
		return []graphdv1.Channel{graphdv1.Channel_CHANNEL_CUSTOM}
	case "tasks":
		return []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS, graphdv1.Channel_CHANNEL_UPDATES}
	case "checkpoints", "debug":
		return []graphdv1.Channel{graphdv1.Channel_CHANNEL_DEBUG, graphdv1.Channel_CHANNEL_UPDATES}
	}
	return []graphdv1.Channel{graphdv1.Channel_CHANNEL_UPDATES}
}

// streamPresent answers with the present values of a thread on which nothing runs.
func (p *plan) streamPresent(c *call) error {
	values, err := c.readValues(p.thread)
	if err != nil {
		return err
	}
	id := uuid.NewString()
	c.w.Header().Set("Content-Location", "/threads/"+p.thread+"/runs/"+id)
	out := &sseWriter{call: c}
	out.begin()
	if err := out.writeUnnumbered("metadata", describeRun(id)); err != nil {
		return err
	}
	return out.writeUnnumbered("values", values)
}

// joinStream answers GET /threads/{id}/runs/{run}/stream.
func joinStream(c *call) error {
	of, l, err := c.pathLeg()
	if err != nil {
		return err
	}
	cancels, err := c.queryFlag("cancel_on_disconnect")
	if err != nil {
		return err
	}
	shown, err := c.chooseModes(l)
	if err != nil {
		return err
	}
	defer c.cancelIfLeft(cancels, of)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.ctx = ctx
	c.setLocation(of.GetThreadId(), l.ID, "stream")
	s := newRunStream(c, of, l, shown)
	return s.join(c.r.Header.Get("Last-Event-ID"))
}

// chooseModes returns the leg as it is to be shown: as its request said, or as this one does.
func (c *call) chooseModes(l *leg) (*leg, error) {
	shown := *l
	modes, err := c.queryWords("stream_mode")
	if err != nil {
		return nil, err
	}
	if len(modes) == 0 {
		return &shown, nil
	}
	shown.Modes = removeRepeats(modes)
	return &shown, (&runRequest{Assistant: "given", StreamMode: shown.Modes}).validate()
}

// runStream shows a leg of a run.
type runStream struct {
	call  *call
	of    *graphdv1.Run
	leg   *leg
	out   *sseWriter
	shown *translator
}

func newRunStream(c *call, of *graphdv1.Run, l, shown *leg) *runStream {
	return &runStream{call: c, of: of, leg: l, out: &sseWriter{call: c}, shown: newTranslator(c, of, l.ID, shown)}
}

func describeRun(id string) []byte {
	text, err := encodeJSON(map[string]any{"run_id": id, "attempt": 1})
	if err != nil { // it has JSON
		return nil
	}
	return text
}

func (s *runStream) writeMetadata() error {
	return s.out.writeUnnumbered("metadata", describeRun(s.leg.ID))
}

// join shows what comes after an id: that of an event, "-1" or "0" for the beginning, "" for what
// comes next.
func (s *runStream) join(lastEvent string) error {
	isOver := s.leg.next > 0 || isStopped(s.of.GetState())
	request := &graphdv1.WatchRequest{ThreadId: s.of.GetThreadId(), RunId: s.of.GetRunId(), Filter: newFilter(s.shown.leg), Follow: true, RecentEphemeral: lastEvent != ""}
	switch lastEvent {
	case "":
		if isOver {
			s.out.begin()
			return nil
		}
		s.out.showIDs = s.leg.Resumable
		request.Start = &graphdv1.WatchRequest_Now{Now: &emptypb.Empty{}}
	case "-1", "0":
		s.out.showIDs = true
		s.startAtLeg(request)
	default:
		id, err := parseEventID(lastEvent)
		if err != nil {
			return err
		}
		s.out.showIDs, s.out.skip = true, id
		s.startAtLeg(request)
	}
	source, err := s.watch(request)
	if err != nil {
		return err
	}
	s.out.begin()
	if s.out.skip.log == "" {
		if err := s.writeMetadata(); err != nil {
			return err
		}
	}
	return s.relay(source)
}

// startAtLeg has the stream begin with the leg: what was shown before an id decides what is shown
// after it.
func (s *runStream) startAtLeg(request *graphdv1.WatchRequest) {
	if s.leg.After > 0 {
		request.Start = &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: s.leg.Log, Sequence: s.leg.After}}
	}
}

// watch follows the run. When the begin of the leg is not kept any more, it goes on after the last
// event that the client has.
func (s *runStream) watch(request *graphdv1.WatchRequest) (eventSource, error) {
	source, err := s.open(request)
	if skip := s.out.skip; reasonOf(err) == "CURSOR_TRIMMED" && skip.log != "" {
		request.Start = &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: skip.log, Sequence: skip.sequence, Mark: skip.mark}}
		return s.open(request)
	}
	return source, err
}

// open begins a stream, and reads its first event.
func (s *runStream) open(request *graphdv1.WatchRequest) (eventSource, error) {
	source, err := s.call.graphs.Watch(s.call.ctx, request)
	if err != nil {
		return nil, err
	}
	first, err := source.Recv()
	if skip := s.out.skip.log; err == nil && skip != "" && skip != first.GetOpened().GetHead().GetLogId() {
		return nil, newError(http.StatusGone, "CURSOR_LOST", "the event of Last-Event-ID is of another thread, or of one that was deleted").ofField("Last-Event-ID")
	}
	return source, err
}

// received is what a stream of graphd has given.
type received struct {
	event *graphdv1.Event
	err   error
}

// lifeInterval is how often a quiet stream shows that it is alive.
const lifeInterval = 5 * time.Second

// relay shows the events of a stream until the leg stops.
func (s *runStream) relay(source eventSource) error {
	defer s.deleteTemporary()
	events := make(chan received)
	go contain.Func(func() { receiveAll(s.call.ctx, source, events) }, s.call.server.opts.OnPanic)()
	life := time.NewTicker(lifeInterval)
	defer life.Stop()
	for {
		select {
		case <-s.call.ctx.Done():
			return nil
		case <-life.C:
			if err := s.out.writeLife(); err != nil {
				return err
			}
		case got := <-events:
			if errors.Is(got.err, io.EOF) {
				return nil
			}
			if got.err != nil {
				return errBrokenOff // the client joins again
			}
			life.Reset(lifeInterval)
			if isOver, err := s.show(got.event); isOver || err != nil {
				return err
			}
		}
	}
}

// receiveAll passes on what a stream gives, until it ends or ctx does.
func receiveAll(ctx context.Context, source eventSource, to chan<- received) {
	for {
		event, err := source.Recv()
		select {
		case to <- received{event, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// show shows an event. It reports whether the leg is over.
func (s *runStream) show(event *graphdv1.Event) (isOver bool, err error) {
	if at := event.GetCursor(); at != nil {
		if s.leg.next > 0 && at.GetSequence() > s.leg.next {
			return true, nil
		}
		s.out.moveTo(at)
	}
	list, isOver, err := s.shown.translate(event)
	if err != nil {
		return true, errBrokenOff
	}
	for _, one := range list {
		if err := s.out.writeEvent(one.name, one.data); err != nil {
			return true, err
		}
	}
	if !isOver && isCutOff(event.GetEnd()) {
		return true, errBrokenOff // else the client takes it for the end of the run
	}
	return isOver, nil
}

// isCutOff reports whether a stream of graphd has ended before what it shows: the client joins again.
func isCutOff(end *graphdv1.EndOfStream) bool {
	return end.GetCause() == graphdv1.EndOfStream_CAUSE_DRAINING || end.GetCause() == graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER
}

// deleteTemporary deletes the thread of a stateless run that is over.
func (s *runStream) deleteTemporary() {
	if s.leg.Temporary && s.shown.isOver {
		_, _ = s.call.threads.DeleteThread(s.call.ctx, &graphdv1.DeleteThreadRequest{ThreadId: s.of.GetThreadId(), Force: true}) // else its ttl ends it
	}
}
