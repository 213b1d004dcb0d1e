package transport

import (
	"cmp"
	"context"
	"strconv"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// GetState returns the state at a checkpoint.
func (s *threadService) GetState(
	ctx context.Context, req *graphdv1.GetStateRequest,
) (*graphdv1.StateSnapshot, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	id, namespace := checkpointIn(b, "at", req.GetAt())
	q := runtime.StateRequest{
		Thread: b.id("thread_id", req.GetThreadId()), Namespace: namespace, Checkpoint: id,
		Keys: b.names("keys", req.GetKeys()), Subgraphs: req.GetSubgraphs(), Bytes: s.maxBytes,
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	state, err := s.engine.State(ctx, q)
	if err != nil {
		return nil, err
	}
	out := snapshotOut(state)
	return out, s.fits(out, "ask for fewer keys")
}

// UpdateState writes to a state.
func (s *threadService) UpdateState(
	ctx context.Context, req *graphdv1.UpdateStateRequest,
) (*graphdv1.StateSnapshot, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	update := updateStateIn(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	var err error
	if update.Digest, err = digestOf(req); err != nil {
		return nil, err
	}
	update.By = s.by(ctx)
	state, err := s.engine.UpdateState(ctx, update)
	if err != nil {
		return nil, err
	}
	return s.updated(state), nil
}

// BulkUpdateState writes several supersteps to a state.
func (s *threadService) BulkUpdateState(
	ctx context.Context, req *graphdv1.BulkUpdateStateRequest,
) (*graphdv1.StateSnapshot, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	update := bulkUpdateStateIn(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	var err error
	if update.Digest, err = digestOf(req); err != nil {
		return nil, err
	}
	update.By = s.by(ctx)
	state, err := s.engine.BulkUpdateState(ctx, update)
	if err != nil {
		return nil, err
	}
	return s.updated(state), nil
}

// updated is the answer to an update that is made: values that are too large
// can be read by keys.
func (s *threadService) updated(state runtime.Snapshot) *graphdv1.StateSnapshot {
	out := snapshotOut(state)
	if proto.Size(out) > s.maxBytes {
		out.Values = nil
	}
	return out
}

// ListCheckpoints lists the history of a namespace.
func (s *threadService) ListCheckpoints(
	ctx context.Context, req *graphdv1.ListCheckpointsRequest,
) (*graphdv1.ListCheckpointsResponse, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	size := pageSize(b, req.GetPageSize())
	q := runtime.HistoryQuery{
		Thread:    b.id("thread_id", req.GetThreadId()),
		Namespace: namespaceIn(b, "namespace", req.GetNamespace()),
		Limit:     size, Values: req.GetIncludeValues(), Bytes: s.maxBytes,
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	list := listed("checkpoints", q.Thread, q.Namespace)
	if err := s.tokens.read(req.GetPageToken(), list, &q.Before); err != nil {
		return nil, err
	}
	leave, err := s.enterReading(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	states, more, err := s.engine.States(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListCheckpointsResponse{}
	cut := newCut(s.maxBytes)
	for i := range states {
		out := snapshotOut(states[i])
		if !cut.fits(out) {
			more = true
			break
		}
		resp.Checkpoints = append(resp.Checkpoints, out)
		q.Before = states[i].Checkpoint.Seq
	}
	if more {
		resp.NextPageToken, err = s.tokens.make(list, q.Before)
	}
	return resp, cmp.Or(err, s.fits(resp, "ask without include_values, or for this state with GetState and some keys"))
}

// fits refuses an answer that is larger than any client accepts.
func (s *streams) fits(m proto.Message, instead string) error {
	if size := proto.Size(m); size > s.maxBytes {
		return runtime.Errorf(runtime.ReasonPayloadTooLarge,
			"the answer has %d bytes and the limit is %d; %s", size, s.maxBytes, instead).
			With("sizeBytes", strconv.Itoa(size)).With("limitBytes", strconv.Itoa(s.maxBytes)).
			Beyond("max-message", int64(s.maxBytes), int64(size))
	}
	return nil
}
