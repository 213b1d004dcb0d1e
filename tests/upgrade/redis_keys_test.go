package upgrade_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// redisKey is a key of Redis with what it holds. Texts are quoted as Go does, since
// most of them are no UTF-8. Pairs are fields and values of a hash, members and
// scores of a sorted set.
type redisKey struct {
	Key  string   `json:"key"`
	Type string   `json:"type"`
	List []string `json:"list"`
}

// listKeys writes down what a server holds, independent of its version.
func listKeys(tb testing.TB, from *redistest.Server) []byte {
	tb.Helper()
	keys, err := from.Client.Keys(tb.Context(), "*").Result()
	require.NoError(tb, err)
	slices.Sort(keys)
	var out bytes.Buffer
	for _, key := range keys {
		e := redisKey{Key: key}
		e.Type, err = from.Client.Type(tb.Context(), key).Result()
		require.NoError(tb, err)
		for _, text := range readKey(tb, from.Client, e.Type, key) {
			e.List = append(e.List, strconv.QuoteToASCII(text))
		}
		line, err := json.Marshal(e)
		require.NoError(tb, err)
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

func readKey(tb testing.TB, c *goredis.Client, kind, key string) (texts []string) {
	tb.Helper()
	ctx := tb.Context()
	var err error
	switch kind {
	case "string":
		texts = []string{c.Get(ctx, key).Val()}
	case "list":
		texts, err = c.LRange(ctx, key, 0, -1).Result()
	case "hash":
		var all map[string]string
		all, err = c.HGetAll(ctx, key).Result()
		for field := range all {
			texts = append(texts, field)
		}
		slices.Sort(texts)
		fields := texts
		texts = nil
		for _, field := range fields {
			texts = append(texts, field, all[field])
		}
	case "zset":
		var all []goredis.Z
		all, err = c.ZRangeWithScores(ctx, key, 0, -1).Result()
		for _, z := range all {
			texts = append(texts, fmt.Sprint(z.Member), strconv.FormatFloat(z.Score, 'f', -1, 64))
		}
	default:
		tb.Fatalf("key %s is a %s", key, kind)
	}
	require.NoError(tb, err)
	return texts
}

// restoreKeys puts what was listed into a server.
func restoreKeys(tb testing.TB, to *redistest.Server, listing []byte) {
	tb.Helper()
	lines := bufio.NewScanner(bytes.NewReader(listing))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e redisKey
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &e))
		texts := make([]any, len(e.List))
		for i, quoted := range e.List {
			text, err := strconv.Unquote(quoted)
			require.NoError(tb, err)
			texts[i] = text
		}
		writeKey(tb, to.Client, e, texts)
	}
	require.NoError(tb, lines.Err())
}

func writeKey(tb testing.TB, c *goredis.Client, e redisKey, texts []any) {
	tb.Helper()
	command := []any{map[string]string{"string": "SET", "list": "RPUSH", "hash": "HSET", "zset": "ZADD"}[e.Type], e.Key}
	if e.Type == "zset" {
		for i := 0; i+1 < len(texts); i += 2 {
			texts[i], texts[i+1] = texts[i+1], texts[i]
		}
	}
	require.NoError(tb, c.Do(tb.Context(), append(command, texts...)...).Err(), strings.TrimSpace(e.Key))
}
