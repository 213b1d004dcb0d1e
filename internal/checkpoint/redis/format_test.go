package redis_test

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

var updateFormat = flag.Bool("update-format", false, "take over what is written now, see make format")

// TestFormat fails when the same changes are written in another way than the
// number of the format says.
func TestFormat(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s := openStore(t, server.URL("partitions=2"))
	checkpointtest.WriteAll(t.Context(), t, s)
	checkpointtest.RequireFormat(t, checkpointtest.Format{
		Kind: "redis", Number: redis.Format, Stores: "../../../tests/upgrade/testdata/frozen",
		Update: *updateFormat,
	}, listKeys(t, server.Client))
}

// listKeys is every key with what it holds, without what depends on the time and
// on which store it is.
func listKeys(t *testing.T, c *goredis.Client) []byte {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	slices.Sort(keys)
	var out []string
	for _, key := range keys {
		kind := c.Type(t.Context(), key).Val()
		for _, line := range describeKey(t, c, kind, key) {
			out = append(out, kind+" "+key+" "+line)
		}
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

func describeKey(t *testing.T, c *goredis.Client, kind, key string) (lines []string) {
	t.Helper()
	ctx := t.Context()
	switch kind {
	case "string":
		lines = []string{fmt.Sprintf("%+q", maskTimes(key, "", c.Get(ctx, key).Val()))}
	case "list":
		for _, text := range c.LRange(ctx, key, 0, -1).Val() {
			lines = append(lines, fmt.Sprintf("%+q", text))
		}
	case "hash":
		for field, text := range c.HGetAll(ctx, key).Val() {
			if field == "n" && strings.Contains(key, "}:h:") {
				text = describePosition(t, c, key)
			}
			lines = append(lines, fmt.Sprintf("%+q %+q", field, maskTimes(key, field, text)))
		}
		slices.Sort(lines)
	case "zset":
		for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
			if strings.HasSuffix(key, ":inbox") {
				z.Score = 0
			}
			lines = append(lines, fmt.Sprintf("%+q %v", z.Member, z.Score))
		}
	default:
		t.Fatalf("key %s is a %s", key, kind)
	}
	return lines
}

// describePosition is where a thread stands, without when it was changed and the end of
// its lease.
func describePosition(t *testing.T, c *goredis.Client, key string) string {
	t.Helper()
	text, err := c.Eval(t.Context(), `local s = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'n'))
		s[7] = 'time'
		if s[8] ~= 0 then s[8] = 'time' end
		return cjson.encode(s)`, []string{key}).Text()
	require.NoError(t, err)
	return text
}

var (
	changeNumber = regexp.MustCompile(`^\d+`)
	epoch        = regexp.MustCompile(`[0-9a-f]{32}`)
)

// maskTimes leaves out of a value times and the numbers of changes, which follow
// the clock, and the name of the store.
func maskTimes(key, field, text string) string {
	switch {
	case strings.HasSuffix(key, "}:count"), strings.Contains(key, "}:q:") && strings.HasPrefix(field, "r"):
		return changeNumber.ReplaceAllString(text, "time")
	case strings.HasSuffix(key, "}:graphs:deleted"):
		return changeNumber.ReplaceAllString(text, "time")
	case strings.HasSuffix(key, "}:store"), strings.HasSuffix(key, "{meta}:format"):
		return epoch.ReplaceAllString(text, "epoch")
	}
	return text
}
