package workers

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// openQueue begins a session of a worker with features, and returns it with what its
// stream would send.
func openQueue(t *testing.T, features ...string) (*Service, *worker.Session, *responseQueue) {
	t.Helper()
	hub := worker.New(worker.Options{})
	s := New(Options{Hub: hub, MaxMessageBytes: 8 << 20, Limits: payload.Limits{MaxBytes: 1 << 20}})
	session, _, err := hub.OpenSession(worker.Hello{Worker: "w1", Number: hub.NumberHello()})
	require.NoError(t, err)
	t.Cleanup(session.Close)
	q := s.newResponseQueue(session, features)
	return s, session, q
}

func beat(number uint64) *graphdv1.ConnectRequest {
	return &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Number: number}}}
}

func batch(requests ...*graphdv1.ConnectRequest) *graphdv1.ConnectRequest {
	return &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Batch{Batch: &graphdv1.ConnectRequestBatch{Requests: requests}}}
}

// nextAcks returns the numbers of the beats that the next message answers.
func nextAcks(t *testing.T, q *responseQueue) []uint64 {
	t.Helper()
	m, err := q.Next(t.Context())
	require.NoError(t, err)
	if m.GetBatch() == nil {
		return []uint64{m.GetBeatAck().GetNumber()}
	}
	var all []uint64
	for _, part := range m.GetBatch().GetResponses() {
		require.NotNil(t, part.GetBeatAck())
		all = append(all, part.GetBeatAck().GetNumber())
	}
	return all
}

func numbers(first, last uint64) []uint64 {
	var all []uint64
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func TestWhatWaitsGoesInOneMessage(t *testing.T) {
	_, session, q := openQueue(t, featureBatch)
	session.HandleHeartbeat(1, nil)
	m, err := q.Next(t.Context())
	require.NoError(t, err)
	require.Nil(t, m.GetBatch(), "what waits alone goes alone")
	for n := range uint64(100) {
		session.HandleHeartbeat(n+2, nil)
	}
	require.Equal(t, numbers(2, 65), nextAcks(t, q))
	require.Nil(t, q.held, "a message beyond the length stays with the session, which may withdraw it")
	require.Equal(t, numbers(66, 101), nextAcks(t, q))
}

func TestAWorkerThatKnowsNoBatchesGetsNone(t *testing.T) {
	_, session, q := openQueue(t, "drift")
	for n := range uint64(10) {
		session.HandleHeartbeat(n, nil)
	}
	for n := range uint64(10) {
		m, err := q.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, m.GetBeatAck().GetNumber())
	}
}

func TestALargeMessageGoesAloneAndInItsTurn(t *testing.T) {
	_, session, q := openQueue(t, featureBatch)
	forged := make([]string, 100)
	for i := range forged {
		forged[i] = strconv.Itoa(i) + strings.Repeat("x", maxBatchBytes/len(forged))
	}
	for n, held := range [][]string{nil, nil, forged, nil, forged, forged, nil, nil} {
		session.HandleHeartbeat(uint64(n), held)
	}
	for _, want := range [][]uint64{{0, 1}, {2}, {3}, {4}, {5}, {6, 7}} {
		require.Equal(t, want, nextAcks(t, q))
	}
}

func TestABatchMeansWhatItsMessagesMean(t *testing.T) {
	s, session, q := openQueue(t, featureBatch)
	var all []*graphdv1.ConnectRequest
	for n := range uint64(maxBatchLength) {
		all = append(all, beat(n))
	}
	require.NoError(t, s.handleMessage(t.Context(), session, "", batch(all...)))
	require.Equal(t, numbers(0, maxBatchLength-1), nextAcks(t, q))
}

func TestABadBatchIsRefused(t *testing.T) {
	hello := &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{WorkerId: "w1"}}}
	nack := &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Nack{Nack: &graphdv1.Nack{}}}
	alive := &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Update{Update: &graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Alive{}}}}
	for name, c := range map[string]struct {
		requests []*graphdv1.ConnectRequest
		field    string
		handled  int
	}{
		"empty":               {nil, "batch.requests", 0},
		"too many":            {make([]*graphdv1.ConnectRequest, maxBatchLength+1), "batch.requests", 0},
		"a batch inside":      {[]*graphdv1.ConnectRequest{beat(0), batch(beat(1))}, "batch.requests[1].batch", 1},
		"an empty one":        {[]*graphdv1.ConnectRequest{batch()}, "batch.requests[0].batch", 0},
		"hello inside":        {[]*graphdv1.ConnectRequest{beat(0), hello}, "batch.requests[1].hello", 1},
		"nothing inside":      {[]*graphdv1.ConnectRequest{{}}, "batch.requests[0].kind", 0},
		"a bad one inside":    {[]*graphdv1.ConnectRequest{beat(0), nack, beat(1)}, "batch.requests[1].nack.lease_token", 1},
		"a bad update inside": {[]*graphdv1.ConnectRequest{alive}, "batch.requests[0].update.lease_token", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, session, _ := openQueue(t)
			err := s.handleMessage(t.Context(), session, "", batch(c.requests...))
			var refused *runtime.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, runtime.ReasonInvalidField, refused.Reason)
			require.Equal(t, c.field, refused.Violations[0].Field)
			for range c.handled {
				require.NotNil(t, session.PollMessage(), "those before it count")
			}
			require.Nil(t, session.PollMessage())
		})
	}
}
