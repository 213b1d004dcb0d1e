package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Fields of what the whole store agrees on. Besides them it has the words that
// tell whether a key opens records, see checkField.
const (
	fieldFormat     = "format"
	fieldPartitions = "partitions"
	fieldEpoch      = "epoch"
	// fieldWhole is there as soon as every partition has its mark: one that is
	// missing later was lost.
	fieldWhole = "whole"
	// fieldFrom is the format that the store is being migrated from; it is there
	// until that is done.
	fieldFrom = "from"
)

// agree finds out how the store is divided and which one it is, or settles both
// for a new one. Of several servers that start at once, one settles it for all.
func (s *Store) agree(ctx context.Context, w *location) error {
	keys := layout{prefix: w.prefix}
	known, err := s.client.HGetAll(ctx, keys.meta()).Result()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"):
		return &SetupError{
			w.server, ProblemForeign, "the key " + keys.meta() + " is not graphd's",
			"choose another database or another prefix",
		}
	case err != nil:
		return err
	case len(known) > 0:
		return s.join(ctx, w, known)
	}
	left, err := s.remains(ctx, w)
	if err != nil {
		return err
	}
	if left != nil {
		return s.putBack(ctx, w, left)
	}
	if err := s.empty(ctx, w); err != nil {
		// The keys may be those of a server that was quicker.
		if known, again := s.client.HGetAll(ctx, keys.meta()).Result(); again == nil && len(known) > 0 {
			return s.join(ctx, w, known)
		}
		return err
	}
	n := w.partitions
	if n == 0 {
		n = defaultPartitions
	}
	if known, err = s.writeAgreement(ctx, keys, identity{Format, n, draw()}, false); err != nil {
		return err
	}
	return s.join(ctx, w, known)
}

// writeAgreement writes what the store agrees on, as far as no other server has,
// and returns what it is. A store of a format without marks has no epoch. whole
// says that every partition had its mark.
func (s *Store) writeAgreement(ctx context.Context, keys layout, i identity, whole bool) (map[string]string, error) {
	pipe := s.client.TxPipeline()
	pipe.HSetNX(ctx, keys.meta(), fieldFormat, i.format)
	pipe.HSetNX(ctx, keys.meta(), fieldPartitions, i.partitions)
	if i.epoch != "" {
		pipe.HSetNX(ctx, keys.meta(), fieldEpoch, i.epoch)
	}
	if whole {
		pipe.HSetNX(ctx, keys.meta(), fieldWhole, "yes")
	}
	all := pipe.HGetAll(ctx, keys.meta())
	_, err := pipe.Exec(ctx)
	return all.Val(), err
}

// join makes this a server of the store that is there.
func (s *Store) join(ctx context.Context, w *location, known map[string]string) error {
	i, err := w.settled(known)
	if err != nil {
		return err
	}
	s.keys, s.epoch, s.mark = newLayout(w.prefix, i.partitions), i.epoch, i.mark()
	if known[fieldWhole] == "" {
		if err := s.markAll(ctx, s.all()); err != nil {
			return err
		}
	}
	return s.complete(ctx, w)
}

// markAll gives partitions their marks, save those that have one.
func (s *Store) markAll(ctx context.Context, partitions []int) error {
	pipe := s.client.Pipeline()
	for _, p := range partitions {
		pipe.SetNX(ctx, s.keys.of(p, keyStore), s.mark, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	return s.client.HSet(ctx, s.keys.meta(), fieldWhole, "yes").Err()
}

// complete refuses a store of which partitions are missing or of another store.
func (s *Store) complete(ctx context.Context, w *location) error {
	lost, err := s.lostPartitions(ctx, w)
	if err != nil || len(lost) == 0 {
		return err
	}
	return &SetupError{
		w.server, ProblemLost,
		fmt.Sprintf("%d of the store's %d partitions are gone with their threads: %s",
			len(lost), len(s.keys.tags), strings.Join(s.tagsOf(lost), ", ")),
		"restore them from a backup, or go on without those threads: graphd store repair --store " + w.server,
	}
}

func (s *Store) tagsOf(partitions []int) []string {
	tags := make([]string, len(partitions))
	for i, p := range partitions {
		tags[i] = s.keys.of(p, "*")
	}
	return tags
}

// lostPartitions lists those without a mark.
func (s *Store) lostPartitions(ctx context.Context, w *location) (lost []int, err error) {
	found, err := s.marks(ctx, s.all())
	if err != nil {
		return nil, err
	}
	for p, text := range found {
		switch other, ok := parseMark(text); {
		case text == "":
			lost = append(lost, p)
		case text != s.mark && ok && other.format > Format:
			return nil, w.newer(other.format)
		case text != s.mark:
			return nil, &SetupError{
				w.server, ProblemLost,
				fmt.Sprintf("the key %s holds %.80q and not %q: the partition is of another store", s.keys.of(p, keyStore), text, s.mark),
				"restore the store from a backup",
			}
		}
	}
	return lost, nil
}

// empty refuses a database that others use. What servers say of themselves does
// not count.
func (s *Store) empty(ctx context.Context, w *location) error {
	if w.shared {
		return nil
	}
	keys := layout{prefix: w.prefix}
	n, err := s.client.DBSize(ctx).Result()
	if err != nil || n == 0 {
		return err
	}
	own, err := s.client.Exists(ctx, keys.roster(), keys.graphs(), keys.graphIndex(), keys.tombstones(), keys.tombstoneOrder()).Result()
	if err == nil && n > own {
		return &SetupError{
			w.server, ProblemForeign,
			fmt.Sprintf("the database holds %d keys, and none of graphd under the prefix %q", n, w.prefix),
			"choose an empty database, or share this one with ?shared=true",
		}
	}
	return err
}

// remains looks for partitions of a store whose agreement is missing: nil = there
// are none.
func (s *Store) remains(ctx context.Context, w *location) (*identity, error) {
	n, err := s.client.DBSize(ctx).Result()
	if err != nil || n == 0 {
		return nil, err
	}
	var found *identity
	err = s.scan(ctx, globbed(w.prefix)+"{*}:"+keyStore, func(key string) error {
		text, err := s.client.Get(ctx, key).Result()
		if err != nil {
			return err
		}
		i, ok := parseMark(text)
		if !ok || found != nil && *found != i {
			return &SetupError{
				w.server, ProblemLost, fmt.Sprintf("the key %s holds %.80q, and other partitions are of another store", key, text),
				"restore the store from a backup",
			}
		}
		found = &i
		return nil
	})
	if err != nil || found != nil {
		return found, err
	}
	return nil, s.headless(ctx, w)
}

// headless refuses a database with threads that have no mark: those of a format
// that had none, whose agreement is missing.
func (s *Store) headless(ctx context.Context, w *location) error {
	stop := errors.New("found")
	err := s.scan(ctx, globbed(w.prefix)+"{*}:"+keyThreads, func(string) error { return stop })
	if !errors.Is(err, stop) {
		return err
	}
	return &SetupError{
		w.server, ProblemHeadless,
		"there are threads under the prefix " + w.prefix + " and the key " + (&layout{prefix: w.prefix}).meta() +
			" is missing: Redis came back empty under servers of an earlier graphd, or a part of it was lost",
		"restore a backup, or go on with what is there: graphd store repair --store " + w.server,
	}
}

// scan calls do for every key that fits a pattern, on every server.
func (s *Store) scan(ctx context.Context, pattern string, do func(key string) error) error {
	one := func(ctx context.Context, c *goredis.Client) error {
		keys := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			if err := do(keys.Val()); err != nil {
				return err
			}
		}
		return keys.Err()
	}
	switch c := s.client.(type) {
	case *goredis.ClusterClient:
		var nodes []*goredis.Client
		err := c.ForEachMaster(ctx, func(_ context.Context, node *goredis.Client) error {
			s.watch.Lock() // they are asked side by side
			defer s.watch.Unlock()
			nodes = append(nodes, node)
			return nil
		})
		for _, node := range nodes {
			if err == nil {
				err = one(ctx, node)
			}
		}
		return err
	case *goredis.Client:
		return one(ctx, c)
	}
	return fmt.Errorf("redis: a client of kind %T", s.client)
}

// globbed is a text in a pattern in which nothing stands for something else.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// putBack restores what the store agrees on from its partitions.
func (s *Store) putBack(ctx context.Context, w *location, i *identity) error {
	if i.format > Format {
		return w.newer(i.format)
	}
	keys := newLayout(w.prefix, i.partitions)
	known, err := s.writeAgreement(ctx, keys, *i, true)
	if err != nil {
		return err
	}
	graphs, err := s.client.HLen(ctx, keys.graphs()).Result()
	if err != nil {
		return err
	}
	s.warned = append(s.warned, fmt.Sprintf("the key %s was missing and was put back from what the partitions say; %d graphs are there. "+
		"Those that are not, give anew, with --graphs, graphd graph put or by their workers: threads of a graph wait for it; "+
		"and give the same encryption keys as before, which can't be checked", keys.meta(), graphs))
	return s.join(ctx, w, known)
}

// oldestFormat is the first format that a store can be migrated from. Nothing
// was released that wrote an earlier one.
const oldestFormat = 2

func (w *location) newer(format int) error {
	return &SetupError{
		w.server, ProblemFormat,
		fmt.Sprintf("the store has format %d, this graphd knows up to %d", format, Format), "use a newer graphd",
	}
}

// settled reads what a store agrees on, and refuses what this graphd can't use.
func (w *location) settled(known map[string]string) (i identity, err error) {
	if i, err = w.described(known); err != nil {
		return i, err
	}
	if from := known[fieldFrom]; from != "" {
		return i, &SetupError{
			w.server, ProblemOlder,
			fmt.Sprintf("the store is being migrated from format %s to %d, or that was broken off", from, i.format),
			"wait for it, or go on with it: graphd store migrate --store " + w.server,
		}
	}
	if i.format < Format {
		return i, &SetupError{
			w.server, ProblemOlder,
			fmt.Sprintf("the store has format %d, this graphd writes %d", i.format, Format),
			"stop all servers on it, back it up and run graphd store migrate --store " + w.server +
				", or start one server with --migrate",
		}
	}
	if w.partitions != 0 && w.partitions != i.partitions {
		return i, &SetupError{
			w.server, ProblemFormat,
			fmt.Sprintf("the store was made with %d partitions, which never change", i.partitions),
			fmt.Sprintf("leave out partitions=%d", w.partitions),
		}
	}
	return i, nil
}

// described reads what a store of any format that there was agrees on.
func (w *location) described(known map[string]string) (i identity, err error) {
	if i.format, err = strconv.Atoi(known[fieldFormat]); err != nil {
		return i, &SetupError{
			w.server, ProblemForeign, "what is under the prefix " + w.prefix + " is not graphd's",
			"choose another database or another prefix",
		}
	}
	if i.format > Format {
		return i, w.newer(i.format)
	}
	if i.format < oldestFormat {
		return i, &SetupError{
			w.server, ProblemFormat,
			fmt.Sprintf("the store has format %d, which no released graphd wrote and none can migrate", i.format),
			"choose an empty database or another prefix",
		}
	}
	i.partitions, err = strconv.Atoi(known[fieldPartitions])
	if err != nil || i.partitions < 1 || i.partitions > maxPartitions {
		return i, &SetupError{
			w.server, ProblemFormat,
			fmt.Sprintf("the store says that it has %q partitions", known[fieldPartitions]), "restore it from a backup",
		}
	}
	i.epoch = known[fieldEpoch]
	if i.epoch == "" && i.format >= firstMarked {
		return i, &SetupError{
			w.server, ProblemFormat, "the store does not say which one it is", "restore it from a backup",
		}
	}
	return i, nil
}

// firstMarked is the first format whose partitions have marks.
const firstMarked = 3
