package web

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// An envelope is a message of a stream: flags, the length in four bytes, and the message.
const (
	envelopeHeadBytes = 5
	flagCompressed    = 1
	flagEndStream     = 2
)

// openEnvelope returns the one message of a request.
func openEnvelope(body []byte) ([]byte, error) {
	bad := func(is string) error {
		return newError(codes.InvalidArgument, reasonInvalidField, is+": want one envelope, five bytes and a message", nil)
	}
	switch {
	case len(body) < envelopeHeadBytes:
		return nil, bad(fmt.Sprintf("the request has %d bytes", len(body)))
	case body[0]&flagCompressed != 0:
		return nil, bad("the message is compressed, and the request names no compression that the server has")
	case body[0] != 0:
		return nil, bad(fmt.Sprintf("the envelope has the flags %#x", body[0]))
	case uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-envelopeHeadBytes):
		return nil, bad(fmt.Sprintf("the envelope says %d bytes, and %d follow", binary.BigEndian.Uint32(body[1:]), len(body)-envelopeHeadBytes))
	}
	return body[envelopeHeadBytes:], nil
}

// appendMessage appends a message in its envelope.
func appendMessage(to []byte, c *messageCodec, m proto.Message) ([]byte, error) {
	begin := len(to)
	to = append(to, make([]byte, envelopeHeadBytes)...)
	to, err := c.appendTo(to, m)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(to[begin+1:], uint32(len(to)-begin-envelopeHeadBytes))
	return to, nil
}

// appendEnd appends the end of a stream, nil = without an error.
func appendEnd(to []byte, st *status.Status) []byte {
	text := []byte("{}")
	if st != nil {
		e, _ := newConnectError(st)
		text = append(append([]byte(`{"error":`), e.encodeJSON()...), '}')
	}
	to = append(to, flagEndStream, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(to[len(to)-4:], uint32(len(text)))
	return append(to, text...)
}
