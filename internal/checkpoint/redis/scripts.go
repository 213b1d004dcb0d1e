package redis

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

//go:embed lua/*.lua
var scriptFiles embed.FS

// scripts are known to the server by what they say, so replicas of different
// versions of graphd can share one. One that the server has forgotten, after a
// restart say, is sent again.
type scripts struct {
	apply, remove                             *script
	head, history, values, pending, events    *goredis.Script
	runs, members, changes, membership, names *goredis.Script
	view, graph, servers, migrate2            *goredis.Script
	question, questions                       *goredis.Script
}

// script is one that changes something.
type script struct{ source, hash string }

func loadScripts() (*scripts, error) {
	var s scripts
	for name, to := range map[string]**script{"apply": &s.apply, "delete": &s.remove} {
		source, err := scriptFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: script %s: %w", name, err)
		}
		*to = &script{source: string(source), hash: goredis.NewScript(string(source)).Hash()}
	}
	for name, to := range map[string]**goredis.Script{
		"head": &s.head, "history": &s.history, "values": &s.values,
		"pending": &s.pending, "events": &s.events, "runs": &s.runs, "members": &s.members, "changes": &s.changes,
		"membership": &s.membership, "names": &s.names, "view": &s.view, "graph": &s.graph,
		"servers": &s.servers, "migrate2": &s.migrate2, "question": &s.question, "questions": &s.questions,
	} {
		source, err := scriptFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: script %s: %w", name, err)
		}
		*to = goredis.NewScript(string(source))
	}
	return &s, nil
}

// reply is what a script returned.
type reply []any

// textAt returns a value, "" when there is none.
func (r reply) textAt(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

// hasValue reports whether there is a value.
func (r reply) hasValue(i int) bool { return i < len(r) && r[i] != nil }

func (r reply) listAt(i int) reply {
	if i >= len(r) {
		return nil
	}
	l, _ := r[i].([]any)
	return l
}

// bytes is how many bytes the texts have.
func (r reply) bytes() int {
	n := 0
	for i := range r {
		n += len(r.textAt(i))
	}
	return n
}

func (r reply) uintAt(i int) (uint64, error) {
	n, err := strconv.ParseUint(r.textAt(i), 10, 64)
	if err != nil {
		return 0, layout.CorruptError("%q is no number", r.textAt(i))
	}
	return n, nil
}

// intAt reads an integer, if there is one.
func (r reply) intAt(i int) (n int64, ok bool) {
	if i < len(r) {
		n, ok = r[i].(int64)
	}
	return n, ok
}

// timeAt reads microseconds since 1970, "" = no time.
func (r reply) timeAt(i int) (time.Time, error) {
	if r.textAt(i) == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(r.textAt(i), 10, 64)
	if err != nil {
		return time.Time{}, layout.CorruptError("%q is no instant", r.textAt(i))
	}
	return time.UnixMicro(n).UTC(), nil
}

// runReadScript runs a script that changes nothing, again when the connection broke.
func (s *Store) runReadScript(ctx context.Context, script *goredis.Script, keys []string, args ...any) (reply, error) {
	var r reply
	err := retryCall(ctx, func() (err error) {
		r, err = script.Run(ctx, s.client, keys, args...).Slice()
		return err
	})
	return r, err
}

// runOnPartitions runs a script once per partition, in as few exchanges as there are
// servers.
func (s *Store) runOnPartitions(
	ctx context.Context, script *goredis.Script, partitions []int, keys []string, args ...any,
) ([]reply, error) {
	named := func(p int) []string {
		out := make([]string, len(keys))
		for i, k := range keys {
			out[i] = s.keys.PartitionKey(p, k)
		}
		return out
	}
	out := make([]reply, len(partitions))
	err := retryCall(ctx, func() error {
		pipe := s.client.Pipeline()
		sent := make([]*goredis.Cmd, len(partitions))
		for i, p := range partitions {
			sent[i] = script.EvalSha(ctx, pipe, named(p), args...)
		}
		_, _ = pipe.Exec(ctx) // each command says what became of it
		for i, cmd := range sent {
			list, err := cmd.Slice()
			if goredis.HasErrorPrefix(err, "NOSCRIPT") {
				list, err = script.Run(ctx, s.client, named(partitions[i]), args...).Slice()
			}
			if err != nil {
				return err
			}
			out[i] = list
		}
		return nil
	})
	return out, err
}

// maxAttempts is how often a call is made before the caller gets
// ErrUnavailable; the owner of a run retries on its own.
const maxAttempts = 3

// retryCall makes a call that may be repeated.
func retryCall(ctx context.Context, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		if err == nil || n == maxAttempts || !isTransient(err) || !sleepContext(ctx, time.Duration(n)*20*time.Millisecond) {
			return err
		}
	}
}

// sleepContext waits, and reports false when ctx ended meanwhile.
func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
