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

// A storeName is what --store says, taken apart.
type storeName struct {
	text string
	kind string // memory or sqlite
	path string // of the file, for sqlite
}

// parseStore refuses what names no store.
func parseStore(text string) (storeName, error) {
	kind, path, hasPath := strings.Cut(text, ":")
	name := storeName{text: text, kind: kind, path: path}
	switch {
	case kind == "memory" && !hasPath, kind == "sqlite" && path != "":
		return name, nil
	case kind == "redis", kind == "rediss":
		return name, cli.Usagef("--store %s: the Redis store is not built in yet", masked(text)).
			WithHint("use --store sqlite:PATH")
	}
	return name, cli.Usagef("--store %q is no store", masked(text)).
		WithHint("want memory, or sqlite:PATH like sqlite:graphd.db")
}

// open opens the store.
func (n storeName) open(ctx context.Context) (store, error) {
	if n.kind == "memory" {
		return memory.New(memory.Options{}), nil
	}
	s, err := sqlite.Open(ctx, sqlite.Options{Path: n.path})
	if err != nil {
		return nil, notOpened(n.text, err)
	}
	return s, nil
}

func notOpened(name string, err error) error {
	hint := "choose another file with --store sqlite:PATH"
	if _, used := errors.AsType[*sqlite.InUseError](err); used {
		hint = "one process owns a store: stop the other one, or choose another file with --store sqlite:PATH"
	}
	return &cli.HintError{Err: fmt.Errorf("the store %s can't be opened: %w", name, err), Hint: hint}
}
