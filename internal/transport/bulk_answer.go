package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
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
	value   *graphdv1.AnswerInterruptsRequest // for the audit

	waiting sync.Mutex // held by the answer that waits for the rate of the caller
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
	b := &bulkAnswer{interruptService: s, request: wire.BulkAnswerFromProto(v, req), by: interceptor.ActorOf(ctx), value: req}
	f := listing.ParseInterruptFilter(v, "filter", req.GetFilter(), "", b.by, checkpoint.InterruptOpen)
	if len(f.Query.States) != 1 || f.Query.States[0] != checkpoint.InterruptOpen {
		v.AddViolation("filter", "must not name a state: open questions are answered")
	}
	f.RequireIndex(v)
	if err := v.Err(); err != nil {
		return err
	}
	life, release := s.streams.NewLifetime(ctx)
	defer release()
	targets := b.request.Targets
	if len(targets) == 0 {
		var err error
		if targets, err = b.selectTargets(life, &f); err != nil {
			return drainingOr(life, err)
		}
	}
	if n := b.request.ExpectedCount; n > 0 && n != len(targets) {
		return runtime.Errorf(runtime.ReasonCountChanged, "%d questions are selected, and %d were expected; list them again", len(targets), n).
			With("count", strconv.Itoa(len(targets))).With("expectedCount", strconv.Itoa(n))
	}
	sender := s.streams.NewSender(ss)
	err := sender.FinishSending(ctx, b.answerAll(ctx, life, targets, func(o *graphdv1.AnswerOutcome) error {
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
func (b *bulkAnswer) selectTargets(ctx context.Context, f *listing.InterruptFilter) ([]wire.AnswerTarget, error) {
	begun, err := b.streams.AcquireOpeningSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer begun()
	memory := interceptor.CallMemoryOf(ctx)
	filter := b.access.NewItemFilter(ctx, graphdv1.InterruptService_AnswerInterrupts_FullMethodName)
	var targets []wire.AnswerTarget
	q, now := f.Query, b.engine.CurrentTime()
	for q.Limit = listing.MaxPageSize; ; {
		page, err := b.engine.Interrupts(ctx, memory, q)
		if err != nil {
			return nil, err
		}
		more := checkpoint.IsPart(page, q.Limit, (*checkpoint.Interrupt).Size)
		for i := range page {
			in := &page[i]
			q.After = q.PositionOf(in)
			if !in.Created.Before(b.request.AskedBefore) {
				if !q.ByDue {
					more = false // the list is by age
					break
				}
				continue
			}
			if f.Matches(in, now) && in.Reason != checkpoint.ReasonBreakpoint && filter.Shows(in.Graph, in.Thread) {
				targets = append(targets, wire.AnswerTarget{Question: runtime.Question{Thread: in.Thread, Interrupt: in.ID}, Seen: in.DigestShown()})
			}
		}
		memory.Release()
		switch {
		case len(targets) > wire.MaxAnswerTargets:
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "filter: selects more than %d questions; narrow it", wire.MaxAnswerTargets).
				WithViolation("filter", "must select at most %d questions", wire.MaxAnswerTargets)
		case !more:
			return targets, nil
		}
	}
}

// drainingOr returns the error of a draining server if that has ended the life of a stream.
func drainingOr(life context.Context, err error) error {
	if errors.Is(context.Cause(life), stream.ErrDraining) {
		return stream.DrainingError()
	}
	return err
}

// answerAll answers the questions, some at a time, and hands each outcome to send. After
// the first error that ends the call, and when life ends, it begins with no further
// question; answers under way are waited for.
func (b *bulkAnswer) answerAll(ctx, life context.Context, targets []wire.AnswerTarget, send func(*graphdv1.AnswerOutcome) error) error {
	life, stop := context.WithCancelCause(life)
	defer stop(nil)
	next, outcomes := make(chan wire.AnswerTarget), make(chan *graphdv1.AnswerOutcome)
	var workers sync.WaitGroup
	for range min(parallelAnswers, len(targets)) {
		workers.Go(contain.Func(func() {
			for target := range next {
				outcome, err := b.answerOne(ctx, life, &target)
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
			case <-life.Done():
				return
			}
		}
	}, func(caught *contain.PanicError) { stop(caught) })()
	failed := false
	for outcome := range outcomes { // to the end, so that no worker waits
		if failed {
			continue
		}
		if err := send(outcome); err != nil {
			failed = true
			stop(err)
		}
	}
	return drainingOr(life, context.Cause(life))
}

// answerOne answers a question. The error ends the call.
func (b *bulkAnswer) answerOne(ctx, life context.Context, target *wire.AnswerTarget) (*graphdv1.AnswerOutcome, error) {
	if err := b.waitForTurn(life); err != nil {
		return nil, err
	}
	outcome := &graphdv1.AnswerOutcome{ThreadId: tenant.ClientName(target.Thread), InterruptId: target.Interrupt}
	err := b.storeAnswer(ctx, target)
	b.recordOutcome(ctx, target, err)
	if err == nil {
		outcome.Stored = true
		return outcome, nil
	}
	refused := reason.ToClientError(err)
	switch {
	case ctx.Err() != nil, refused != nil && reason.EndsBatch(refused.Reason):
		return nil, err
	case refused == nil || refused.Reason == runtime.ReasonInternal:
		internal := reason.LogInternalError(b.log, err, zap.String("thread", target.Thread))
		outcome.Reason, outcome.Message = internal.Reason, internal.Message
	default:
		outcome.Reason, outcome.Message = refused.Reason, refused.Message
	}
	return outcome, nil
}

// waitForTurn waits for the rate of the caller, one answer at a time.
func (b *bulkAnswer) waitForTurn(life context.Context) error {
	b.waiting.Lock()
	defer b.waiting.Unlock()
	return interceptor.WaitForAnswer(life)
}

// storeAnswer answers a question as GraphService.ResumeRun does, for a caller who could call
// that.
func (b *bulkAnswer) storeAnswer(ctx context.Context, target *wire.AnswerTarget) error {
	only, err := b.access.CheckThread(ctx, graphdv1.GraphService_ResumeRun_FullMethodName, tenant.ClientName(target.Thread))
	if err != nil {
		return err
	}
	answer := b.request.Response
	answer.Interrupt, answer.Seen = target.Interrupt, target.Seen
	_, err = b.engine.Resume(ctx, runtime.ResumeRequest{
		Thread: target.Thread, Responses: []runtime.Response{answer}, By: b.by, OnlyGraph: only,
		OnQuestion: func(interrupt string, secret []string) { interceptor.RecordQuestion(ctx, interrupt, secret) },
		RequestID:  b.requestID(target), Digest: wire.DigestForCaller(b.request.Digest, b.by.Name),
	})
	return err
}

// recordOutcome records an answer in the audit, as a call of its own.
func (b *bulkAnswer) recordOutcome(ctx context.Context, target *wire.AnswerTarget, err error) {
	answer := &graphdv1.InterruptResponse{InterruptId: target.Interrupt, Note: b.value.GetNote(), Seen: target.Seen}
	switch outcome := b.value.GetOutcome().(type) {
	case *graphdv1.AnswerInterruptsRequest_Value:
		answer.Outcome = &graphdv1.InterruptResponse_Value{Value: outcome.Value}
	case *graphdv1.AnswerInterruptsRequest_Dismissal:
		answer.Outcome = &graphdv1.InterruptResponse_Dismissal{Dismissal: outcome.Dismissal}
	}
	if refused := reason.ToClientError(err); refused != nil {
		err = reason.BuildStatus(reason.CodeOf(refused.Reason), refused, nil)
	}
	interceptor.RecordPart(ctx, graphdv1.GraphService_ResumeRun_FullMethodName, &graphdv1.ResumeRunRequest{
		RequestId: b.requestID(target),
		Resume:    &graphdv1.ResumeSpec{ThreadId: tenant.ClientName(target.Thread), Responses: []*graphdv1.InterruptResponse{answer}},
	}, err)
}

// requestID returns the id of the answer to one question, "" without an id of the call.
func (b *bulkAnswer) requestID(target *wire.AnswerTarget) string {
	if b.request.RequestID == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "bulk\x00%s\x00%s", b.request.RequestID, target.Interrupt))
	return hex.EncodeToString(sum[:16])
}
