package limit

import (
	"context"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"
)

// theCommit checks a revision and writes twice: the new head of the thread with
// half of the bytes, and an entry of its log with the others.
const theCommit = `
if (redis.call('HGET', KEYS[1], 'rev') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'rev', ARGV[2], 'head', ARGV[3])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1`

type redis struct {
	client *goredis.Client
	script string
}

// openRedis has a connection for every commit at a time, and no pipelines.
func openRedis(ctx context.Context, url string) (store, error) {
	o, err := goredis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	o.PoolSize, o.Protocol, o.DisableIdentity = 1024, 2, true
	r := &redis{client: goredis.NewClient(o)}
	if r.script, err = r.client.ScriptLoad(ctx, theCommit).Result(); err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	return r, nil
}

func (r *redis) commit(ctx context.Context, thread string, revision int, body []byte) error {
	half := len(body) / 2
	done, err := r.client.EvalSha(ctx, r.script, []string{"h:" + thread, "e:" + thread},
		strconv.Itoa(revision), strconv.Itoa(revision+1), body[:half], body[half:]).Int()
	if err == nil && done != 1 {
		err = ErrConflict
	}
	return err
}

func (r *redis) close() error { return r.client.Close() }
