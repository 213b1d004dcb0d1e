// Package limit is the reference of the measurements: a gRPC server that makes as
// many conditional commits of as many bytes as graphd, and sends the same messages,
// but has no graphs. It shows the limit that store, wire and client set.
package limit

import (
	"context"
	"errors"
	"fmt"
)

// Service is the name of the gRPC service.
const Service = "/bench.Limit/"

// Script is the work of one call: so many commits of so many bytes each, and
// messages, sent in equal parts after each commit.
type Script struct {
	Commits  int      `json:"commits"`
	Bytes    int      `json:"bytes"`
	Messages [][]byte `json:"messages"`
	// Gate holds back all messages but the first until the call Go.
	Gate bool `json:"gate,omitempty"`
	// Encode encodes messages anew for every call.
	Encode bool `json:"encode,omitempty"`
}

// Config configures a server.
type Config struct {
	// Store is redis://HOST:PORT/DB, sqlite:PATH or memory, which commits nothing.
	Store string            `json:"store"`
	Calls map[string]Script `json:"calls"`
}

// ErrConflict says that a commit found another revision than it expected.
var ErrConflict = errors.New("limit: conflict")

// store makes commits: bytes are added to a thread that must be at a revision,
// which then grows by one. Revisions begin at 0.
type store interface {
	commit(ctx context.Context, thread string, revision int, body []byte) error
	close() error
}

func open(ctx context.Context, url string) (store, error) {
	switch scheme, rest := split(url); scheme {
	case "redis":
		return openRedis(ctx, url)
	case "sqlite":
		return openSQLite(ctx, rest)
	case "memory":
		return nothing{}, nil
	default:
		return nil, fmt.Errorf("limit: no store %q", url)
	}
}

func split(url string) (scheme, rest string) {
	for i := range url {
		if url[i] == ':' {
			return url[:i], url[i+1:]
		}
	}
	return url, ""
}

// nothing is the store that costs nothing.
type nothing struct{}

func (nothing) commit(context.Context, string, int, []byte) error { return nil }
func (nothing) close() error                                      { return nil }
