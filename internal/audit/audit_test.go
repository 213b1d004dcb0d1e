package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/backoff"
)

// fakeSink keeps records, unless it is told to fail or to wait.
type fakeSink struct {
	mu      sync.Mutex
	written []audit.Record
	err     error
	takes   int // records that it takes of a batch that fails
	hold    chan struct{}
	panics  bool
}

func (s *fakeSink) WriteRecords(ctx context.Context, list []audit.Record) (int, error) {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		s.panics = false
		panic("a defect")
	}
	if s.err != nil {
		n := min(s.takes, len(list))
		s.written = append(s.written, list[:n]...)
		return n, s.err
	}
	s.written = append(s.written, list...)
	return len(list), nil
}

func (s *fakeSink) set(change func(s *fakeSink)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// list describes what was written: kind, and thread or number of lost records.
func (s *fakeSink) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.written {
		switch r.Kind {
		case audit.KindCall:
			all = append(all, r.Thread)
		case audit.KindGap:
			all = append(all, fmt.Sprintf("gap %d/%d", r.Lost, r.Unauthenticated))
		case audit.KindStart, audit.KindStop:
			all = append(all, string(r.Kind))
		}
	}
	return all
}

// countingMetrics counts by sink.
type countingMetrics struct {
	mu      sync.Mutex
	written map[string]int
	lost    int
}

func (m *countingMetrics) CountAuditRecord(name string, outcome audit.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.written == nil {
		m.written = map[string]int{}
	}
	m.written[name+" "+string(outcome)]++
}

func (m *countingMetrics) CountLostAuditRecords(_ string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost += n
}

func call(thread string) audit.Record { return audit.Record{Outcome: audit.OutcomeOK, Thread: thread} }

func TestLogWritesToEverySink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, metrics := &fakeSink{}, &fakeSink{}, &countingMetrics{}
		l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "one", Sink: one}, {Name: "two", Sink: two}}, audit.Options{Server: "h", Metrics: metrics})
		l.RecordCall(call("a"))
		synctest.Wait()
		require.Equal(t, []string{"start", "a"}, one.list())
		l.RecordCall(call("b"))
		l.Close(t.Context())
		l.RecordCall(call("late"))
		want := []string{"start", "a", "b", "stop"}
		require.Equal(t, want, one.list())
		require.Equal(t, want, two.list())
		require.Equal(t, map[string]int{"one ok": 2, "two ok": 2}, metrics.written)
		require.Equal(t, 2, metrics.lost, "what comes after the end")
	})
}

// A sink that is broken keeps its records while there is room, and those that are lost
// are told when it works again.
func TestABrokenSinkHoldsUpNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		broken, healthy, metrics := &fakeSink{err: errors.New("disk full")}, &fakeSink{}, &countingMetrics{}
		l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "broken", Sink: broken}, {Name: "healthy", Sink: healthy}},
			audit.Options{QueueBytes: 4000, Metrics: metrics, Logger: zap.New(core)})
		synctest.Wait()
		for i := range 20 {
			l.RecordCall(call(fmt.Sprintf("t%02d", i)))
			synctest.Wait()
		}
		require.Len(t, healthy.list(), 21)
		require.NoError(t, backoff.Sleep(t.Context(), time.Hour))
		synctest.Wait()
		lost := metrics.lost
		require.Positive(t, lost)
		failed := logs.FilterMessageSnippet("can't be written").Len()
		require.LessOrEqual(t, failed, 61, "log lines of a sink that fails are bounded")
		require.Positive(t, failed)
		broken.set(func(s *fakeSink) { s.takes = 1 })
		require.NoError(t, backoff.Sleep(t.Context(), 15*time.Second)) // a record at least
		broken.set(func(s *fakeSink) { s.err = nil })
		require.NoError(t, backoff.Sleep(t.Context(), time.Minute))
		synctest.Wait()
		got := broken.list()
		require.Equal(t, "start", got[0])
		require.Equal(t, fmt.Sprintf("gap %d/0", lost), got[len(got)-1])
		require.Len(t, got, 20-lost+2)
		require.Equal(t, 1, logs.FilterMessageSnippet("written again").Len())
		l.Close(t.Context())
	})
}

// The record of a gap has the time of the first record that is lost, whatever is lost after
// it.
func TestAGapTellsSinceWhenRecordsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{err: errors.New("away")}
		l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "s", Sink: sink}}, audit.Options{QueueBytes: 1200})
		l.RecordCall(call("kept"))
		require.NoError(t, backoff.Sleep(t.Context(), time.Minute))
		since := time.Now()
		l.RecordCall(call("lost"))
		require.NoError(t, backoff.Sleep(t.Context(), time.Minute))
		l.RecordCall(call("lost later"))
		sink.set(func(s *fakeSink) { s.err = nil })
		require.NoError(t, backoff.Sleep(t.Context(), time.Minute))
		l.Close(t.Context())
		require.Equal(t, []string{"start", "kept", "gap 2/0", "stop"}, sink.list())
		require.Equal(t, since.UTC(), sink.written[2].LostSince.UTC())
	})
}

func TestWhatCannotBeWrittenBeforeTheEndIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, sink := range []*fakeSink{{err: errors.New("away")}, {hold: make(chan struct{})}} {
			core, logs := observer.New(zap.InfoLevel)
			metrics := &countingMetrics{}
			l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "s", Sink: sink}}, audit.Options{Metrics: metrics, Logger: zap.New(core)})
			l.RecordCall(call("a"))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			l.Close(ctx)
			cancel()
			require.Equal(t, 1, logs.FilterMessageSnippet("before the server ended").Len())
			require.Positive(t, metrics.lost)
			require.Empty(t, sink.list())
		}
	})
}

func TestARejectedRecordIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, spoil := range []func(*fakeSink){
			func(s *fakeSink) { s.err = fmt.Errorf("too large: %w", audit.ErrRejected) },
			func(s *fakeSink) { s.panics = true },
		} {
			sink := &fakeSink{}
			l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "s", Sink: sink}}, audit.Options{})
			synctest.Wait()
			sink.set(spoil)
			l.RecordCall(call("a"))
			synctest.Wait()
			sink.set(func(s *fakeSink) { s.err = nil })
			l.RecordCall(call("b"))
			l.Close(t.Context())
			require.ElementsMatch(t, []string{"start", "b", "stop", "gap 1/0"}, sink.list())
		}
	})
}

// Callers with wrong credentials can't fill the sinks.
func TestRecordsOfUnknownCallersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{}
		l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "s", Sink: sink}}, audit.Options{})
		for range 1000 {
			l.RecordCall(audit.Record{Outcome: audit.OutcomeRefused, Code: "UNAUTHENTICATED", Thread: "unknown"})
		}
		l.RecordCall(call("known"))
		require.NoError(t, backoff.Sleep(t.Context(), 2*time.Second))
		l.Close(t.Context())
		require.Contains(t, sink.list(), "known")
		kinds, dropped := map[audit.Kind]int{}, uint64(0)
		for _, r := range sink.written {
			kinds[r.Kind]++
			dropped += r.Unauthenticated
			require.Equal(t, r.Lost, r.Unauthenticated)
		}
		require.Equal(t, 50+1, kinds[audit.KindCall])
		require.Equal(t, uint64(950), dropped)
		require.LessOrEqual(t, kinds[audit.KindGap], 3)
	})
}

func TestALargeRecordIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{}
		l := audit.NewLog(t.Context(), []audit.NamedSink{{Name: "s", Sink: sink}}, audit.Options{})
		many := strings.Split(strings.Repeat(strings.Repeat("ü", 5000)+",", 300), ",")
		r := audit.Record{Thread: many[0], Groups: many, What: map[string][]string{"as_node": append([]string(nil), many...)}}
		for _, id := range many {
			r.Questions = append(r.Questions, audit.Question{ID: id})
		}
		l.RecordCall(r)
		l.Close(t.Context())
		var b bytes.Buffer
		text, _, err := audit.Chain{}.AppendRecord(nil, &sink.written[1])
		require.NoError(t, err)
		b.Write(text)
		require.Less(t, b.Len(), audit.MaxLineBytes)
		require.Equal(t, 3*(301-64), sink.written[1].LeftOut)
		require.True(t, strings.HasSuffix(sink.written[1].Thread, "ü…"))
	})
}

// writeChain writes lines of some threads.
func writeChain(t *testing.T, threads ...string) []string {
	t.Helper()
	var chain audit.Chain
	var lines []string
	for _, thread := range threads {
		r := call(thread)
		r.Kind, r.Time = audit.KindCall, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		var text []byte
		var err error
		text, chain, err = chain.AppendRecord(nil, &r)
		require.NoError(t, err)
		lines = append(lines, string(text))
	}
	return lines
}

// readDefects returns the defects of lines, by line.
func readDefects(t *testing.T, lines ...string) map[int]string {
	t.Helper()
	r := audit.NewReader(strings.NewReader(strings.Join(lines, "")))
	found := map[int]string{}
	for {
		e, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if len(e.Defects) > 0 {
			found[e.Number] = strings.Join(e.Defects, "; ")
		}
	}
	if e, ok := r.Flush(); ok {
		found[e.Number] = strings.Join(e.Defects, "; ")
	}
	return found
}

func TestTheFormOfALine(t *testing.T) {
	lines := writeChain(t, "a\u202eb", "c")
	require.Equal(t, //nolint:testifylint // the bytes count
		`{"v":1,"seq":1,"prev":"","kind":"call","time":"2026-11-23T00:00:00Z","outcome":"ok","thread":"a\u202eb"}`+"\n", lines[0])
	require.Contains(t, lines[1], `"seq":2,"prev":"`)
	require.Empty(t, readDefects(t, lines...))
	l, err := audit.ParseLine([]byte(strings.TrimSpace(lines[0])))
	require.NoError(t, err)
	require.Equal(t, "a\u202eb", l.Thread)
	_, err = audit.ParseLine([]byte(`{"v":1,"seq":7,"kind":"call","time":"2026-11-23T00:00:00Z","new_field":{"x":1}}`))
	require.NoError(t, err, "a field of a later graphd")
	for text, want := range map[string]string{
		`{"v":2,"seq":1,"kind":"call"}`: "version 2", `{"v":1}`: "no number", `[]`: "is not a record", `{"v":1,"seq":"x"}`: "seq", "": "no JSON",
	} {
		_, err := audit.ParseLine([]byte(text))
		wrong, ok := errors.AsType[*audit.LineError](err)
		require.True(t, ok, text)
		require.ErrorContains(t, wrong, want)
	}
}

func TestReaderFindsEveryEdit(t *testing.T) {
	lines := writeChain(t, "a", "b", "c", "d", "e")
	b, c := lines[1], lines[2]
	for name, x := range map[string]struct {
		lines []string
		want  map[int]string
	}{
		"changed":   {[]string{lines[0], strings.Replace(b, `"b"`, `"x"`, 1), c, lines[3]}, map[int]string{3: "not the one that was written"}},
		"removed":   {[]string{lines[0], c, lines[3]}, map[int]string{2: "1 lines are missing before number 3"}},
		"repeated":  {[]string{lines[0], b, b, c}, map[int]string{3: "number 2 follows 2"}},
		"moved":     {[]string{lines[0], c, b, lines[3]}, map[int]string{2: "missing", 3: "added or moved", 4: "missing"}},
		"foreign":   {[]string{lines[0], "hello\n", b}, map[int]string{2: "is not a record", 3: "not the one that was written"}},
		"fragment":  {[]string{lines[0], b, c[:20]}, map[int]string{3: "is not a record"}},
		"late":      {lines[2:], map[int]string{}},
		"very long": {[]string{lines[0], strings.Repeat("x", 3*audit.MaxLineBytes) + "\n", lines[1]}, map[int]string{2: "is not a record", 3: "not the one"}},
	} {
		got := readDefects(t, x.lines...)
		require.Len(t, got, len(x.want), "%s: %v", name, got)
		for number, part := range x.want {
			require.Contains(t, got[number], part, name)
		}
	}
}

func TestReaderGoesOnInAnotherFile(t *testing.T) {
	lines := writeChain(t, "a", "b", "c")
	r := audit.NewReader(strings.NewReader(lines[0] + lines[1]))
	for range 2 {
		_, err := r.Read()
		require.NoError(t, err)
	}
	_, err := r.Read()
	require.ErrorIs(t, err, io.EOF)
	r.Next(strings.NewReader(lines[2]))
	e, err := r.Read()
	require.NoError(t, err)
	require.Empty(t, e.Defects)
	require.Equal(t, 1, e.Number)
	sequence, digest := r.Last()
	require.Equal(t, uint64(3), sequence)
	require.Len(t, digest, 64)
}

// A reader that follows a file gets a line when it is whole.
func TestReaderWaitsForTheEndOfALine(t *testing.T) {
	lines := writeChain(t, "a", "b")
	from := &bytes.Buffer{}
	r := audit.NewReader(from)
	from.WriteString(lines[0] + lines[1][:10])
	_, err := r.Read()
	require.NoError(t, err)
	_, err = r.Read()
	require.ErrorIs(t, err, io.EOF)
	from.WriteString(lines[1][10:])
	e, err := r.Read()
	require.NoError(t, err)
	require.Empty(t, e.Defects)
	require.Equal(t, "b", e.Thread)
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":7,"prev":"","kind":"call","time":"2026-11-23T00:00:00Z","questions":[{"id":"q"}],"what":{"a":["b"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if l, err := audit.ParseLine(text); err == nil {
			require.NotZero(t, l.Sequence)
			_ = l.ShortMethod()
		}
	})
}
