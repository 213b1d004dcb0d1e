package agentserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Modes of the stream of a thread.
const (
	runModes        = "run_modes"    // the events that its runs were asked to show, with their begin and end
	lifecycleMode   = "lifecycle"    // begin and end of its runs, and why one has failed
	stateUpdateMode = "state_update" // its state, whenever it has changed
)

// threadStream shows the runs of a thread, one after the other, as their requests said.
type threadStream struct {
	*threadFollower

	modes []string
	begin uint64 // the event after which a stream begins that shows the same as this one
	of    *graphdv1.Run
	leg   *leg            // of the run, the one that is shown or was shown last
	shown *translator     // nil = no leg is shown
	queue map[string]bool // runs that wait for their turn
}

// joinThreadStream answers GET /threads/{id}/stream. The thread may come later. It shows what
// comes next, or what comes after Last-Event-ID. Its ids say where a stream has to begin to show
// the same: what was shown of a run before an event decides what is shown after it.
func joinThreadStream(c *call) error {
	thread, err := c.pathID("thread")
	if err != nil {
		return err
	}
	modes, err := c.readThreadModes()
	if err != nil {
		return err
	}
	follower, end := newThreadFollower(c, thread)
	defer end()
	s := &threadStream{threadFollower: follower, modes: modes, queue: map[string]bool{}}
	s.out.showIDs = true
	request := &graphdv1.WatchRequest{ThreadId: thread, Filter: newThreadFilter(), Follow: true}
	if err := s.chooseStart(request, c.r.Header.Get("Last-Event-ID")); err != nil {
		return err
	}
	c.w.Header().Set("Location", "/threads/"+thread+"/stream?"+url.Values{"stream_mode": modes}.Encode()) // a client that loses the connection joins again
	of, err := c.findThread(thread)
	if err != nil {
		return err
	}
	if of == nil {
		s.out.begin()
		if of, err = s.awaitThread(); err != nil || of == nil {
			return err
		}
		request.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
		request.RecentEphemeral = true
	}
	return s.follow(request)
}

// readThreadModes reads the modes of the stream of a thread.
func (c *call) readThreadModes() ([]string, error) {
	var modes []string
	for _, name := range []string{"stream_mode", "stream_modes"} { // SDKs send the one, the description of the API has the other
		given, err := c.queryWords(name)
		if err != nil {
			return nil, err
		}
		modes = append(modes, given...)
	}
	all := []string{runModes, lifecycleMode, stateUpdateMode}
	for _, mode := range modes {
		if !slices.Contains(all, mode) {
			return nil, invalidField("stream_mode", "is %.100q: want %s", mode, strings.Join(all, ", "))
		}
	}
	if len(modes) == 0 {
		return []string{runModes}, nil
	}
	return removeRepeats(modes), nil
}

// newThreadFilter returns the filter of all events that a run may show. It is the same for all
// modes, so that ids do not depend on them.
func newThreadFilter() *graphdv1.EventFilter {
	filter := &graphdv1.EventFilter{}
	for _, mode := range streamModes() {
		for _, channel := range channelsOf(mode) {
			if !slices.Contains(filter.GetChannels(), channel) {
				filter.Channels = append(filter.Channels, channel)
			}
		}
	}
	return filter
}

// chooseStart sets where the stream begins, by the id of the last event that the client has.
func (s *threadStream) chooseStart(request *graphdv1.WatchRequest, lastEvent string) error {
	switch lastEvent {
	case "":
		request.Start = &graphdv1.WatchRequest_Now{Now: &emptypb.Empty{}}
		return nil
	case "-", "-1", "0", "0-0":
		request.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
	default:
		id, begin, err := parseThreadEventID(lastEvent)
		if err != nil {
			return err
		}
		s.out.skip, s.begin = id, begin
		request.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
		if begin > 0 {
			request.Start = &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: id.log, Sequence: begin}}
		}
	}
	request.RecentEphemeral = true
	return nil
}

// parseThreadEventID reads the id of an event of the stream of a thread, and the event after
// which a stream has to begin to show the same.
func parseThreadEventID(text string) (id eventID, begin uint64, err error) {
	at := max(0, strings.LastIndex(text, "-"))
	id, err = parseEventID(text[:at])
	if err == nil {
		begin, err = strconv.ParseUint(text[at+1:], 10, 64)
	}
	if err != nil {
		return id, 0, invalidField("Last-Event-ID", "is %.100q: want the id of an event of this stream, or - for the beginning of the thread", text)
	}
	return id, begin, nil
}

// follow shows what happens on the thread until it is deleted, or the client leaves.
func (s *threadStream) follow(request *graphdv1.WatchRequest) error {
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
		case graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER:
			request.Start = &graphdv1.WatchRequest_After{After: end.GetResumeAt()}
		case graphdv1.EndOfStream_CAUSE_THREAD_DELETED:
			return nil
		default:
			return errBrokenOff // the client joins again
		}
	}
}

// openWatch begins a stream of graphd, and the answer with it. When the log has lost where the
// stream has to begin, it begins after the last event that the client has.
func (s *threadStream) openWatch(request *graphdv1.WatchRequest) (eventSource, error) {
	source, opened, err := s.tryWatch(request)
	if skip := s.out.skip; reasonOf(err) == "CURSOR_TRIMMED" && skip.log != "" {
		s.begin = skip.sequence
		request.Start = &graphdv1.WatchRequest_After{After: &graphdv1.Cursor{LogId: skip.log, Sequence: skip.sequence, Mark: skip.mark}}
		source, opened, err = s.tryWatch(request)
	}
	if err != nil {
		return nil, err
	}
	if log := s.out.skip.log; log != "" && log != opened.GetHead().GetLogId() {
		return nil, newError(http.StatusGone, "CURSOR_LOST", "the event of Last-Event-ID is of another thread, or of one that was deleted").ofField("Last-Event-ID")
	}
	if request.GetNow() != nil {
		s.begin = opened.GetHead().GetSequence()
	}
	s.out.begin()
	return source, nil
}

// showEvent shows an event of graphd.
func (s *threadStream) showEvent(event *graphdv1.Event) error {
	if at := event.GetCursor(); at != nil {
		s.out.moveTo(at)
	}
	if err := s.showState(event); err != nil {
		return err
	}
	if event.GetRunId() == "" {
		return nil
	}
	if s.isAside(event) {
		return nil
	}
	isBegin, err := s.chooseLeg(event)
	if err != nil || s.shown == nil {
		return err
	}
	if isBegin {
		if err := s.write("metadata", describeRun(s.leg.ID), runModes, lifecycleMode); err != nil {
			return err
		}
	}
	return s.showOfLeg(event)
}

// isAside reports whether an event tells nothing of a run that is shown: the run waits for its
// turn, has ended before that, or is told to stop.
func (s *threadStream) isAside(event *graphdv1.Event) bool {
	if event.GetRunState() == nil {
		return false
	}
	run, state := event.GetRunId(), event.GetRunState().GetState()
	wasQueued := s.queue[run]
	delete(s.queue, run)
	switch {
	case state == graphdv1.RunState_RUN_STATE_RUNNING:
		return false
	case state == graphdv1.RunState_RUN_STATE_QUEUED:
		s.queue[run] = true
		return true
	case isStopped(state):
		return wasQueued || s.of != nil && s.of.GetRunId() != run
	}
	return true
}

// threadState is the state of a thread after a change.
type threadState struct {
	Values     json.RawMessage `json:"values"`
	Checkpoint *checkpoint     `json:"checkpoint"`
}

// showState shows the state of the root graph, of a run or of a change by hand.
func (s *threadStream) showState(event *graphdv1.Event) error {
	values := event.GetValues()
	if values.GetCheckpoint() == nil || len(event.GetNamespace()) > 0 || isAbsent(payloadText(values.GetValues())) {
		return nil
	}
	text, err := encodeJSON(threadState{payloadText(values.GetValues()), newCheckpoint(s.thread, values.GetCheckpoint())})
	if err != nil {
		return errBrokenOff
	}
	return s.write("state_update", removeLineBreaks(text), stateUpdateMode)
}

// write writes an event that some modes show. It has a number also where the client has not asked
// for it.
func (s *threadStream) write(name string, data []byte, shownBy ...string) error {
	isWanted := slices.ContainsFunc(shownBy, func(mode string) bool { return slices.Contains(s.modes, mode) })
	if !isWanted {
		s.out.last.number++
		return nil
	}
	s.out.suffix = fmt.Sprintf("-%d", s.begin)
	return s.out.writeEvent(name, data)
}

// chooseLeg makes the leg of an event the one that is shown, none if it is over or not shown any
// more. It reports whether the leg begins with the event.
func (s *threadStream) chooseLeg(event *graphdv1.Event) (isBegin bool, err error) {
	sequence := event.GetCursor().GetSequence()
	isBegin = event.GetRunState().GetState() == graphdv1.RunState_RUN_STATE_RUNNING
	if s.of.GetRunId() == event.GetRunId() && !isBegin && (s.leg == nil || s.leg.next == 0 || sequence <= s.leg.next) {
		return false, nil
	}
	deleted, err := findDeletedRuns(s.call, s.thread)
	if err != nil {
		return false, errBrokenOff // the client joins again
	}
	of, err := s.call.graphs.GetRun(s.call.ctx, &graphdv1.GetRunRequest{ThreadId: s.thread, RunId: event.GetRunId()})
	isGone := reasonOf(err) == "RUN_NOT_FOUND"
	if err != nil && !isGone {
		return false, errBrokenOff
	}
	s.of, s.leg, s.shown = &graphdv1.Run{RunId: event.GetRunId()}, nil, nil
	if isGone || isRolledBack(of) {
		return false, nil
	}
	s.of, s.leg = of, legAt(readLegs(of), sequence)
	if isBegin {
		s.begin = max(sequence, 1) - 1
	}
	if !deleted[s.leg.ID] {
		s.shown = newTranslator(s.call, of, s.leg.ID, s.leg)
	}
	return isBegin, nil
}

// legAt returns the leg that an event belongs to.
func legAt(legs []*leg, sequence uint64) *leg {
	for _, l := range slices.Backward(legs) {
		if l.After < sequence {
			return l
		}
	}
	return legs[0]
}

// showOfLeg shows an event of the leg that is shown, and the end of the leg with its last event.
func (s *threadStream) showOfLeg(event *graphdv1.Event) error {
	isOver, err := s.translateEvent(event)
	if err != nil {
		return err
	}
	if s.shown.isPaused && !isOver { // the end of a stream of the run would say at which questions
		of, err := s.call.graphs.GetRun(s.call.ctx, &graphdv1.GetRunRequest{ThreadId: s.thread, RunId: s.of.GetRunId()})
		if err != nil {
			return errBrokenOff
		}
		isOver, err = s.translateEvent(&graphdv1.Event{Kind: &graphdv1.Event_End{End: &graphdv1.EndOfStream{Run: of}}})
		if err != nil {
			return err
		}
	}
	if !isOver {
		return nil
	}
	text, err := encodeJSON(map[string]string{"status": "run_done", "run_id": s.leg.ID})
	if err != nil {
		return errBrokenOff
	}
	s.shown = nil
	return s.write("metadata", text, runModes, lifecycleMode)
}

// translateEvent writes what an event shows of the leg. It reports whether the leg is over.
func (s *threadStream) translateEvent(event *graphdv1.Event) (isOver bool, err error) {
	isNested := len(event.GetNamespace()) > 0
	if isNested && !s.leg.Subgraphs && event.GetInterrupt() == nil {
		return false, nil
	}
	list, isOver, err := s.shown.translate(event)
	if err != nil {
		return false, errBrokenOff
	}
	for _, one := range list {
		shownBy := []string{runModes}
		if one.name == "error" {
			shownBy = append(shownBy, lifecycleMode)
		}
		if err := s.write(one.name, one.data, shownBy...); err != nil {
			return false, err
		}
	}
	return isOver, nil
}
