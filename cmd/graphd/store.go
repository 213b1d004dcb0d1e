package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// store is what a backend offers.
type store interface {
	checkpoint.Store
	checkpoint.Graphs
	checkpoint.Secrets
	io.Closer
}

// A storeName is what --store says, taken apart.
type storeName struct {
	text string
	kind string // memory, sqlite or redis
	path string // of the file, for sqlite

	bounds storeOptions // of changes, and of what is remembered
}

// pollOthers is how often a server looks for what other servers on the same
// store have done.
const pollOthers = 50 * time.Millisecond

// poll is how often a follower looks at the store, 0 = never: nobody else
// writes to it.
func (n storeName) poll() time.Duration {
	if n.kind == kindRedis {
		return pollOthers
	}
	return 0
}

// checkpoints is how many checkpoints are kept of a thread when nobody says, 0 =
// all: disk is cheap, Redis is memory.
func (n storeName) checkpoints() uint64 {
	if n.kind == kindRedis {
		return runtime.ScarceCheckpoints
	}
	return 0
}

const (
	kindMemory = "memory"
	kindRedis  = "redis"
)

// parseStore refuses what names no store.
func parseStore(text string) (storeName, error) {
	kind, path, hasPath := strings.Cut(text, ":")
	name := storeName{text: text, kind: kind, path: path}
	switch {
	case kind == kindMemory && !hasPath, kind == "sqlite" && path != "":
		return name, nil
	case (kind == "redis" || kind == "rediss") && hasPath:
		name.kind = kindRedis
		return name, nil
	}
	return name, cli.Usagef("--store %q is no store", redis.Masked(text)).
		WithHint("want memory, sqlite:PATH like sqlite:graphd.db, or redis://HOST:PORT/DB")
}

// open opens the store.
func (n storeName) open(ctx context.Context, log *zap.Logger, sealed seal.Options) (store, error) {
	switch n.kind {
	case kindMemory:
		return memory.New(memory.Options{Tombstones: n.bounds.GraphTombstones}), nil
	case kindRedis:
		return n.openRedis(ctx, log, sealed)
	}
	s, err := sqlite.Open(ctx, n.bounds.sqlite(n.path, sealed))
	if err != nil {
		return nil, notOpened(n.text, err)
	}
	warn(log, s.Warnings())
	return s, nil
}

func (n storeName) openRedis(ctx context.Context, log *zap.Logger, sealed seal.Options) (store, error) {
	logging.Disable() // what the client would print comes back as errors
	s, err := redis.Open(ctx, redis.Options{
		URL: n.text, Seal: sealed, Tombstones: n.bounds.GraphTombstones, Logger: log.Named("redis"),
	})
	if err != nil {
		return nil, refused(err)
	}
	warn(log, s.Warnings())
	return s, nil
}

// refused says why a store on Redis can't be used.
func refused(err error) error {
	if err == nil {
		return nil
	}
	problem, ok := errors.AsType[*redis.SetupError](err)
	switch {
	case ok && problem.Problem == redis.ProblemURL:
		return cli.Usagef("--store %s: %s", problem.Server, problem.Is).WithHint("%s", problem.Want)
	case ok:
		return &cli.HintError{
			Err: fmt.Errorf("the store %s can't be used: %s", problem.Server, problem.Is), Hint: problem.Want,
		}
	}
	what := "the store can't be opened: "
	if errors.Is(err, checkpoint.ErrUnavailable) {
		what = runtime.ReasonStoreUnavailable + ": " + what
	}
	return &cli.HintError{
		Err:  fmt.Errorf("%s%w", what, err),
		Hint: "start Redis there, or name another server with --store redis://HOST:PORT/DB",
	}
}

// away says what was tried when a store that was open did not answer a server
// which starts. Other errors stay as they are.
func (n storeName) away(tried string, err error) error {
	refused, ok := errors.AsType[*runtime.Error](err)
	switch {
	case ok && (refused.Reason == runtime.ReasonStoreUnavailable || refused.Reason == runtime.ReasonOutcomeUnknown):
		err = cmp.Or(refused.Cause, err)
	case ok, !errors.Is(err, checkpoint.ErrUnavailable):
		return err
	}
	return &cli.HintError{
		Err: fmt.Errorf("%s: the store %s did not answer while the server %s: %w",
			runtime.ReasonStoreUnavailable, redis.Masked(n.text), tried, err),
		Hint: "see that the store runs and can be reached from here, then start the server again: nothing is lost, " +
			"and what was begun is done again",
	}
}

func warn(log *zap.Logger, warnings []string) {
	for _, w := range warnings {
		log.Warn("store: " + w)
	}
}

func notOpened(name string, err error) error {
	hint := "choose another file with --store sqlite:PATH"
	if other, ok := errors.AsType[*sqlite.SchemaError](err); ok && other.Older() {
		hint = "stop the server, copy the file as a backup and run graphd store migrate --store " + name +
			", or start a server with --migrate"
	}
	if _, used := errors.AsType[*sqlite.InUseError](err); used {
		hint = "one process owns a file: stop the other one, choose another file with --store sqlite:PATH, " +
			"or let servers share a store with --store redis://HOST:PORT/DB"
	}
	if _, stray := errors.AsType[*sqlite.StrayLogError](err); stray {
		hint = "a file and its log belong together: name the file as it was named before, or move both"
	}
	if wrong, misfit := errors.AsType[*seal.KeyError](err); misfit {
		return &cli.HintError{Err: fmt.Errorf("the store %s can't be used: %s", name, wrong.What()), Hint: wrong.Want}
	}
	return &cli.HintError{Err: fmt.Errorf("the store %s can't be opened: %w", name, err), Hint: hint}
}
