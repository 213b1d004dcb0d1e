package workers

import (
	"context"
	"runtime"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/worker"
)

// featureBatch means that a side takes several messages in one.
const featureBatch = "batch"

// Bounds of a batch. A message of more bytes goes alone. The bytes are those that a stream
// takes at once anyway (the flow-control window of HTTP/2), so a batch holds no more back
// from a worker that does not read.
const (
	maxBatchLength = 64
	maxBatchBytes  = 64 << 10
)

// handleBatch handles the messages of a batch, in order, as if each had come alone. Those
// before one that is refused count.
func (s *Service) handleBatch(ctx context.Context, session *worker.Session, b *graphdv1.ConnectRequestBatch) error {
	requests := b.GetRequests()
	v := s.newValidator(ctx)
	v.RequireSet("batch.requests", len(requests) > 0)
	if n := len(requests); n > maxBatchLength {
		v.AddViolation("batch.requests", "has %d entries; at most %d are allowed", n, maxBatchLength)
	}
	if err := v.Err(); err != nil {
		return err
	}
	for i, m := range requests {
		at := "batch.requests[" + strconv.Itoa(i) + "]."
		if m.GetBatch() != nil {
			v.AddViolation(at+"batch", "may not be in a batch")
			return v.Err()
		}
		if err := s.handleMessage(ctx, session, at, m); err != nil {
			return err
		}
	}
	return nil
}

// responseQueue makes the messages of a stream from those of its session.
type responseQueue struct {
	service   *Service
	session   *worker.Session
	maxLength int // messages in one, 1 without batches
	maxBytes  int
	held      *graphdv1.ConnectResponse // is the next one: there was no room for it
	isCrowded bool                      // the last messages came together
}

// newResponseQueue makes the queue of a session. features are those of its worker.
func (s *Service) newResponseQueue(session *worker.Session, features []string) *responseQueue {
	q := &responseQueue{service: s, session: session, maxLength: 1, maxBytes: min(maxBatchBytes, s.maxMessageBytes/2)}
	if slices.Contains(features, featureBatch) {
		q.maxLength = maxBatchLength
	}
	return q
}

// Next waits for the next message of the stream. What waits behind it goes with it. It
// waits for no more. The error is that of Session.NextMessage.
func (q *responseQueue) Next(ctx context.Context) (*graphdv1.ConnectResponse, error) {
	first, err := q.waitForFirst(ctx)
	if err != nil || q.maxLength == 1 {
		return first, err
	}
	if q.isCrowded {
		runtime.Gosched() // those that are about to add a message do so now; no time passes where none is
	}
	second := q.pollResponse()
	q.isCrowded = second != nil
	if second == nil {
		return first, nil
	}
	all, size := []*graphdv1.ConnectResponse{first}, proto.Size(first)
	for m := second; m != nil; {
		if size += proto.Size(m); size > q.maxBytes {
			q.held = m
			break
		}
		if all = append(all, m); len(all) == q.maxLength {
			break
		}
		m = q.pollResponse()
	}
	if len(all) == 1 {
		return first, nil
	}
	return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Batch{Batch: &graphdv1.ConnectResponseBatch{Responses: all}}}, nil
}

func (q *responseQueue) waitForFirst(ctx context.Context) (*graphdv1.ConnectResponse, error) {
	if m := q.held; m != nil {
		q.held = nil
		return m, nil
	}
	for {
		m, err := q.session.NextMessage(ctx)
		if err != nil {
			return nil, err
		}
		if out := q.service.messageToProto(m); out != nil {
			return out, nil
		}
	}
}

// pollResponse returns the next message that waits, nil without one.
func (q *responseQueue) pollResponse() *graphdv1.ConnectResponse {
	for {
		m := q.session.PollMessage()
		if m == nil {
			return nil
		}
		if out := q.service.messageToProto(m); out != nil {
			return out
		}
	}
}
