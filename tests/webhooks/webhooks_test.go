package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

const graphText = `graph: refund
channels: { order: {}, decision: {} }
nodes:
  review:
    ask:
      message: "'Refund ' + string(state.order) + '?'"
      value: { order: state.order }
      update: { decision: answer }
edges: [START -> review -> END]
`

// writeFiles writes the graph and the file of endpoints, and returns the flags that name them.
func writeFiles(t *testing.T, endpoints string) []string {
	t.Helper()
	dir := t.TempDir()
	graphs := filepath.Join(dir, "graphs")
	require.NoError(t, os.Mkdir(graphs, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(graphs, "refund.yaml"), []byte(graphText), 0o600))
	file := filepath.Join(dir, "webhooks.yaml")
	require.NoError(t, os.WriteFile(file, []byte(endpoints), 0o600))
	return []string{"--graphs", graphs, "--webhooks", file, "--webhook-allow", "127.0.0.1", "--lease", "2s"}
}

// endpointsText returns a file with one endpoint.
func endpointsText(r *receiver) string { return "endpoints:\n" + endpointText("mail", r.URL) }

// endpointText returns an endpoint of a file.
func endpointText(name, url string) string {
	return "- name: " + name + "\n  url: " + url + "/hook\n  secrets: [{ value: " + secretText() + " }]\n"
}

// startServer starts a server in this process.
func startServer(t *testing.T, flags ...string) harness.Client {
	t.Helper()
	var o server.Options
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(set)
	require.NoError(t, set.Parse(append([]string{"--listen", "127.0.0.1:0"}, flags...)))
	s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	t.Cleanup(func() { require.NoError(t, s.DrainServer(context.WithoutCancel(t.Context()))) })
	return harness.Dial(t, s.Address())
}

// ask begins a run that asks, on a thread of its own.
func ask(t *testing.T, c harness.Client, thread string) {
	t.Helper()
	_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: "refund",
		Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"order": 8841}`)},
	}})
	require.NoError(t, err)
}

// answer answers a question.
func answer(t *testing.T, c harness.Client, e *event) {
	t.Helper()
	_, err := c.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: e.Data.Interrupt.ThreadID,
		Responses: []*graphdv1.InterruptResponse{{
			InterruptId: e.Subject, Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"yes"`)},
		}},
	}})
	require.NoError(t, err)
}

// hasEvents reports whether there are so many events, repetitions aside.
func hasEvents(n int) func([]event) bool {
	return func(list []event) bool {
		all := 0
		for _, kinds := range kindsOf(list) {
			all += len(kinds)
		}
		return all >= n
	}
}

func TestWebhooksTellOfAQuestion(t *testing.T) {
	r := newReceiver(t)
	c := startServer(t, append(writeFiles(t, endpointsText(r)), "--store", "memory")...)
	ask(t, c, "order-7")
	asked := r.waitFor(t, "asked", hasEvents(1))[0]
	require.Equal(t, "1.0", asked.SpecVersion)
	require.Equal(t, "order-7/"+asked.Subject+"/1", asked.ID)
	require.Equal(t, "/tenants/default/threads/order-7", asked.Source)
	require.Equal(t, "dev.graphd.interrupt.asked", asked.Type)
	require.Equal(t, "Refund 8841?", asked.Data.Interrupt.Message)
	require.Equal(t, "INTERRUPT_STATE_OPEN", asked.Data.Interrupt.State)
	require.Equal(t, "TRAIL_KIND_ASKED", asked.Data.Entry.Kind)
	require.Len(t, asked.Data.Entry.Digest, 64)
	answer(t, c, &asked)
	list := r.waitFor(t, "answered and used", hasEvents(3))
	require.Equal(t, map[string][]string{"order-7": {"asked", "answered", "used"}}, kindsOf(list))
	require.Len(t, list, 3, "nothing is sent twice")
	threads, err := c.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{})
	require.NoError(t, err)
	require.Len(t, threads.GetThreads(), 1, "the place of the endpoint is no thread of clients")
}

// startProcess starts a graphd of its own process.
func startProcess(t *testing.T, store string, flags ...string) *harness.Server {
	t.Helper()
	return harness.StartServer(t, []string{built.Graphd(t)}, store, flags...)
}

func TestEventsOutliveServers(t *testing.T) {
	r := newReceiver(t)
	r.answerWith(http.StatusServiceUnavailable)
	flags := writeFiles(t, endpointsText(r))
	store := "sqlite:" + filepath.Join(t.TempDir(), "graphd.db")
	s := startProcess(t, store, flags...)
	ask(t, s.Client, "a")
	r.waitForRefusals(t, 1)
	s.Kill()
	s = startProcess(t, store, flags...)
	ask(t, s.Client, "b")
	r.waitForRefusals(t, r.countRefused()+2)
	s.Kill()
	r.answerWith(0)
	s = startProcess(t, store, flags...)
	list := r.waitFor(t, "both", hasEvents(2))
	for i := range list {
		answer(t, s.Client, &list[i])
	}
	list = r.waitFor(t, "all", hasEvents(6))
	want := []string{"asked", "answered", "used"}
	require.Equal(t, map[string][]string{"a": want, "b": want}, kindsOf(list))
}

// Two servers share a Redis, and one of them is killed again and again.
func TestServersTakeOver(t *testing.T) {
	r := newReceiver(t)
	flags := writeFiles(t, endpointsText(r))
	store := redistest.Start(t).URL("")
	servers := []*harness.Server{startProcess(t, store, flags...), startProcess(t, store, flags...)}
	const rounds, questions = 4, 25
	n := 0
	for round := range rounds {
		for range questions {
			ask(t, servers[(round+1)%2].Client, fmt.Sprint("t", n))
			n++
		}
		servers[round%2].Kill()
		servers[round%2] = startProcess(t, store, flags...)
	}
	list := r.waitFor(t, "all that were asked", hasEvents(n))
	answered := map[string]bool{}
	for i := range list {
		if thread := list[i].Data.Interrupt.ThreadID; !answered[thread] {
			answered[thread] = true
			answer(t, servers[0].Client, &list[i])
		}
	}
	list = r.waitFor(t, "all", hasEvents(3*n))
	for thread, kinds := range kindsOf(list) {
		require.Equal(t, []string{"asked", "answered", "used"}, kinds, thread)
	}
	t.Logf("%d events for %d entries", len(list), 3*n)
}

func TestAPrivateAddressIsRefused(t *testing.T) {
	var o server.Options
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(set)
	r := newReceiver(t)
	flags := writeFiles(t, endpointsText(r))
	require.NoError(t, set.Parse(append(flags, "--listen", "127.0.0.1:0", "--store", "memory")))
	o.WebhookAllow = nil
	_, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.ErrorContains(t, err, "endpoints[0].url is refused")
	require.ErrorContains(t, err, "--webhook-allow 127.0.0.1:")

	// A name is only looked up when it is dialled.
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	require.NoError(t, os.WriteFile(file, []byte(
		"endpoints:\n- name: mail\n  url: https://localhost:"+port+"\n  secrets: [{ value: "+secretText()+" }]\n"), 0o600))
	core, logs := observer.New(zap.WarnLevel)
	o.Webhooks = file
	s, err := server.NewServer(t.Context(), o, zap.New(core), "test")
	require.NoError(t, err)
	s.StartServing()
	defer func() { require.NoError(t, s.DrainServer(context.WithoutCancel(t.Context()))) }()
	ask(t, harness.Dial(t, s.Address()), "a")
	require.Eventually(t, func() bool {
		return logs.FilterMessage("the endpoint does not take an event; it is sent again").Len() > 0
	}, time.Minute, 10*time.Millisecond)
	line := logs.FilterMessage("the endpoint does not take an event; it is sent again").All()[0]
	require.Contains(t, line.ContextMap()["error"], "is not allowed")
	require.Empty(t, r.taken(t))
}

func TestARedirectionIsNotFollowed(t *testing.T) {
	elsewhere := newReceiver(t)
	r := newReceiver(t)
	r.redirect = elsewhere.URL
	r.answerWith(http.StatusTemporaryRedirect)
	c := startServer(t, append(writeFiles(t, endpointsText(r)), "--store", "memory")...)
	ask(t, c, "a")
	r.waitForRefusals(t, 2)
	require.Empty(t, elsewhere.taken(t))
	r.answerWith(0)
	r.waitFor(t, "asked", hasEvents(1))
}

// newHangingEndpoint makes an endpoint that never answers, and tells of the first requests.
func newHangingEndpoint(t *testing.T) (url string, requests chan struct{}) {
	t.Helper()
	requests = make(chan struct{}, notify.MaxInFlight)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body) // only then it is seen that the client is gone
		select {
		case requests <- struct{}{}:
		default:
		}
		<-req.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// An endpoint that hangs, with as many requests as it may have, delays no event of another one.
func TestAnEndpointThatHangsDelaysNoOther(t *testing.T) {
	const questions = 2 * notify.MaxInFlight
	hanging, requests := newHangingEndpoint(t)
	live := newReceiver(t)
	c := startServer(t, append(writeFiles(t, endpointsText(live)+endpointText("hanging", hanging)), "--store", "memory")...)
	for n := range questions {
		ask(t, c, fmt.Sprint("t", n))
		live.waitFor(t, "each question before the next one", hasEvents(n+1))
	}
	require.Eventually(t, func() bool { return len(requests) == notify.MaxInFlight }, time.Minute, 10*time.Millisecond)
}
