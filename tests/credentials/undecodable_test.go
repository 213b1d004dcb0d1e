package credentials_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
)

// frame returns a body with one message, as gRPC frames it.
func frame(flag byte, message string) []byte {
	return append([]byte{flag, 0, 0, 0, byte(len(message))}, message...)
}

// undecodableBodies are bodies whose message is of no type.
var undecodableBodies = map[string][]byte{
	"no field":          frame(0, "\x00"),
	"an endless number": frame(0, strings.Repeat("\xff", 20)),
	"a field cut off":   frame(0, "\x0a\x7fshort"),
	"an open group":     frame(0, "\x0b"),
}

// unreadableBodies are bodies of which gRPC makes no message.
var unreadableBodies = map[string][]byte{
	"an unknown flag":            frame(2, ""),
	"compressed by no algorithm": frame(1, "\x1f\x8b"),
	"a message cut off":          {0, 0, 0, 0, 9, 1},
	"a frame cut off":            {0, 0},
}

// describeRefusal returns the code and the reason of an error.
func describeRefusal(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return status.Code(err).String() + " " + info.GetReason()
		}
	}
	return status.Code(err).String()
}

// streamMethods are the methods whose bodies are read when the caller is known.
var streamMethods = map[string]bool{
	graphdv1.GraphService_Stream_FullMethodName: true, graphdv1.GraphService_Resume_FullMethodName: true,
	graphdv1.GraphService_Watch_FullMethodName: true, graphdv1.InterruptService_WatchInterrupts_FullMethodName: true,
	graphdv1.WorkerService_Connect_FullMethodName: true,
}

// A client whose request can't be decoded is refused for its credentials, and with
// good ones because the request is wrong. It is told nothing of the inside.
func TestUndecodableRequestsAreRefused(t *testing.T) {
	f := newForger(t, 1)
	c := &client{testServer: startServer(t, f), forger: f, gateway: f.issue(nil), alice: f.issueAlice()}
	streams := 0
	for _, row := range access.Methods() {
		if row.Scope == access.ScopeEndpoint || strings.Contains(row.Method, "Reflection") {
			continue
		}
		stranger := "Unauthenticated CERTIFICATE_UNMAPPED"
		if row.Scope == access.ScopeOpen {
			stranger = "InvalidArgument INVALID_FIELD"
		}
		for name, body := range undecodableBodies {
			err := c.callRaw(t, f, c.gateway, rawCall{method: row.Method, body: body})
			require.Equal(t, stranger, describeRefusal(err), "%s %s: %v", row.Method, name, err)
			c.requireOutside(t, err)
			err = c.callRaw(t, f, c.alice, rawCall{method: row.Method, body: body})
			require.Equal(t, "InvalidArgument INVALID_FIELD", describeRefusal(err), "%s %s: %v", row.Method, name, err)
			c.requireOutside(t, err)
		}
		for name, body := range unreadableBodies {
			// gRPC answers itself, before it calls anything of graphd.
			err := c.callRaw(t, f, c.alice, rawCall{method: row.Method, body: body})
			require.NotEqual(t, codes.OK, status.Code(err), "%s %s", row.Method, name)
			if streamMethods[row.Method] {
				streams++
				err := c.callRaw(t, f, c.gateway, rawCall{method: row.Method, body: body})
				require.Equal(t, stranger, describeRefusal(err), "%s %s: %v", row.Method, name, err)
			}
		}
	}
	require.Equal(t, len(streamMethods)*len(unreadableBodies), streams)
	require.Zero(t, c.logs.FilterLevelExact(zap.ErrorLevel).Len(), "%v", c.logs.FilterLevelExact(zap.ErrorLevel).All())
}

// requireOutside checks that an error tells nothing of the inside of the server.
func (c *client) requireOutside(t *testing.T, err error) {
	t.Helper()
	text := fmt.Sprint(err, status.Convert(err).Details())
	for _, inside := range []string{"proto:", "grpc:", "unmarshal", "EOF", "errorId"} {
		require.NotContains(t, text, inside)
	}
}
