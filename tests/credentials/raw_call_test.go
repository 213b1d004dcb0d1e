package credentials_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// patience is for a server that does not answer at all.
const patience = time.Minute

// rawCall is a call with headers or a body that clients of gRPC do not send.
type rawCall struct {
	method  string
	headers []string // values of authorization
	body    []byte
}

// emptyBody is the body of a call with an empty request.
var emptyBody = make([]byte, 5)

// callRaw makes a call over a connection of its own. The error has the status that the
// server sends, or the code Unavailable when it ends the call or the connection without one.
func (s *testServer) callRaw(t testing.TB, f *forger, shown *tls.Certificate, call rawCall) error {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Address(), f.clientConfig(shown))
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	sent := make(chan struct{})
	go func() { // the server may end the call before it has read all
		defer close(sent)
		if _, err := conn.Write([]byte(http2.ClientPreface)); err == nil && framer.WriteSettings() == nil {
			writeCall(framer, call.encodeHeaders(), call.body)
		}
	}()
	err = readStatus(framer)
	_ = conn.Close()
	<-sent
	return err
}

func (c *rawCall) encodeHeaders() []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "https"},
		{":path", c.method},
		{":authority", "test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer takes all
	}
	for _, value := range c.headers {
		_ = encoder.WriteField(hpack.HeaderField{Name: "authorization", Value: value})
	}
	return block.Bytes()
}

// writeCall writes the headers and the body of a call, as far as the server lets it.
func writeCall(framer *http2.Framer, block, body []byte) {
	const frameSize = 16 << 10
	first := block[:min(len(block), frameSize)]
	block = block[len(first):]
	if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndHeaders: len(block) == 0}) != nil {
		return
	}
	for len(block) > 0 {
		next := block[:min(len(block), frameSize)]
		block = block[len(next):]
		if framer.WriteContinuation(1, len(block) == 0, next) != nil {
			return
		}
	}
	_ = framer.WriteData(1, true, body)
}

// readStatus reads up to the end of the call.
func readStatus(framer *http2.Framer) error {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			return status.Error(codes.Unavailable, frame.ErrCode.String())
		case *http2.MetaHeadersFrame:
			if isEnd, err := parseStatus(frame); isEnd {
				return err
			}
		}
	}
}

// parseStatus returns the status in trailers, false when these are other headers.
func parseStatus(frame *http2.MetaHeadersFrame) (isEnd bool, err error) {
	var code int
	for _, field := range frame.Fields {
		switch field.Name {
		case "grpc-status":
			code, err = strconv.Atoi(field.Value)
			isEnd = err == nil
		case "grpc-status-details-bin":
			text, err := base64.RawStdEncoding.DecodeString(field.Value)
			var details spb.Status
			if err == nil && proto.Unmarshal(text, &details) == nil {
				return true, status.FromProto(&details).Err()
			}
		}
	}
	return isEnd, status.Error(codes.Code(code), "a status without details") // nil for OK
}
