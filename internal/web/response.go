package web

import (
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// beginResponse writes the head of a stream's response, once.
func (c *call) beginResponse(head metadata.MD) {
	if c.w.Header().Get("Content-Type") != "" {
		return
	}
	copyHeaders(c.w.Header(), "", head)
	c.w.Header().Set("Content-Type", c.codec.streamType)
	c.w.Header().Set("X-Accel-Buffering", "no") // a proxy passes each message on at once
	c.w.WriteHeader(http.StatusOK)
}

// writePart writes a part of a response at once. It reports whether the browser has taken it.
func (c *call) writePart(part []byte, within time.Duration) bool {
	out := http.NewResponseController(c.w)
	if err := out.SetWriteDeadline(time.Now().Add(within)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return false
	}
	if _, err := c.w.Write(part); err != nil {
		return false
	}
	if err := out.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return false
	}
	c.endDeadline()
	return true
}

// endDeadline lets the next part of a response come at any time. HTTP/2 would end the response.
func (c *call) endDeadline() { _ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{}) }

func newUnreadError() error {
	return newError(codes.ResourceExhausted, reasonTooManyRequests, "browsers leave too many large answers unread: try again", nil)
}

// writeError answers a unary request with an error.
func writeError(w http.ResponseWriter, err error) {
	_, httpStatus := newConnectError(toStatus(err))
	writeErrorAs(w, httpStatus, err)
}

// writeErrorAs answers with an error that HTTP has a status of its own for.
func writeErrorAs(w http.ResponseWriter, httpStatus int, err error) {
	shown, _ := newConnectError(toStatus(err))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff") // the error may repeat a part of the request
	w.WriteHeader(httpStatus)
	_, _ = w.Write(shown.encodeJSON()) //nolint:gosec // it is JSON; on an error the browser has left
}
