package pregel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// jsonText returns a JSON string of n bytes.
func jsonText(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// graphOfAllReducers returns a graph with a channel of each reducer and one node.
func graphOfAllReducers(t *testing.T) *graph.Graph {
	t.Helper()
	return compileGraph(t, &graph.Spec{
		Channels: []graph.ChannelSpec{
			{Name: "last"},
			{Name: "other"},
			{Name: "append", Reducer: "append"},
			{Name: "union", Reducer: "union"},
			{Name: "messages", Reducer: "messages"},
			{Name: "topic", Reducer: "topic"},
			{Name: "add", Reducer: "add"},
			{Name: "merge", Reducer: "merge"},
			{Name: "deep", Reducer: "deep_merge"},
			{Name: "untracked", Reducer: "untracked"},
			{Name: "any", Reducer: "any"},
		},
		Nodes: newNodes("n"), Edges: newEdges(graph.Start, "n"),
	})
}

func newWrite(channel, value string) checkpoint.Write {
	return checkpoint.Write{Channel: channel, Value: payload.JSON(value)}
}

// limitOption returns the option that an error names.
func limitOption(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var limit *graph.LimitError
	require.ErrorAs(t, err, &limit)
	require.Greater(t, limit.Needed, limit.Max)
	require.Contains(t, limit.Error(), "--"+limit.Limit)
	return limit.Limit
}

func TestLimitsOfWrites(t *testing.T) {
	limits := pregel.Limits{MaxValueBytes: 100, MaxStateBytes: 250, MaxWriteBytes: 200}
	for name, test := range map[string]struct {
		steps [][]checkpoint.Write
		want  string // the option that the last step goes beyond
	}{
		"a value that fits":     {[][]checkpoint.Write{{newWrite("last", jsonText(100))}}, ""},
		"a value too large":     {[][]checkpoint.Write{{newWrite("last", jsonText(101))}}, pregel.LimitValue},
		"any":                   {[][]checkpoint.Write{{newWrite("any", jsonText(101))}}, pregel.LimitValue},
		"untracked":             {[][]checkpoint.Write{{newWrite("untracked", jsonText(101))}}, pregel.LimitValue},
		"appended":              {[][]checkpoint.Write{{newWrite("append", "["+jsonText(60)+"]")}, {newWrite("append", "["+jsonText(60)+"]")}}, pregel.LimitValue},
		"appended that fits":    {[][]checkpoint.Write{{newWrite("append", "["+jsonText(40)+"]")}, {newWrite("append", "["+jsonText(40)+"]")}}, ""},
		"appended by two":       {[][]checkpoint.Write{{newWrite("append", "["+jsonText(60)+"]"), newWrite("append", "["+jsonText(60)+"]")}}, pregel.LimitValue},
		"union":                 {[][]checkpoint.Write{{newWrite("union", "["+jsonText(60)+"]")}, {newWrite("union", "["+jsonText(61)+"]")}}, pregel.LimitValue},
		"union of the same":     {[][]checkpoint.Write{{newWrite("union", "["+jsonText(60)+"]")}, {newWrite("union", "["+jsonText(60)+"]")}}, ""},
		"messages":              {[][]checkpoint.Write{{newWrite("messages", `{"id":"1","role":"user","content":`+jsonText(30)+"}")}, {newWrite("messages", `{"id":"2","role":"user","content":`+jsonText(30)+"}")}}, pregel.LimitValue},
		"a message replaced":    {[][]checkpoint.Write{{newWrite("messages", `{"id":"1","role":"user","content":`+jsonText(30)+"}")}, {newWrite("messages", `{"id":"1","role":"user","content":`+jsonText(31)+"}")}}, ""},
		"topic":                 {[][]checkpoint.Write{{newWrite("topic", "["+jsonText(60)+"]")}, {newWrite("topic", "["+jsonText(60)+"]")}}, pregel.LimitValue},
		"added texts":           {[][]checkpoint.Write{{newWrite("add", jsonText(60))}, {newWrite("add", jsonText(60))}}, pregel.LimitValue},
		"merged":                {[][]checkpoint.Write{{newWrite("merge", `{"a":`+jsonText(60)+"}")}, {newWrite("merge", `{"b":`+jsonText(60)+"}")}}, pregel.LimitValue},
		"merged over":           {[][]checkpoint.Write{{newWrite("merge", `{"a":`+jsonText(60)+"}")}, {newWrite("merge", `{"a":`+jsonText(61)+"}")}}, ""},
		"merged deeply":         {[][]checkpoint.Write{{newWrite("deep", `{"a":{"x":`+jsonText(60)+"}}")}, {newWrite("deep", `{"a":{"y":`+jsonText(60)+"}}")}}, pregel.LimitValue},
		"overwritten":           {[][]checkpoint.Write{{newWrite("append", "["+jsonText(60)+"]")}, {{Channel: "append", Value: payload.JSON("[" + jsonText(61) + "]"), Overwrite: true}}}, ""},
		"the state":             {[][]checkpoint.Write{{newWrite("last", jsonText(100)), newWrite("other", jsonText(90))}, {newWrite("any", jsonText(90))}}, pregel.LimitState},
		"the state, in a list":  {[][]checkpoint.Write{{newWrite("last", jsonText(100)), newWrite("other", jsonText(90))}, {newWrite("append", "["+jsonText(90)+"]")}}, pregel.LimitState},
		"the state, untracked":  {[][]checkpoint.Write{{newWrite("last", jsonText(100)), newWrite("other", jsonText(90))}, {newWrite("untracked", jsonText(90))}}, pregel.LimitState},
		"a state that fits":     {[][]checkpoint.Write{{newWrite("last", jsonText(100)), newWrite("other", jsonText(90))}, {newWrite("other", jsonText(95))}}, ""},
		"a superstep":           {[][]checkpoint.Write{{newWrite("last", jsonText(100)), newWrite("other", jsonText(90)), newWrite("any", jsonText(90))}}, pregel.LimitWrites},
		"a superstep that fits": {[][]checkpoint.Write{{newWrite("last", jsonText(100)), newWrite("other", jsonText(90))}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []func(*pregel.State, []checkpoint.Write, int) (*pregel.State, error){
				func(s *pregel.State, w []checkpoint.Write, n int) (*pregel.State, error) {
					return s.ApplyStep([]pregel.TaskWrites{{Writes: w}}, pregel.CheckpointInfo{ID: fmt.Sprint(n), Seq: uint64(n), Step: n})
				},
				func(s *pregel.State, w []checkpoint.Write, _ int) (*pregel.State, error) { return s.InjectWrites(w) },
			} {
				s := pregel.NewState(graphOfAllReducers(t), "", limits)
				for n, w := range test.steps {
					next, err := how(s, w, n+1)
					if n < len(test.steps)-1 {
						require.NoError(t, err)
						s = next
						continue
					}
					require.Equal(t, test.want, limitOption(t, err))
				}
			}
		})
	}
}

// The size of a list is kept, and the same as when it is counted.
func TestSizesAreThoseOfAStateThatIsRead(t *testing.T) {
	limits := pregel.Limits{MaxValueBytes: 1000, MaxStateBytes: 10_000}
	s := pregel.NewState(graphOfAllReducers(t), "", limits)
	n, grown := 0, 0
	for ; n < 50; n++ {
		w := []checkpoint.Write{
			newWrite("append", fmt.Sprintf("[%d]", n)),
			newWrite("union", fmt.Sprintf("[%d]", n%7)),
			newWrite("messages", fmt.Sprintf(`{"id":"%d","role":"user","content":"%d"}`, n%5, n)),
			newWrite("topic", fmt.Sprint(n)),
		}
		next, err := s.ApplyStep([]pregel.TaskWrites{{Writes: w}}, pregel.CheckpointInfo{ID: fmt.Sprint(n), Seq: uint64(n + 1), Step: n})
		require.NoError(t, err)
		cp := *next.Checkpoint()
		read := pregel.LoadState(s.Graph(), &cp, false, limits)
		require.Equal(t, pregel.ChannelSizes(read), pregel.ChannelSizes(next), n)
		if n%3 == 0 {
			next = read
		}
		s, grown = next, grown+1
	}
	require.Equal(t, 50, grown)
}

// With other limits than those it grew under a state can be read, kept and made
// smaller, and be as large as it is.
func TestSmallerLimitsLeaveWhatIsThere(t *testing.T) {
	large := pregel.NewState(graphOfAllReducers(t), "", pregel.Limits{})
	large, err := large.ApplyStep([]pregel.TaskWrites{{Writes: []checkpoint.Write{
		newWrite("last", jsonText(500)), newWrite("append", "["+jsonText(250)+","+jsonText(250)+"]"),
	}}}, pregel.CheckpointInfo{ID: "1", Seq: 1})
	require.NoError(t, err)
	cp := *large.Checkpoint()
	s := pregel.LoadState(large.Graph(), &cp, false, pregel.Limits{MaxValueBytes: 100, MaxStateBytes: 200, MaxWriteBytes: 1000})
	require.Equal(t, large.Values(), s.Values())
	for _, writes := range [][]checkpoint.Write{
		{newWrite("last", jsonText(500))},
		{newWrite("last", jsonText(400)), newWrite("other", jsonText(90))},
		{{Channel: "append", Value: payload.JSON("[" + jsonText(250) + "]"), Overwrite: true}},
	} {
		_, err = s.ApplyStep([]pregel.TaskWrites{{Writes: writes}}, pregel.CheckpointInfo{ID: "2", Seq: 2})
		require.NoError(t, err)
	}
	for limit, writes := range map[string][]checkpoint.Write{
		pregel.LimitValue: {newWrite("append", "[1]")}, pregel.LimitState: {newWrite("other", "1")},
	} {
		_, err = s.ApplyStep([]pregel.TaskWrites{{Writes: writes}}, pregel.CheckpointInfo{ID: "2", Seq: 2})
		require.Equal(t, limit, limitOption(t, err))
	}
	_, err = s.InjectUnlimited([]checkpoint.Write{newWrite("other", jsonText(5000))}) // accepted before
	require.NoError(t, err)
}

func TestLimitsOfATask(t *testing.T) {
	g := graphOfAllReducers(t)
	s := pregel.NewState(g, "", pregel.Limits{MaxValueBytes: 100, MaxWriteBytes: 250, MaxSends: 3})
	n, ok := g.Node("n")
	require.True(t, ok)
	send := func(n int) (all []checkpoint.Send) {
		for range n {
			all = append(all, checkpoint.Send{Node: "n", Input: "1"})
		}
		return all
	}
	for name, test := range map[string]struct {
		result pregel.Result
		want   string
	}{
		"fits":          {pregel.Result{Update: payload.JSON(`{"last":` + jsonText(100) + `}`), Goto: send(3)}, ""},
		"value":         {pregel.Result{Update: payload.JSON(`{"last":` + jsonText(101) + `}`)}, pregel.LimitValue},
		"together":      {pregel.Result{Update: payload.JSON(`{"last":` + jsonText(90) + `,"other":` + jsonText(90) + `,"any":` + jsonText(90) + `}`)}, pregel.LimitWrites},
		"sends":         {pregel.Result{Goto: send(4)}, pregel.LimitSends},
		"value of Send": {pregel.Result{Goto: []checkpoint.Send{{Node: "n", Input: payload.JSON(jsonText(101))}}}, pregel.LimitValue},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.CompleteTask(&pregel.Task{Node: n}, test.result, nil)
			require.Equal(t, test.want, limitOption(t, err))
		})
	}
	// Two tasks that send two each.
	writes, err := s.CompleteTask(&pregel.Task{Node: n}, pregel.Result{Goto: send(2)}, nil)
	require.NoError(t, err)
	done := []pregel.TaskWrites{{Task: &pregel.Task{Node: n}, Writes: writes}, {Task: &pregel.Task{Node: n, IsPush: true}, Writes: writes}}
	_, err = s.ApplyStep(done, pregel.CheckpointInfo{ID: "1", Seq: 1})
	require.Equal(t, pregel.LimitSends, limitOption(t, err))
}
