// Package stand sets up the parts of a measurement: a store, graphd on it, and the
// limit on the same store.
package stand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/bench/limit"
	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

// The settings of stores.
const (
	Memory        = "memory"
	SQLite        = "sqlite"
	RedisOff      = "redis-off"
	RedisEverysec = "redis-everysec"
	RedisAlways   = "redis-always"
)

// Settings lists the stores, in the order of the loss that a crash may cause.
func Settings() []string { return []string{Memory, SQLite, RedisOff, RedisEverysec, RedisAlways} }

// Program has the parts of a stand.
type Program struct {
	// Graphd is the measured binary, Self the running binary, Graphs the folder
	// with the graphs of the workloads.
	Graphd, Self, Graphs string
	// Connections is the number of connections that all clients share.
	Connections int
}

// Stand is one store with its servers.
type Stand struct {
	Setting string
	// Redis is nil on other stores.
	Redis *process.Redis
	// Server is the running graphd.
	Server *process.Graphd
	// Graphd and Limit are called in the same way.
	Graphd, Limit workload.Target

	program Program
	dir     string
	calls   map[string]limit.Script
	limit   *process.Child
	twins   int // that were started since the store was empty
}

// The databases of a Redis.
const (
	graphdDatabase = iota
	// PeerDatabase is for peers, which take turns.
	PeerDatabase
	limitDatabase
	// Each twin has one of the others.
	firstTwinDatabase
)

// Start puts up a stand. Renew comes before anything is measured.
func Start(ctx context.Context, p Program, setting string, calls map[string]limit.Script) (*Stand, error) {
	s := &Stand{Setting: setting, program: p, calls: calls}
	var err error
	if s.dir, err = os.MkdirTemp("", "graphd-bench-"); err != nil {
		return nil, err
	}
	fsync := map[string]string{RedisOff: "off", RedisEverysec: "everysec", RedisAlways: "always"}[setting]
	if fsync == "" {
		return s, nil
	}
	if s.Redis, err = process.StartRedis(ctx, fsync); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Renew empties the store and starts both servers on it again.
func (s *Stand) Renew(ctx context.Context) error {
	s.end()
	if s.Redis != nil {
		if err := s.Redis.Client.FlushAll(ctx).Err(); err != nil {
			return err
		}
	}
	if err := empty(s.dir); err != nil {
		return err
	}
	var err error
	if s.Server, err = process.StartGraphd(ctx, process.Launch{
		Binary: s.program.Graphd, Store: s.store(graphdDatabase, "graphd.db"), Graphs: s.program.Graphs,
	}); err != nil {
		return err
	}
	client, err := wire.Dial(s.Server.Address(), s.program.Connections)
	if err != nil {
		return err
	}
	s.Graphd = workload.Graphd(client)
	if s.calls == nil {
		return nil
	}
	return s.startLimit(ctx)
}

// StartTwin starts a further graphd beside that of the stand, on a store of its own of the
// same setting. The caller stops it, before the stand is renewed. ready is how
// to call it.
func (s *Stand) StartTwin(ctx context.Context, options []string, ready ...grpc.DialOption) (*process.Graphd, error) {
	name := fmt.Sprintf("twin-%d", s.twins)
	store := s.store(firstTwinDatabase+s.twins, name+".db")
	if s.Redis != nil {
		store += "?prefix=" + name // all databases of a Redis share the signals of its clients
	}
	s.twins++
	return process.StartGraphd(ctx, process.Launch{
		Binary: s.program.Graphd, Store: store, Graphs: s.program.Graphs, Options: options, Dial: ready,
	})
}

func (s *Stand) startLimit(ctx context.Context) error {
	var err error
	if s.limit, err = process.StartChild(ctx, "", s.program.Self, "limit"); err != nil {
		return err
	}
	if err := s.limit.Say(limit.Config{Store: s.store(limitDatabase, "limit.db"), Calls: s.calls}); err != nil {
		return err
	}
	address, err := s.limit.Line()
	if err != nil {
		return err
	}
	client, err := wire.Dial(address, s.program.Connections)
	if err != nil {
		return err
	}
	s.Limit = workload.Target{Client: client, Method: func(call string) string { return limit.Service + call }}
	return nil
}

// PeerURL is where a peer keeps its things: a Redis that it may empty, or a
// file of its own for every renewal.
func (s *Stand) PeerURL(who string) string {
	if s.Redis != nil {
		return s.Redis.URL(PeerDatabase)
	}
	return filepath.Join(s.dir, who+".db")
}

// store is the store's URL in the form of graphd's option --store.
func (s *Stand) store(database int, file string) string {
	switch {
	case s.Redis != nil:
		return s.Redis.URL(database)
	case s.Setting == SQLite:
		return "sqlite:" + filepath.Join(s.dir, file)
	default:
		return "memory"
	}
}

func (s *Stand) end() {
	for _, t := range []*workload.Target{&s.Graphd, &s.Limit} {
		if t.Client != nil {
			_ = t.Close()
		}
		*t = workload.Target{}
	}
	if s.Server != nil {
		s.Server.Stop()
	}
	s.limit.Stop()
	s.Server, s.limit, s.twins = nil, nil, 0
}

// Stop ends everything; nothing is left of it.
func (s *Stand) Stop() {
	s.end()
	if s.Redis != nil {
		s.Redis.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

func empty(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("stand: %w", err)
	}
	var all []error
	for _, f := range files {
		all = append(all, os.RemoveAll(filepath.Join(dir, f.Name())))
	}
	return errors.Join(all...)
}
