package script

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// Runner runs scripts that may be repeated, and reads, again when the connection
// broke.
type Runner struct {
	client goredis.UniversalClient
	keys   *layout.Keys
}

// NewRunner makes the runner of a store.
func NewRunner(client goredis.UniversalClient, keys *layout.Keys) *Runner {
	return &Runner{client: client, keys: keys}
}

// RunScript runs a script once.
func (r *Runner) RunScript(ctx context.Context, script *goredis.Script, keys []string, args ...any) (Reply, error) {
	var reply Reply
	err := Retry(ctx, func() (err error) {
		reply, err = script.Run(ctx, r.client, keys, args...).Slice()
		return err
	})
	return reply, err
}

// RunOnPartitions runs a script once per partition, in as few exchanges as there are
// servers. keys are names of keys of a partition.
func (r *Runner) RunOnPartitions(
	ctx context.Context, script *goredis.Script, partitions []int, keys []string, args ...any,
) ([]Reply, error) {
	list := make([]Input, len(partitions))
	for i, p := range partitions {
		list[i] = Input{Keys: make([]string, len(keys)), Args: args}
		for k, name := range keys {
			list[i].Keys[k] = r.keys.PartitionKey(p, name)
		}
	}
	return r.RunInputs(ctx, script, list)
}

// RunInputs runs a script once per input, in as few exchanges as there are servers.
func (r *Runner) RunInputs(ctx context.Context, script *goredis.Script, list []Input) ([]Reply, error) {
	return r.runPerInput(ctx, script, list, func(err error) error { return err })
}

// Input has the keys and arguments of a single run of a script.
type Input struct {
	Keys []string
	Args []any
}

// RunPerThread runs a script once per input, in one exchange per server. A key of
// another type has no reply.
func (r *Runner) RunPerThread(ctx context.Context, script *goredis.Script, list []Input) ([]Reply, error) {
	return r.runPerInput(ctx, script, list, func(err error) error {
		if err = ToContractError(ctx, err); errors.Is(err, checkpoint.ErrCorrupt) {
			return nil
		}
		return err
	})
}

// runPerInput runs a script once per input. A script that the server has forgotten
// is run alone.
func (r *Runner) runPerInput(
	ctx context.Context, script *goredis.Script, list []Input, tolerate func(error) error,
) ([]Reply, error) {
	out := make([]Reply, len(list))
	err := Retry(ctx, func() error {
		pipe := r.client.Pipeline()
		sent := make([]*goredis.Cmd, len(list))
		for i := range list {
			sent[i] = script.EvalSha(ctx, pipe, list[i].Keys, list[i].Args...)
		}
		_, _ = pipe.Exec(ctx) // each command holds its error
		for i, cmd := range sent {
			reply, err := cmd.Slice()
			if goredis.HasErrorPrefix(err, "NOSCRIPT") {
				reply, err = script.Run(ctx, r.client, list[i].Keys, list[i].Args...).Slice()
			}
			if err := tolerate(err); err != nil {
				return err
			}
			out[i] = reply
		}
		return nil
	})
	return out, err
}

// CountMembers returns how many members sorted sets have together, in as few exchanges as
// there are servers.
func (r *Runner) CountMembers(ctx context.Context, keys []string) (total int64, err error) {
	err = Retry(ctx, func() error {
		pipe := r.client.Pipeline()
		sent := make([]*goredis.IntCmd, len(keys))
		for i, key := range keys {
			sent[i] = pipe.ZCard(ctx, key)
		}
		_, err := pipe.Exec(ctx)
		total = 0
		for _, cmd := range sent {
			total += cmd.Val()
		}
		return err
	})
	return total, err
}

// Range is members of a sorted set in the form of ZRANGEBYLEX, at most so many.
type Range struct {
	Key, Begin, End string
	Limit           int
}

// ReadRanges reads ranges, in as few exchanges as there are servers.
func (r *Runner) ReadRanges(ctx context.Context, list []Range) (out [][]string, err error) {
	err = Retry(ctx, func() error {
		pipe := r.client.Pipeline()
		sent := make([]*goredis.StringSliceCmd, len(list))
		for i, a := range list {
			sent[i] = pipe.ZRangeByLex(ctx, a.Key, &goredis.ZRangeBy{Min: a.Begin, Max: a.End, Count: int64(a.Limit)})
		}
		_, err := pipe.Exec(ctx)
		out = make([][]string, len(list))
		for i, cmd := range sent {
			out[i] = cmd.Val()
		}
		return err
	})
	return out, err
}

// Lookup is members that a sorted set may have.
type Lookup struct {
	Key     string
	Members []string
}

// HasMembers reports which members there are, in as few exchanges as there are servers.
func (r *Runner) HasMembers(ctx context.Context, list []Lookup) (out [][]bool, err error) {
	err = Retry(ctx, func() error {
		pipe := r.client.Pipeline()
		sent := make([]*goredis.Cmd, len(list))
		for i := range list {
			args := make([]any, 0, 2+len(list[i].Members))
			args = append(args, "zmscore", list[i].Key)
			for _, member := range list[i].Members {
				args = append(args, member)
			}
			sent[i] = pipe.Do(ctx, args...)
		}
		_, err := pipe.Exec(ctx)
		out = make([][]bool, len(list))
		for i, cmd := range sent {
			scores, _ := cmd.Slice() // pipe.Exec has the error
			for _, score := range scores {
				out[i] = append(out[i], score != nil)
			}
		}
		return err
	})
	return out, err
}

// ReadFields reads fields of a hash.
func (r *Runner) ReadFields(ctx context.Context, key string, names ...string) (reply Reply, err error) {
	err = Retry(ctx, func() (err error) {
		reply, err = r.client.HMGet(ctx, key, names...).Result()
		return err
	})
	return reply, err
}
