package pregel_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func newMessage(id, text string) payload.JSON {
	return payload.JSON(fmt.Sprintf(`{"type":"ai","id":%q,"content":%q}`, id, text))
}

// TestMessagesAreMergedAsIfReadAnew applies random updates to a list of messages
// superstep by superstep, some of them twice and some beside another branch, and
// compares with what merging the whole list gives each time.
func TestMessagesAreMergedAsIfReadAnew(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		m := newLoopMachine(t, graph.ChannelSpec{Name: "l", Reducer: "messages"}, `size(state.l) >= 0`, `{}`)
		want := m.storedList().Items
		update := func() payload.JSON {
			var items []payload.JSON
			for range 1 + dice.IntN(3) {
				id := fmt.Sprint("m", dice.IntN(60))
				switch dice.IntN(8) {
				case 0:
					if len(want) > 20 {
						items = append(items, payload.JSON(fmt.Sprintf(`{"type":"remove","id":%q}`, messageIDOf(t, want[dice.IntN(len(want))]))))
					}
				case 1:
					items = append(items, newMessage(id, "perhaps known"))
				default:
					items = append(items, newMessage(fmt.Sprint("n", dice.Uint64()), "new"))
				}
			}
			if dice.IntN(10) == 0 {
				return payload.JSON(`{"__overwrite__":` + string(payload.Array(want[:len(want)/2])) + `}`)
			}
			return payload.Array(items)
		}
		for step := range 150 {
			u := update()
			m.results["work"] = pregel.Result{Update: payload.Object([]payload.Field{{Key: "l", Value: u}})}
			if step%5 == 0 { // another branch, whose messages are not known here
				other := *m
				other.results = map[string]pregel.Result{"work": {Update: payload.Object([]payload.Field{{Key: "l", Value: newMessage(fmt.Sprint("m", step), "elsewhere")}})}}
				other.runStep()
			}
			if payload.KindOf(u) == payload.ObjectKind {
				want = want[:len(want)/2]
			} else {
				var err error
				want, err = payload.MergeMessages(want, u, func(int) string { t.Error("all have ids"); return "" })
				require.NoError(t, err)
			}
			m.runStep()
			require.Equal(t, payload.Array(want), payload.Array(m.storedList().Items), "seed %d, step %d: %s", seed, step, u)
			if step%40 == 39 {
				m.reloadState()
			}
		}
	}
}

func messageIDOf(t *testing.T, message payload.JSON) string {
	t.Helper()
	fields, err := payload.Fields(message)
	require.NoError(t, err)
	for _, f := range fields {
		if f.Key == "id" {
			id, err := payload.Unquote(f.Value)
			require.NoError(t, err)
			return id
		}
	}
	return ""
}

// TestMessagesCostWhatIsAdded compares what supersteps allocate beside few and
// many messages.
func TestMessagesCostWhatIsAdded(t *testing.T) {
	allocated := func(messages int) uint64 {
		m := newLoopMachine(t, graph.ChannelSpec{Name: "l", Reducer: "messages"}, `state.n >= 0`, `{}`)
		var items []payload.JSON
		for i := range messages {
			items = append(items, newMessage(fmt.Sprint(i), strings.Repeat("x", 100)))
		}
		add := func(items ...payload.JSON) {
			m.results["work"] = pregel.Result{Update: payload.Object([]payload.Field{{Key: "l", Value: payload.Array(items)}})}
			m.runStep()
		}
		add(items...)
		add(newMessage("more", "x")) // adds capacity behind the list
		add(newMessage("yet more", "x"))
		const steps = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range steps {
			add(newMessage(fmt.Sprint("new", i), "x"))
		}
		runtime.ReadMemStats(&after)
		require.Len(t, m.storedList().Items, 1+messages+2+steps)
		return (after.TotalAlloc - before.TotalAlloc) / steps
	}
	few, many := allocated(100), allocated(20_000)
	require.Less(t, many, 2*few, "bytes per superstep beside 20,000 messages, and beside 100")
}
