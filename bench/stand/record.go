package stand

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/bench/limit"
	"github.com/graphd-dev/graphd/bench/workload"
)

// The least commits of a workload: one for the input or the answers, and one for
// every superstep. Further commits of graphd count against it.
func needed() []need {
	return []need{
		{"W1", 1 + workload.ChainLength, []string{workload.Chain}},
		{"W2", 6, []string{workload.Question, workload.Answer}},
		{"W3", 4, []string{workload.Fan}},
	}
}

type need struct {
	name    string
	commits int
	calls   []string
}

// Record determines the work of the limit: the messages that graphd sends to the
// client, and the bytes that it sends to Redis per commit. Watchers of the limit
// see watched events.
func Record(ctx context.Context, s *Stand, watched int) (map[string]limit.Script, error) {
	all := map[string]limit.Script{}
	names := &workload.Names{Prefix: "record"}
	for _, w := range needed() {
		heard := map[string][][]byte{}
		one, err := workload.ByName(w.name, s.Graphd.Overheard(heard), names)
		if err != nil {
			return nil, err
		}
		if err := one(ctx, 0, &workload.Times{}); err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		bytes, err := s.bytes(ctx, w.name, w.commits, names)
		if err != nil {
			return nil, err
		}
		for _, call := range w.calls {
			all[call] = limit.Script{Commits: w.commits / len(w.calls), Bytes: bytes, Messages: slices.Clone(heard[call])}
		}
	}
	heard := map[string][][]byte{}
	if _, err := workload.Watchers(ctx, s.Graphd.Overheard(heard), names, 1, watched); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	script := limit.Script{Messages: heard[workload.Watch], Gate: true}
	all[workload.Watch] = script
	script.Encode = true
	all[workload.WatchEncoded] = script
	return all, nil
}

// fallback is the approximate number of bytes per commit, for stands without
// Redis.
const fallback = 4 << 10

// bytes asks Redis how much it was sent per commit.
func (s *Stand) bytes(ctx context.Context, name string, commits int, names *workload.Names) (int, error) {
	if s.Redis == nil {
		return fallback, nil
	}
	one, err := workload.ByName(name, s.Graphd, names)
	if err != nil {
		return 0, err
	}
	const runs = 20
	before, err := s.Redis.Info(ctx, "stats")
	if err != nil {
		return 0, err
	}
	if _, err := workload.Repeat(ctx, 1, runs, 1, one); err != nil {
		return 0, err
	}
	after, err := s.Redis.Info(ctx, "stats")
	if err != nil {
		return 0, err
	}
	const sent = "total_net_input_bytes"
	return int(after[sent]-before[sent]) / (runs * commits), nil
}
