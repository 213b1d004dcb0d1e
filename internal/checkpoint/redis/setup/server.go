package setup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// connectServer makes the client; whether the server is part of a cluster is its own
// to say.
func (d *Database) connectServer(ctx context.Context) error {
	if d.config.sentinel != nil {
		d.Client = script.NewFailoverClient(d.config.sentinel)
	} else {
		d.Client = script.NewClient(d.config.standalone)
	}
	d.Runner = script.NewRunner(d.Client, &d.Keys)
	info, err := d.readInfo(ctx)
	if err != nil {
		return d.config.wrapOpenError(ctx, err)
	}
	if err := d.config.checkServer(info); err != nil {
		return err
	}
	d.Warnings = settingsWarnings(info)
	if info["cluster_enabled"] != "1" {
		if d.config.cluster != nil && len(d.config.cluster.Addrs) > 1 {
			return d.config.urlError("several addresses are given, but the server is no cluster")
		}
		return nil
	}
	if err := d.Client.Close(); err != nil {
		return d.config.wrapOpenError(ctx, err)
	}
	d.config.cluster.NewClient = script.NewClient
	d.Client = goredis.NewClusterClient(d.config.cluster)
	d.Runner = script.NewRunner(d.Client, &d.Keys)
	return nil
}

// readInfo reads the INFO of the server.
func (d *Database) readInfo(ctx context.Context) (map[string]string, error) {
	var text string
	err := script.Retry(ctx, func() (err error) {
		text, err = d.Client.Info(ctx, "everything").Result()
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
func (s *storeConfig) checkServer(info map[string]string) error {
	major, _, _ := strings.Cut(info["redis_version"], ".")
	policy := info["maxmemory_policy"]
	switch n, err := strconv.Atoi(major); {
	case err != nil || n < minMajorVersion:
		return &Error{
			s.server, ProblemVersion,
			fmt.Sprintf("the server is Redis %s", info["redis_version"]), "want Redis 7.0 or newer, or Valkey",
		}
	case info["role"] == "slave" && info["cluster_enabled"] != "1":
		return &Error{
			s.server, ProblemReplica, "the server is a replica and takes no changes",
			"name the master, " + info["master_host"] + ":" + info["master_port"],
		}
	case policy != "" && policy != "noeviction" && !s.acceptsEviction:
		return &Error{
			s.server, ProblemEviction,
			"maxmemory-policy is " + policy + ", so the server may throw threads away",
			"set it to noeviction, or accept the loss with ?eviction=true",
		}
	}
	return nil
}

// settingsWarnings returns the warnings of settings with which the server may lose data.
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
func (s *storeConfig) wrapOpenError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if failed := s.explainTLS(err); failed != nil {
		return failed
	}
	for _, word := range []string{"WRONGPASS", "NOAUTH", "NOPERM", "ERR AUTH", "ERR invalid password"} {
		if strings.Contains(err.Error(), word) {
			return &Error{
				s.server, ProblemAccess, "the server refuses: " + err.Error(),
				"check user and password in the URL",
			}
		}
	}
	if strings.Contains(err.Error(), "DB index is out of range") {
		return &Error{s.server, ProblemURL, "the server has no database of that number", "name a smaller one"}
	}
	return fmt.Errorf("%s: %w", s.server, script.ToContractError(ctx, err))
}
