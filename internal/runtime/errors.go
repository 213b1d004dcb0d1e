package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// Reasons of refused calls, in the words clients branch on. Transport maps each of them
// to one gRPC code. A test fails for a reason without a code.
const (
	ReasonInvalidField           = "INVALID_FIELD"
	ReasonInvalidPayloadJSON     = "INVALID_PAYLOAD_JSON"
	ReasonPayloadTooLarge        = "PAYLOAD_TOO_LARGE"
	ReasonSchemaLimitExceeded    = "SCHEMA_LIMIT_EXCEEDED"
	ReasonInputSchemaMismatch    = "INPUT_SCHEMA_MISMATCH"
	ReasonResponseSchemaMismatch = "RESPONSE_SCHEMA_MISMATCH"
	ReasonInvalidPageToken       = "INVALID_PAGE_TOKEN"
	ReasonInvalidCursor          = "INVALID_CURSOR"
	ReasonInvalidGraph           = "INVALID_GRAPH"

	ReasonThreadNotFound     = "THREAD_NOT_FOUND"
	ReasonRunNotFound        = "RUN_NOT_FOUND"
	ReasonGraphNotFound      = "GRAPH_NOT_FOUND"
	ReasonNodeNotFound       = "NODE_NOT_FOUND"
	ReasonCheckpointNotFound = "CHECKPOINT_NOT_FOUND"
	ReasonInterruptNotFound  = "INTERRUPT_NOT_FOUND"
	ReasonAssistantNotFound  = "ASSISTANT_NOT_FOUND"
	ReasonItemNotFound       = "ITEM_NOT_FOUND"
	ReasonCronNotFound       = "CRON_NOT_FOUND"

	ReasonThreadExists      = "THREAD_EXISTS"
	ReasonRunExists         = "RUN_EXISTS"
	ReasonGraphExists       = "GRAPH_EXISTS"
	ReasonAssistantExists   = "ASSISTANT_EXISTS"
	ReasonCronExists        = "CRON_EXISTS"
	ReasonRequestIDConflict = "REQUEST_ID_CONFLICT"

	ReasonThreadInterrupted        = "THREAD_INTERRUPTED"
	ReasonThreadNotInterrupted     = "THREAD_NOT_INTERRUPTED"
	ReasonInterruptAlreadyResolved = "INTERRUPT_ALREADY_RESOLVED"
	ReasonInterruptExpired         = "INTERRUPT_EXPIRED"
	ReasonInterruptClaimed         = "INTERRUPT_CLAIMED"
	ReasonResponseInEffect         = "RESPONSE_IN_EFFECT"
	ReasonTrailFull                = "TRAIL_FULL"
	ReasonLinksNotConfigured       = "LINKS_NOT_CONFIGURED"
	ReasonResponsesIncomplete      = "RESPONSES_INCOMPLETE"
	ReasonResponseAmbiguous        = "RESPONSE_AMBIGUOUS"
	ReasonAmbiguousNode            = "AMBIGUOUS_NODE"
	ReasonRunNotCancellable        = "RUN_NOT_CANCELLABLE"
	ReasonGraphVersionUnavailable  = "GRAPH_VERSION_UNAVAILABLE"
	ReasonGraphInUse               = "GRAPH_IN_USE"
	ReasonTaskLeaseLost            = "TASK_LEASE_LOST"
	ReasonProtocolMismatch         = "PROTOCOL_MISMATCH"
	ReasonNothingToDo              = "NOTHING_TO_DO"

	ReasonThreadBusy         = "THREAD_BUSY"
	ReasonEtagMismatch       = "ETAG_MISMATCH"
	ReasonCheckpointConflict = "CHECKPOINT_CONFLICT"
	ReasonQuestionChanged    = "QUESTION_CHANGED"
	ReasonCountChanged       = "COUNT_CHANGED"
	ReasonWorkerReplaced     = "WORKER_REPLACED"
	ReasonWorkerIDTaken      = "WORKER_ID_TAKEN"

	ReasonCursorTrimmed = "CURSOR_TRIMMED"
	ReasonCursorAhead   = "CURSOR_AHEAD"
	ReasonCursorLost    = "CURSOR_LOST"

	ReasonThreadQueueFull    = "THREAD_QUEUE_FULL"
	ReasonRateLimited        = "RATE_LIMITED"
	ReasonQuotaExceeded      = "QUOTA_EXCEEDED"
	ReasonTooManyRuns        = "TOO_MANY_RUNS"
	ReasonTooManyRequests    = "TOO_MANY_REQUESTS"
	ReasonTooManySubscribers = "TOO_MANY_SUBSCRIBERS"
	ReasonTooManyGraphs      = "TOO_MANY_GRAPHS"
	ReasonTooManyAssistants  = "TOO_MANY_ASSISTANTS"
	ReasonTooManyItems       = "TOO_MANY_ITEMS"
	ReasonTooManyCrons       = "TOO_MANY_CRONS"
	ReasonItemSearchTooBroad = "ITEM_SEARCH_TOO_BROAD"

	ReasonStoreUnavailable  = "STORE_UNAVAILABLE"
	ReasonOutcomeUnknown    = "OUTCOME_UNKNOWN"
	ReasonStoreReplaced     = "STORE_REPLACED"
	ReasonStoreFull         = "STORE_FULL"
	ReasonStoreBusy         = "STORE_BUSY"
	ReasonChangeTooLarge    = "CHANGE_TOO_LARGE"
	ReasonServerDraining    = "SERVER_DRAINING"
	ReasonNoWorkerAvailable = "NO_WORKER_AVAILABLE"
	ReasonWorkerSilent      = "WORKER_SILENT"

	ReasonAccessDenied = "ACCESS_DENIED"

	ReasonFeatureDisabled   = "FEATURE_DISABLED"
	ReasonWaitTimeout       = "WAIT_TIMEOUT"
	ReasonCheckpointCorrupt = "CHECKPOINT_CORRUPT"
	ReasonInternal          = "INTERNAL"
)

// Reasons why a run, a task or a node failed. They are data of the run, found
// in checkpoint.Failure.Reason, never the outcome of a call.
// ReasonInterruptExpired, ReasonGraphVersionUnavailable, ReasonCheckpointConflict
// and ReasonInternal are used for runs as well.
const (
	FailedStepLimit         = "STEP_LIMIT_EXCEEDED"
	FailedNode              = "NODE_FAILED"
	FailedNodeTimeout       = "NODE_TIMEOUT"
	FailedStepTimeout       = "STEP_TIMEOUT"
	FailedRunTimeout        = "RUN_TIMEOUT"
	FailedNonDeterministic  = "NON_DETERMINISTIC_NODE"
	FailedInvalidUpdate     = "INVALID_NODE_UPDATE"
	FailedCancelledByClient = "CANCELLED_BY_CLIENT"
	FailedUnknownTarget     = "UNKNOWN_TARGET_NODE"
	FailedOutputTooLarge    = "OUTPUT_TOO_LARGE"
	FailedLimit             = "LIMIT_EXCEEDED" // details: limit, most, need; see Error.WithLimit
	FailedSibling           = "SIBLING_FAILED"
	FailedEndpointRefused   = "ENDPOINT_NOT_ALLOWED"
)

// DetailRolledBack is the detail of a failure that says that the checkpoints of its run are removed.
const DetailRolledBack = "rolledBack"

// Error is a refused call, with the data that a client needs to correct it.
// The refused call has changed nothing.
type Error struct {
	Reason  string // one of the Reason constants
	Message string // for people
	// Meta holds the parameters of the reason. Keys are camelCase, like
	// openInterruptIds, and never change.
	Meta map[string]string
	// Violations lists the problems of each field. It is nil for a reason
	// without fields.
	Violations []Violation
	// Quota names the limit of a tenant or a caller that refuses the call, and whose it
	// is; "" = none.
	Quota string
	// RetryAfter is the time after which the call may succeed; 0 = unknown.
	RetryAfter time.Duration
	// Cause is the underlying error. It is logged and never sent.
	Cause error
}

// Violation is one problem of a request or a document.
type Violation struct {
	Field       string // path in the request or the document, JSON pointer inside a payload
	Line        int    // line in the document, 0 = unknown
	Description string
}

// Error returns the reason and the message.
func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// Unwrap returns the cause, nil when there is none.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an Error of the same reason, so that
// errors.Is(err, &Error{Reason: …}) finds a reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// Errorf makes an Error. A %w in the format becomes its Cause.
func Errorf(reason, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Reason: reason, Message: err.Error()}
	if w, ok := err.(interface{ Unwrap() error }); ok {
		e.Cause = w.Unwrap()
	}
	return e
}

// With returns a copy of the error with a further parameter.
func (e *Error) With(key, value string) *Error {
	c := *e
	c.Meta = make(map[string]string, len(e.Meta)+1)
	maps.Copy(c.Meta, e.Meta)
	c.Meta[key] = value
	return &c
}

// WithIDs returns a copy with the first of some ids as a parameter: at most ten,
// because it travels in a trailer.
func (e *Error) WithIDs(key string, ids []string) *Error {
	return e.With(key, strings.Join(ids[:min(len(ids), maxErrorIDs)], ","))
}

// maxErrorIDs is the number of ids that a parameter of an error lists.
const maxErrorIDs = 10

// WithLimit returns a copy with the exceeded limit: the server option, "" =
// none, its value, and the requested amount, 0 = unknown.
func (e *Error) WithLimit(option string, most, need int64) *Error {
	c := *e
	c.Meta = LimitDetails(option, most, need)
	for key, value := range e.Meta {
		if _, ours := c.Meta[key]; !ours {
			c.Meta[key] = value
		}
	}
	return &c
}

// LimitDetails returns the parameters that describe a limit, in errors and
// failures.
func LimitDetails(option string, most, need int64) map[string]string {
	return (&graph.LimitError{Limit: option, Max: most, Needed: need}).Details()
}

// WithCause returns a copy of the error that wraps cause.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// WithViolation returns a copy of the error with a further violation.
func (e *Error) WithViolation(field, format string, args ...any) *Error {
	c := *e
	c.Violations = append(slices.Clip(c.Violations),
		Violation{Field: field, Description: fmt.Sprintf(format, args...)})
	return &c
}

// FailureFields returns the log fields of the failure of a run.
func FailureFields(f *checkpoint.Failure) []zap.Field {
	return []zap.Field{zap.String("reason", f.Reason), zap.String("node", f.Node), zap.String("message", f.Message)}
}

// CauseField returns a log field with the cause, which clients don't see.
func CauseField(err error) zap.Field {
	if e, ok := errors.AsType[*Error](err); ok && e.Cause != nil {
		return zap.NamedError("cause", e.Cause)
	}
	return zap.Skip()
}
