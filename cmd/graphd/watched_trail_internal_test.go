package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/server"
)

// shownQuestion is what both a question and its trail tell.
type shownQuestion struct {
	state   graphdv1.InterruptState
	claimed string
	voters  []string
}

func describeShown(q *graphdv1.Interrupt) shownQuestion {
	shown := shownQuestion{state: q.GetState(), claimed: q.GetClaimedBy()}
	for _, v := range q.GetVotes() {
		shown.voters = append(shown.voters, v.GetPrincipal())
	}
	return shown
}

// replayTrail tells from the entries of a trail what the question shows after them.
func replayTrail(t *testing.T, trail []*graphdv1.TrailEntry) (shown shownQuestion) {
	t.Helper()
	for _, e := range trail {
		switch e.GetKind() {
		case graphdv1.TrailKind_TRAIL_KIND_ASKED:
			shown.state = graphdv1.InterruptState_INTERRUPT_STATE_OPEN
		case graphdv1.TrailKind_TRAIL_KIND_CLAIMED:
			shown.claimed = e.GetPrincipal()
		case graphdv1.TrailKind_TRAIL_KIND_RELEASED:
			shown.claimed = ""
		case graphdv1.TrailKind_TRAIL_KIND_VOTED:
			shown.voters = append(shown.voters, e.GetPrincipal())
			if shown.claimed == e.GetPrincipal() {
				shown.claimed = "" // a vote ends the claim of its voter
			}
		case graphdv1.TrailKind_TRAIL_KIND_COMMENTED:
		case graphdv1.TrailKind_TRAIL_KIND_ANSWERED:
			shown.state = graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED
		case graphdv1.TrailKind_TRAIL_KIND_USED:
			shown.state = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED
		default:
			require.Fail(t, "an entry of another kind", e.GetKind())
		}
	}
	return shown
}

// questionWatch collects what a watch delivers.
type questionWatch struct {
	stream graphdv1.InterruptService_WatchInterruptsClient
	seen   []*graphdv1.Interrupt
}

// watchQuestions begins to watch all questions.
func (s *peopleServer) watchQuestions(t *testing.T) *questionWatch {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.as(t, "ana"), time.Minute)
	t.Cleanup(cancel)
	stream, err := graphdv1.NewInterruptServiceClient(s.conn).WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	return &questionWatch{stream: stream}
}

// waitForTrail waits until a question is delivered that has so many entries in its trail.
func (w *questionWatch) waitForTrail(t *testing.T, size int) {
	t.Helper()
	for len(w.seen) == 0 || int(w.seen[len(w.seen)-1].GetTrailSize()) < size {
		change, err := w.stream.Recv()
		require.NoError(t, err)
		if q := change.GetInterrupt(); q != nil {
			w.seen = append(w.seen, q)
		}
	}
}

// Whatever a watch has delivered of a question is in its trail, and the trail has it in the same
// order.
func TestTheTrailHasWhatWasWatched(t *testing.T) {
	for name, store := range map[string]string{"memory": "memory", "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "g.db")} {
		t.Run(name, func(t *testing.T) {
			s := startPeopleServer(t, func(o *server.Options) { o.Store = store })
			requireWatchedTrail(t, s)
		})
	}
}

func requireWatchedTrail(t *testing.T, s *peopleServer) {
	t.Helper()
	w := s.watchQuestions(t)
	id := s.ask(t, "order-7").GetInterruptId()
	interrupts := graphdv1.NewInterruptServiceClient(s.conn)
	for i, happen := range []func(){
		func() {}, // it was asked
		func() { s.claim(t, "ana", "order-7") },
		func() { require.NoError(t, s.answer(t, "ResumeRun", "ana", "order-7", `"yes"`)) },
		func() { s.claim(t, "ben", "order-7") },
		func() {
			_, err := interrupts.ReleaseInterrupt(s.as(t, "ben"), &graphdv1.ReleaseInterruptRequest{ThreadId: "order-7", InterruptId: id})
			require.NoError(t, err)
		},
		func() {
			_, err := interrupts.CommentInterrupt(s.as(t, "dora"), &graphdv1.CommentInterruptRequest{ThreadId: "order-7", InterruptId: id, Text: "why?"})
			require.NoError(t, err)
		},
	} {
		happen()
		w.waitForTrail(t, i+1)
		require.EqualValues(t, i+1, w.seen[len(w.seen)-1].GetTrailSize(), "each state is delivered")
	}
	require.NoError(t, s.answer(t, "ResumeRun", "ben", "order-7", `"yes"`))
	w.waitForTrail(t, 9) // voted, answered, used

	trail := s.listTrail(t, "order-7", id)
	require.Len(t, trail, 9)
	for i, q := range w.seen {
		size := int(q.GetTrailSize())
		require.Equal(t, replayTrail(t, trail[:size]), describeShown(q), "delivery %d, after entry %d", i+1, size)
		for _, v := range q.GetVotes() {
			entry := trail[v.GetTrail()-1]
			require.Equal(t, graphdv1.TrailKind_TRAIL_KIND_VOTED, entry.GetKind())
			require.Equal(t, v.GetPrincipal(), entry.GetPrincipal())
		}
	}
}
