package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/server"
)

// The graph makes askedSecret itself, so that it is not in the graph either.
const (
	askedSecret  = "asked-4111"
	answerSecret = "answer-7777"
)

const secretGraph = `graph: pay
channels: {order: {}, digits: {}, note: {}}
nodes:
  review:
    ask:
      message: "'Charge order ' + string(state.order) + '?'"
      value: {card: "'asked-' + string(4000 + 111)", order: state.order}
      secret: [/card]
      schema: {type: object, required: [card], properties: {card: {type: string, maxLength: 20}, ok: {type: boolean}}}
      people: {users: [ana, ben], reveal: {users: [ana]}, approvals: 1}
      update: {digits: size(answer.card)}
edges: [START -> review -> END]
`

// secretServer is a server on an encrypted store with an audit, webhooks and its log.
type secretServer struct {
	*peopleServer

	logs   *observer.ObservedLogs
	folder string // has the audit

	mu     sync.Mutex
	events strings.Builder // what the webhook got
}

func startSecretServer(t *testing.T, store string) *secretServer {
	t.Helper()
	s := &secretServer{peopleServer: &peopleServer{tokens: map[string]string{}}, folder: t.TempDir()}
	write := func(name, text string) string {
		path := filepath.Join(s.folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events.Write(body)
	}))
	t.Cleanup(hook.Close)
	keys := filepath.Join(s.folder, "keys.yaml")
	for _, name := range []string{"ana", "ben", "carl"} {
		_, token, err := apikey.Create(t.Context(), keys, apikey.Key{Name: name, Roles: []string{"admin"}}, time.Now())
		require.NoError(t, err)
		s.tokens[name] = token
	}
	core, logs := observer.New(zap.DebugLevel)
	s.logs = logs
	o := server.Options{
		Listen: "127.0.0.1:0", Store: store, Lease: 2 * time.Second, EncryptionKeys: write("sealing", "k1: "+testKey("1")+"\n"), CallerOptions: server.CallerOptions{APIKeys: keys},
		AuditOptions: server.AuditOptions{Audit: []string{"file:" + filepath.Join(s.folder, "audit.log")}, AuditReads: true},
		WebhookOptions: server.WebhookOptions{
			Webhooks:     write("hooks.yaml", "endpoints:\n- name: mail\n  url: "+hook.URL+"\n  secrets: [{file: "+write("hook.key", "whsec_"+testKey("w"))+"}]\n"),
			WebhookAllow: []string{strings.TrimPrefix(hook.URL, "http://")},
		},
	}
	started, err := server.NewServer(t.Context(), o, zap.New(core), "test")
	require.NoError(t, err)
	started.StartServing()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, started.DrainServer(ctx))
	})
	s.conn, err = grpc.NewClient(started.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.conn.Close()) })
	_, err = graphdv1.NewRegistryServiceClient(s.conn).PutGraph(s.as(t, "ana"), putRequest(secretGraph))
	require.NoError(t, err)
	return s
}

// notified returns what the webhook has got.
func (s *secretServer) notified() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events.String()
}

// requireAbsent checks that the secrets are in no text.
func requireAbsent(t *testing.T, what, text string) {
	t.Helper()
	require.NotContains(t, text, askedSecret, what)
	require.NotContains(t, text, answerSecret, what)
}

// readAll calls what shows questions, runs, states and events, and checks that none shows a secret.
func (s *secretServer) readAll(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithCancel(s.as(t, "ana"))
	defer cancel()
	interrupts, threads, runs := graphdv1.NewInterruptServiceClient(s.conn), graphdv1.NewThreadServiceClient(s.conn), graphdv1.NewGraphServiceClient(s.conn)
	check := func(m proto.Message, err error) {
		t.Helper()
		require.NoError(t, err)
		text, err := protojson.Marshal(m)
		require.NoError(t, err)
		requireAbsent(t, string(m.ProtoReflect().Descriptor().Name()), string(text)+fmt.Sprint(m))
	}
	thread := &graphdv1.WaitRunRequest{ThreadId: "t"}
	calls := []func() (proto.Message, error){
		func() (proto.Message, error) {
			return interrupts.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: "t", InterruptId: id})
		},
		func() (proto.Message, error) {
			return interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: "t", Filter: `state = "*"`})
		},
		func() (proto.Message, error) {
			return interrupts.ListTrail(ctx, &graphdv1.ListTrailRequest{ThreadId: "t", InterruptId: id})
		},
		func() (proto.Message, error) { return threads.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "t"}) },
		func() (proto.Message, error) {
			return threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "t"})
		},
		func() (proto.Message, error) {
			return threads.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "t"})
		},
		func() (proto.Message, error) { return runs.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "t"}) },
		func() (proto.Message, error) { return runs.WaitRun(ctx, thread) },
	}
	for _, call := range calls {
		check(call())
	}
	watch, err := runs.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "t"})
	require.NoError(t, err)
	shown := ""
	for {
		event, err := watch.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		check(event, err)
		shown += fmt.Sprint(event)
	}
	require.Contains(t, shown, id)
	changes, err := interrupts.WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	check(changes.Recv())
}

// A secret is in nothing that is shown and in nothing that is stored readably; the node
// gets it, and who may see it, with one entry for each look.
func TestSecretPartsAreShownToNobodyElse(t *testing.T) {
	folder, redis := t.TempDir(), redistest.Start(t)
	for store, files := range map[string]string{
		"sqlite:" + filepath.Join(folder, "g.db"): folder,
		redis.URL(""): redis.Client.ConfigGet(t.Context(), "dir").Val()["dir"],
	} {
		kind, _, _ := strings.Cut(store, ":")
		t.Run(kind, func(t *testing.T) {
			s := startSecretServer(t, store)
			runs, interrupts := graphdv1.NewGraphServiceClient(s.conn), graphdv1.NewInterruptServiceClient(s.conn)
			stream, err := runs.Stream(s.as(t, "carl"), &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{
				ThreadId: "t", CreateThread: true, Graph: "pay", Start: &graphdv1.RunSpec_Input{Input: jsonPayload(`{"order": 7}`)},
			}})
			require.NoError(t, err)
			for {
				event, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				requireAbsent(t, "stream", fmt.Sprint(event))
			}
			q := s.question(t, "t")
			require.JSONEq(t, `{"card":{"__redacted__":true},"order":7}`, q.GetValue().GetJson())
			require.Equal(t, []string{"/card"}, q.GetSecret())
			s.readAll(t, q.GetInterruptId())

			err = s.answer(t, "ResumeRun", "ben", "t", `{"card": "`+answerSecret+strings.Repeat("x", 20)+`"}`)
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			requireAbsent(t, "error", fmt.Sprint(status.Convert(err).Details(), err))
			_, err = interrupts.RevealInterrupt(s.as(t, "ben"), &graphdv1.RevealInterruptRequest{ThreadId: "t", InterruptId: q.GetInterruptId()})
			require.Equal(t, "reveal", refusalRule(t, err))
			requireAbsent(t, "error", fmt.Sprint(status.Convert(err).Details(), err))
			seen, err := interrupts.RevealInterrupt(s.as(t, "ana"), &graphdv1.RevealInterruptRequest{ThreadId: "t", InterruptId: q.GetInterruptId(), Note: "to check"})
			require.NoError(t, err)
			require.JSONEq(t, `{"card":"asked-4111","order":7}`, seen.GetValue().GetJson())

			require.NoError(t, s.answer(t, "ResumeRun", "ben", "t", `{"card": "`+answerSecret+`"}`))
			run, err := runs.WaitRun(s.as(t, "ana"), &graphdv1.WaitRunRequest{ThreadId: "t"})
			require.NoError(t, err)
			require.JSONEq(t, fmt.Sprintf(`{"order":7,"digits":%d}`, len(answerSecret)), run.GetOutput().GetJson(), "the node was given the answer")
			seen, err = interrupts.RevealInterrupt(s.as(t, "ana"), &graphdv1.RevealInterruptRequest{ThreadId: "t", InterruptId: q.GetInterruptId()})
			require.NoError(t, err)
			require.JSONEq(t, `{"card":"answer-7777"}`, seen.GetResponse().GetJson())
			trail, err := interrupts.ListTrail(s.as(t, "ana"), &graphdv1.ListTrailRequest{ThreadId: "t", InterruptId: q.GetInterruptId()})
			require.NoError(t, err)
			looks := 0
			for _, e := range trail.GetEntries() {
				if e.GetKind() == graphdv1.TrailKind_TRAIL_KIND_REVEALED {
					looks++
					require.Equal(t, "ana", e.GetPrincipal())
					require.Equal(t, []string{"/card"}, e.GetFields())
				}
			}
			require.Equal(t, 2, looks)
			s.readAll(t, q.GetInterruptId())

			require.Eventually(t, func() bool { return strings.Count(s.notified(), "interrupt.revealed") == 2 }, time.Minute, 10*time.Millisecond, "%s", s.notified())
			requireAbsent(t, "webhook", s.notified())
			requireAbsent(t, "log", logText(s.logs))
			audit, err := os.ReadFile(filepath.Join(s.folder, "audit.log"))
			require.NoError(t, err)
			require.Contains(t, string(audit), "InterruptService/RevealInterrupt")
			requireAbsent(t, "audit", string(audit))
			require.NotContains(t, string(audit), payload.CanonicalDigest(`{"card":"`+answerSecret+`"}`), "a digest tells what can be guessed")
			require.Contains(t, string(audit), payload.CanonicalDigest(`{"card":{"__redacted__":true}}`))
			dumped := commandRunner{}.runCommand(t, "store", "dump", "t", "--store", store, "--encryption-keys", filepath.Join(s.folder, "sealing"))
			require.Equal(t, exit.CodeDone, dumped.code, dumped.err)
			require.Contains(t, dumped.out, `"hidden":"(secret)"`)
			requireAbsent(t, "dump", dumped.out)
			for _, secret := range []string{askedSecret, answerSecret} {
				require.False(t, containsText(t, files, secret), secret)
			}
			if kind == "redis" {
				for _, key := range redis.Client.Keys(t.Context(), "*").Val() {
					requireAbsent(t, key, redis.Client.Dump(t.Context(), key).Val())
				}
			}
		})
	}
}

// A server that stores its records readably refuses the graph.
func TestSecretsNeedKeys(t *testing.T) {
	c := startServerWith(t, server.Options{Store: "sqlite:" + filepath.Join(t.TempDir(), "g.db")})
	file := filepath.Join(t.TempDir(), "pay.yaml")
	document := strings.Replace(secretGraph, "      people: {users: [ana, ben], reveal: {users: [ana]}, approvals: 1}\n", "", 1)
	require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
	r := c.runCommand(t, "graph", "put", file)
	require.NotEqual(t, exit.CodeDone, r.code)
	require.Contains(t, r.err, "nodes.review.ask.secret")
	require.Contains(t, r.err, "--encryption-keys")
	memory := startServerWith(t, server.Options{Store: "memory"})
	r = memory.runCommand(t, "graph", "put", file)
	require.Equal(t, exit.CodeDone, r.code, r.err)

	r = memory.runCommand(t, "run", "pay", "--thread", "t", "--input", `{"order": 7}`)
	require.Equal(t, 3, r.code, r.err)
	require.NotContains(t, r.out, askedSecret)
	require.Contains(t, r.out, "(secret)")
	r = memory.runCommand(t, "inbox", "show", "t")
	require.Contains(t, r.out, "secret    /card; for those who may answer")
	r = memory.runCommand(t, "inbox", "reveal", "t", "--note", "to check")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	require.Contains(t, r.out, askedSecret)
	r = memory.runCommand(t, "inbox", "trail", "t")
	require.Contains(t, r.out, "revealed")
	require.Contains(t, r.out, "what  /card")
	require.Contains(t, r.out, "| to check")
	r = memory.runCommand(t, "inbox", "reveal", "t", "--part", "/order")
	require.Contains(t, r.err, "INVALID_FIELD")
}
