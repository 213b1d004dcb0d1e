package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Sentinel watches over a master with a replica.
type Sentinel struct {
	Master, Replica *Server
	monitor         *Server
}

// StartSentinel starts a master, a replica of it, and a Sentinel that makes the
// replica the master when Lose says so. It is patient: a master on a busy machine may
// be silent for seconds, and is not lost.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{Master: Start(tb), Replica: Start(tb)}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := s.Replica.Client.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(s.Master.port)).Err(); err != nil {
		tb.Fatal(err)
	}
	config := filepath.Join(tb.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 1\nsentinel down-after-milliseconds main 600000\n"+
		"sentinel failover-timeout main 60000\n", s.Master.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.monitor = &Server{tb: tb, dir: tb.TempDir(), port: freePort(tb)}
	s.monitor.args = []string{
		config, "--sentinel", "--port", strconv.Itoa(s.monitor.port), "--bind", "127.0.0.1", "--dir", s.monitor.dir,
		"--logfile", s.monitor.logPath(),
	}
	s.monitor.Client = goredis.NewClient(&goredis.Options{Addr: s.monitor.Addr(), MaxRetries: 5})
	tb.Cleanup(func() {
		_ = s.monitor.Client.Close()
		s.monitor.Kill()
	})
	if err := s.monitor.startProcess(); err != nil {
		tb.Fatal(err)
	}
	waitForAnswer(ctx, tb, s.monitor.Client, "SENTINEL MASTER main", "num-slaves 1")
	waitForAnswer(ctx, tb, s.Replica.Client, "INFO replication", "master_link_status:up")
	return s
}

// Lose kills the master and returns when its replica is the master. Sentinel is told to
// fail over: left to itself it would refuse a replica that was without its master for
// longer than ten times its patience, which a busy machine takes at any time.
func (s *Sentinel) Lose(ctx context.Context) error {
	s.Master.Kill()
	ctx, cancel := context.WithTimeout(ctx, promotionTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// A failover that is under way is refused, and so is one while Sentinel has not heard of the replica lately.
		refused := s.monitor.Client.Do(ctx, "SENTINEL", "FAILOVER", "main").Err()
		master, err := s.monitor.Client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main").StringSlice()
		if err == nil && slices.Contains(master, strconv.Itoa(s.Replica.port)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the replica does not become the master: %w", errors.Join(refused, err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// promotionTimeout is how long the busiest machine may take for a failover.
const promotionTimeout = 2 * time.Minute

// URL returns the URL for graphd.
func (s *Sentinel) URL() string { return "redis://" + s.monitor.Addr() + "/0?master_name=main" }

// waitForAnswer asks a server until its answer contains some words.
func waitForAnswer(ctx context.Context, tb testing.TB, c *goredis.Client, command, words string) {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var args []any
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	for {
		answer, err := c.Do(ctx, args...).Result()
		if strings.Contains(flattenAnswer(answer), words) {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s never answers %q: %v %v", command, words, answer, err)
		case <-tick.C:
		}
	}
}

// flattenAnswer writes an answer as words: of a map, each key before its value.
func flattenAnswer(answer any) string {
	m, ok := answer.(map[any]any)
	if !ok {
		return fmt.Sprint(answer)
	}
	var out strings.Builder
	for k, v := range m {
		fmt.Fprintf(&out, "%v %v\n", k, v)
	}
	return out.String()
}

// DisconnectReplica cuts the replica off from the master: it stays as it is, and Sentinel
// may still make it the master.
func (s *Sentinel) DisconnectReplica(ctx context.Context) error {
	// The replica can't log in again.
	if err := s.Replica.Client.ConfigSet(ctx, "masterauth", "wrong").Err(); err != nil {
		return fmt.Errorf("password of the replica: %w", err)
	}
	if err := s.Replica.Client.ConfigSet(ctx, "masteruser", "nobody").Err(); err != nil {
		return fmt.Errorf("user of the replica: %w", err)
	}
	if err := s.Master.Client.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		return fmt.Errorf("connection of the replica: %w", err)
	}
	return nil
}
