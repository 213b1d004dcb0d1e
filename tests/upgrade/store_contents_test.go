package upgrade_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// storeContents is all that can be read of a store: by the name of what was read, the
// answers as JSON.
type storeContents map[string]json.RawMessage

// readContents reads all threads of a server.
func (s *server) readContents() storeContents {
	s.tb.Helper()
	a := storeContents{}
	list, err := s.ListThreads(s.tb.Context(), &graphdv1.ListThreadsRequest{
		PageSize: 500, View: graphdv1.ThreadView_THREAD_VIEW_FULL,
	})
	require.NoError(s.tb, err)
	for _, t := range list.GetThreads() {
		a.addMessage(s.tb, t.GetThreadId()+" thread", t)
		s.readThread(a, t.GetThreadId())
	}
	inbox, err := s.ListInterrupts(s.tb.Context(), &graphdv1.ListInterruptsRequest{PageSize: 500})
	require.NoError(s.tb, err)
	a.addMessage(s.tb, "inbox", inbox)
	graphs, err := s.ListGraphs(s.tb.Context(), &graphdv1.ListGraphsRequest{})
	require.NoError(s.tb, err)
	a.addMessage(s.tb, "graphs", graphs)
	return a
}

func (s *server) readThread(a storeContents, thread string) {
	s.tb.Helper()
	ctx := s.tb.Context()
	state, err := s.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: thread, Subgraphs: true})
	require.NoError(s.tb, err)
	a.addMessage(s.tb, thread+" state", state)
	for _, namespace := range [][]string{nil, {"check"}} {
		history, err := s.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{
			ThreadId: thread, Namespace: namespace, IncludeValues: true, PageSize: 500,
		})
		require.NoError(s.tb, err)
		a.addMessage(s.tb, thread+" history "+strings.Join(namespace, "/"), history)
	}
	runs, err := s.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: thread, PageSize: 500})
	require.NoError(s.tb, err)
	a.addMessage(s.tb, thread+" runs", runs)
	questions, err := s.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread, Filter: `state = "*"`, PageSize: 500})
	require.NoError(s.tb, err)
	a.addMessage(s.tb, thread+" questions", questions)
	s.readEvents(a, thread)
}

// readEvents reads the log of a thread, each event under its number.
func (s *server) readEvents(a storeContents, thread string) {
	s.tb.Helper()
	stream, err := s.Watch(s.tb.Context(), &graphdv1.WatchRequest{
		ThreadId: thread, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_CUSTOM,
			graphdv1.Channel_CHANNEL_DEBUG,
		}},
	})
	require.NoError(s.tb, err)
	for n := 0; ; {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(s.tb, err)
		if e.GetCursor().GetSequence() == 0 {
			continue // of the stream and not of the log
		}
		a.addMessage(s.tb, thread+" event "+strconv.Itoa(n), e)
		n++
	}
}

func (a storeContents) addMessage(tb testing.TB, name string, m proto.Message) {
	tb.Helper()
	text, err := protojson.Marshal(m)
	require.NoError(tb, err)
	var b bytes.Buffer
	require.NoError(tb, json.Compact(&b, text)) // protojson puts spaces at random
	a[name] = b.Bytes()
}

// selectThreads picks what was read of some threads.
func (a storeContents) selectThreads(is func(thread string) bool) storeContents {
	out := storeContents{}
	for name, text := range a {
		if thread, _, ok := strings.Cut(name, " "); ok && is(thread) {
			out[name] = text
		}
	}
	return out
}

// listMissing lists what was read before and is not the same now. What is read now
// may have more fields: a newer graphd may tell more.
func (a storeContents) listMissing(now storeContents) (problems []string) {
	for name, text := range a {
		var before, after any
		if err := errors.Join(unmarshalNumbers(text, &before), unmarshalNumbers(now[name], &after)); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		if where := findMissing(before, after); where != "" {
			problems = append(problems, fmt.Sprintf("%s: %s\n before: %s\n now:    %s", name, where, text, now[name]))
		}
	}
	return problems
}

func unmarshalNumbers(text []byte, to *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}

// findMissing says where a value lacks what another one has, "" = nowhere.
func findMissing(before, now any) string {
	switch b := before.(type) {
	case map[string]any:
		n, _ := now.(map[string]any)
		for k, v := range b {
			if where := findMissing(v, n[k]); where != "" {
				return "." + k + where
			}
		}
	case []any:
		n, _ := now.([]any)
		if len(n) != len(b) {
			return fmt.Sprintf(" has %d elements and not %d", len(n), len(b))
		}
		for i := range b {
			if where := findMissing(b[i], n[i]); where != "" {
				return "[" + strconv.Itoa(i) + "]" + where
			}
		}
	default:
		if before != now {
			return fmt.Sprintf(" was %v and is %v", before, now)
		}
	}
	return ""
}
