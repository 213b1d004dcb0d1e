package web

import (
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

// readRequest reads and decodes the message of a request, whose memory is held then.
func (f *Facade) readRequest(c *call, held *reserved) (proto.Message, error) {
	encoding := "Content-Encoding"
	if c.method.isStream {
		encoding = "Connect-Content-Encoding"
	}
	if given := c.r.Header.Get(encoding); given != "" && given != "identity" {
		return nil, newError(codes.Unimplemented, reasonInvalidField,
			fmt.Sprintf("the header %s is %.100q: want identity, the server takes no compressed requests", encoding, given), map[string]string{"field": encoding})
	}
	body, err := readBody(c.r, f.mostBytes(), held)
	if err != nil {
		return nil, err
	}
	if c.method.isStream {
		if body, err = openEnvelope(body); err != nil {
			return nil, err
		}
	}
	decoded := c.codec.estimate(body, c.method.in.Descriptor())
	if decoded > f.incoming.largest() {
		return nil, newError(codes.InvalidArgument, reasonTooLarge, "the request has too many values for its size: want fewer in one request", nil)
	}
	if !held.grow(decoded) {
		return nil, newBusyError()
	}
	in := c.method.in.New().Interface()
	return in, c.codec.unmarshal(body, in)
}

// firstBytes is the room for the begin of a request.
const firstBytes = 512

// readBody reads the body of a request. What a browser has announced and not sent holds nothing.
func readBody(r *http.Request, most int64, held *reserved) (body []byte, err error) {
	expected := r.ContentLength
	if expected < 0 {
		expected = most
	}
	if expected > most {
		return nil, newTooLarge(most)
	}
	for {
		if len(body) == cap(body) {
			size := min(max(2*int64(cap(body)), firstBytes), expected+1) // one more, to find the end
			if size <= int64(len(body)) {
				return nil, newTooLarge(most)
			}
			if !held.grow(size - int64(cap(body))) {
				return nil, newBusyError()
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, newError(codes.InvalidArgument, reasonInvalidField, "the request ended before its body: want as many bytes as its Content-Length says", nil)
		}
	}
}

// mostBytes is what a request may have.
func (f *Facade) mostBytes() int64 { return int64(f.opts.MaxMessageBytes) + headroomBytes }

func newBusyError() error {
	return newError(codes.ResourceExhausted, reasonTooManyRequests, "the server holds too many requests: try again", nil)
}

func newTooLarge(most int64) error {
	return newError(codes.InvalidArgument, reasonTooLarge, fmt.Sprintf("the request has more than %d bytes: an operator can permit more with --max-message", most), nil)
}
