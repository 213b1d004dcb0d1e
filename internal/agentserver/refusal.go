package agentserver

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// apiError is a refusal as clients get it.
type apiError struct {
	status     int
	retryAfter string

	Detail string `json:"detail"`
	Reason string `json:"reason"`
	Field  string `json:"field,omitempty"`
}

// Error returns the sentence for people.
func (e *apiError) Error() string { return e.Detail }

// ofField names the field that is wrong.
func (e *apiError) ofField(name string) *apiError {
	e.Field = name
	return e
}

func newError(httpStatus int, reason, detail string) *apiError {
	return &apiError{status: httpStatus, Reason: reason, Detail: detail}
}

// invalidField refuses a field of a request. The format goes on after its name.
func invalidField(name, format string, args ...any) *apiError {
	return newError(http.StatusUnprocessableEntity, "INVALID_FIELD", fmt.Sprintf("the field %s %s", name, fmt.Sprintf(format, args...))).ofField(name)
}

// writeError answers with an error.
func (c *call) writeError(err error) {
	shown := toAPIError(err)
	if shown.retryAfter != "" {
		c.w.Header().Set("Retry-After", shown.retryAfter)
	}
	_ = c.writeJSON(shown.status, shown) // the client has left
}

// toAPIError returns what clients get of an error: of this package, or a status of gRPC. Others say
// nothing to clients.
func toAPIError(err error) *apiError {
	own, isOwn := errors.AsType[*apiError](err)
	if isOwn {
		return own
	}
	shown := newShownError(err)
	shown.showFieldNames()
	return shown
}

// newShownError is toAPIError with the names that fields have in graphd.
func newShownError(err error) *apiError {
	if own, ok := errors.AsType[*apiError](err); ok {
		return own
	}
	st, ok := status.FromError(err)
	if !ok {
		return newError(http.StatusServiceUnavailable, "UNAVAILABLE", "the server does not take the call")
	}
	shown := newError(statusOfCode(st.Code()), "", st.Message())
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			shown.Reason, shown.Field = d.GetReason(), d.GetMetadata()["field"]
		case *errdetails.BadRequest:
			if bad := d.GetFieldViolations(); shown.Field == "" && len(bad) > 0 {
				shown.Field = bad[0].GetField()
			}
		case *errdetails.RetryInfo:
			shown.retryAfter = strconv.Itoa(max(1, int(d.GetRetryDelay().AsDuration().Seconds())))
		}
	}
	if special, ok := statusesOfReasons()[shown.Reason]; ok {
		shown.status = special
	}
	return shown
}

// ruleOf returns the rule of the policy that refuses a call, "" for another error.
func ruleOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetMetadata()["rule"]
		}
	}
	return ""
}

// reasonOf returns the reason of a status of gRPC, "" for another error.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return toAPIError(err).Reason
}

// statusesOfReasons returns the reasons whose HTTP status is not that of their code.
func statusesOfReasons() map[string]int {
	return map[string]int{
		"PAYLOAD_TOO_LARGE":        http.StatusRequestEntityTooLarge,
		"ITEM_SEARCH_TOO_BROAD":    http.StatusUnprocessableEntity, // another try would find the same
		"INTERRUPT_NOT_FOUND":      http.StatusUnprocessableEntity,
		"RESPONSE_AMBIGUOUS":       http.StatusUnprocessableEntity,
		"RESPONSES_INCOMPLETE":     http.StatusUnprocessableEntity,
		"RESPONSE_SCHEMA_MISMATCH": http.StatusUnprocessableEntity,
		"NODE_NOT_FOUND":           http.StatusBadRequest,
		"AMBIGUOUS_NODE":           http.StatusBadRequest,
		"FEATURE_DISABLED":         http.StatusNotImplemented,
		"NO_WORKER_AVAILABLE":      http.StatusServiceUnavailable,
		"CURSOR_TRIMMED":           http.StatusGone,
		"CURSOR_LOST":              http.StatusGone,
	}
}

// statusClientClosed is what proxies say of a client that has left.
const statusClientClosed = 499

// statusOfCode returns the HTTP status of a code of gRPC.
func statusOfCode(code codes.Code) int {
	switch code {
	case codes.InvalidArgument, codes.OutOfRange:
		return http.StatusUnprocessableEntity
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted:
		return http.StatusConflict
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.Canceled:
		return statusClientClosed
	case codes.OK, codes.Unknown, codes.Internal, codes.DataLoss:
	}
	return http.StatusInternalServerError
}

// nameType returns what a field wants to be, for people.
func nameType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Int64, reflect.Uint32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}
