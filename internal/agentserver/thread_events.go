package agentserver

import (
	"slices"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// eventStream shows what happens on a thread, across its runs.
type eventStream struct {
	*threadFollower

	request *eventRequest
	shown   *eventTranslator
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
	if err := request.validateRequest(); err != nil {
		return err
	}
	of, err := c.findThread(thread)
	if err != nil {
		return err
	}
	follower, end := newThreadFollower(c, thread)
	defer end()
	s := &eventStream{threadFollower: follower, request: request}
	isLater := of == nil
	if isLater {
		s.out.begin()
		if of, err = s.awaitThread(); err != nil || of == nil {
			return err
		}
	}
	s.shown = newEventTranslator(c, request, of.GetGraph())
	return s.followThread(of, isLater)
}

// followThread shows the newest run from where it was last gone on with, or what comes after since,
// and then all that comes. isLater says that the client came before the thread, and has nothing of it.
func (s *eventStream) followThread(of *graphdv1.Thread, isLater bool) error {
	newest, err := s.call.findNewestRun(of)
	if err != nil {
		return err
	}
	request := &graphdv1.WatchRequest{ThreadId: s.thread, Filter: s.request.newFilter(), Follow: true, RecentEphemeral: true}
	s.chooseStart(request, newest)
	if newest.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED && s.request.Since == nil && !isLater {
		s.shown.stoppedAt = newest.GetAppliedThrough().GetSequence()
	}
	for {
		source, err := s.openWatch(request)
		if err != nil {
			return err
		}
		end, err := s.relayEvents(source, s.showEvent)
		if err != nil || end == nil {
			return err
		}
		switch end.GetCause() {
		case graphdv1.EndOfStream_CAUSE_RUN_STOPPED, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER:
			request.RunId = ""
			request.Start = &graphdv1.WatchRequest_After{After: end.GetResumeAt()}
		case graphdv1.EndOfStream_CAUSE_DRAINING:
			return errBrokenOff // the client connects again
		default:
			return nil
		}
	}
}

// chooseStart sets where a stream begins: with a leg of the newest run, because what came before in
// the leg decides which subgraphs and messages are open. What the client has is left out by its
// number.
func (s *eventStream) chooseStart(request *graphdv1.WatchRequest, newest *graphdv1.Run) {
	head := newest.GetAppliedThrough()
	after := uint64(0)
	if newest != nil {
		request.RunId = newest.GetRunId() // from its beginning
		legs := readLegs(newest)
		after = legs[len(legs)-1].After
		if s.request.Since != nil {
			s.out.skip = eventOfNumber(head.GetLogId(), *s.request.Since)
			after = lastLegBefore(legs, s.out.skip.sequence)
		}
	}
	switch {
	case after > 0:
		request.RunId = ""
		request.Start = &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: head.GetLogId(), Sequence: after}}
	case newest == nil:
		request.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
	}
}

// lastLegBefore returns the event before the leg that an event belongs to, 0 for the first leg.
func lastLegBefore(legs []*leg, sequence uint64) (after uint64) {
	for _, l := range legs {
		if l.After < sequence {
			after = l.After
		}
	}
	return after
}

// openWatch begins a stream of graphd, and the answer with it. Where the log has lost the beginning,
// the stream shows what is left of it.
func (s *eventStream) openWatch(request *graphdv1.WatchRequest) (eventSource, error) {
	source, opened, err := s.tryWatch(request)
	if isTrimmed(err) {
		request.RunId, request.Start = "", &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
		source, opened, err = s.tryWatch(request)
	}
	if err != nil {
		return nil, err // the answer, or the client connects again
	}
	if s.out.skip.sequence > opened.GetHead().GetSequence() {
		s.out.skip = eventID{} // it is a number of another log
	}
	s.out.begin()
	return source, nil
}

// isTrimmed reports whether a cursor is of events that are not there any more.
func isTrimmed(err error) bool {
	return slices.Contains([]string{"CURSOR_TRIMMED", "CURSOR_LOST", "CURSOR_AHEAD", "INVALID_CURSOR"}, reasonOf(err))
}

// showEvent shows an event of graphd.
func (s *eventStream) showEvent(event *graphdv1.Event) error {
	if at := event.GetCursor(); at != nil {
		s.out.moveTo(at)
	}
	list, err := s.shown.translateEvent(event)
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
