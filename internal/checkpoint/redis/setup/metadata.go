package setup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// Fields of the metadata of the store. It also holds a check text per
// encryption key, see keyCheckField.
const (
	fieldFormat     = "format"
	fieldPartitions = "partitions"
	fieldEpoch      = "epoch"
	// fieldComplete exists as soon as every partition has its mark: a mark that is
	// missing later was lost.
	fieldComplete = "whole"
	// fieldMigratingFrom is the earlier format of a store during its migration.
	fieldMigratingFrom = "from"
)

// joinOrCreateStore reads the metadata of the store, or writes that of a new store. When
// several servers start at once, a single server writes it for all.
func (d *Database) joinOrCreateStore(ctx context.Context) error {
	keys := layout.NewKeys(d.config.prefix, 0)
	known, err := d.readMetadata(ctx)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return d.joinStore(ctx, known)
	}
	left, err := d.findMarkedPartitions(ctx)
	if err != nil {
		return err
	}
	if left != nil {
		return d.restoreMetadata(ctx, left)
	}
	if err := d.requireEmptyDatabase(ctx); err != nil {
		// The keys may be those of a server that was quicker.
		if known, again := d.Client.HGetAll(ctx, keys.MetadataKey()).Result(); again == nil && len(known) > 0 {
			return d.joinStore(ctx, known)
		}
		return err
	}
	n := d.config.partitions
	if n == 0 {
		n = defaultPartitions
	}
	if known, err = d.writeMetadata(ctx, keys, storeIdentity{layout.Format, n, NewRandomID()}, false); err != nil {
		return err
	}
	return d.joinStore(ctx, known)
}

// readMetadata reads the metadata of the store, nothing when it is not there.
func (d *Database) readMetadata(ctx context.Context) (map[string]string, error) {
	keys := layout.NewKeys(d.config.prefix, 0)
	known, err := d.Client.HGetAll(ctx, keys.MetadataKey()).Result()
	if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return nil, &Error{
			d.config.server, ProblemForeign, "the key " + keys.MetadataKey() + " is not graphd's",
			"choose another database or another prefix",
		}
	}
	return known, err
}

// findStore finds the store that is there, and writes nothing: a server puts back metadata
// that is missing, and marks the partitions of a store that it has just made.
func (d *Database) findStore(ctx context.Context) error {
	known, err := d.readMetadata(ctx)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		left, err := d.findMarkedPartitions(ctx)
		if err != nil {
			return err
		}
		if left == nil {
			return &Error{d.config.server, ProblemMissing, "nothing is stored there", "name the store of the server"}
		}
		known = left.encodeMetadata()
	}
	if err := d.setIdentity(known); err != nil || known[fieldComplete] == "" {
		return err
	}
	return d.checkPartitions(ctx)
}

// writeMetadata writes the fields of the metadata that no other server has
// written, and returns all of them. A store of a format without marks has no
// epoch. whole says that every partition had its mark.
func (d *Database) writeMetadata(ctx context.Context, keys layout.Keys, i storeIdentity, whole bool) (map[string]string, error) {
	pipe := d.Client.TxPipeline()
	pipe.HSetNX(ctx, keys.MetadataKey(), fieldFormat, i.format)
	pipe.HSetNX(ctx, keys.MetadataKey(), fieldPartitions, i.partitions)
	if i.epoch != "" {
		pipe.HSetNX(ctx, keys.MetadataKey(), fieldEpoch, i.epoch)
	}
	if whole {
		pipe.HSetNX(ctx, keys.MetadataKey(), fieldComplete, "yes")
		pipe.HSetNX(ctx, keys.MetadataKey(), fieldUntagged, "yes") // whether they are is lost, too
	}
	all := pipe.HGetAll(ctx, keys.MetadataKey())
	_, err := pipe.Exec(ctx)
	return all.Val(), err
}

// joinStore makes this a server of the store that is there.
func (d *Database) joinStore(ctx context.Context, known map[string]string) error {
	if err := d.setIdentity(known); err != nil {
		return err
	}
	if known[fieldComplete] == "" {
		if err := d.markPartitions(ctx, d.Keys.AllPartitions()); err != nil {
			return err
		}
	}
	return d.checkPartitions(ctx)
}

// setIdentity sets the identity of the store from its metadata. It returns an *Error for a
// store that this graphd can't use.
func (d *Database) setIdentity(known map[string]string) error {
	i, err := d.config.parseUsableIdentity(known)
	if err != nil {
		return err
	}
	d.Keys, d.Epoch, d.Mark = layout.NewKeys(d.config.prefix, i.partitions), i.epoch, i.encodeMark()
	return nil
}

// markPartitions writes the marks of partitions that have none.
func (d *Database) markPartitions(ctx context.Context, partitions []int) error {
	pipe := d.Client.Pipeline()
	for _, p := range partitions {
		pipe.SetNX(ctx, d.Keys.PartitionKey(p, layout.KeyStoreMark), d.Mark, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	return d.Client.HSet(ctx, d.Keys.MetadataKey(), fieldComplete, "yes").Err()
}

// checkPartitions refuses a store of which partitions are missing or of another store.
func (d *Database) checkPartitions(ctx context.Context) error {
	lost, err := d.findLostPartitions(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	return &Error{
		d.config.server, ProblemLost,
		fmt.Sprintf("%d of the store's %d partitions are gone with their threads: %s",
			len(lost), d.Keys.PartitionCount(), strings.Join(d.partitionPatterns(lost), ", ")),
		"restore them from a backup, or go on without those threads: graphd store repair --store " + d.config.server,
	}
}

func (d *Database) partitionPatterns(partitions []int) []string {
	tags := make([]string, len(partitions))
	for i, p := range partitions {
		tags[i] = d.Keys.PartitionKey(p, "*")
	}
	return tags
}

// findLostPartitions lists those without a mark.
func (d *Database) findLostPartitions(ctx context.Context) (lost []int, err error) {
	found, err := d.readMarks(ctx, d.Keys.AllPartitions())
	if err != nil {
		return nil, err
	}
	for p, text := range found {
		switch other, ok := parseMark(text); {
		case text == "":
			lost = append(lost, p)
		case text != d.Mark && ok && other.format > layout.Format:
			return nil, d.config.newerFormatError(other.format)
		case text != d.Mark:
			return nil, &Error{
				d.config.server, ProblemLost,
				fmt.Sprintf("the key %s holds %.80q and not %q: the partition is of another store", d.Keys.PartitionKey(p, layout.KeyStoreMark), text, d.Mark),
				"restore the store from a backup",
			}
		}
	}
	return lost, nil
}

// requireEmptyDatabase refuses a database that other programs use. Membership
// and graphs do not count.
func (d *Database) requireEmptyDatabase(ctx context.Context) error {
	if d.config.isShared {
		return nil
	}
	keys := layout.NewKeys(d.config.prefix, 0)
	n, err := d.Client.DBSize(ctx).Result()
	if err != nil || n == 0 {
		return err
	}
	own, err := d.Client.Exists(ctx, keys.MembershipKey(), keys.GraphsKey(), keys.GraphIndexKey(), keys.TombstonesKey(), keys.TombstoneOrderKey()).Result()
	if err == nil && n > own {
		return &Error{
			d.config.server, ProblemForeign,
			fmt.Sprintf("the database holds %d keys, and none of graphd under the prefix %q", n, d.config.prefix),
			"choose an empty database, or share this one with ?shared=true",
		}
	}
	return err
}

// findMarkedPartitions looks for partitions of a store whose metadata is
// missing: nil = there are none.
func (d *Database) findMarkedPartitions(ctx context.Context) (*storeIdentity, error) {
	n, err := d.Client.DBSize(ctx).Result()
	if err != nil || n == 0 {
		return nil, err
	}
	var found *storeIdentity
	err = d.scanKeys(ctx, escapeGlob(d.config.prefix)+"{*}:"+layout.KeyStoreMark, func(key string) error {
		text, err := d.Client.Get(ctx, key).Result()
		if err != nil {
			return err
		}
		i, ok := parseMark(text)
		if !ok || found != nil && *found != i {
			return &Error{
				d.config.server, ProblemLost, fmt.Sprintf("the key %s holds %.80q, and other partitions are of another store", key, text),
				"restore the store from a backup",
			}
		}
		found = &i
		return nil
	})
	if err != nil || found != nil {
		return found, err
	}
	return nil, d.requireNoThreads(ctx)
}

// requireNoThreads refuses a database with threads that have no mark: those of
// a format that had none, whose metadata is missing.
func (d *Database) requireNoThreads(ctx context.Context) error {
	stop := errors.New("found")
	keys := layout.NewKeys(d.config.prefix, 0)
	err := d.scanKeys(ctx, escapeGlob(d.config.prefix)+"{*}:"+layout.KeyThreads+"*", func(string) error { return stop })
	if !errors.Is(err, stop) {
		return err
	}
	return &Error{
		d.config.server, ProblemNoMetadata,
		"there are threads under the prefix " + d.config.prefix + " and the key " + keys.MetadataKey() +
			" is missing: Redis came back empty under servers of an earlier graphd, or a part of it was lost",
		"restore a backup, or go on with what is there: graphd store repair --store " + d.config.server,
	}
}

// scanKeys calls do for every key that fits a pattern, on every server.
func (d *Database) scanKeys(ctx context.Context, pattern string, do func(key string) error) error {
	one := func(ctx context.Context, c *goredis.Client) error {
		keys := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			if err := do(keys.Val()); err != nil {
				return err
			}
		}
		return keys.Err()
	}
	switch c := d.Client.(type) {
	case *goredis.ClusterClient:
		var nodes []*goredis.Client
		err := c.ForEachMaster(ctx, func(_ context.Context, node *goredis.Client) error {
			d.checkMu.Lock() // they are asked side by side
			defer d.checkMu.Unlock()
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
	return fmt.Errorf("redis: a client of kind %T", d.Client)
}

// escapeGlob is a text in a pattern in which nothing stands for something else.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// restoreMetadata restores the metadata of the store from its partitions.
func (d *Database) restoreMetadata(ctx context.Context, i *storeIdentity) error {
	if i.format > layout.Format {
		return d.config.newerFormatError(i.format)
	}
	keys := layout.NewKeys(d.config.prefix, i.partitions)
	known, err := d.writeMetadata(ctx, keys, *i, true)
	if err != nil {
		return err
	}
	graphs, err := d.Client.HLen(ctx, keys.GraphsKey()).Result()
	if err != nil {
		return err
	}
	d.Warnings = append(d.Warnings, fmt.Sprintf("the key %s was missing and was put back from what the partitions say; %d graphs are there. "+
		"Those that are not, give anew, with --graphs, graphd graph put or by their workers: threads of a graph wait for it; "+
		"and give the same encryption keys as before, which can't be checked", keys.MetadataKey(), graphs))
	return d.joinStore(ctx, known)
}

func (s *storeConfig) newerFormatError(format int) error {
	return &Error{
		s.server, ProblemFormat,
		fmt.Sprintf("the store has format %d, this graphd knows up to %d", format, layout.Format), "use a newer graphd",
	}
}

// parseUsableIdentity reads the metadata of a store, and refuses a store that
// this graphd can't use.
func (s *storeConfig) parseUsableIdentity(known map[string]string) (i storeIdentity, err error) {
	if i, err = s.parseIdentity(known); err != nil {
		return i, err
	}
	if from := known[fieldMigratingFrom]; from != "" {
		return i, &Error{
			s.server, ProblemOlder,
			fmt.Sprintf("the store is being migrated from format %s to %d, or that was broken off", from, i.format),
			"wait for it, or go on with it: graphd store migrate --store " + s.server,
		}
	}
	if i.format < layout.Format {
		return i, &Error{
			s.server, ProblemOlder,
			fmt.Sprintf("the store has format %d, this graphd writes %d", i.format, layout.Format),
			"stop all servers on it, back it up and run graphd store migrate --store " + s.server +
				", or start one server with --migrate",
		}
	}
	if s.partitions != 0 && s.partitions != i.partitions {
		return i, &Error{
			s.server, ProblemFormat,
			fmt.Sprintf("the store was made with %d partitions, which never change", i.partitions),
			fmt.Sprintf("leave out partitions=%d", s.partitions),
		}
	}
	return i, nil
}

// parseIdentity reads the metadata of a store of any format.
func (s *storeConfig) parseIdentity(known map[string]string) (i storeIdentity, err error) {
	if i.format, err = strconv.Atoi(known[fieldFormat]); err != nil {
		return i, &Error{
			s.server, ProblemForeign, "what is under the prefix " + s.prefix + " is not graphd's",
			"choose another database or another prefix",
		}
	}
	if i.format > layout.Format {
		return i, s.newerFormatError(i.format)
	}
	if i.format < layout.OldestFormat {
		return i, &Error{
			s.server, ProblemFormat,
			fmt.Sprintf("the store has format %d, which no released graphd wrote and none can migrate", i.format),
			"choose an empty database or another prefix",
		}
	}
	i.partitions, err = strconv.Atoi(known[fieldPartitions])
	if err != nil || i.partitions < 1 || i.partitions > layout.MaxPartitions {
		return i, &Error{
			s.server, ProblemFormat,
			fmt.Sprintf("the store says that it has %q partitions", known[fieldPartitions]), "restore it from a backup",
		}
	}
	i.epoch = known[fieldEpoch]
	if i.epoch == "" && i.format >= firstMarkedFormat {
		return i, &Error{
			s.server, ProblemFormat, "the store does not say which one it is", "restore it from a backup",
		}
	}
	return i, nil
}

// firstMarkedFormat is the first format whose partitions have marks.
const firstMarkedFormat = 3
