package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// refuseMethod answers a request whose path is that of no method.
func refuseMethod(w http.ResponseWriter, r *http.Request) {
	writeError(w, newError(codes.Unimplemented, reasonNoMethod,
		fmt.Sprintf("there is no method %.200q: want /SERVICE/METHOD as in the proto, of a method that takes one request", r.URL.Path), nil))
}

// refuseVerb answers a request that is no POST.
func refuseVerb(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	writeErrorAs(w, http.StatusMethodNotAllowed, newError(codes.Unimplemented, reasonInvalidField,
		fmt.Sprintf("the request is a %.20s: want a POST", r.Method), map[string]string{"field": "method"}))
}

// refuseContentType answers a request of another type than those of the messages.
func refuseContentType(w http.ResponseWriter, r *http.Request, isStream bool) {
	var accepted []string
	for _, c := range messageCodecs() {
		accepted = append(accepted, c.contentType(isStream))
	}
	w.Header().Set("Accept-Post", strings.Join(accepted, ", "))
	writeErrorAs(w, http.StatusUnsupportedMediaType, newError(codes.Unimplemented, reasonInvalidField,
		fmt.Sprintf("the header Content-Type is %.100q: want %s", r.Header.Get("Content-Type"), strings.Join(accepted, " or ")),
		map[string]string{"field": "Content-Type"}))
}

// readRequest reads and decodes the message of a request.
func (f *Facade) readRequest(c *call) (proto.Message, error) {
	encoding := "Content-Encoding"
	if c.method.isStream {
		encoding = "Connect-Content-Encoding"
	}
	if given := c.r.Header.Get(encoding); given != "" && given != "identity" {
		return nil, newError(codes.Unimplemented, reasonInvalidField,
			fmt.Sprintf("the header %s is %.100q: want identity, the server takes no compressed requests", encoding, given), map[string]string{"field": encoding})
	}
	most := int64(f.opts.MaxMessageBytes) + headroomBytes
	if c.r.ContentLength > most {
		return nil, newTooLarge(most)
	}
	size := most
	if c.r.ContentLength >= 0 {
		size = c.r.ContentLength
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), f.opts.RequestPatience)
	defer cancel()
	if f.incoming.Acquire(ctx, size) != nil {
		return nil, newError(codes.ResourceExhausted, reasonTooManyRequests, "the server reads too many requests: try again", nil)
	}
	defer f.incoming.Release(size)
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, newTooLarge(most)
	}
	if err != nil {
		return nil, newError(codes.InvalidArgument, reasonInvalidField, "the request ended before its body: want as many bytes as its Content-Length says", nil)
	}
	if c.method.isStream {
		if body, err = openEnvelope(body); err != nil {
			return nil, err
		}
	}
	in := c.method.in.New().Interface()
	return in, c.codec.unmarshal(body, in)
}

func newTooLarge(most int64) error {
	return newError(codes.InvalidArgument, reasonTooLarge, fmt.Sprintf("the request has more than %d bytes: an operator can permit more with --max-message", most), nil)
}
