package reason

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Details travel in trailers, which proxies cut at 8 KB.
const (
	maxStatusBytes         = 6 << 10
	maxViolations          = 20
	maxStatusMessageLength = 1 << 10
	MaxMetadataLength      = 512
	maxDescriptionLength   = 300
)

// retryDelay is the pause that a client is asked to make when the server lacks a
// resource.
const retryDelay = time.Second

// Mapper turns errors into statuses. Causes go to the log, never to the
// client.
type Mapper struct {
	codes   map[string]codes.Code
	metrics RefusalMetrics // nil = not counted
}

// CallEnd describes the end of a call for the log. The zero value is a call that
// succeeded.
type CallEnd struct {
	Level  zapcore.Level
	Fields []zap.Field
}

// RefusalMetrics count refusals by reason. They get only reasons of Table.
type RefusalMetrics interface {
	// CountRefusedCall counts a call that ended with an error.
	CountRefusedCall(reason string)
	// SetStoreRefusal records whether the store takes no changes for this reason.
	SetStoreRefusal(reason string, refuses bool)
	// CountExceededQuota counts a call that a quota refused: the name of the limit, and
	// whether it is that of a tenant or of a caller.
	CountExceededQuota(limit, of string)
}

// NewMapper makes a Mapper of the table; counts = nil counts nothing.
func NewMapper(counts RefusalMetrics) *Mapper {
	m := &Mapper{codes: make(map[string]codes.Code), metrics: counts}
	for _, row := range Table() {
		m.codes[row.Reason] = row.Code
	}
	return m
}

// ToStatus converts an error, and returns the log's description of it. subject
// supplies threadId and runId where the error does not name them.
func (m *Mapper) ToStatus(err error, subject map[string]string) (CallEnd, error) {
	if err == nil {
		return CallEnd{}, nil
	}
	if _, ok := status.FromError(err); ok && !wrapsRuntimeError(err) {
		return CallEnd{Level: callLogLevel(status.Code(err), "")}, err
	}
	e := ToClientError(err)
	code, known := codes.Internal, false
	if e != nil {
		code, known = m.codes[e.Reason]
	}
	var end CallEnd
	if !known || e.Reason == runtime.ReasonInternal {
		e, end.Fields = newInternalError(err)
		code = codes.Internal
	} else if e.Cause != nil {
		end.Fields = []zap.Field{zap.NamedError("cause", e.Cause)}
	}
	end.Level, end.Fields = callLogLevel(code, e.Reason), append(end.Fields, zap.String("reason", e.Reason))
	if m.metrics != nil {
		m.metrics.CountRefusedCall(e.Reason)
		m.countExceededQuota(err, e)
	}
	return end, BuildStatus(code, e, subject)
}

// countExceededQuota counts a refusal by a quota: one of this layer, or one of the engine,
// whose parameters name the limit.
func (m *Mapper) countExceededQuota(err error, e *runtime.Error) {
	if exceeded, ok := errors.AsType[*quota.ExceededError](err); ok {
		m.metrics.CountExceededQuota(exceeded.Limit.String(), exceeded.OwnerKind())
	} else if e.Reason == runtime.ReasonQuotaExceeded {
		m.metrics.CountExceededQuota(e.Meta["limit"], e.Meta["of"])
	}
}

// isForOperator reports whether calls fail for a reason until an operator acts:
// gives the server more resources, or checks the store or the workers.
func isForOperator(reason string) bool {
	switch reason {
	case runtime.ReasonStoreUnavailable, runtime.ReasonStoreBusy, runtime.ReasonStoreFull, runtime.ReasonStoreReplaced,
		runtime.ReasonOutcomeUnknown, runtime.ReasonChangeTooLarge,
		runtime.ReasonTooManyRuns, runtime.ReasonTooManySubscribers, runtime.ReasonTooManyRequests, runtime.ReasonTooManyGraphs,
		runtime.ReasonNoWorkerAvailable, runtime.ReasonWorkerSilent, runtime.ReasonProtocolMismatch,
		string(identity.KeysUnavailable):
		return true
	}
	return false
}

// callLogLevel returns the level at which the end of a call is logged: error when
// graphd or its data is broken, warn when an operator has to act, and info when the
// caller has.
func callLogLevel(code codes.Code, reason string) zapcore.Level {
	switch {
	case code == codes.Internal || code == codes.Unknown || code == codes.DataLoss:
		return zapcore.ErrorLevel
	case isForOperator(reason):
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// wrapsRuntimeError reports whether an error with a status wraps a refusal, so that
// the status does not hide the refusal.
func wrapsRuntimeError(err error) bool {
	_, ok := errors.AsType[*runtime.Error](err)
	return ok
}

// newInternalError returns an error that has only an id for the client, and the
// cause for the log.
func newInternalError(err error) (*runtime.Error, []zap.Field) {
	id := rand.Text()
	fields := []zap.Field{zap.String("error_id", id), zap.NamedError("cause", err)}
	if p, ok := errors.AsType[*contain.PanicError](err); ok {
		fields = append(fields, p.Fields()...)
	}
	return runtime.Errorf(runtime.ReasonInternal, "internal error %s", id).With("errorId", id), fields
}

// LogInternalError logs a cause that no client learns, and returns the error that has its id, for
// a part of a call that goes on.
func LogInternalError(log *zap.Logger, err error, subject ...zap.Field) *runtime.Error {
	shown, fields := newInternalError(err)
	log.Error("part of a call failed", append(subject, fields...)...)
	return shown
}

// BuildStatus makes the status of an error, with as many of its details as fit into
// trailers. subject has ids that the error does not name.
func BuildStatus(code codes.Code, e *runtime.Error, subject map[string]string) error {
	meta := make(map[string]string, len(e.Meta)+len(subject)+1)
	maps.Copy(meta, subject)
	for k, v := range e.Meta {
		meta[k] = ClipText(v, MaxMetadataLength)
	}
	if n := len(e.Violations); n > 0 {
		meta["violations"] = strconv.Itoa(n)
	}
	info := &errdetails.ErrorInfo{Reason: e.Reason, Domain: Domain, Metadata: meta}
	st := status.New(code, ClipText(e.Message, maxStatusMessageLength))
	for shown := min(len(e.Violations), maxViolations); ; shown-- {
		full, err := st.WithDetails(statusDetails(info, code, e, e.Violations[:shown])...)
		if err != nil {
			return st.Err()
		}
		if shown == 0 || proto.Size(full.Proto()) <= maxStatusBytes {
			return full.Err()
		}
	}
}

// statusDetails returns the ErrorInfo, and either the violations of fields or when to try
// again, with the quota that refuses the call.
func statusDetails(info *errdetails.ErrorInfo, code codes.Code, e *runtime.Error, bad []runtime.Violation) []protoadapt.MessageV1 {
	list := []protoadapt.MessageV1{protoadapt.MessageV1Of(info)}
	switch {
	case len(bad) > 0:
		request := &errdetails.BadRequest{}
		for _, v := range bad {
			request.FieldViolations = append(request.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: ClipText(v.Field, MaxMetadataLength), Description: ClipText(ViolationText(v), maxDescriptionLength),
			})
		}
		list = append(list, protoadapt.MessageV1Of(request))
	case code == codes.ResourceExhausted, code == codes.Unavailable:
		list = append(list, protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(cmp.Or(e.RetryAfter, retryDelay))}))
		if e.Quota != "" {
			list = append(list, protoadapt.MessageV1Of(&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
				Subject: ClipText(e.Quota, MaxMetadataLength), Description: ClipText(e.Message, maxDescriptionLength),
			}}}))
		}
	}
	return list
}

// ViolationText describes a violation, with its line if known.
func ViolationText(v runtime.Violation) string {
	if v.Line > 0 {
		return fmt.Sprintf("line %d: %s", v.Line, v.Description)
	}
	return v.Description
}

// ClipText shortens text to at most n bytes of valid UTF-8: gRPC refuses to send a
// status with anything else.
func ClipText(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	cut := n - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
