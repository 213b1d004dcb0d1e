package session

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/worker/internal/task"
)

// Times after which a stream on which nothing comes is given up.
const (
	welcomePatience = 10 * time.Second // for the welcome
	leastPatience   = 2 * time.Second  // later, however short the beats are
	silentBeats     = 3
)

// leastBeat is the shortest time between two beats.
const leastBeat = 50 * time.Millisecond

// errSilent is the cause with which a stream ends on which nothing comes.
var errSilent = errors.New("nothing was heard of the server")

// errOldServer refuses a server that does not say what a person was shown.
var errOldServer = errors.New(`the server lacks the feature "drift" of the worker protocol: it is older than this worker`)

// serveStream opens a stream and serves it to its end. hasWelcome says that the server has taken the
// worker.
func (s *Session) serveStream(ctx context.Context) (hasWelcome bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(welcomePatience, contain.Func(func() { cancel(errSilent) }, contain.LogPanic(s.log, "a silent stream was not ended")))
	defer silence.Stop()
	defer func() {
		if errors.Is(context.Cause(ctx), errSilent) {
			s.conn.renew()
		}
	}()
	stream, err := s.conn.service().Connect(ctx, anySize())
	if err != nil {
		return false, err
	}
	if err := stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: s.hello()}}); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, err := stream.Recv()
	if err != nil {
		return false, err
	}
	if err := s.takeWelcome(first.GetWelcome()); err != nil {
		return false, err
	}
	s.mu.Lock()
	beat := s.terms.beat
	s.mu.Unlock()
	sending := s.startSender(ctx, stream, beat)
	defer func() {
		cancel(nil)
		<-sending
		s.mu.Lock()
		s.sender = nil
		s.mu.Unlock()
	}()
	for {
		silence.Reset(max(silentBeats*beat, leastPatience))
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		s.handle(response)
	}
}

// hello is what the worker says first: what it serves, and the tasks that it has.
func (s *Session) hello() *graphdv1.Hello {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certainty.ask(0, time.Now())
	clear(s.kept)
	return &graphdv1.Hello{
		WorkerId: s.o.WorkerID, Manifest: s.o.Manifest, Labels: s.o.Labels, HeldLeases: s.heldLeases(), Credit: s.credit(),
		KeptBytes: uint64(s.o.KeptBytes),
	}
}

// heldLeases are those whose tasks run, or whose results are not delivered. The caller holds the lock.
func (s *Session) heldLeases() [][]byte {
	tokens := make([][]byte, 0, len(s.attempts))
	for _, a := range s.attempts {
		tokens = append(tokens, a.token)
	}
	return tokens
}

// credit is how many tasks the worker takes. The caller holds the lock.
func (s *Session) credit() *graphdv1.Credit {
	slots := max(s.o.Slots-s.stray, 0)
	if s.isDraining {
		slots = 0
	}
	return &graphdv1.Credit{TotalSlots: uint32(slots), Revision: s.revision}
}

// takeWelcome takes the terms of the server. The error ends the session.
func (s *Session) takeWelcome(w *graphdv1.Welcome) error {
	if w == nil {
		return errors.New("the first message of the server is no welcome")
	}
	if !slices.Contains(w.GetFeatures(), "drift") {
		return &finalError{errOldServer}
	}
	if err := s.o.Welcomed(w); err != nil {
		return &finalError{err}
	}
	s.log.Info("the server has taken the worker", zap.String("worker", s.o.WorkerID), zap.String("session", w.GetSessionId()),
		zap.String("version", w.GetServerVersion()), zap.Int("kept", len(w.GetRenewed())), zap.Int("lost", len(w.GetLost())))
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.terms
	t.beat = max(w.GetBeatInterval().AsDuration(), leastBeat)
	lease := w.GetLeaseTtl().AsDuration()
	if lease <= 0 {
		lease = silentBeats * t.beat
	}
	t.longestPause = min(longestPause, max(lease/8, leastBeat)) // leases end without their worker
	t.limits = task.Limits{MaxResultBytes: int(w.GetMaxResultBytes())}
	t.emitPause = 0
	for _, token := range w.GetLost() {
		s.loseLease(token)
	}
	s.markUndecided(w.GetUndecided())
	s.certainty.setIntervals(t.beat, lease)
	s.certainty.answer(0)
	s.isWelcomed, s.takesResults = true, slices.Contains(w.GetFeatures(), featureComplete)
	s.announceChange()
	return nil
}

// markUndecided notes which of all leases are undecided. The caller holds the lock.
func (s *Session) markUndecided(tokens [][]byte) {
	undecided := make(map[string]bool, len(tokens))
	for _, token := range tokens {
		undecided[string(token)] = true
	}
	for token, a := range s.attempts {
		a.isUndecided = undecided[token]
	}
}

// handle handles a message of the server.
func (s *Session) handle(response *graphdv1.ConnectResponse) {
	switch k := response.GetKind().(type) {
	case *graphdv1.ConnectResponse_Batch:
		for _, part := range k.Batch.GetResponses() {
			s.handle(part)
		}
		return
	case *graphdv1.ConnectResponse_Task:
		s.beginTask(k.Task)
		return
	case *graphdv1.ConnectResponse_Completed:
		s.takeAnswer(k.Completed)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch k := response.GetKind().(type) {
	case *graphdv1.ConnectResponse_Cancel:
		s.stopTask(k.Cancel)
	case *graphdv1.ConnectResponse_BeatAck:
		for _, token := range k.BeatAck.GetLost() {
			s.loseLease(token)
		}
		s.markUndecided(k.BeatAck.GetUndecided())
		s.certainty.answer(k.BeatAck.GetNumber())
	case *graphdv1.ConnectResponse_Renewed:
		if a := s.attempts[string(k.Renewed.GetToken())]; a != nil {
			a.isUndecided = false
		}
	case *graphdv1.ConnectResponse_Throttle:
		s.terms.emitPause = k.Throttle.GetMinInterval().AsDuration()
	}
	s.announceChange()
}

// sender sends what waits on one stream.
type sender struct {
	session *Session
	sending sync.Mutex // is held by who collects and sends
	stream  graphdv1.WorkerService_ConnectClient

	// The fields below are under the lock of the session.
	beats    uint64
	revision uint64      // of the credit that was sent
	isGone   bool        // goodbye was said
	later    *time.Timer // wakes the sender when events may be sent again
}

// startSender sends until ctx ends or the worker leaves. The channel is closed then.
func (s *Session) startSender(ctx context.Context, stream graphdv1.WorkerService_ConnectClient, beat time.Duration) <-chan struct{} {
	s.mu.Lock()
	out := &sender{session: s, stream: stream, revision: s.revision}
	s.sender = out
	s.mu.Unlock()
	out.later = time.AfterFunc(time.Hour, contain.Func(s.wakeSender, contain.LogPanic(s.log, "the sender was not woken")))
	done := make(chan struct{})
	go contain.Func(func() {
		defer close(done)
		defer out.later.Stop()
		out.run(ctx, beat)
	}, contain.LogPanic(s.log, "the stream of a worker panicked"))()
	return done
}

func (o *sender) run(ctx context.Context, beat time.Duration) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	isBeatDue := false
	for {
		o.sending.Lock()
		isSent := o.sendWaiting(isBeatDue)
		o.sending.Unlock()
		if !isSent {
			return // the other direction shows why
		}
		if o.hasLeft() {
			_ = o.stream.CloseSend()
			return
		}
		select {
		case <-ticker.C:
			isBeatDue = true
		case <-o.session.wake:
			isBeatDue = false
		case <-ctx.Done():
			return
		}
	}
}

// sendWaiting sends what waits, and reports whether the stream took it. The caller holds sending.
func (o *sender) sendWaiting(isBeatDue bool) bool {
	for _, message := range o.collect(isBeatDue) {
		if o.stream.Send(message) != nil {
			return false
		}
	}
	return true
}

// sendNow sends what waits, or has those send it who send at the moment: a result that its own
// goroutine sends is under way sooner.
func (s *Session) sendNow() {
	s.mu.Lock()
	o := s.sender
	s.mu.Unlock()
	if o == nil {
		return // the next stream begins with what waits
	}
	if !o.sending.TryLock() {
		s.wakeSender()
		return
	}
	defer o.sending.Unlock()
	o.sendWaiting(false)
}

// hasLeft reports whether all is said.
func (o *sender) hasLeft() bool {
	o.session.mu.Lock()
	defer o.session.mu.Unlock()
	return o.session.isLeaving && o.isGone && len(o.session.refusals) == 0
}

// collect returns what is to be sent, nothing when the stream has ended: what waits is for the next
// one.
func (o *sender) collect(isBeatDue bool) []*graphdv1.ConnectRequest {
	s := o.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sender != o {
		return nil
	}
	var out []*graphdv1.ConnectRequest
	if o.revision != s.revision {
		o.revision = s.revision
		out = append(out, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Credit{Credit: s.credit()}})
	}
	for _, nack := range s.refusals {
		out = append(out, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Nack{Nack: nack}})
	}
	s.refusals = nil
	out = o.collectUpdates(out)
	for _, r := range s.results {
		out = append(out, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{Complete: r}})
	}
	s.results = nil
	if isBeatDue || s.isBeatDue {
		s.isBeatDue = false
		o.beats++
		s.certainty.ask(o.beats, time.Now())
		out = append(out, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Number: o.beats, Running: s.heldLeases()}}})
	}
	if s.isDraining && !o.isGone || len(s.released) > 0 {
		o.isGone = true
		out = append(out, &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Goodbye{Goodbye: &graphdv1.Goodbye{Reason: ErrLeaving.Error(), Released: s.released}}})
		s.released = nil
	}
	return out
}

// collectUpdates adds the news of tasks. The caller holds the lock of the session.
func (o *sender) collectUpdates(out []*graphdv1.ConnectRequest) []*graphdv1.ConnectRequest {
	s := o.session
	mayEmit := true
	if wait := s.terms.emitPause - time.Since(s.lastEmit); wait > 0 {
		mayEmit = false
		o.later.Reset(wait)
	}
	for _, a := range s.attempts {
		if mayEmit {
			if emit := a.takeEvents(); emit != nil {
				s.lastEmit = time.Now()
				a.sent += uint64(len(emit.GetItems()))
				a.isAnnounced = true
				out = append(out, newUpdate(&graphdv1.TaskUpdate{LeaseToken: a.token, Kind: &graphdv1.TaskUpdate_Emit{Emit: emit}}))
			}
		}
		if a.needsAnnounce && !a.isAnnounced {
			a.isAnnounced = true
			out = append(out, newUpdate(&graphdv1.TaskUpdate{LeaseToken: a.token, Kind: &graphdv1.TaskUpdate_Alive{Alive: &emptypb.Empty{}}}))
			s.announceChange()
		}
		a.needsAnnounce = false
	}
	return out
}

func newUpdate(u *graphdv1.TaskUpdate) *graphdv1.ConnectRequest {
	return &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Update{Update: u}}
}
