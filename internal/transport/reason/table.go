// Package reason holds the table of all reasons with their gRPC codes, finds the
// reason of an error, and builds the status that a client gets.
package reason

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Domain is the ErrorInfo domain of every error.
const Domain = "graphd.dev"

// Reasons that only transport uses.
const (
	// SlowConsumer ends a stream whose client does not read, not even the message
	// with this reason.
	SlowConsumer = "SLOW_CONSUMER"
	// TooManyRequests refuses a call that the server has no capacity for.
	TooManyRequests = runtime.ReasonTooManyRequests
	// Cancelled answers a caller that has gone away.
	Cancelled = "CANCELLED"
	// DeadlineExceeded answers a call whose deadline has passed.
	DeadlineExceeded = "DEADLINE_EXCEEDED"
)

// Row is one row of the error table: a reason, its gRPC code, and the metadata keys
// that a client may find with it besides threadId and runId.
type Row struct {
	Reason       string
	Code         codes.Code
	MetadataKeys []string
}

// Table returns every reason with which a call may fail. A reason keeps its code
// and its metadata keys for ever.
func Table() []Row {
	return []Row{
		{runtime.ReasonInvalidField, codes.InvalidArgument, []string{"field", "violations", "limit", "most", "need"}},
		{runtime.ReasonInvalidPayloadJSON, codes.InvalidArgument, []string{"field", "offset", "limit", "most"}},
		{
			runtime.ReasonPayloadTooLarge, codes.InvalidArgument,
			[]string{"field", "sizeBytes", "limitBytes", "limit", "most", "need", "checkpointId", "of"},
		},
		{runtime.ReasonSchemaLimitExceeded, codes.InvalidArgument, []string{"field", "limit", "most", "need"}},
		{runtime.ReasonInputSchemaMismatch, codes.InvalidArgument, []string{"graph", "violations"}},
		{runtime.ReasonResponseSchemaMismatch, codes.InvalidArgument, []string{"interruptId", "violations"}},
		{runtime.ReasonInvalidPageToken, codes.InvalidArgument, nil},
		{runtime.ReasonInvalidCursor, codes.InvalidArgument, []string{"logId"}},
		{runtime.ReasonInvalidGraph, codes.InvalidArgument, []string{"graph", "violations", "limit", "most", "need"}},

		{runtime.ReasonThreadNotFound, codes.NotFound, nil},
		{runtime.ReasonRunNotFound, codes.NotFound, nil},
		{runtime.ReasonGraphNotFound, codes.NotFound, []string{"graph"}},
		{runtime.ReasonNodeNotFound, codes.NotFound, []string{"node", "graph"}},
		{runtime.ReasonCheckpointNotFound, codes.NotFound, []string{"checkpointId"}},
		{runtime.ReasonInterruptNotFound, codes.NotFound, []string{"interruptId", "openInterruptIds"}},
		{runtime.ReasonAssistantNotFound, codes.NotFound, []string{"assistantId"}},
		{runtime.ReasonItemNotFound, codes.NotFound, []string{"key"}},
		{runtime.ReasonCronNotFound, codes.NotFound, []string{"cronId"}},

		{runtime.ReasonThreadExists, codes.AlreadyExists, nil},
		{runtime.ReasonRunExists, codes.AlreadyExists, nil},
		{runtime.ReasonGraphExists, codes.AlreadyExists, []string{"graph", "version"}},
		{runtime.ReasonAssistantExists, codes.AlreadyExists, []string{"assistantId"}},
		{runtime.ReasonCronExists, codes.AlreadyExists, []string{"cronId"}},
		{runtime.ReasonRequestIDConflict, codes.AlreadyExists, []string{"requestId"}},
		{runtime.ReasonWorkerIDTaken, codes.AlreadyExists, []string{"workerId"}},

		{runtime.ReasonThreadInterrupted, codes.FailedPrecondition, []string{"openInterruptIds", "count"}},
		{runtime.ReasonThreadNotInterrupted, codes.FailedPrecondition, []string{"threadState"}},
		{
			runtime.ReasonInterruptAlreadyResolved, codes.FailedPrecondition,
			[]string{"interruptId", "state", "responder", "resolveTime", "supersededBy", "openInterruptIds"},
		},
		{runtime.ReasonInterruptExpired, codes.FailedPrecondition, []string{"interruptId", "expireTime", "openInterruptIds"}},
		{runtime.ReasonResponseInEffect, codes.FailedPrecondition, []string{"interruptId", "effectiveTime"}},
		{runtime.ReasonInterruptClaimed, codes.FailedPrecondition, []string{"interruptId", "claimedBy", "claimExpireTime"}},
		{runtime.ReasonTrailFull, codes.FailedPrecondition, []string{"interruptId", "limitBytes"}},
		{runtime.ReasonLinksNotConfigured, codes.FailedPrecondition, nil},
		{runtime.ReasonResponsesIncomplete, codes.FailedPrecondition, []string{"missingInterruptIds"}},
		{runtime.ReasonResponseAmbiguous, codes.FailedPrecondition, []string{"openInterruptIds", "count"}},
		{runtime.ReasonAmbiguousNode, codes.FailedPrecondition, []string{"nodes"}},
		{runtime.ReasonRunNotCancellable, codes.FailedPrecondition, []string{"state"}},
		{runtime.ReasonGraphVersionUnavailable, codes.FailedPrecondition, []string{"graph", "version"}},
		{runtime.ReasonGraphInUse, codes.FailedPrecondition, []string{"graph", "version", "threads", "graphs"}},
		{runtime.ReasonTaskLeaseLost, codes.FailedPrecondition, []string{"taskId"}},
		{runtime.ReasonProtocolMismatch, codes.FailedPrecondition, []string{"supported"}},
		{runtime.ReasonNothingToDo, codes.FailedPrecondition, []string{"threadState"}},
		{runtime.ReasonStoreReplaced, codes.FailedPrecondition, nil},
		{runtime.ReasonChangeTooLarge, codes.FailedPrecondition, []string{"limit", "most", "need"}},

		{runtime.ReasonThreadBusy, codes.Aborted, []string{"activeRunId", "state"}},
		{runtime.ReasonEtagMismatch, codes.Aborted, []string{"current"}},
		{runtime.ReasonCheckpointConflict, codes.Aborted, []string{"current"}},
		{runtime.ReasonQuestionChanged, codes.Aborted, []string{"interruptId", "seen"}},
		{runtime.ReasonCountChanged, codes.Aborted, []string{"count", "expectedCount"}},
		{runtime.ReasonWorkerReplaced, codes.Aborted, []string{"workerId"}},

		{runtime.ReasonCursorTrimmed, codes.OutOfRange, []string{"oldestSequence", "headSequence"}},
		{runtime.ReasonCursorAhead, codes.OutOfRange, []string{"oldestSequence", "headSequence"}},
		{runtime.ReasonCursorLost, codes.OutOfRange, []string{"oldestSequence", "headSequence"}},

		{runtime.ReasonThreadQueueFull, codes.ResourceExhausted, []string{"limit", "option"}},
		{runtime.ReasonRateLimited, codes.ResourceExhausted, []string{"limit", "option", "of"}},
		{runtime.ReasonQuotaExceeded, codes.ResourceExhausted, []string{"limit", "most", "of"}},
		{runtime.ReasonTooManyRuns, codes.ResourceExhausted, []string{"limit", "most"}},
		{runtime.ReasonTooManySubscribers, codes.ResourceExhausted, []string{"limit", "option"}},
		{runtime.ReasonTooManyGraphs, codes.ResourceExhausted, []string{"limit", "most"}},
		{runtime.ReasonTooManyAssistants, codes.ResourceExhausted, []string{"limit", "most", "need"}},
		{runtime.ReasonTooManyItems, codes.ResourceExhausted, []string{"limit", "most", "need"}},
		{runtime.ReasonTooManyCrons, codes.ResourceExhausted, []string{"limit", "most", "need"}},
		{runtime.ReasonItemSearchTooBroad, codes.ResourceExhausted, []string{"limit", "most"}},
		{TooManyRequests, codes.ResourceExhausted, []string{"limit", "most"}},
		{SlowConsumer, codes.ResourceExhausted, []string{"resumeSequence", "limit", "most", "need"}},
		{runtime.ReasonStoreFull, codes.ResourceExhausted, nil},

		{runtime.ReasonStoreUnavailable, codes.Unavailable, nil},
		{runtime.ReasonOutcomeUnknown, codes.Unavailable, nil},
		{runtime.ReasonStoreBusy, codes.Unavailable, nil},
		{runtime.ReasonServerDraining, codes.Unavailable, nil},
		{runtime.ReasonNoWorkerAvailable, codes.Unavailable, []string{"node"}},
		{runtime.ReasonWorkerSilent, codes.Unavailable, []string{"workerId"}},

		{runtime.ReasonAccessDenied, codes.PermissionDenied, []string{"rule", "graph", "interruptId"}},
		{string(identity.TokenInvalid), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenExpired), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenNotYetValid), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenAudience), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenIssuer), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenAlgorithm), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenSignature), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenMalformed), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenTooLarge), codes.Unauthenticated, nil},
		{string(identity.TokenRevoked), codes.Unauthenticated, nil},
		{string(identity.TokenClaim), codes.Unauthenticated, []string{"field"}},
		{string(identity.TokenUnknown), codes.Unauthenticated, nil},
		{string(identity.CertificateUnmapped), codes.Unauthenticated, nil},
		{string(identity.SessionExpired), codes.Unauthenticated, nil},
		{string(identity.SessionInvalid), codes.Unauthenticated, nil},
		{string(identity.ProxyUntrusted), codes.Unauthenticated, []string{"field"}},
		{string(identity.ProxyHeaderInvalid), codes.Unauthenticated, []string{"field"}},
		{string(identity.NoCredentials), codes.Unauthenticated, nil},
		// The credentials may be right, so that clients may repeat the call.
		{string(identity.KeysUnavailable), codes.Unavailable, nil},

		{runtime.ReasonFeatureDisabled, codes.Unimplemented, []string{"feature", "field"}},
		{runtime.ReasonWaitTimeout, codes.DeadlineExceeded, []string{"runState"}},
		{DeadlineExceeded, codes.DeadlineExceeded, nil},
		{Cancelled, codes.Canceled, nil},
		{runtime.ReasonCheckpointCorrupt, codes.DataLoss, []string{"checkpointId"}},
		{runtime.ReasonInternal, codes.Internal, []string{"errorId"}},
	}
}

// storeSentinels maps the errors of stores. The runtime wraps most of them itself;
// the remaining errors get their reason here.
func storeSentinels() []struct {
	err    error
	reason string
} {
	return []struct {
		err    error
		reason string
	}{
		{checkpoint.ErrThreadNotFound, runtime.ReasonThreadNotFound},
		{checkpoint.ErrRunNotFound, runtime.ReasonRunNotFound},
		{checkpoint.ErrCheckpointNotFound, runtime.ReasonCheckpointNotFound},
		{checkpoint.ErrInterruptNotFound, runtime.ReasonInterruptNotFound},
		{checkpoint.ErrGraphExists, runtime.ReasonGraphExists},
		{checkpoint.ErrGraphNotFound, runtime.ReasonGraphVersionUnavailable},
		{checkpoint.ErrConflict, runtime.ReasonCheckpointConflict},
		{checkpoint.ErrTrimmed, runtime.ReasonCursorTrimmed},
		{checkpoint.ErrOutcomeUnknown, runtime.ReasonOutcomeUnknown},
		{checkpoint.ErrUnavailable, runtime.ReasonStoreUnavailable},
		{checkpoint.ErrCorrupt, runtime.ReasonCheckpointCorrupt},
		{context.Canceled, Cancelled},
		{context.DeadlineExceeded, DeadlineExceeded},
	}
}

// ToClientError returns the error that a client gets; nil means that err is
// internal.
func ToClientError(err error) *runtime.Error {
	if known, ok := errors.AsType[*runtime.Error](err); ok {
		return known
	}
	if e := ToPayloadError(err); e != nil {
		return e
	}
	if refused, ok := errors.AsType[*identity.Error](err); ok {
		return toIdentityError(refused)
	}
	if exceeded, ok := errors.AsType[*quota.ExceededError](err); ok {
		return toQuotaError(exceeded)
	}
	if build, ok := errors.AsType[*graph.BuildError](err); ok {
		return toGraphError(build)
	}
	if limit, ok := errors.AsType[*graph.LimitError](err); ok {
		return runtime.LimitRefusal(limit.Channel, limit).WithCause(err)
	}
	if e := runtime.StoreRefusal(err); e != nil {
		return e
	}
	for _, s := range storeSentinels() {
		if errors.Is(err, s.err) {
			return runtime.Errorf(s.reason, "%s", s.err.Error()).WithCause(err)
		}
	}
	return nil
}

// toIdentityError converts the refusal of credentials. Its text shows no part of them.
func toIdentityError(refused *identity.Error) *runtime.Error {
	e := runtime.Errorf(string(refused.Reason), "%s", refused.Error())
	if refused.Field != "" {
		e = e.With("field", refused.Field)
	}
	return e
}

// toQuotaError converts the refusal of a quota. In RATE_LIMITED the value is in limit,
// because the key is older than the rule for limits.
func toQuotaError(exceeded *quota.ExceededError) *runtime.Error {
	var e *runtime.Error
	if exceeded.Limit.IsRate() {
		e = runtime.Errorf(runtime.ReasonRateLimited, "%s", exceeded.Error()).
			With("limit", exceeded.FormatMost()).With("option", exceeded.Limit.String())
	} else {
		e = runtime.Errorf(runtime.ReasonQuotaExceeded, "%s", exceeded.Error()).
			WithLimit(exceeded.Limit.String(), exceeded.Most, 0)
	}
	e = e.With("of", exceeded.OwnerKind())
	e.Quota, e.RetryAfter = exceeded.Subject(), exceeded.RetryAfter
	return e
}

// ToPayloadError converts the errors of JSON texts, nil for any other error.
func ToPayloadError(err error) *runtime.Error {
	var (
		syntax  *payload.SyntaxError
		limit   *payload.LimitError
		kind    *payload.KindError
		operand *payload.OperandError
		message *payload.MessageError
	)
	switch {
	case errors.As(err, &syntax):
		return runtime.Errorf(runtime.ReasonInvalidPayloadJSON, "%w", err).
			With("offset", strconv.Itoa(syntax.Offset))
	case errors.As(err, &limit) && limit.Limit == "bytes":
		return runtime.Errorf(runtime.ReasonPayloadTooLarge, "%w (--max-payload)", err).
			With("sizeBytes", strconv.Itoa(limit.Got)).With("limitBytes", strconv.Itoa(limit.Max)).
			WithLimit("max-payload", int64(limit.Max), int64(limit.Got))
	case errors.As(err, &limit):
		return runtime.Errorf(runtime.ReasonInvalidPayloadJSON, "%w (--max-depth)", err).
			With("offset", strconv.Itoa(limit.Offset)).WithLimit("max-depth", int64(limit.Max), 0)
	case errors.As(err, &kind), errors.As(err, &operand), errors.As(err, &message):
		return runtime.Errorf(runtime.ReasonInvalidField, "%w", err)
	}
	return nil
}

// toGraphError lists the problems of a graph with their lines. The message has the
// first problem, for clients that show nothing else, and the metadata the first
// exceeded limit.
func toGraphError(build *graph.BuildError) *runtime.Error {
	text := fmt.Sprintf("graph %q has %d problems", build.Graph, len(build.Problems))
	switch len(build.Problems) {
	case 0:
	case 1:
		text = fmt.Sprintf("graph %q has 1 problem: %s", build.Graph, build.Problems[0])
	default:
		text += ", the first: " + build.Problems[0].String()
	}
	e := runtime.Errorf(runtime.ReasonInvalidGraph, "%s", text).With("graph", build.Graph)
	if over := slices.IndexFunc(build.Problems, func(p graph.Problem) bool { return p.Limit != nil }); over >= 0 {
		e = e.WithLimit(build.Problems[over].Limit.ExceededLimit())
	}
	for _, p := range build.Problems {
		e.Violations = append(e.Violations, runtime.Violation{
			Field: p.Path, Line: p.Line, Description: p.Message + " (" + string(p.Reason) + ")",
		})
	}
	return e
}

// EndsBatch reports whether a call that does many things ends with an error of this reason:
// it is about the server or its store, and the rest would have the same error.
func EndsBatch(reason string) bool {
	switch reason {
	case TooManyRequests, runtime.ReasonTooManyRuns, runtime.ReasonStoreFull, runtime.ReasonStoreReplaced, Cancelled, DeadlineExceeded:
		return true
	}
	return CodeOf(reason) == codes.Unavailable
}

// CodeOf returns the code of a reason, codes.Internal for one that is not in the table.
func CodeOf(reason string) codes.Code {
	for _, row := range Table() {
		if row.Reason == reason {
			return row.Code
		}
	}
	return codes.Internal
}
