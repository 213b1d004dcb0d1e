package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/audit/file"
	"github.com/graphd-dev/graphd/internal/cli/auditlog"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

func at(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }

// records are those of a short life of a server.
func records() []audit.Record {
	since := at(3)
	return []audit.Record{
		{Kind: audit.KindStart, Time: at(1), Server: "host graphd v1"},
		{
			Kind: audit.KindCall, Time: at(2), Principal: "alice", Tenant: "acme", Method: "graphd.v1.GraphService/ResumeRun", Outcome: audit.OutcomeOK,
			Thread: "order-7", Run: "r1", Remote: "10.0.0.9:5", Questions: []audit.Question{{ID: "q1", Value: "canonical:50"}, {Dismissed: true}},
			What: map[string][]string{"resume.coverage": {"ALL"}},
		},
		{
			Kind: audit.KindCall, Time: at(3), Method: "graphd.v1.ThreadService/DeleteThread", Outcome: audit.OutcomeRefused,
			Code: "UNAUTHENTICATED", Reason: "NO_CREDENTIALS", Thread: "order-8\u202e\x1b[31m",
		},
		{Kind: audit.KindGap, Time: at(4), Lost: 7, LostSince: &since, Unauthenticated: 5},
		{Kind: audit.KindStop, Time: at(5), Server: "host graphd v1"},
	}
}

// writeFile writes records, and returns the path of their file.
func writeFile(t *testing.T, list ...audit.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := file.Open(file.Options{Path: path})
	require.NoError(t, err)
	_, err = f.WriteRecords(t.Context(), list)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return path
}

func show(t *testing.T, r auditlog.Request, format output.Format) (out, complaints string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = auditlog.ShowRecords(t.Context(), r, output.Output{IO: output.IO{In: strings.NewReader(""), Out: &o, Err: &e}, Format: format})
	return o.String(), e.String(), err
}

func TestRecordsForPeople(t *testing.T) {
	out, complaints, err := show(t, auditlog.Request{Files: []string{writeFile(t, records()...)}}, output.Text)
	require.NoError(t, err)
	require.Empty(t, complaints)
	require.Equal(t, `2026-11-23T01:00:00Z  start  host graphd v1
2026-11-23T02:00:00Z  ok  alice  GraphService/ResumeRun  thread order-7  run r1  tenant acme  from 10.0.0.9:5  question q1 canonical:50  question - dismissed  resume.coverage=ALL
2026-11-23T03:00:00Z  refused NO_CREDENTIALS  -  ThreadService/DeleteThread  thread order-8\u{202e}\u{1b}[31m
2026-11-23T04:00:00Z  gap  7 records are lost  since 2026-11-23T03:00:00Z  5 of them of calls with wrong credentials
2026-11-23T05:00:00Z  stop  host graphd v1
`, out)
}

func TestRecordsForPrograms(t *testing.T) {
	path := writeFile(t, records()...)
	for _, format := range []output.Format{output.JSON, output.JSONL} {
		out, _, err := show(t, auditlog.Request{Files: []string{path}}, format)
		require.NoError(t, err)
		decode := json.NewDecoder(strings.NewReader(out))
		var threads []string
		for {
			var l audit.Line
			err := decode.Decode(&l)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			threads = append(threads, l.Thread)
		}
		require.Equal(t, []string{"", "order-7", "order-8\u202e\x1b[31m", "", ""}, threads)
		require.NotContains(t, out, "\u202e")
	}
}

func TestSelection(t *testing.T) {
	path := writeFile(t, records()...)
	for name, c := range map[string]struct {
		selection auditlog.Selection
		lines     int
	}{
		"since": {auditlog.Selection{Since: at(4)}, 2}, "principal": {auditlog.Selection{Principal: "alice"}, 1},
		"other principal": {auditlog.Selection{Principal: "ali"}, 0}, "tenant": {auditlog.Selection{Tenant: "acme"}, 1},
		"thread": {auditlog.Selection{Thread: "order-7"}, 1}, "refused": {auditlog.Selection{Refused: true}, 1},
		"method": {auditlog.Selection{Method: "ResumeRun"}, 1}, "part of a method": {auditlog.Selection{Method: "Run"}, 0},
		"service": {auditlog.Selection{Method: "GraphService/ResumeRun"}, 1}, "full": {auditlog.Selection{Method: "/graphd.v1.GraphService/ResumeRun"}, 1},
		"question": {auditlog.Selection{Question: "q1"}, 1}, "both": {auditlog.Selection{Principal: "alice", Refused: true}, 0},
	} {
		out, _, err := show(t, auditlog.Request{Files: []string{path}, Selection: c.selection}, output.Text)
		require.NoError(t, err)
		require.Equal(t, c.lines, strings.Count(out, "\n"), name)
	}
}

// A method that graphd does not have would select nothing, and look as if nothing was called.
func TestUnknownMethodsAreRefused(t *testing.T) {
	for _, name := range []string{
		"", "ResumeRun", "GraphService/ResumeRun", "graphd.v1.GraphService/ResumeRun", "/graphd.v1.GraphService/ResumeRun", "Watch",
	} {
		require.NoError(t, auditlog.CheckMethod(name), name)
	}
	for name, want := range map[string]string{
		"Foo":                           "--method \"Foo\" is no method of graphd; known: ActivateAssistantVersion, AddRunWebhook, AnswerInterrupts, BulkUpdateState, ",
		"resumerun":                     `did you mean "ResumeRun"?`,
		"GraphService/ResumeRuns":       `did you mean "GraphService/ResumeRun"?`,
		"graphd.v1.GraphService/Delete": "known: AssistantService/ActivateAssistantVersion,",
		"GraphService":                  "is no method",
		"Run":                           "is no method",
		"ExecuteTask":                   "is no method", // graphd calls it and does not serve it
		"\x1b[31m":                      `--method "\x1b[31m" is no method`,
	} {
		err := auditlog.CheckMethod(name)
		var refused *exit.UsageError
		require.ErrorAs(t, err, &refused, name)
		require.ErrorContains(t, err, want)
		require.Contains(t, refused.Hint, "GraphService/Resume")
	}
}

func TestParseSince(t *testing.T) {
	for text, want := range map[string]time.Time{"": {}, "24h": at(0).Add(-24 * time.Hour), "7d": at(0).Add(-7 * 24 * time.Hour), "2026-11-23T02:00:00+01:00": at(1)} {
		got, err := auditlog.ParseSince(text, at(0))
		require.NoError(t, err)
		require.True(t, want.Equal(got), text)
	}
	for _, text := range []string{"yesterday", "-1h", "24", "-1d", "d", "1.5d", "99999d"} {
		_, err := auditlog.ParseSince(text, at(0))
		require.Equal(t, exit.CodeUsage, exit.CodeOf(err), text)
	}
}

func TestCheckFindsAnEdit(t *testing.T) {
	path := writeFile(t, records()...)
	out, _, err := show(t, auditlog.Request{Files: []string{path}, CheckOnly: true}, output.Text)
	require.NoError(t, err)
	require.Regexp(t, "^the last line is number 5 with the digest [0-9a-f]{64}\n$", out)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte("alice"), []byte("bobby"), 1), 0o600))
	out, complaints, err := show(t, auditlog.Request{Files: []string{path}, CheckOnly: true}, output.JSONL)
	require.ErrorContains(t, err, "1 defects")
	require.Equal(t, exit.CodeError, exit.CodeOf(err))
	require.Contains(t, complaints, "audit.jsonl line 3: the line before this one is not the one that was written")
	require.Contains(t, out, `"last":5`)
	require.Contains(t, out, `"defects":1`)
}

func TestFilesThatCannotBeShown(t *testing.T) {
	_, _, err := show(t, auditlog.Request{Files: []string{t.TempDir()}}, output.Text)
	require.Equal(t, exit.CodeUsage, exit.CodeOf(err))
	_, _, err = show(t, auditlog.Request{Files: []string{filepath.Join(t.TempDir(), "missing")}}, output.Text)
	require.Equal(t, exit.CodeError, exit.CodeOf(err))
	_, _, err = show(t, auditlog.Request{Files: []string{filepath.Join(t.TempDir(), "audit.jsonl.*")}}, output.Text)
	hinted, ok := errors.AsType[*exit.HintError](err)
	require.True(t, ok)
	require.Contains(t, hinted.Hint, "no file matches the pattern")
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("a\x1b[31m\nb\n"), 0o600))
	_, complaints, err := show(t, auditlog.Request{Files: []string{foreign}}, output.Text)
	require.ErrorContains(t, err, "no chain")
	require.Equal(t, 2, strings.Count(complaints, "is not a record"))
	require.NotContains(t, complaints, "\x1b")
}

// lockedBuffer is a buffer that a test reads while a command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// A follower sees new lines, and those of the next file when the file is moved.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := file.Open(file.Options{Path: path})
	require.NoError(t, err)
	write := func(thread string) {
		_, err := f.WriteRecords(t.Context(), []audit.Record{{Kind: audit.KindCall, Thread: thread}})
		require.NoError(t, err)
	}
	write("one")
	var out, complaints lockedBuffer
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- auditlog.ShowRecords(ctx, auditlog.Request{Files: []string{path}, Follow: true},
			output.Output{IO: output.IO{Out: &out, Err: &complaints}, Format: output.Text})
	}()
	saw := func(text string) {
		require.Eventually(t, func() bool { return out.has(text) }, time.Minute, time.Millisecond)
	}
	saw("thread one")
	write("two")
	saw("thread two")
	require.NoError(t, os.Rename(path, path+".1"))
	write("three")
	saw("thread three")
	cancel()
	require.NoError(t, <-ended)
	require.Empty(t, complaints.b.String())
	require.NoError(t, f.Close())
}
