package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/pubsub"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// Format is the number of the layout of keys and records that this package
// writes. A change of what is written needs the next number and a migration.
const Format = 3

// Problem says what kind of thing keeps a store from being opened.
type Problem string

// What can be wrong with a server.
const (
	ProblemURL        Problem = "url"      // it can't be read
	ProblemAccess     Problem = "access"   // user, password or rights
	ProblemVersion    Problem = "version"  // the server is too old
	ProblemReplica    Problem = "replica"  // the server takes no changes
	ProblemEviction   Problem = "eviction" // the server evicts keys
	ProblemForeign    Problem = "foreign"  // the database of another program
	ProblemFormat     Problem = "format"   // a newer graphd wrote it, or another layout
	ProblemOlder      Problem = "older"    // an earlier graphd wrote it: it has to be migrated
	ProblemInUse      Problem = "in use"   // servers use it, which must not be
	ProblemNoMetadata Problem = "headless" // there are threads and no metadata
	ProblemLost       Problem = "lost"     // a part of it is gone
	ProblemKeys       Problem = "keys"     // its records don't open with the keys given
)

// SetupError says why a store can't be opened, and what would be right.
type SetupError struct {
	Server  string // its URL without the password
	Problem Problem
	Is      string
	Want    string
}

// Error names the server, what is wrong and what would be right.
func (e *SetupError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Server, e.Is, e.Want) }

func (s *Store) openStore(ctx context.Context, w *storeConfig) error {
	if err := s.connectServer(ctx, w); err != nil {
		return err
	}
	if err := s.joinOrCreateStore(ctx, w); err != nil {
		return w.wrapOpenError(ctx, err)
	}
	s.batchers = script.NewBatchers(s.client, s.log, s.keys.PartitionCount())
	if err := s.checkEncryptionKeys(ctx, w); err != nil {
		return w.wrapOpenError(ctx, err)
	}
	if err := pubsub.CheckAccess(ctx, s.client, &s.keys, s.origin); script.IsPermissionDenied(err) {
		s.warnings = append(s.warnings, "this user may not publish or subscribe, so servers can't tell each other what happens and look for it, "+
			"which takes longer: allow it with ACL SETUSER … &"+w.prefix+"* +@pubsub ("+err.Error()+")")
	}
	return nil
}

// connectServer makes the client; whether the server is part of a cluster is its own
// to say.
func (s *Store) connectServer(ctx context.Context, w *storeConfig) error {
	if w.sentinel != nil {
		s.client = script.NewFailoverClient(w.sentinel)
	} else {
		s.client = script.NewClient(w.standalone)
	}
	s.runner = script.NewRunner(s.client, &s.keys)
	info, err := s.readInfo(ctx)
	if err != nil {
		return w.wrapOpenError(ctx, err)
	}
	if err := w.checkServer(info); err != nil {
		return err
	}
	s.warnings = settingsWarnings(info)
	if info["cluster_enabled"] != "1" {
		if w.cluster != nil && len(w.cluster.Addrs) > 1 {
			return w.urlError("several addresses are given, but the server is no cluster")
		}
		return nil
	}
	if err := s.client.Close(); err != nil {
		return w.wrapOpenError(ctx, err)
	}
	w.cluster.NewClient = script.NewClient
	s.client = goredis.NewClusterClient(w.cluster)
	s.runner = script.NewRunner(s.client, &s.keys)
	return nil
}

// readInfo reads the INFO of the server.
func (s *Store) readInfo(ctx context.Context) (map[string]string, error) {
	var text string
	err := script.Retry(ctx, func() (err error) {
		text, err = s.client.Info(ctx, "everything").Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[k] = v
		}
	}
	return info, nil
}

const minMajorVersion = 7

// checkServer refuses a server on which threads would not be safe.
func (w *storeConfig) checkServer(info map[string]string) error {
	major, _, _ := strings.Cut(info["redis_version"], ".")
	policy := info["maxmemory_policy"]
	switch n, err := strconv.Atoi(major); {
	case err != nil || n < minMajorVersion:
		return &SetupError{
			w.server, ProblemVersion,
			fmt.Sprintf("the server is Redis %s", info["redis_version"]), "want Redis 7.0 or newer, or Valkey",
		}
	case info["role"] == "slave" && info["cluster_enabled"] != "1":
		return &SetupError{
			w.server, ProblemReplica, "the server is a replica and takes no changes",
			"name the master, " + info["master_host"] + ":" + info["master_port"],
		}
	case policy != "" && policy != "noeviction" && !w.acceptsEviction:
		return &SetupError{
			w.server, ProblemEviction,
			"maxmemory-policy is " + policy + ", so the server may throw threads away",
			"set it to noeviction, or accept the loss with ?eviction=true",
		}
	}
	return nil
}

// settingsWarnings says what may be lost with the server's settings.
func settingsWarnings(info map[string]string) []string {
	var out []string
	if info["aof_enabled"] == "0" {
		out = append(out, "appendonly is off: what Redis has not yet written to its dump is lost when it restarts")
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		out = append(out, "maxmemory-policy is "+policy+": Redis may throw threads away")
	}
	return out
}

// wrapOpenError says why the server could not be asked.
func (w *storeConfig) wrapOpenError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*SetupError](err); ok {
		return err
	}
	for _, word := range []string{"WRONGPASS", "NOAUTH", "NOPERM", "ERR AUTH", "ERR invalid password"} {
		if strings.Contains(err.Error(), word) {
			return &SetupError{
				w.server, ProblemAccess, "the server refuses: " + err.Error(),
				"check user and password in the URL",
			}
		}
	}
	if strings.Contains(err.Error(), "DB index is out of range") {
		return &SetupError{w.server, ProblemURL, "the server has no database of that number", "name a smaller one"}
	}
	return fmt.Errorf("%s: %w", w.server, script.ToContractError(ctx, err))
}
