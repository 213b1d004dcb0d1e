package links_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/tests/harness"
)

// Graphs with one question each.
const (
	freeGraph = `graph: free
channels: { text: {}, schema: {}, decision: {} }
nodes:
  review:
    ask:
      message: "'Refund ' + string(state.text) + '?'"
      value: { order: state.text, lines: "[1, 2]" }
      schema: { type: object, required: [decision], properties: { decision: { enum: [approved, rejected] }, amount: { type: integer, minimum: 1 } } }
      update: { decision: answer }
edges: [START -> review -> END]
`
	undoGraph = `graph: undo
channels: { text: {}, decision: {} }
nodes:
  review:
    ask: { message: "'Delete?'", undo: 1h, update: { decision: answer } }
edges: [START -> review -> END]
`
	briefGraph = `graph: brief
channels: { text: {}, decision: {} }
nodes:
  review:
    ask: { message: "'Quick?'", ttl: 300ms, update: { decision: answer } }
edges: [START -> review -> END]
`
	peopleGraph = `graph: people
channels: { text: {}, decision: {} }
nodes:
  review:
    ask:
      message: "'Pay ' + string(state.text) + '?'"
      schema: { enum: ["yes", "no"] }
      people: { groups: [finance], approvals: 2, agree: "answer == 'yes'", not_requester: true }
      update: { decision: answer }
edges: [START -> review -> END]
`
	secretGraph = `graph: secret
channels: { text: {}, decision: {} }
nodes:
  review:
    ask:
      message: "'Which account?'"
      schema: { type: object, properties: { iban: { type: string }, why: { type: string } } }
      secret: [/iban]
      update: { decision: answer }
edges: [START -> review -> END]
`
	ownGraph = `graph: own
channels: { text: {}, decision: {} }
nodes:
  review:
    ask: { message: "'Mine?'", people: { users: [ana, ben, eve], not_requester: true }, update: { decision: answer } }
edges: [START -> review -> END]
`
)

// fixture is a server with links, and callers with keys.
type fixture struct {
	harness.Client

	dir    string
	tokens map[string]string
	links  string // base URL
	audit  string // path
	drain  func()
}

// keyLine returns a line of a file of keys of links.
func keyLine(id string, fill byte) string {
	return id + ": " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)) + "\n"
}

// newFiles writes the files of a server, and returns its flags.
func newFiles(t *testing.T, linkKeys string) (f *fixture, flags []string) {
	t.Helper()
	dir := t.TempDir()
	f = &fixture{dir: dir, tokens: map[string]string{}, audit: filepath.Join(dir, "audit.jsonl")}
	graphs, keys := filepath.Join(dir, "graphs"), filepath.Join(dir, "keys.yaml")
	require.NoError(t, os.Mkdir(graphs, 0o700))
	for name, text := range map[string]string{"free": freeGraph, "undo": undoGraph, "brief": briefGraph, "people": peopleGraph, "own": ownGraph, "secret": secretGraph} {
		require.NoError(t, os.WriteFile(filepath.Join(graphs, name+".yaml"), []byte(text), 0o600))
	}
	for name, key := range map[string]apikey.Key{
		"chief": {Roles: []string{"admin"}, Tenants: []string{"default", "acme"}},
		"mail":  {Roles: []string{"linker"}},
		"ana":   {Roles: []string{"answerer", "starter"}, Groups: []string{"finance"}},
		"ben":   {Roles: []string{"answerer"}, Groups: []string{"finance"}},
		"eve":   {Roles: []string{"viewer"}},
	} {
		key.Name = name
		_, token, err := apikey.Create(t.Context(), keys, key, time.Now())
		require.NoError(t, err)
		f.tokens[name] = token
	}
	policy := filepath.Join(dir, "access.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("bindings: [{roles: [admin], principals: [chief], tenants: [acme]}]\n"), 0o600))
	linkFile := filepath.Join(dir, "link-keys")
	require.NoError(t, os.WriteFile(linkFile, []byte(linkKeys), 0o400))
	return f, []string{
		"--graphs", graphs, "--api-keys", keys, "--access", policy, "--link-keys", linkFile, "--links-address", "127.0.0.1:0", "--audit", "file:" + f.audit,
	}
}

// start starts a server in this process.
func start(t *testing.T, flags ...string) *fixture {
	t.Helper()
	f, own := newFiles(t, keyLine("k1", 1))
	return f.serve(t, append(append(own, "--store", "memory"), flags...)...)
}

// serve starts a server with the files of a fixture.
func (f *fixture) serve(t *testing.T, flags ...string) *fixture {
	t.Helper()
	var o server.Options
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(set)
	require.NoError(t, set.Parse(append([]string{"--listen", "127.0.0.1:0"}, flags...)))
	require.NoError(t, o.CompleteOptions(set, func(string) string { return "" }))
	s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	done := false
	f.drain = func() {
		if !done {
			done = true
			require.NoError(t, s.DrainServer(context.WithoutCancel(t.Context())))
		}
	}
	t.Cleanup(f.drain)
	f.Client, f.links = harness.Dial(t, s.Address()), s.LinksURL()
	return f
}

// as returns the context of the calls of a caller.
func (f *fixture) as(t *testing.T, name string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+f.tokens[name])
}

// ask begins a run that asks on a thread of its own, and returns its question.
func (f *fixture) ask(t *testing.T, caller, graph, thread string) *graphdv1.Interrupt {
	t.Helper()
	return f.askIn(t, f.as(t, caller), graph, thread)
}

func (f *fixture) askIn(t *testing.T, ctx context.Context, graph, thread string) *graphdv1.Interrupt {
	t.Helper()
	_, err := f.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"text": "8841"}`)},
	}})
	require.NoError(t, err)
	run, err := f.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread})
	require.NoError(t, err)
	require.NotEmpty(t, run.GetRunId())
	list, err := f.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread})
	require.NoError(t, err)
	require.Len(t, list.GetInterrupts(), 1)
	return list.GetInterrupts()[0]
}

// read reads a question as the chief does.
func (f *fixture) read(t *testing.T, q *graphdv1.Interrupt) *graphdv1.Interrupt {
	t.Helper()
	now, err := f.GetInterrupt(f.as(t, "chief"), &graphdv1.GetInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
	require.NoError(t, err)
	return now
}

// trail reads what happened to a question.
func (f *fixture) trail(t *testing.T, q *graphdv1.Interrupt) []*graphdv1.TrailEntry {
	t.Helper()
	list, err := f.ListTrail(f.as(t, "chief"), &graphdv1.ListTrailRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
	require.NoError(t, err)
	return list.GetEntries()
}

// link makes a link as a caller; "" = a link for the caller.
func (f *fixture) link(t *testing.T, caller string, q *graphdv1.Interrupt, change func(*graphdv1.MakeLinkRequest)) string {
	t.Helper()
	req := &graphdv1.MakeLinkRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()}
	if change != nil {
		change(req)
	}
	made, err := f.MakeLink(f.as(t, caller), req)
	require.NoError(t, err)
	require.Equal(t, f.links+made.GetPath(), made.GetUrl())
	return made.GetUrl()
}

// linkFor returns a change of a request for a link: who answers by it.
func linkFor(name string, groups ...string) func(*graphdv1.MakeLinkRequest) {
	return func(r *graphdv1.MakeLinkRequest) { r.Principal, r.Groups = name, groups }
}

// response is what a browser gets.
type response struct {
	code   int
	body   string
	header http.Header
}

// send sends a request without following redirections.
func send(t *testing.T, method, to, body string) response {
	t.Helper()
	got, err := trySend(t, method, to, body)
	require.NoError(t, err)
	return got
}

func trySend(t *testing.T, method, to, body string) (response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
	require.NoError(t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, string(text), resp.Header}, err
}

func get(t *testing.T, to string) response {
	t.Helper()
	return send(t, http.MethodGet, to, "")
}

var seenForm = regexp.MustCompile(`name="seen" value="([^"]*)"`)

// fill returns the form of a page with some values, as pairs.
func fill(t *testing.T, page response, pairs ...string) string {
	t.Helper()
	require.Equal(t, http.StatusOK, page.code, page.body)
	found := seenForm.FindStringSubmatch(page.body)
	require.NotNil(t, found, page.body)
	values := url.Values{"seen": {found[1]}}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

// post fills the page of a link in, and sends it.
func post(t *testing.T, to string, pairs ...string) response {
	t.Helper()
	return send(t, http.MethodPost, to, fill(t, get(t, to), pairs...))
}

// records reads the records of the audit.
func (f *fixture) records(t *testing.T) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(f.audit)
	require.NoError(t, err)
	var all []map[string]any
	for line := range strings.Lines(string(text)) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		all = append(all, one)
	}
	return all
}

// appendTenant returns the context of calls in a tenant.
func appendTenant(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "graphd-tenant", name)
}

// writeLinkKeys replaces the keys of links.
func (f *fixture) writeLinkKeys(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(f.dir, "link-keys")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o400))
}

// linksURL returns the URL of the links that a server tells in its log.
func linksURL(t *testing.T, s *harness.Server) string {
	t.Helper()
	_, rest, ok := strings.Cut(s.WaitForLine(`"msg":"serving"`), `"links":"`)
	require.True(t, ok)
	at, _, _ := strings.Cut(rest, `"`)
	return at
}
