package main

import (
	"context"

	"github.com/graphd-dev/graphd/bench/workload"
)

// What open questions take in Redis.
const (
	bytesOfQuestion = "bytes of Redis for a question with its thread"
	bytesOfTags     = "bytes of Redis for the tags of a question"
	bytesOfTag      = "bytes of Redis for a tag of a question, with those by due time"
	bytesOfEntry    = "bytes of Redis for an entry of a question under a tag"
)

// usedMemory is how many bytes Redis has taken, 0 without Redis.
func (b *inbox) usedMemory(ctx context.Context) (float64, error) {
	if b.redis == nil {
		return 0, nil
	}
	info, err := b.redis.Info(ctx, "memory")
	return info["used_memory"], err
}

// weigh measures what the questions of a population take. before is what Redis had taken.
func (b *inbox) weigh(ctx context.Context, p population, before float64) (map[string]workload.Sample, error) {
	if b.redis == nil {
		return nil, nil //nolint:nilnil // there is nothing to measure
	}
	after, err := b.usedMemory(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := tagKeys(ctx, b.redis.Client)
	if err != nil {
		return nil, err
	}
	tags, entries := 0.0, 0.0
	for _, key := range keys {
		const allMembers = 0
		size, err := b.redis.Client.MemoryUsage(ctx, key, allMembers).Result()
		if err != nil {
			return nil, err
		}
		members, err := b.redis.Client.ZCard(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		tags += float64(size)
		entries += float64(members)
	}
	return map[string]workload.Sample{
		bytesOfQuestion: {Rate: (after - before) / float64(p.all)},
		bytesOfTags:     {Rate: tags / float64(p.all)},
		bytesOfTag:      {Rate: tags / float64(p.tags)},
		bytesOfEntry:    {Rate: tags / entries},
	}, nil
}
