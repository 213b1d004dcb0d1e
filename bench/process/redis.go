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
	if r.address, err = freeAddress(ctx); err != nil {
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

// Stop ends the server; what it kept is gone.
func (r *Redis) Stop() {
	_ = r.Client.Close()
	r.process.kill()
	_ = os.RemoveAll(r.dir)
}
