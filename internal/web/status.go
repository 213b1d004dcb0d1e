package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/protoadapt"
)

// The reasons of the errors of this package, and their domain, are those of the server.
const (
	reasonDomain          = "graphd.dev"
	reasonInvalidField    = "INVALID_FIELD"
	reasonTooManyRequests = "TOO_MANY_REQUESTS"
	reasonTooLarge        = "PAYLOAD_TOO_LARGE"
	reasonNoMethod        = "METHOD_NOT_FOUND"
)

// newError returns an error with a reason, as the server gives errors.
func newError(code codes.Code, reason, message string, metadata map[string]string) error {
	st, err := status.New(code, message).WithDetails(
		protoadapt.MessageV1Of(&errdetails.ErrorInfo{Reason: reason, Domain: reasonDomain, Metadata: metadata}))
	if err != nil {
		return status.Error(code, message)
	}
	return st.Err()
}

// toStatus returns the status of an error of this package or of gRPC. Others say nothing to
// clients.
func toStatus(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err)
	}
	return status.New(codes.Unavailable, "the server does not take the call")
}

// nameCode returns the name and the HTTP status of a code in the Connect protocol.
func nameCode(code codes.Code) (name string, httpStatus int) {
	switch code {
	case codes.Canceled:
		return "canceled", statusClientClosed
	case codes.InvalidArgument:
		return "invalid_argument", http.StatusBadRequest
	case codes.DeadlineExceeded:
		return "deadline_exceeded", http.StatusGatewayTimeout
	case codes.NotFound:
		return "not_found", http.StatusNotFound
	case codes.AlreadyExists:
		return "already_exists", http.StatusConflict
	case codes.PermissionDenied:
		return "permission_denied", http.StatusForbidden
	case codes.ResourceExhausted:
		return "resource_exhausted", http.StatusTooManyRequests
	case codes.FailedPrecondition:
		return "failed_precondition", http.StatusBadRequest
	case codes.Aborted:
		return "aborted", http.StatusConflict
	case codes.OutOfRange:
		return "out_of_range", http.StatusBadRequest
	case codes.Unimplemented:
		return "unimplemented", http.StatusNotImplemented
	case codes.Internal:
		return "internal", http.StatusInternalServerError
	case codes.Unavailable:
		return "unavailable", http.StatusServiceUnavailable
	case codes.DataLoss:
		return "data_loss", http.StatusInternalServerError
	case codes.Unauthenticated:
		return "unauthenticated", http.StatusUnauthorized
	case codes.OK, codes.Unknown:
	}
	return "unknown", http.StatusInternalServerError
}

// statusClientClosed is what proxies say of a client that has left.
const statusClientClosed = 499

// connectError is an error in the Connect protocol.
type connectError struct {
	Code    string          `json:"code"`
	Message string          `json:"message,omitempty"`
	Details []connectDetail `json:"details,omitempty"`
}

// encodeJSON returns the error in JSON.
func (e connectError) encodeJSON() []byte {
	text, err := json.Marshal(e)
	if err != nil { // the JSON of a detail is that of protojson
		return []byte(`{"code":"internal"}`)
	}
	return text
}

// connectDetail is a detail of an error: its type, its bytes, and for readers its JSON.
type connectDetail struct {
	Type  string          `json:"type"`
	Value string          `json:"value"`
	Debug json.RawMessage `json:"debug,omitempty"`
}

// newConnectError returns what the Connect protocol makes of a status, and its HTTP status.
func newConnectError(st *status.Status) (connectError, int) {
	name, httpStatus := nameCode(st.Code())
	out := connectError{Code: name, Message: st.Message()}
	for _, given := range st.Proto().GetDetails() {
		d := connectDetail{
			Type: given.GetTypeUrl()[strings.LastIndexByte(given.GetTypeUrl(), '/')+1:], Value: base64.RawStdEncoding.EncodeToString(given.GetValue()),
		}
		if m, err := given.UnmarshalNew(); err == nil {
			if text, err := protojson.Marshal(m); err == nil {
				d.Debug = text
			}
		}
		out.Details = append(out.Details, d)
	}
	return out, httpStatus
}
