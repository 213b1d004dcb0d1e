package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// overheard keeps all that a client gets from a server, or a server from its caller: the
// messages, headers and trailers, and statuses with their details.
type overheard struct {
	mu      sync.Mutex
	texts   map[string][]string // by method
	reasons map[string]bool
}

type overheardMethod struct{}

func newOverheard() *overheard {
	return &overheard{texts: map[string][]string{}, reasons: map[string]bool{}}
}

// TagRPC notes the method of a call.
func (*overheard) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, overheardMethod{}, info.FullMethodName)
}

// HandleRPC keeps what arrives.
func (o *overheard) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.InHeader:
		o.add(ctx, "header", fmt.Sprint(map[string][]string(e.Header))) // metadata.MD hides values
	case *stats.InTrailer:
		o.add(ctx, "trailer", fmt.Sprint(map[string][]string(e.Trailer)))
	case *stats.InPayload:
		if m, ok := e.Payload.(proto.Message); ok {
			o.add(ctx, "message", prototext.Format(m))
		}
	case *stats.End:
		if e.Error != nil {
			o.add(ctx, "status", prototext.Format(status.Convert(e.Error).Proto()))
			o.mu.Lock()
			o.reasons[reasonOfRefusal(e.Error)] = true
			o.mu.Unlock()
		}
	}
}

func (o *overheard) add(ctx context.Context, what, text string) {
	method, _ := ctx.Value(overheardMethod{}).(string)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts[method] = append(o.texts[method], what+" "+text)
}

// TagConn does nothing.
func (*overheard) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (*overheard) HandleConn(context.Context, stats.ConnStats) {}

// requireNothingOf checks that no text has any of some words.
func (o *overheard) requireNothingOf(t *testing.T, words ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for method, texts := range o.texts {
		for _, text := range texts {
			for _, word := range words {
				require.NotContains(t, strings.ToLower(text), word, method)
				require.NotContains(t, text, base64.RawURLEncoding.EncodeToString([]byte(word)), method)
			}
		}
	}
}
