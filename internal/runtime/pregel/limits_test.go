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

// text is a JSON string of n bytes.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// every is a graph with a channel of each reducer and one node.
func every(t *testing.T) *graph.Graph {
	t.Helper()
	return compile(t, &graph.Spec{
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
		Nodes: nodes("n"), Edges: edges(graph.Start, "n"),
	})
}

func write(channel, value string) checkpoint.Write {
	return checkpoint.Write{Channel: channel, Value: payload.JSON(value)}
}

// limitOf is the option that an error names.
func limitOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var limit *graph.LimitError
	require.ErrorAs(t, err, &limit)
	require.Greater(t, limit.Need, limit.Most)
	require.Contains(t, limit.Error(), "--"+limit.Limit)
	return limit.Limit
}

func TestLimitsOfWrites(t *testing.T) {
	limits := pregel.Limits{Value: 100, State: 250, Writes: 200}
	for name, test := range map[string]struct {
		steps [][]checkpoint.Write
		want  string // the option that the last step goes beyond
	}{
		"a value that fits":     {[][]checkpoint.Write{{write("last", text(100))}}, ""},
		"a value too large":     {[][]checkpoint.Write{{write("last", text(101))}}, pregel.LimitValue},
		"any":                   {[][]checkpoint.Write{{write("any", text(101))}}, pregel.LimitValue},
		"untracked":             {[][]checkpoint.Write{{write("untracked", text(101))}}, pregel.LimitValue},
		"appended":              {[][]checkpoint.Write{{write("append", "["+text(60)+"]")}, {write("append", "["+text(60)+"]")}}, pregel.LimitValue},
		"appended that fits":    {[][]checkpoint.Write{{write("append", "["+text(40)+"]")}, {write("append", "["+text(40)+"]")}}, ""},
		"appended by two":       {[][]checkpoint.Write{{write("append", "["+text(60)+"]"), write("append", "["+text(60)+"]")}}, pregel.LimitValue},
		"union":                 {[][]checkpoint.Write{{write("union", "["+text(60)+"]")}, {write("union", "["+text(61)+"]")}}, pregel.LimitValue},
		"union of the same":     {[][]checkpoint.Write{{write("union", "["+text(60)+"]")}, {write("union", "["+text(60)+"]")}}, ""},
		"messages":              {[][]checkpoint.Write{{write("messages", `{"id":"1","role":"user","content":`+text(30)+"}")}, {write("messages", `{"id":"2","role":"user","content":`+text(30)+"}")}}, pregel.LimitValue},
		"a message replaced":    {[][]checkpoint.Write{{write("messages", `{"id":"1","role":"user","content":`+text(30)+"}")}, {write("messages", `{"id":"1","role":"user","content":`+text(31)+"}")}}, ""},
		"topic":                 {[][]checkpoint.Write{{write("topic", "["+text(60)+"]")}, {write("topic", "["+text(60)+"]")}}, pregel.LimitValue},
		"added texts":           {[][]checkpoint.Write{{write("add", text(60))}, {write("add", text(60))}}, pregel.LimitValue},
		"merged":                {[][]checkpoint.Write{{write("merge", `{"a":`+text(60)+"}")}, {write("merge", `{"b":`+text(60)+"}")}}, pregel.LimitValue},
		"merged over":           {[][]checkpoint.Write{{write("merge", `{"a":`+text(60)+"}")}, {write("merge", `{"a":`+text(61)+"}")}}, ""},
		"merged deeply":         {[][]checkpoint.Write{{write("deep", `{"a":{"x":`+text(60)+"}}")}, {write("deep", `{"a":{"y":`+text(60)+"}}")}}, pregel.LimitValue},
		"overwritten":           {[][]checkpoint.Write{{write("append", "["+text(60)+"]")}, {{Channel: "append", Value: payload.JSON("[" + text(61) + "]"), Overwrite: true}}}, ""},
		"the state":             {[][]checkpoint.Write{{write("last", text(100)), write("other", text(90))}, {write("any", text(90))}}, pregel.LimitState},
		"the state, in a list":  {[][]checkpoint.Write{{write("last", text(100)), write("other", text(90))}, {write("append", "["+text(90)+"]")}}, pregel.LimitState},
		"the state, untracked":  {[][]checkpoint.Write{{write("last", text(100)), write("other", text(90))}, {write("untracked", text(90))}}, pregel.LimitState},
		"a state that fits":     {[][]checkpoint.Write{{write("last", text(100)), write("other", text(90))}, {write("other", text(95))}}, ""},
		"a superstep":           {[][]checkpoint.Write{{write("last", text(100)), write("other", text(90)), write("any", text(90))}}, pregel.LimitWrites},
		"a superstep that fits": {[][]checkpoint.Write{{write("last", text(100)), write("other", text(90))}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []func(*pregel.State, []checkpoint.Write, int) (*pregel.State, error){
				func(s *pregel.State, w []checkpoint.Write, n int) (*pregel.State, error) {
					return s.Apply([]pregel.Done{{Writes: w}}, pregel.Stamp{ID: fmt.Sprint(n), Seq: uint64(n), Step: n})
				},
				func(s *pregel.State, w []checkpoint.Write, _ int) (*pregel.State, error) { return s.Inject(w) },
			} {
				s := pregel.New(every(t), "", limits)
				for n, w := range test.steps {
					next, err := how(s, w, n+1)
					if n < len(test.steps)-1 {
						require.NoError(t, err)
						s = next
						continue
					}
					require.Equal(t, test.want, limitOf(t, err))
				}
			}
		})
	}
}

// The size of a list is kept, and the same as when it is counted.
func TestSizesAreThoseOfAStateThatIsRead(t *testing.T) {
	limits := pregel.Limits{Value: 1000, State: 10_000}
	s := pregel.New(every(t), "", limits)
	n, grown := 0, 0
	for ; n < 50; n++ {
		w := []checkpoint.Write{
			write("append", fmt.Sprintf("[%d]", n)),
			write("union", fmt.Sprintf("[%d]", n%7)),
			write("messages", fmt.Sprintf(`{"id":"%d","role":"user","content":"%d"}`, n%5, n)),
			write("topic", fmt.Sprint(n)),
		}
		next, err := s.Apply([]pregel.Done{{Writes: w}}, pregel.Stamp{ID: fmt.Sprint(n), Seq: uint64(n + 1), Step: n})
		require.NoError(t, err)
		cp := *next.Checkpoint()
		read := pregel.Load(s.Graph(), &cp, false, limits)
		require.Equal(t, pregel.Sizes(read), pregel.Sizes(next), n)
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
	large := pregel.New(every(t), "", pregel.Limits{})
	large, err := large.Apply([]pregel.Done{{Writes: []checkpoint.Write{
		write("last", text(500)), write("append", "["+text(250)+","+text(250)+"]"),
	}}}, pregel.Stamp{ID: "1", Seq: 1})
	require.NoError(t, err)
	cp := *large.Checkpoint()
	s := pregel.Load(large.Graph(), &cp, false, pregel.Limits{Value: 100, State: 200, Writes: 1000})
	require.Equal(t, large.Values(), s.Values())
	for _, writes := range [][]checkpoint.Write{
		{write("last", text(500))},
		{write("last", text(400)), write("other", text(90))},
		{{Channel: "append", Value: payload.JSON("[" + text(250) + "]"), Overwrite: true}},
	} {
		_, err = s.Apply([]pregel.Done{{Writes: writes}}, pregel.Stamp{ID: "2", Seq: 2})
		require.NoError(t, err)
	}
	for limit, writes := range map[string][]checkpoint.Write{
		pregel.LimitValue: {write("append", "[1]")}, pregel.LimitState: {write("other", "1")},
	} {
		_, err = s.Apply([]pregel.Done{{Writes: writes}}, pregel.Stamp{ID: "2", Seq: 2})
		require.Equal(t, limit, limitOf(t, err))
	}
	_, err = s.Recall([]checkpoint.Write{write("other", text(5000))}) // accepted before
	require.NoError(t, err)
}

func TestLimitsOfATask(t *testing.T) {
	g := every(t)
	s := pregel.New(g, "", pregel.Limits{Value: 100, Writes: 250, Sends: 3})
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
		"fits":          {pregel.Result{Update: payload.JSON(`{"last":` + text(100) + `}`), Goto: send(3)}, ""},
		"value":         {pregel.Result{Update: payload.JSON(`{"last":` + text(101) + `}`)}, pregel.LimitValue},
		"together":      {pregel.Result{Update: payload.JSON(`{"last":` + text(90) + `,"other":` + text(90) + `,"any":` + text(90) + `}`)}, pregel.LimitWrites},
		"sends":         {pregel.Result{Goto: send(4)}, pregel.LimitSends},
		"value of Send": {pregel.Result{Goto: []checkpoint.Send{{Node: "n", Input: payload.JSON(text(101))}}}, pregel.LimitValue},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Complete(&pregel.Task{Node: n}, test.result, nil)
			require.Equal(t, test.want, limitOf(t, err))
		})
	}
	// Two tasks that send two each.
	writes, err := s.Complete(&pregel.Task{Node: n}, pregel.Result{Goto: send(2)}, nil)
	require.NoError(t, err)
	done := []pregel.Done{{Task: &pregel.Task{Node: n}, Writes: writes}, {Task: &pregel.Task{Node: n, Push: true}, Writes: writes}}
	_, err = s.Apply(done, pregel.Stamp{ID: "1", Seq: 1})
	require.Equal(t, pregel.LimitSends, limitOf(t, err))
}
