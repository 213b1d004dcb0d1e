package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// ErrNoRedis says that redis-server is not installed.
var ErrNoRedis = errors.New("redis-server is not installed: apt-get install redis-server")

// Redis is a server of our own. Databases are for contestants: 0 graphd, 1
// peers, 2 limits, so that each can be emptied alone.
type Redis struct {
	process *process
	address string
	dir     string
	// Client looks at the server from beside.
	Client *goredis.Client
}

// StartRedis starts a server with an append-only file, or without for "off":
// fsync is "off", "everysec" or "always".
func StartRedis(ctx context.Context, fsync string) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoRedis
	}
	r := &Redis{}
	if r.address, err = FreeAddress(ctx); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp("", "graphd-bench-redis-"); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(r.address)
	if err != nil {
		return nil, err
	}
	arguments := []string{"--port", port, "--bind", "127.0.0.1", "--dir", r.dir, "--save", "", "--logfile", r.dir + "/log"}
	if fsync == "off" {
		arguments = append(arguments, "--appendonly", "no")
	} else {
		arguments = append(arguments, "--appendonly", "yes", "--appendfsync", fsync)
	}
	r.Client = goredis.NewClient(&goredis.Options{Addr: r.address})
	r.process, err = start(ctx, loud(exec.Command(path, arguments...))) //nolint:gosec,noctx // start ends it with ctx
	if err == nil {
		err = r.process.until(ctx, r.isOurs)
	}
	if err != nil {
		r.Stop()
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	return r, nil
}

// isOurs sees that no other server has the port.
func (r *Redis) isOurs(ctx context.Context) error {
	info, err := r.Client.Info(ctx, "server").Result()
	if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r", r.process.command.Process.Pid)) {
		err = errors.New("another server has the port")
	}
	return err
}

// Address is host and port.
func (r *Redis) Address() string { return r.address }

// URL of a database.
func (r *Redis) URL(database int) string { return fmt.Sprintf("redis://%s/%d", r.address, database) }

// Info reads numbers out of a section of INFO.
func (r *Redis) Info(ctx context.Context, section string) (map[string]float64, error) {
	text, err := r.Client.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = n
		}
	}
	return all, nil
}

// Weigh returns how many bytes the keys of every thread of graphd take, by
// thread, and how many all other keys.
func (r *Redis) Weigh(ctx context.Context) (threads map[string]float64, shared float64, err error) {
	threads = map[string]float64{}
	for cursor := uint64(0); ; {
		var keys []string
		if keys, cursor, err = r.Client.Scan(ctx, cursor, "*", 1000).Result(); err != nil {
			return nil, 0, err
		}
		sizes := make([]*goredis.IntCmd, len(keys))
		pipe := r.Client.Pipeline()
		for i, key := range keys {
			sizes[i] = pipe.MemoryUsage(ctx, key, 0)
		}
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
			return nil, 0, err
		}
		for i, key := range keys {
			if thread, ok := threadOf(key); ok {
				threads[thread] += float64(sizes[i].Val())
			} else {
				shared += float64(sizes[i].Val())
			}
		}
		if cursor == 0 {
			return threads, shared, nil
		}
	}
}

// threadOf reads PREFIX{TAG}:LETTER:THREAD.
func threadOf(key string) (thread string, ok bool) {
	_, rest, _ := strings.Cut(key, "}:")
	kind, thread, ok := strings.Cut(rest, ":")
	return thread, ok && len(kind) == 1
}

// Empty forgets everything in a database.
func (r *Redis) Empty(ctx context.Context, database int) error {
	pipe := r.Client.TxPipeline()
	pipe.Select(ctx, database)
	pipe.FlushDB(ctx)
	pipe.Select(ctx, 0)
	_, err := pipe.Exec(ctx)
	return err
}

// Stop ends the server and removes its data.
func (r *Redis) Stop() {
	_ = r.Client.Close()
	r.process.kill()
	_ = os.RemoveAll(r.dir)
}
