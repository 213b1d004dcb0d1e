package redis

import (
	"context"
	"errors"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Repair says what is missing of the store at opts.URL. With accept it makes the
// store usable without it: partitions that are gone with their threads begin
// anew, and what the whole store agrees on is put back from its partitions. It
// never takes anything away.
func Repair(ctx context.Context, opts Options, accept bool) (checkpoint.Loss, error) {
	s, w, err := bare(ctx, opts)
	if err != nil {
		return checkpoint.Loss{}, err
	}
	loss, err := s.repair(ctx, w, accept)
	return loss, errors.Join(w.opening(ctx, err), s.Close())
}

func (s *Store) repair(ctx context.Context, w *location, accept bool) (loss checkpoint.Loss, err error) {
	meta := (&layout{prefix: w.prefix}).meta()
	known, err := s.client.HGetAll(ctx, meta).Result()
	if err != nil {
		return loss, err
	}
	i, err := s.whatIsLeft(ctx, w, known)
	if err != nil || i == nil {
		return loss, err
	}
	loss.Agreement = len(known) == 0
	s.keys, s.epoch, s.mark = newLayout(w.prefix, i.partitions), i.epoch, i.mark()
	if loss.Agreement && accept {
		if _, err := s.writeAgreement(ctx, s.keys, *i, i.epoch != ""); err != nil {
			return loss, err
		}
	}
	if i.format < firstMarked || known[fieldFrom] != "" {
		return loss, nil // its migration gives the partitions their marks
	}
	lost, err := s.lostPartitions(ctx, w)
	loss.Parts, loss.Of = s.tagsOf(lost), i.partitions
	if err == nil && accept {
		err = s.markAll(ctx, lost)
	}
	return loss, err
}

// whatIsLeft finds out which store this was, nil = there is none.
func (s *Store) whatIsLeft(ctx context.Context, w *location, known map[string]string) (*identity, error) {
	if len(known) > 0 {
		i, err := w.described(known)
		return &i, err
	}
	i, err := s.remains(ctx, w)
	if problem, ok := errors.AsType[*SetupError](err); ok && problem.Problem == ProblemHeadless {
		return s.guess(ctx, w)
	}
	return i, err
}

// guess finds out how a store of a format without marks was divided: all its keys
// must lie where that puts them.
func (s *Store) guess(ctx context.Context, w *location) (*identity, error) {
	where, err := s.threadsByTag(ctx, w)
	if err != nil {
		return nil, err
	}
	candidates := []int{defaultPartitions}
	for n := range maxPartitions {
		candidates = append(candidates, n+1)
	}
	if w.partitions > 0 {
		candidates = []int{w.partitions}
	}
	for _, n := range candidates {
		if keys := newLayout(w.prefix, n); keys.fits(where) {
			return &identity{format: oldestFormat, partitions: n}, nil
		}
	}
	return nil, &SetupError{
		w.server, ProblemHeadless, "the keys under the prefix " + w.prefix + " are not those of one store",
		"restore the store from a backup",
	}
}

// threadsByTag lists some threads of each partition.
func (s *Store) threadsByTag(ctx context.Context, w *location) (map[string][]string, error) {
	where := map[string][]string{}
	err := s.scan(ctx, globbed(w.prefix)+"{*}:"+keyThreads, func(key string) error {
		tag, _, _ := strings.Cut(strings.TrimPrefix(key, w.prefix+"{"), "}")
		members, err := s.client.ZRangeByLex(ctx, key, &goredis.ZRangeBy{Min: "-", Max: "+", Count: someThreads}).Result()
		if err != nil {
			return err
		}
		for _, member := range members {
			if thread, _, _, ok := parseThread(member); ok {
				where[tag] = append(where[tag], thread)
			}
		}
		return nil
	})
	return where, err
}

// fits reports whether threads lie in the partitions in which they were found.
func (l *layout) fits(where map[string][]string) bool {
	for tag, threads := range where {
		if !slices.Contains(l.tags, tag) {
			return false
		}
		for _, thread := range threads {
			if l.tags[l.partition(thread)] != tag {
				return false
			}
		}
	}
	return true
}
