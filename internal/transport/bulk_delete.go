package transport

import (
	"context"
	"strconv"
	"sync"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// maxDeletedThreads is the number of threads that one call deletes, and parallelDeletes how
// many at the same time.
const (
	maxDeletedThreads = 100
	parallelDeletes   = 8
)

// DeleteThreads deletes several threads. A refusal of one is in the answer; an error of the
// store or of the server ends the call. Errors: those of Validator.Err, and those of the
// store.
func (s *threadService) DeleteThreads(ctx context.Context, req *graphdv1.DeleteThreadsRequest) (*graphdv1.DeleteThreadsResponse, error) {
	v := s.newValidator(ctx)
	threads := checkDeletedThreads(v, req.GetThreadIds())
	if err := v.Err(); err != nil {
		return nil, err
	}
	life, stop := context.WithCancelCause(ctx) // of the call; deletions under way are finished
	defer stop(nil)
	failures := make([]*graphdv1.DeleteThreadsResponse_Failure, len(threads))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(parallelDeletes, len(threads)) {
		workers.Go(contain.Func(func() {
			for i := range next {
				var err error
				if failures[i], err = s.deleteOne(ctx, threads[i], req.GetForce()); err != nil {
					stop(err)
				}
			}
		}, func(caught *contain.PanicError) { stop(caught) }))
	}
	for i := range threads {
		select {
		case next <- i:
		case <-life.Done():
		}
	}
	close(next)
	workers.Wait()
	if err := context.Cause(life); err != nil {
		return nil, err
	}
	resp := &graphdv1.DeleteThreadsResponse{}
	for _, failure := range failures {
		if failure != nil {
			resp.Failures = append(resp.Failures, failure)
		}
	}
	return resp, nil
}

func checkDeletedThreads(v *wire.Validator, ids []string) []string {
	if len(ids) == 0 || len(ids) > maxDeletedThreads {
		v.AddViolation("thread_ids", "has %d threads; want 1 to %d", len(ids), maxDeletedThreads)
		return nil
	}
	threads, first := make([]string, len(ids)), make(map[string]int, len(ids))
	for i, id := range ids {
		at := "thread_ids[" + strconv.Itoa(i) + "]"
		threads[i] = v.CheckThread(at, id)
		if j, twice := first[id]; twice {
			v.AddViolation(at, "is that of thread_ids[%d]; name each thread once", j)
		}
		first[id] = i
	}
	return threads
}

// deleteOne deletes a thread, for a caller who could call DeleteThread. The error ends the
// call.
func (s *threadService) deleteOne(ctx context.Context, thread string, force bool) (*graphdv1.DeleteThreadsResponse_Failure, error) {
	name := tenant.ClientName(thread)
	_, err := s.access.CheckThread(ctx, graphdv1.ThreadService_DeleteThread_FullMethodName, name)
	if err == nil {
		err = s.engine.DeleteThread(ctx, thread, 0, force)
	}
	refused := reason.ToClientError(err)
	recorded := err
	if refused != nil {
		recorded = reason.BuildStatus(reason.CodeOf(refused.Reason), refused, nil)
	}
	interceptor.RecordPart(ctx, graphdv1.ThreadService_DeleteThread_FullMethodName, &graphdv1.DeleteThreadRequest{ThreadId: name, Force: force}, recorded)
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // it is deleted
	case refused == nil || refused.Reason == runtime.ReasonInternal || reason.EndsBatch(refused.Reason) || ctx.Err() != nil:
		return nil, err
	}
	return &graphdv1.DeleteThreadsResponse_Failure{ThreadId: name, Reason: refused.Reason, Message: refused.Message}, nil
}
