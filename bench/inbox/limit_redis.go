package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// errOtherPage says that the limit does not know how the store is laid out any more.
var errOtherPage = errors.New("the bare commands do not find the page that graphd finds")

// redisCommands reads the keys of graphd itself, in as few exchanges as there can be: one for the
// index of all partitions, and one for the records.
type redisCommands struct {
	client *goredis.Client
	tags   []string // the keys of the index: PREFIX{PARTITION}:tags
	known  struct{ key, field string }
}

func newRedisCommands(ctx context.Context, client *goredis.Client, known target) (*redisCommands, error) {
	c := &redisCommands{client: client}
	var err error
	if c.tags, err = tagKeys(ctx, client); err != nil {
		return nil, err
	}
	for _, key := range c.tags { // one of them has the question
		c.known.key, c.known.field = strings.TrimSuffix(key, "tags")+"q:"+known.thread, "r"+known.id
		switch isThere, err := client.HExists(ctx, c.known.key, c.known.field).Result(); {
		case err != nil:
			return nil, err
		case isThere:
			return c, nil
		}
	}
	return nil, errOtherPage
}

// tagKeys lists the keys of the index of questions, of which each partition has one.
func tagKeys(ctx context.Context, client *goredis.Client) (keys []string, err error) {
	for cursor := uint64(0); ; {
		var some []string
		if some, cursor, err = client.Scan(ctx, cursor, "*}:tags", 10_000).Result(); err != nil {
			return nil, err
		}
		if keys = append(keys, some...); cursor == 0 {
			slices.Sort(keys)
			return slices.Compact(keys), nil
		}
	}
}

// member is an entry of the index with the partition that has it.
type member struct{ key, place string }

// index reads the first entries of a tag.
func (c *redisCommands) index(ctx context.Context, tag string) ([]member, error) {
	pipe := c.client.Pipeline()
	replies := make([]*goredis.StringSliceCmd, len(c.tags))
	for i, key := range c.tags {
		replies[i] = pipe.ZRangeByLex(ctx, key, &goredis.ZRangeBy{Min: "[c" + tag + "\x00", Max: "(c" + tag + "\x01", Count: pageSize})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	var all []member
	for i, r := range replies {
		for _, m := range r.Val() {
			all = append(all, member{c.tags[i], m[len(tag)+2:]})
		}
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.place, b.place) })
	return all[:min(len(all), pageSize)], nil
}

func (c *redisCommands) page(ctx context.Context) (int, error) {
	entries, err := c.index(ctx, "group:"+leads)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	pipe := c.client.Pipeline()
	for _, e := range entries {
		thread, id, ok := e.question()
		if !ok {
			return 0, errOtherPage
		}
		pipe.HGet(ctx, strings.TrimSuffix(e.key, "tags")+"q:"+thread, "r"+id)
	}
	_, err = pipe.Exec(ctx)
	return len(entries), err
}

// question reads the name in a place: 16 digits, the thread, a zero byte, the id, and the
// length of the thread as 8 digits behind another zero byte.
func (m member) question() (thread, id string, ok bool) {
	const digits, suffix = 16, 9
	if len(m.place) < digits+suffix {
		return "", "", false
	}
	body := m.place[digits : len(m.place)-suffix]
	n, err := strconv.ParseUint(m.place[len(m.place)-suffix+1:], 16, 32)
	if err != nil || int(n) >= len(body) {
		return "", "", false
	}
	return body[:n], body[n+1:], true
}

func (c *redisCommands) nothing(ctx context.Context) error {
	_, err := c.index(ctx, "user:nobody")
	return err
}

func (c *redisCommands) count(ctx context.Context) error {
	pipe := c.client.Pipeline()
	for range counted {
		for _, key := range c.tags {
			pipe.ZLexCount(ctx, key, "[cgroup:"+leads+"\x00", "(cgroup:"+leads+"\x01")
		}
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (c *redisCommands) record(ctx context.Context) error {
	return c.client.HGet(ctx, c.known.key, c.known.field).Err()
}

func (c *redisCommands) close() error { return c.client.Close() }
