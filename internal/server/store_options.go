package server

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// StoreOptions bound the tombstones of deleted graphs, and the size of one change
// on SQLite, where one writer serves all changes.
type StoreOptions struct {
	GraphTombstones int

	MaxChangeBytes int
	MaxChangeRows  int
	ChangeWait     time.Duration
	DiskReserve    int64
}

// RegisterFlags registers these limits.
func (o *StoreOptions) RegisterFlags(f *pflag.FlagSet) {
	f.IntVar(&o.GraphTombstones, "graph-tombstones", checkpoint.DefaultTombstones,
		"how many deleted versions of graphs are remembered, so that nothing else comes under their names")
	f.IntVar(&o.MaxChangeBytes, "max-change-bytes", 256<<20, "how many bytes one change of a thread may store with sqlite")
	f.IntVar(&o.MaxChangeRows, "max-change-rows", 1_000_000, "how many records one change of a thread may store with sqlite")
	f.DurationVar(&o.ChangeWait, "change-wait", 5*time.Second, "how long a change waits for its turn with sqlite, before it is refused")
	f.Int64Var(&o.DiskReserve, "disk-reserve", 4<<20,
		"how many bytes of the disk to hold back with sqlite, so that threads can be deleted when it is full")
}

// validateOptions refuses limits that are too small to work with.
func (o *StoreOptions) validateOptions() error {
	const leastBytes, leastRows, leastReserve, mostTombstones = 16 << 20, 10_000, 1 << 20, 1 << 20
	switch {
	case o.GraphTombstones < 1 || o.GraphTombstones > mostTombstones:
		return exit.Usagef("--graph-tombstones is %d", o.GraphTombstones).WithHint("want a number from 1 to %d", mostTombstones)
	case o.MaxChangeBytes < leastBytes:
		return exit.Usagef("--max-change-bytes is %d: what a run may hold must be storable", o.MaxChangeBytes).
			WithHint("want at least %d", leastBytes)
	case o.MaxChangeRows < leastRows:
		return exit.Usagef("--max-change-rows is %d: what a run may hold must be storable", o.MaxChangeRows).
			WithHint("want at least %d", leastRows)
	case o.ChangeWait <= 0:
		return exit.Usagef("--change-wait is %s", o.ChangeWait).WithHint("want more than 0, like 5s")
	case o.DiskReserve < leastReserve:
		return exit.Usagef("--disk-reserve is %d: deleting a thread needs room", o.DiskReserve).
			WithHint("want at least %d", leastReserve)
	}
	return nil
}

func (o *StoreOptions) sqliteOptions(path string, sealed seal.Options) sqlite.Options {
	return sqlite.Options{
		Path: path, Seal: sealed, Reserve: o.DiskReserve, TurnTimeout: o.ChangeWait,
		Tombstones: o.GraphTombstones, MaxChangeBytes: o.MaxChangeBytes, MaxChangeRows: o.MaxChangeRows,
	}
}
