package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Graphd is a server that is measured.
type Graphd struct {
	process *process
	address string
	metrics string
	page    string
	// Started is how long it took from its start to its first healthy answer.
	Started time.Duration
}

// Launch says how a graphd is started.
type Launch struct {
	// Binary is started on a store, with the graphs of a folder.
	Binary, Store, Graphs string
	// Options are those that are not as by default.
	Options []string
	// Address is where it listens, "" = at a free one.
	Address string
	// Page has the server serve its page.
	Page bool
	// Dial is how it is asked whether it is ready, besides by plain text.
	Dial []grpc.DialOption
}

// StartGraphd starts a server.
func StartGraphd(ctx context.Context, l Launch) (*Graphd, error) {
	g := &Graphd{address: l.Address}
	var err, err2 error
	if g.address == "" {
		g.address, err = FreeAddress(ctx)
	}
	g.metrics, err2 = FreeAddress(ctx)
	options := l.Options
	var err3 error
	if l.Page {
		g.page, err3 = FreeAddress(ctx)
		options = append(slices.Clone(options), "--http", g.page)
	}
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	command := loud(exec.Command(l.Binary, append([]string{ //nolint:gosec,noctx // the caller names it; start ends it
		"serve", "--store", l.Store, "--graphs", l.Graphs, "--listen", g.address, "--metrics", g.metrics, "--profiles", "--log-level", "error",
	}, options...)...))
	command.Env = append(os.Environ(), "GRAPHD_CONFIG=")
	began := time.Now()
	if g.process, err = start(ctx, command); err != nil {
		return nil, err
	}
	if err := g.ready(ctx, l.Dial); err != nil {
		g.Stop()
		return nil, fmt.Errorf("graphd on %s does not serve: %w", l.Store, err)
	}
	g.Started = time.Since(began)
	return g, nil
}

func (g *Graphd) ready(ctx context.Context, dial []grpc.DialOption) error {
	conn, err := grpc.NewClient(g.address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second}),
	}, dial...)...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return g.process.until(ctx, func(ctx context.Context) error {
		conn.ResetConnectBackoff()
		a, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil && a.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			err = fmt.Errorf("health is %s", a.GetStatus())
		}
		return err
	})
}

// Address is host and port of its gRPC services.
func (g *Graphd) Address() string { return g.address }

// PageURL is where its page begins, without a path.
func (g *Graphd) PageURL() string { return "http://" + g.page }

// Heap returns the least size in bytes of graphd's heap over four collections. Memory
// that is kept until the next collection is free after two.
func (g *Graphd) Heap(ctx context.Context) (float64, error) {
	least := math.Inf(1)
	for range 4 {
		text, err := g.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(text, "\n# HeapAlloc = ")
		number, _, _ := strings.Cut(rest, "\n")
		now, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("graphd does not say what its heap is: %w", err)
		}
		least = min(least, now)
	}
	return least, nil
}

// ProcessorTime returns how long processors have worked for the server since its start.
func (g *Graphd) ProcessorTime(ctx context.Context) (time.Duration, error) {
	seconds, err := g.Metric(ctx, "process_cpu_seconds_total")
	return time.Duration(seconds * float64(time.Second)), err
}

// Metric returns the value of a metric without labels.
func (g *Graphd) Metric(ctx context.Context, name string) (float64, error) {
	text, err := g.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "\n"+name+" ")
	number, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("graphd does not say what its %s is: %w", name, err)
	}
	return value, nil
}

func (g *Graphd) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.metrics+path, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// Kill ends the server as a crash would.
func (g *Graphd) Kill() { g.process.kill() }

// Stop ends the server as an operator would.
func (g *Graphd) Stop() { g.process.stop() }
