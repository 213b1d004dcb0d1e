package server

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
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// Store has the methods of a backend that a server uses.
type Store interface {
	checkpoint.Store
	checkpoint.Graphs
	checkpoint.Secrets
	io.Closer
}

// A StoreConfig is the parsed value of --store.
type StoreConfig struct {
	Text string
	Kind string // memory, sqlite or redis
	path string // of the file, for sqlite

	Options  StoreOptions // bounds of changes and of tombstones
	redisTLS RedisTLSOptions
}

// sharedPollInterval is the interval at which a server reads the changes of other
// servers on the same store.
const sharedPollInterval = 50 * time.Millisecond

// pollInterval returns the interval at which a follower reads the store, 0 = never,
// because no other process writes to it.
func (sc StoreConfig) pollInterval() time.Duration {
	if sc.Kind == KindRedis {
		return sharedPollInterval
	}
	return 0
}

// defaultCheckpoints returns the number of checkpoints that are kept of a thread by
// default, 0 = all. Disk is cheap, and Redis needs memory.
func (sc StoreConfig) defaultCheckpoints() uint64 {
	if sc.Kind == KindRedis {
		return engine.MemoryStoreCheckpoints
	}
	return 0
}

// Kinds of stores that differ in more than how they are opened.
const (
	kindMemory = "memory"
	KindRedis  = "redis"
)

// ParseStore parses the value of --store. The error is an exit.UsageError.
func ParseStore(text string) (StoreConfig, error) {
	kind, path, hasPath := strings.Cut(text, ":")
	name := StoreConfig{Text: text, Kind: kind, path: path}
	switch {
	case kind == kindMemory && !hasPath, kind == "sqlite" && path != "":
		return name, nil
	case (kind == "redis" || kind == "rediss") && hasPath:
		name.Kind = KindRedis
		return name, nil
	}
	return name, exit.Usagef("--store %q is no store", setup.MaskPassword(text)).
		WithHint("want memory, sqlite:PATH like sqlite:graphd.db, or redis://HOST:PORT/DB")
}

// OpenStore opens the store. Errors: *exit.UsageError and *exit.HintError.
func (sc StoreConfig) OpenStore(ctx context.Context, log *zap.Logger, sealed seal.Options) (Store, error) {
	switch sc.Kind {
	case kindMemory:
		return memory.New(memory.Options{Tombstones: sc.Options.GraphTombstones}), nil
	case KindRedis:
		return sc.openRedis(ctx, log, sealed)
	}
	opts := sc.Options.sqliteOptions(sc.path, sealed)
	opts.Progress = logMigration(log)
	opts.Warn = func(warning string) { logWarnings(log, []string{warning}) }
	s, err := sqlite.Open(ctx, opts)
	if err != nil {
		return nil, explainSQLiteError(sc.Text, err)
	}
	logWarnings(log, s.Warnings())
	return s, nil
}

// OpenReader opens a store that is there for reading. Nothing of it is changed.
// Errors: *exit.UsageError and *exit.HintError.
func (sc StoreConfig) OpenReader(ctx context.Context, sealed seal.Options) (checkpoint.Reader, error) {
	switch sc.Kind {
	case kindMemory:
		return sc.OpenStore(ctx, zap.NewNop(), sealed)
	case KindRedis:
		logging.Disable() // the client returns errors for all that it would print
		opts, err := sc.newRedisOptions(zap.NewNop())
		if err != nil {
			return nil, err
		}
		opts.Seal = sealed
		r, err := redis.OpenReader(ctx, opts)
		if err != nil {
			return nil, sc.explainReaderError(err)
		}
		return r, nil
	}
	r, err := sqlite.OpenReader(ctx, sqlite.Options{Path: sc.path, Seal: sealed})
	if _, isEmpty := errors.AsType[*sqlite.EmptyError](err); isEmpty {
		return nil, sc.nothingStoredError()
	}
	if err != nil {
		return nil, explainSQLiteError(sc.Text, err)
	}
	return r, nil
}

// explainReaderError says why a store on Redis can't be read.
func (sc StoreConfig) explainReaderError(err error) error {
	if problem, ok := errors.AsType[*setup.Error](err); ok && problem.Problem == setup.ProblemMissing {
		return sc.nothingStoredError()
	}
	return explainRedisError(err)
}

func (sc StoreConfig) nothingStoredError() error {
	return &exit.HintError{
		Err: fmt.Errorf("nothing is stored in %s", setup.MaskPassword(sc.Text)), Hint: "name the store of the server with --store",
	}
}

func (sc StoreConfig) openRedis(ctx context.Context, log *zap.Logger, sealed seal.Options) (Store, error) {
	logging.Disable() // the client returns errors for all that it would print
	opts, err := sc.newRedisOptions(log)
	if err != nil {
		return nil, err
	}
	opts.Seal, opts.Tombstones, opts.Logger = sealed, sc.Options.GraphTombstones, log.Named("redis")
	s, err := redis.Open(ctx, opts)
	if err != nil {
		return nil, explainRedisError(err)
	}
	logWarnings(log, s.Warnings())
	return s, nil
}

// explainRedisError adds to an error why a store on Redis can't be used, and the
// remedy.
func explainRedisError(err error) error {
	if err == nil {
		return nil
	}
	problem, ok := errors.AsType[*setup.Error](err)
	switch {
	case ok && problem.Problem == setup.ProblemURL:
		return exit.Usagef("--store %s: %s", problem.Server, problem.Is).WithHint("%s", problem.Want)
	case ok:
		return &exit.HintError{
			Err: fmt.Errorf("the store %s can't be used: %s", problem.Server, problem.Is), Hint: problem.Want,
		}
	}
	what := "the store can't be opened: "
	if errors.Is(err, checkpoint.ErrUnavailable) {
		what = runtime.ReasonStoreUnavailable + ": " + what
	}
	return &exit.HintError{
		Err:  fmt.Errorf("%s%w", what, err),
		Hint: "start Redis there, or name another server with --store redis://HOST:PORT/DB",
	}
}

// explainUnavailable adds the attempts to the error of a store that was opened but
// does not answer the starting server. It returns other errors unchanged.
func (sc StoreConfig) explainUnavailable(tried string, err error) error {
	refused, ok := errors.AsType[*runtime.Error](err)
	switch {
	case ok && (refused.Reason == runtime.ReasonStoreUnavailable || refused.Reason == runtime.ReasonOutcomeUnknown):
		err = cmp.Or(refused.Cause, err)
	case ok, !errors.Is(err, checkpoint.ErrUnavailable):
		return err
	}
	return &exit.HintError{
		Err: fmt.Errorf("%s: the store %s did not answer while the server %s: %w",
			runtime.ReasonStoreUnavailable, setup.MaskPassword(sc.Text), tried, err),
		Hint: "see that the store runs and can be reached from here, then start the server again: nothing is lost, " +
			"and what was begun is done again",
	}
}

func logWarnings(log *zap.Logger, warnings []string) {
	for _, w := range warnings {
		log.Warn("store: " + w)
	}
}

func explainSQLiteError(name string, err error) error {
	hint := "choose another file with --store sqlite:PATH"
	if other, ok := errors.AsType[*sqlite.SchemaError](err); ok && other.IsOlder() {
		hint = "stop the server, copy the file as a backup and run graphd store migrate --store " + name +
			", or start a server with --migrate"
	}
	if _, short := errors.AsType[*sqlite.SpaceError](err); short {
		hint = "make room on the disk, or migrate a copy of the file on a larger one and put it in its place"
	}
	if _, used := errors.AsType[*sqlite.InUseError](err); used {
		hint = "one process owns a file: stop the other one, choose another file with --store sqlite:PATH, " +
			"or let servers share a store with --store redis://HOST:PORT/DB"
	}
	if _, stray := errors.AsType[*sqlite.StrayLogError](err); stray {
		hint = "a file and its log belong together: name the file as it was named before, or move both"
	}
	if wrong, isKeyError := errors.AsType[*seal.KeyError](err); isKeyError {
		return &exit.HintError{Err: fmt.Errorf("the store %s can't be used: %s", name, wrong.Describe()), Hint: wrong.Want}
	}
	return &exit.HintError{Err: fmt.Errorf("the store %s can't be opened: %w", name, err), Hint: hint}
}
