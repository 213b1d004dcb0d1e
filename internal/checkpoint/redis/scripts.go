package redis

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// scripts are known to the server by what they say, so replicas of different
// versions of graphd can share one. One that the server has forgotten, after a
// restart say, is sent again.
type scripts struct {
	apply, remove                          *script
	head, history, values, pending, events *goredis.Script
	runs, members, changes, roster, names  *goredis.Script
	glance, graph, servers, migrate2       *goredis.Script
	question, questions                    *goredis.Script
}

// script is one that changes something.
type script struct{ source, hash string }

func loadScripts() (*scripts, error) {
	var s scripts
	for name, to := range map[string]**script{"apply": &s.apply, "delete": &s.remove} {
		source, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: script %s: %w", name, err)
		}
		*to = &script{source: string(source), hash: goredis.NewScript(string(source)).Hash()}
	}
	for name, to := range map[string]**goredis.Script{
		"head": &s.head, "history": &s.history, "values": &s.values,
		"pending": &s.pending, "events": &s.events, "runs": &s.runs, "members": &s.members, "changes": &s.changes,
		"roster": &s.roster, "names": &s.names, "glance": &s.glance, "graph": &s.graph,
		"servers": &s.servers, "migrate2": &s.migrate2, "question": &s.question, "questions": &s.questions,
	} {
		source, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: script %s: %w", name, err)
		}
		*to = goredis.NewScript(string(source))
	}
	return &s, nil
}

// reply is what a script returned.
type reply []any

// text returns a value, "" when there is none.
func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

// has reports whether there is a value.
func (r reply) has(i int) bool { return i < len(r) && r[i] != nil }

func (r reply) list(i int) reply {
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
		n += len(r.text(i))
	}
	return n
}

func (r reply) unum(i int) (uint64, error) {
	n, err := strconv.ParseUint(r.text(i), 10, 64)
	if err != nil {
		return 0, corrupt("%q is no number", r.text(i))
	}
	return n, nil
}

// count reads an integer, if there is one.
func (r reply) count(i int) (n int64, ok bool) {
	if i < len(r) {
		n, ok = r[i].(int64)
	}
	return n, ok
}

// instant reads microseconds since 1970, "" = no time.
func (r reply) instant(i int) (time.Time, error) {
	if r.text(i) == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(r.text(i), 10, 64)
	if err != nil {
		return time.Time{}, corrupt("%q is no instant", r.text(i))
	}
	return time.UnixMicro(n).UTC(), nil
}

// read runs a script that changes nothing, again when the connection broke.
func (s *Store) read(ctx context.Context, script *goredis.Script, keys []string, args ...any) (reply, error) {
	var r reply
	err := again(ctx, func() (err error) {
		r, err = script.Run(ctx, s.client, keys, args...).Slice()
		return err
	})
	return r, err
}

// scatter runs a script once per partition, in as few exchanges as there are
// servers.
func (s *Store) scatter(
	ctx context.Context, script *goredis.Script, partitions []int, keys []string, args ...any,
) ([]reply, error) {
	named := func(p int) []string {
		out := make([]string, len(keys))
		for i, k := range keys {
			out[i] = s.keys.of(p, k)
		}
		return out
	}
	out := make([]reply, len(partitions))
	err := again(ctx, func() error {
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

// attempts is how often a call is made before the caller is told that the
// store is away; who drives a run has patience of its own.
const attempts = 3

// again makes a call that may be repeated.
func again(ctx context.Context, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		if err == nil || n == attempts || !passing(err) || !pause(ctx, time.Duration(n)*20*time.Millisecond) {
			return err
		}
	}
}

// pause waits, and reports false when ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
