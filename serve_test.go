package graphd_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/cli/certs"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/worker"
)

// open opens an engine in memory until the test ends.
func open(t *testing.T, o graphd.Options, graphs ...*graph.Builder) *graphd.Engine {
	t.Helper()
	e, err := graphd.OpenWith(t.Context(), graphd.Memory(), o, graphs...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	return e
}

// serve serves an engine at a free port, and returns its address and the end of Serve.
func serve(t *testing.T, e *graphd.Engine) (address string, end <-chan error) {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(l) }()
	return l.Addr().String(), ended
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	return l
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(address, options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// What the process asks, another one answers, and a worker of a third one runs graphs: it is one
// engine.
func TestAnEngineServesOthersToo(t *testing.T) {
	ctx := t.Context()
	e := open(t, graphd.Options{}, newOrders())
	address, end := serve(t, e)
	o, err := e.Invoke(ctx, client.Run{Graph: "orders", Thread: "t1", Input: order{Product: "tea"}})
	require.NoError(t, err)
	require.True(t, o.Waits())
	other := dial(t, address)
	o, err = other.Resume(ctx, "t1", client.AnswerTo(o.Questions[0], "yes"))
	require.NoError(t, err)
	got, err := client.Output[order](o)
	require.NoError(t, err)
	require.Equal(t, "yes", got.Answer)

	doubled := graph.New("double").Channel("n").Node("double", func(_ context.Context, s graph.State) (any, error) {
		var n int
		err := s.Decode("n", &n)
		return map[string]any{"n": 2 * n}, err
	}).Chain(graph.Start, "double", graph.End)
	w, err := worker.Dial(address, worker.Options{Graphs: []*graph.Builder{doubled}})
	require.NoError(t, err)
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- w.Run(working) }()
	<-w.Ready()
	o, err = e.Invoke(ctx, client.Run{Graph: "double", Thread: "t2", Input: map[string]any{"n": 21}})
	require.NoError(t, err)
	require.JSONEq(t, `{"n":42}`, o.Run.GetOutput().GetJson())
	stop()
	require.NoError(t, <-worked)

	require.NoError(t, e.Close(context.WithoutCancel(ctx)))
	require.NoError(t, <-end)
	require.ErrorIs(t, e.Serve(listen(t, "127.0.0.1:0")), graphd.ErrClosed)
}

func TestServeRefusesOtherMachinesWithoutProtection(t *testing.T) {
	e := open(t, graphd.Options{})
	l := listen(t, ":0")
	err := e.Serve(l)
	refused, ok := errors.AsType[*graphd.ExposureError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "neither TLS nor a way to know who calls", refused.Lacking)
	require.ErrorContains(t, err, "listen at 127.0.0.1")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)

	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "graphd.sock"))
	require.NoError(t, err)
	go func() { _ = e.Serve(socket) }()
	_, err = dial(t, "unix:"+socket.Addr().String()).Registry().GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
}

// The process needs no credentials, and others do: over TLS, by API keys.
func TestServeWithTLSAndCallers(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	made, err := certs.WriteCertificates(certs.Request{Dir: folder, Days: 1, Now: time.Now()})
	require.NoError(t, err)
	keys := filepath.Join(folder, "keys")
	_, token, err := apikey.Create(ctx, keys, apikey.Key{Name: "ana", Roles: []string{"answerer"}}, time.Now())
	require.NoError(t, err)
	e := open(t, graphd.Options{Args: []string{
		"--tls-cert=" + made.Server.Cert, "--tls-key=" + made.Server.Key, "--api-keys=" + keys,
	}}, newOrders())
	l := listen(t, ":0")
	go func() { _ = e.Serve(l) }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	address := "127.0.0.1:" + port

	o, err := e.Invoke(ctx, client.Run{Graph: "orders", Thread: "t1", Input: order{Product: "tea"}})
	require.NoError(t, err)
	require.True(t, o.Waits())
	ca, err := credentials.NewClientTLSFromFile(made.CA, "")
	require.NoError(t, err)
	other := dial(t, address, grpc.WithTransportCredentials(ca))
	_, err = other.Resume(ctx, "t1", client.AnswerTo(o.Questions[0], "yes"))
	require.ErrorIs(t, err, client.NoCredentials)
	_, err = dial(t, address).Resume(ctx, "t1", client.AnswerTo(o.Questions[0], "yes"))
	require.Error(t, err, "in plain text")
	asAna := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	_, err = other.Invoke(asAna, client.Run{Graph: "orders", Thread: "t2", Input: order{}})
	require.ErrorIs(t, err, client.GraphNotFound, "who only answers sees no graphs")
	o, err = other.Resume(asAna, "t1", client.AnswerTo(o.Questions[0], "yes"))
	require.NoError(t, err)
	require.NoError(t, o.Err())
	require.Equal(t, "process", o.Run.GetStartedBy())

	inAcme := metadata.AppendToOutgoingContext(ctx, "graphd-tenant", "acme")
	_, err = e.Invoke(inAcme, client.Run{Graph: "orders", Thread: "t1", Input: order{}})
	require.ErrorIs(t, err, client.GraphNotFound, "another tenant has other graphs")
}

func TestOptionsOfAnEngineAreChecked(t *testing.T) {
	for text, o := range map[string]graphd.Options{
		"graphd: Args have --store, which an engine does not take: use the store of Open": {Args: []string{"--store=memory"}},
		"graphd: Args have --listen, which an engine does not take: use Engine.Serve":     {Args: []string{"--listen", "127.0.0.1:1"}},
		`graphd: Args have "x", which is no option: want options with their values, like --max-live-runs=100`: {
			Args: []string{"x"},
		},
		"graphd: --lease is 1ms: a server must have the time to renew it: want at least 1s, like 15s": {Args: []string{"--lease=1ms"}},
	} {
		_, err := graphd.OpenWith(t.Context(), graphd.Memory(), o)
		require.EqualError(t, err, text)
	}
	_, err := graphd.OpenWith(t.Context(), graphd.Memory(), graphd.Options{Args: []string{"--no-such"}})
	require.ErrorContains(t, err, "no-such")
	require.ErrorContains(t, err, "want options of graphd serve")
	_, err = graphd.Open(t.Context(), graphd.Store{})
	require.EqualError(t, err, `graphd: there is no store: want Memory(), SQLite("app.db") or Redis(url)`)
	_, err = graphd.Open(t.Context(), graphd.Memory(), newOrders(), newOrders())
	require.EqualError(t, err, `graphd: there are two graphs "orders": want each name once, also among subgraphs`)
	_, err = graphd.Open(t.Context(), graphd.Memory(), nil)
	require.EqualError(t, err, "graphd: graph 1 is nil: want graphs of graph.New")
}

// A graph file names functions of the process.
func TestAGraphFileNamesFunctions(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "filed.yaml"), []byte(`
graph: filed
channels: {n: {reducer: remote, function: sum, default: 1}}
nodes: {two: {function: two}}
edges: [START -> two, two -> END]
`), 0o600))
	o := graphd.Options{
		Args: []string{"--graphs=" + folder},
		Functions: graph.Functions{
			"two": func(context.Context, graph.State) (any, error) { return map[string]any{"n": 2}, nil },
		},
		Reducers: map[string]graph.Reduce{"sum": graph.TypedReduce(func(a, b int) (int, error) { return a + b, nil })},
	}
	e := open(t, o)
	run, err := e.Invoke(t.Context(), client.Run{Graph: "filed", Thread: "t", Input: map[string]any{}})
	require.NoError(t, err)
	got, err := client.Output[struct{ N int }](run)
	require.NoError(t, err)
	require.Equal(t, 3, got.N)
}
