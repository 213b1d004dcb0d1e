package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli"
)

// store is what a backend offers.
type store interface {
	checkpoint.Store
	checkpoint.Graphs
	io.Closer
}

// openStore opens what --store names. kind is its kind for people.
func openStore(ctx context.Context, name string) (s store, kind string, err error) {
	kind, path, _ := strings.Cut(name, ":")
	switch kind {
	case "memory":
		if path != "" || strings.Contains(name, ":") {
			break
		}
		return memory.New(memory.Options{}), kind, nil
	case "sqlite":
		if path == "" {
			break
		}
		s, err := sqlite.Open(ctx, sqlite.Options{Path: path})
		if err != nil {
			return nil, "", notOpened(name, err)
		}
		return s, kind, nil
	case "redis", "rediss":
		return nil, "", cli.Usagef("--store %s: the Redis store is not built in yet", masked(name)).
			WithHint("use --store sqlite:PATH")
	}
	return nil, "", cli.Usagef("--store %q is no store", masked(name)).
		WithHint("want memory, or sqlite:PATH like sqlite:graphd.db")
}

func notOpened(name string, err error) error {
	hint := "choose another file with --store sqlite:PATH"
	if _, used := errors.AsType[*sqlite.InUseError](err); used {
		hint = "one process owns a store: stop the other one, or choose another file with --store sqlite:PATH"
	}
	return &cli.HintError{Err: fmt.Errorf("the store %s can't be opened: %w", name, err), Hint: hint}
}
