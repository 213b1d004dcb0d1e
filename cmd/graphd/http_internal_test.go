package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/connectclient"
)

// TestHTTPGivesWhatGRPCGives makes a call of every method over gRPC and over HTTP, as callers who
// may and who may not, and compares the answers and the errors with their details.
func TestHTTPGivesWhatGRPCGives(t *testing.T) {
	s := startAccessServer(t)
	_, err := graphdv1.NewThreadServiceClient(s.conn).CreateThread(s.as(t.Context(), "root"), &graphdv1.CreateThreadRequest{ThreadId: "root-thread"})
	require.NoError(t, err, "so that no call of the test creates it")
	for name, options := range map[string][]connect.ClientOption{
		"json":     {connect.WithProtoJSON()},
		"protobuf": nil,
	} {
		conn := &connectclient.Conn{URL: s.http, Client: http.DefaultClient, Options: options}
		for text := range requestTexts() {
			if strings.HasPrefix(text, "grpc.") {
				continue
			}
			method := "/graphd.v1." + text
			if findMethod(t, method).IsStreamingClient() {
				continue
			}
			t.Run(name+method, func(t *testing.T) {
				for _, graph := range []string{"open", "hidden"} {
					request := newRequest(t, method, graph)
					for _, caller := range []string{"root", "viewer", "unbound", ""} {
						ctx := t.Context()
						if caller != "" {
							ctx = s.as(ctx, caller)
						}
						want, wantErr := firstAnswer(ctx, t, s.conn, method, request)
						got, gotErr := firstAnswer(ctx, t, conn, method, request)
						require.Equal(t, describeStatus(wantErr), describeStatus(gotErr), "%s as %q", graph, caller)
						require.Equal(t, maskChances(want), maskChances(got), "%s as %q", graph, caller)
					}
				}
			})
		}
	}
}

// TestRecordsNameTheDoor makes the same calls over gRPC and over HTTP, and reads their records.
func TestRecordsNameTheDoor(t *testing.T) {
	s := startAccessServer(t)
	overHTTP := &connectclient.Conn{URL: s.http, Client: http.DefaultClient, Options: []connect.ClientOption{connect.WithProtoJSON()}}
	for _, caller := range []string{"root", "unbound"} { // the calls of unbound are refused
		for seen, conn := range []grpc.ClientConnInterface{s.conn, overHTTP} {
			_, err := graphdv1.NewThreadServiceClient(conn).DeleteThread(s.as(t.Context(), caller), &graphdv1.DeleteThreadRequest{ThreadId: "none"})
			require.Error(t, err)
			r := lastRecord(t, s.audit, caller, "ThreadService/DeleteThread", seen)
			require.Equal(t, []string{"grpc", "http"}[seen], r.Door, caller)
		}
	}
}

// firstAnswer makes a call and returns its first answer.
func firstAnswer(ctx context.Context, t *testing.T, conn grpc.ClientConnInterface, method string, request proto.Message) (proto.Message, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	m := findMethod(t, method)
	answer := dynamicpb.NewMessage(m.Output())
	if !m.IsStreamingServer() {
		return answer, conn.Invoke(ctx, method, request, answer)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	require.NoError(t, err)
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return answer, err
	}
	require.NoError(t, stream.CloseSend())
	return answer, stream.RecvMsg(answer)
}

// describeStatus returns all of a status.
func describeStatus(err error) string {
	if err == nil {
		return ""
	}
	return maskChances(status.Convert(err).Proto())
}

// chances are the parts of an answer that differ with each call.
var chances = regexp.MustCompile(`(seconds|nanos|sequence|mark):\s*\d+|[0-9a-f]{8}(-[0-9a-f]{4,12}){4}|next_page_token:"[^"]*"|token:"[^"]*"`)

func maskChances(m proto.Message) string {
	text := strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " ")
	return chances.ReplaceAllString(text, "$1")
}
