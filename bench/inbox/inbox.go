package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/bench/credential"
	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

// sharedConnections are those that many clients share.
const sharedConnections = 4

// inbox is a server that knows its callers, on a store of its own.
type inbox struct {
	setting string
	dir     string
	redis   *process.Redis // nil on SQLite
	server  *process.Graphd
	// one has a single connection, on which operations are timed; many is for clients at
	// once, and watching for watchers. All calls are ana's.
	one, many, watching workload.Target
	token               string // of ana
}

// startInbox starts a server on an empty store, with further options.
func startInbox(ctx context.Context, o options, setting string, further ...string) (*inbox, error) {
	b := &inbox{setting: setting}
	err := b.startServer(ctx, o, further)
	if err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *inbox) startServer(ctx context.Context, o options, further []string) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "graphd-bench-inbox-"); err != nil {
		return err
	}
	store := "sqlite:" + filepath.Join(b.dir, "graphd.db")
	if b.setting != stand.SQLite {
		fsync := map[string]string{stand.RedisOff: "off", stand.RedisEverysec: "everysec", stand.RedisAlways: "always"}[b.setting]
		if b.redis, err = process.StartRedis(ctx, fsync); err != nil {
			return err
		}
		store = b.redis.URL(0)
	}
	graphd, err := filepath.Abs(o.graphd)
	if err != nil {
		return err
	}
	keys, err := credential.MakeSet(ctx, graphd, b.dir)
	if err != nil {
		return err
	}
	const file = "keys.yaml"
	b.token, err = keys.MakeKey(ctx, file, credential.Caller{
		Name: ana, Tenant: "default", Groups: []string{leads}, Roles: []string{"starter", "answerer", "operator"},
	})
	if err != nil {
		return err
	}
	if b.server, err = process.StartGraphd(ctx, process.Launch{
		Binary: graphd, Store: store, Graphs: o.graphs, Options: append(append(keys.KeyOptions(file), "--graphs", o.questions), further...), Page: true,
	}); err != nil {
		return err
	}
	return b.dial()
}

func (b *inbox) dial() error {
	for _, t := range []struct {
		target      *workload.Target
		connections int
	}{{&b.one, 1}, {&b.many, sharedConnections}, {&b.watching, sharedConnections}} {
		client, err := wire.Dial(b.server.Address(), t.connections, credential.SendToken(b.token))
		if err != nil {
			return err
		}
		*t.target = workload.Graphd(client)
	}
	return nil
}

// stop ends the server; nothing is left of it.
func (b *inbox) stop() {
	for _, t := range []workload.Target{b.one, b.many, b.watching} {
		if t.Client != nil {
			_ = t.Close()
		}
	}
	if b.server != nil {
		b.server.Stop()
	}
	if b.redis != nil {
		b.redis.Stop()
	}
	_ = os.RemoveAll(b.dir) //nolint:gosec // it was made here
}

// The services that are called.
const (
	graphs     = "/graphd.v1.GraphService/"
	threads    = "/graphd.v1.ThreadService/"
	interrupts = "/graphd.v1.InterruptService/"
)

// call makes a call, and notes in times, unless it is nil, how long it took. answer may be nil.
func call(ctx context.Context, t workload.Target, lane int, method string, request, answer proto.Message, times *workload.Times) error {
	text, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	if times == nil {
		times = &workload.Times{}
	}
	var got []byte
	err = times.Time(func() error {
		got, err = t.Call(ctx, lane, method, text)
		return err
	})
	if err != nil || answer == nil {
		return err
	}
	return proto.Unmarshal(got, answer)
}

// listPage reads a page of questions.
func (b *inbox) listPage(ctx context.Context, r *graphdv1.ListInterruptsRequest, times *workload.Times) (*graphdv1.ListInterruptsResponse, error) {
	var page graphdv1.ListInterruptsResponse
	err := call(ctx, b.one, 0, interrupts+"ListInterrupts", r, &page, times)
	return &page, err
}

// count counts open questions by filters.
func (b *inbox) count(ctx context.Context, filters []string, times *workload.Times) ([]int, error) {
	var counted graphdv1.CountInterruptsResponse
	if err := call(ctx, b.one, 0, interrupts+"CountInterrupts", &graphdv1.CountInterruptsRequest{Filters: filters}, &counted, times); err != nil {
		return nil, err
	}
	var all []int
	for _, c := range counted.GetCounts() {
		all = append(all, int(c.GetCount()))
	}
	if len(all) != len(filters) {
		return nil, errors.New("not all views were counted")
	}
	return all, nil
}

// filter is the condition that a field has a value.
func filter(field, value string) string { return fmt.Sprintf("%s = %q", field, value) }
