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

func said(id, text string) payload.JSON {
	return payload.JSON(fmt.Sprintf(`{"type":"ai","id":%q,"content":%q}`, id, text))
}

// TestMessagesAreMergedAsIfReadAnew applies random updates to a list of messages
// superstep by superstep, some of them twice and some beside another branch, and
// compares with what merging the whole list gives each time.
func TestMessagesAreMergedAsIfReadAnew(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		m := looping(t, graph.ChannelSpec{Name: "l", Reducer: "messages"}, `size(state.l) >= 0`, `{}`)
		want := m.list().Items
		update := func() payload.JSON {
			var items []payload.JSON
			for range 1 + dice.IntN(3) {
				id := fmt.Sprint("m", dice.IntN(60))
				switch dice.IntN(8) {
				case 0:
					if len(want) > 20 {
						items = append(items, payload.JSON(fmt.Sprintf(`{"type":"remove","id":%q}`, idOf(t, want[dice.IntN(len(want))]))))
					}
				case 1:
					items = append(items, said(id, "perhaps known"))
				default:
					items = append(items, said(fmt.Sprint("n", dice.Uint64()), "new"))
				}
			}
			if dice.IntN(10) == 0 {
				return payload.JSON(`{"__overwrite__":` + string(payload.Array(want[:len(want)/2])) + `}`)
			}
			return payload.Array(items)
		}
		for step := range 150 {
			u := update()
			m.code["work"] = pregel.Result{Update: payload.Object([]payload.Field{{Key: "l", Value: u}})}
			if step%5 == 0 { // another branch, whose messages nobody here knows
				other := *m
				other.code = map[string]pregel.Result{"work": {Update: payload.Object([]payload.Field{{Key: "l", Value: said(fmt.Sprint("m", step), "elsewhere")}})}}
				other.step()
			}
			if payload.KindOf(u) == payload.ObjectKind {
				want = want[:len(want)/2]
			} else {
				var err error
				want, err = payload.MergeMessages(want, u, func(int) string { t.Error("all have ids"); return "" })
				require.NoError(t, err)
			}
			m.step()
			require.Equal(t, payload.Array(want), payload.Array(m.list().Items), "seed %d, step %d: %s", seed, step, u)
			if step%40 == 39 {
				m.reload()
			}
		}
	}
}

func idOf(t *testing.T, message payload.JSON) string {
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
		m := looping(t, graph.ChannelSpec{Name: "l", Reducer: "messages"}, `state.n >= 0`, `{}`)
		var items []payload.JSON
		for i := range messages {
			items = append(items, said(fmt.Sprint(i), strings.Repeat("x", 100)))
		}
		add := func(items ...payload.JSON) {
			m.code["work"] = pregel.Result{Update: payload.Object([]payload.Field{{Key: "l", Value: payload.Array(items)}})}
			m.step()
		}
		add(items...)
		add(said("more", "x")) // makes room behind the list
		add(said("yet more", "x"))
		const steps = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range steps {
			add(said(fmt.Sprint("new", i), "x"))
		}
		runtime.ReadMemStats(&after)
		require.Len(t, m.list().Items, 1+messages+2+steps)
		return (after.TotalAlloc - before.TotalAlloc) / steps
	}
	few, many := allocated(100), allocated(20_000)
	require.Less(t, many, 2*few, "bytes per superstep beside 20,000 messages, and beside 100")
}
