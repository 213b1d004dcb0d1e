package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Format is the number of the layout of keys and records that this package
// writes. Who changes what is written gives it the next number and a migration.
const Format = 3

// Problem says what kind of thing keeps a store from being opened.
type Problem string

// What can be wrong with a server.
const (
	ProblemURL      Problem = "url"      // it can't be read
	ProblemAccess   Problem = "access"   // user, password or rights
	ProblemVersion  Problem = "version"  // the server is too old
	ProblemReplica  Problem = "replica"  // the server takes no changes
	ProblemEviction Problem = "eviction" // the server throws keys away
	ProblemForeign  Problem = "foreign"  // somebody else's database
	ProblemFormat   Problem = "format"   // a newer graphd wrote it, or another layout
	ProblemOlder    Problem = "older"    // an earlier graphd wrote it: it has to be migrated
	ProblemInUse    Problem = "in use"   // servers use it, which must not be
	ProblemHeadless Problem = "headless" // threads are there, and not what they agree on
	ProblemLost     Problem = "lost"     // a part of it is gone
	ProblemKeys     Problem = "keys"     // its records don't open with the keys given
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

func (s *Store) open(ctx context.Context, w *location) error {
	if err := s.connect(ctx, w); err != nil {
		return err
	}
	if err := s.agree(ctx, w); err != nil {
		return w.opening(ctx, err)
	}
	s.convoys = s.newConvoys(len(s.keys.tags))
	if err := s.unlock(ctx, w); err != nil {
		return w.opening(ctx, err)
	}
	if err := s.mayTalk(ctx); refused(err) {
		s.warned = append(s.warned, "this user may not publish or subscribe, so servers can't tell each other what happens and look for it, "+
			"which takes longer: allow it with ACL SETUSER … &"+w.prefix+"* +@pubsub ("+err.Error()+")")
	}
	return nil
}

// mayTalk tries what servers need to tell each other things.
func (s *Store) mayTalk(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	channel := s.keys.greetings()
	if err := s.client.SPublish(ctx, channel, s.origin).Err(); err != nil {
		return err
	}
	listening := s.client.SSubscribe(ctx, channel)
	defer func() { _ = listening.Close() }()
	_, err := listening.Receive(ctx)
	return err
}

// connect makes the client; whether the server is part of a cluster is its own
// to say.
func (s *Store) connect(ctx context.Context, w *location) error {
	if w.sentinel != nil {
		client := goredis.NewFailoverClient(w.sentinel)
		client.AddHook(watcher{})
		s.client = client
	} else {
		s.client = watched(w.single)
	}
	info, err := s.info(ctx)
	if err != nil {
		return w.opening(ctx, err)
	}
	if err := w.accept(info); err != nil {
		return err
	}
	s.warned = warnings(info)
	if info["cluster_enabled"] != "1" {
		if w.cluster != nil && len(w.cluster.Addrs) > 1 {
			return w.bad("several addresses are given, but the server is no cluster")
		}
		return nil
	}
	if err := s.client.Close(); err != nil {
		return w.opening(ctx, err)
	}
	w.cluster.NewClient = watched
	s.client = goredis.NewClusterClient(w.cluster)
	return nil
}

// info reads what the server tells of itself.
func (s *Store) info(ctx context.Context) (map[string]string, error) {
	var text string
	err := again(ctx, func() (err error) {
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

const oldest = 7

// accept refuses a server on which threads would not be safe.
func (w *location) accept(info map[string]string) error {
	major, _, _ := strings.Cut(info["redis_version"], ".")
	policy := info["maxmemory_policy"]
	switch n, err := strconv.Atoi(major); {
	case err != nil || n < oldest:
		return &SetupError{
			w.server, ProblemVersion,
			fmt.Sprintf("the server is Redis %s", info["redis_version"]), "want Redis 7.0 or newer, or Valkey",
		}
	case info["role"] == "slave" && info["cluster_enabled"] != "1":
		return &SetupError{
			w.server, ProblemReplica, "the server is a replica and takes no changes",
			"name the master, " + info["master_host"] + ":" + info["master_port"],
		}
	case policy != "" && policy != "noeviction" && !w.eviction:
		return &SetupError{
			w.server, ProblemEviction,
			"maxmemory-policy is " + policy + ", so the server may throw threads away",
			"set it to noeviction, or accept the loss with ?eviction=true",
		}
	}
	return nil
}

// warnings says what may be lost with the server's settings.
func warnings(info map[string]string) []string {
	var out []string
	if info["aof_enabled"] == "0" {
		out = append(out, "appendonly is off: what Redis has not yet written to its dump is lost when it restarts")
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		out = append(out, "maxmemory-policy is "+policy+": Redis may throw threads away")
	}
	return out
}

// opening says why the server could not be asked.
func (w *location) opening(ctx context.Context, err error) error {
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
	return fmt.Errorf("%s: %w", w.server, failed(ctx, err))
}
