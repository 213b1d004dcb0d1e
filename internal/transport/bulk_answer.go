package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// parallelAnswers is how many questions of a bulk answer are answered at the same time.
const parallelAnswers = 8

// bulkAnswer is one answer to many questions.
type bulkAnswer struct {
	*interruptService

	request wire.BulkAnswer
	by      runtime.Actor
	filter  *permission.ItemFilter // of questions that the caller may answer
	visible *permission.ItemFilter // of questions that the caller may see
}

// AnswerInterrupts answers many questions with one value, and sends what came of each. A
// refusal of a question is its outcome. An error of the store or of the server ends the call:
// the client repeats it. Errors: those of Validator.Err, COUNT_CHANGED, SERVER_DRAINING,
// SLOW_CONSUMER, and those of the store.
func (s *interruptService) AnswerInterrupts(
	req *graphdv1.AnswerInterruptsRequest, ss grpc.ServerStreamingServer[graphdv1.AnswerOutcome],
) error {
	if err := s.streams.AddStream(ss.Context()); err != nil {
		return err
	}
	defer s.streams.RemoveStream()
	ctx := ss.Context()
	v := s.newValidator(ctx)
	b := &bulkAnswer{interruptService: s, request: wire.BulkAnswerFromProto(v, req), by: interceptor.ActorOf(ctx)}
	query := listing.InterruptQueryFromFilter(v, req.GetFilter(), "", checkpoint.InterruptOpen)
	if err := v.Err(); err != nil {
		return err
	}
	b.filter = s.access.NewItemFilter(ctx, graphdv1.InterruptService_AnswerInterrupts_FullMethodName)
	b.visible = s.access.NewItemFilter(ctx, graphdv1.InterruptService_GetInterrupt_FullMethodName)
	targets := b.request.Targets
	if len(targets) == 0 {
		var err error
		if targets, err = b.selectTargets(ctx, query); err != nil {
			return err
		}
	}
	if n := b.request.ExpectedCount; n > 0 && n != len(targets) {
		return runtime.Errorf(runtime.ReasonCountChanged, "%d questions are selected, and %d were expected; list them again", len(targets), n).
			With("count", strconv.Itoa(len(targets))).With("expectedCount", strconv.Itoa(n))
	}
	life, release := s.streams.NewLifetime(ctx)
	defer release()
	sender := s.streams.NewSender(ss)
	err := sender.FinishSending(ctx, b.answerAll(life, targets, func(o *graphdv1.AnswerOutcome) error {
		message, err := flow.EncodeMessage(o)
		if err != nil {
			return err
		}
		return sender.SendMessage(ctx, message)
	}))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, stream.ErrStalled):
		return runtime.Errorf(reason.SlowConsumer, "the client does not read")
	}
	return err
}

// selectTargets names the open questions that a filter selects now, with what they show.
func (b *bulkAnswer) selectTargets(ctx context.Context, q checkpoint.InterruptQuery) ([]wire.AnswerTarget, error) {
	memory := interceptor.CallMemoryOf(ctx)
	var targets []wire.AnswerTarget
	for q.Limit = listing.MaxPageSize; ; {
		page, err := b.engine.Interrupts(ctx, memory, q)
		if err != nil {
			return nil, err
		}
		for i := range page {
			in := &page[i]
			q.After = interruptPosition(in)
			if in.Reason == checkpoint.ReasonBreakpoint || !b.filter.Shows(in.Graph, in.Thread) {
				continue
			}
			targets = append(targets, wire.AnswerTarget{Question: runtime.Question{Thread: in.Thread, Interrupt: in.ID}, Seen: in.DigestShown()})
		}
		if len(targets) > wire.MaxAnswerTargets {
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "filter: selects more than %d questions; narrow it", wire.MaxAnswerTargets).
				WithViolation("filter", "must select at most %d questions", wire.MaxAnswerTargets)
		}
		more := checkpoint.IsPart(page, q.Limit, (*checkpoint.Interrupt).Size)
		memory.Release()
		if !more {
			return targets, nil
		}
	}
}

// answerAll answers the questions, some at a time, and hands each outcome to send. It
// returns the first error that ends the call; answers under way are waited for.
func (b *bulkAnswer) answerAll(ctx context.Context, targets []wire.AnswerTarget, send func(*graphdv1.AnswerOutcome) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next, outcomes := make(chan wire.AnswerTarget), make(chan *graphdv1.AnswerOutcome)
	var workers sync.WaitGroup
	for range min(parallelAnswers, len(targets)) {
		workers.Go(contain.Func(func() {
			for target := range next {
				outcome, err := b.answerOne(ctx, &target)
				if err != nil {
					stop(err)
					return
				}
				outcomes <- outcome
			}
		}, func(caught *contain.PanicError) { stop(caught) }))
	}
	go contain.Func(func() {
		defer close(outcomes)
		defer workers.Wait()
		defer close(next)
		for _, target := range targets {
			select {
			case next <- target:
			case <-ctx.Done():
				return
			}
		}
	}, func(caught *contain.PanicError) { stop(caught) })()
	for outcome := range outcomes { // to the end, so that no worker waits
		if ctx.Err() != nil {
			continue
		}
		if err := send(outcome); err != nil {
			stop(err)
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, stream.ErrDraining):
		return stream.DrainingError()
	default:
		return cause
	}
}

// answerOne answers a question. The error ends the call.
func (b *bulkAnswer) answerOne(ctx context.Context, target *wire.AnswerTarget) (*graphdv1.AnswerOutcome, error) {
	outcome := &graphdv1.AnswerOutcome{ThreadId: tenant.ClientName(target.Thread), InterruptId: target.Interrupt}
	err := b.resume(ctx, target)
	if err == nil {
		outcome.Stored = true
		return outcome, nil
	}
	refused := reason.ToClientError(err)
	if refused == nil || ctx.Err() != nil || !reason.IsRefusal(refused.Reason) {
		return nil, err
	}
	outcome.Reason, outcome.Message = refused.Reason, refused.Message
	return outcome, nil
}

func (b *bulkAnswer) resume(ctx context.Context, target *wire.AnswerTarget) error {
	q, err := b.engine.Interrupt(ctx, target.Thread, target.Interrupt)
	switch {
	case err != nil:
		return err
	case !b.visible.Shows(q.Graph, q.Thread):
		return runtime.Errorf(runtime.ReasonInterruptNotFound, "the thread has no question %q", target.Interrupt).With("interruptId", target.Interrupt)
	case !b.filter.Shows(q.Graph, q.Thread):
		return runtime.Errorf(runtime.ReasonAccessDenied, "access denied: the caller may not answer questions of graph %q", tenant.ClientName(q.Graph)).
			With("interruptId", target.Interrupt)
	}
	answer := b.request.Response
	answer.Interrupt, answer.Seen = target.Interrupt, target.Seen
	_, err = b.engine.Resume(ctx, runtime.ResumeRequest{
		Thread: target.Thread, Responses: []runtime.Response{answer}, By: b.by, OnlyGraph: &q.Graph,
		RequestID: b.requestID(target), Digest: wire.DigestForCaller(b.request.Digest, b.by.Name),
	})
	return err
}

// requestID returns the id of the answer to one question, "" without an id of the call.
func (b *bulkAnswer) requestID(target *wire.AnswerTarget) string {
	if b.request.RequestID == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "bulk\x00%s\x00%s", b.request.RequestID, target.Interrupt))
	return hex.EncodeToString(sum[:16])
}
