package checkpointtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// WriteAll writes the same into a new store whenever it is called, and something
// into every field that is stored: what then stands in the store is its format.
func WriteAll(ctx context.Context, tb testing.TB, s Store) {
	tb.Helper()
	f := &filler{tb}
	g := filled[checkpoint.GraphRecord](f, "graph")
	require.NoError(tb, s.PutGraph(ctx, g))
	gone := filled[checkpoint.GraphRecord](f, "deleted graph")
	require.NoError(tb, s.PutGraph(ctx, gone))
	require.NoError(tb, s.DeleteGraph(ctx, gone.Name, gone.Version))
	for _, c := range f.changes() {
		_, err := s.Apply(ctx, c)
		require.NoError(tb, err)
	}
}

// changes are those of one thread that is made, goes on and loses its past, and
// of one that is a copy.
func (f *filler) changes() []*checkpoint.Change {
	first := f.change(0)
	first.Checkpoints = []*checkpoint.Checkpoint{f.checkpoint(1, ""), f.checkpoint(2, "a:1|b:2"), f.checkpoint(3, "")}
	f.records(first)
	f.tell(first)

	second := f.change(1)
	second.Head.LastEvent, second.Head.Seq = first.Head.LastEvent, 4
	second.Checkpoints = []*checkpoint.Checkpoint{f.checkpoint(4, "")}
	second.ClearTasks = []string{cpID(1)}
	f.records(second)
	f.tell(second)

	third := f.change(2)
	third.Head.LastEvent, third.Head.Seq, third.Head.Owner = second.Head.LastEvent, 4, ""
	third.DropBefore, third.Spare, third.TrimEvents, third.Lease = 4, []string{cpID(1)}, 3, 0

	whole := f.change(0)
	whole.Thread, whole.Head.Thread, whole.Op = "copy", "copy", "copy"
	whole.Checkpoints, whole.Whole = []*checkpoint.Checkpoint{f.checkpoint(3, "")}, true
	return []*checkpoint.Change{first, second, third, whole}
}

func (f *filler) change(expect uint64) *checkpoint.Change {
	c := &checkpoint.Change{Thread: "t", Expect: expect, Op: fmt.Sprintf("op-%d", expect), Head: filled[checkpoint.Head](f, "head")}
	c.Head.Thread, c.Head.LogID, c.Head.Seq, c.Head.LastEvent, c.Head.FirstEvent = c.Thread, "log", 3, 0, 1
	c.Head.Due = day(-1) // sooner than the end of the lease, which is the store's to say
	c.Lease = time.Hour
	return c
}

// checkpoint has a value of each length and kind that is stored in a way of its
// own.
func (f *filler) checkpoint(seq uint64, namespace string) *checkpoint.Checkpoint {
	cp := filled[checkpoint.Checkpoint](f, "checkpoint")
	cp.ID, cp.Seq, cp.Namespace = cpID(seq), seq, namespace
	cp.Channels = []checkpoint.Channel{
		{Name: "small", Version: seq, Stored: seq, Value: `{"a": 1.0}`},
		{Name: "old", Version: 1, Stored: 1, Value: payload.JSON(`"` + strings.Repeat("o", 300) + `"`)},
		{Name: "large", Version: seq, Stored: seq, Value: payload.JSON(fmt.Sprintf(`"%0650d"`, seq))},
		{Name: "quoted", Version: seq, Stored: seq, Value: f.input()},
		{Name: "nothing", Version: seq, Stored: seq, Flag: true},
		{Name: "list", Version: seq, Stored: seq, List: &checkpoint.List{
			Items: []payload.JSON{"1", payload.JSON(`"` + strings.Repeat("x", 200) + `"`)}, Fresh: 2,
			Segments: []checkpoint.Segment{{ID: seq, Len: 2}},
		}},
	}
	return &cp
}

func (*filler) input() payload.JSON {
	return payload.JSON(`{"long": "` + strings.Repeat("in", 100) + `"}`)
}

// records puts what belongs to a thread beside its checkpoints.
func (f *filler) records(c *checkpoint.Change) {
	task, memo := filled[checkpoint.Task](f, "task"), filled[checkpoint.Memo](f, "memo")
	task.Checkpoint, memo.Checkpoint = cpID(c.Expect+1), cpID(c.Expect+1)
	c.Tasks, c.Memos = []checkpoint.Task{task}, []checkpoint.Memo{memo}
	for _, id := range []string{"q1", "q2"} {
		in := filled[checkpoint.Interrupt](f, "question")
		in.ID, in.Thread, in.Checkpoint, in.State = id, c.Thread, cpID(1), checkpoint.InterruptOpen
		in.Created = day(1)
		c.Interrupts = append(c.Interrupts, in)
	}
	c.Interrupts[0].State = checkpoint.InterruptAnswered
	small, large := filled[checkpoint.Run](f, "small"), filled[checkpoint.Run](f, "large")
	small.ID, small.Order, large.ID, large.Order = "small", 1, "large", 2
	small.Thread, large.Thread, large.Request.Input = c.Thread, c.Thread, f.input()
	c.Runs = []checkpoint.Run{small, large}
	request := filled[checkpoint.Request](f, "request")
	c.Request = &request
}

// tell adds events of which some have things in common, and more than share a
// record.
func (f *filler) tell(c *checkpoint.Change) {
	one, other := filled[checkpoint.Event](f, "event"), filled[checkpoint.Event](f, "other")
	other.Time, other.Run = one.Time, one.Run
	bare := checkpoint.Event{Time: one.Time, Kind: checkpoint.EventUpdate}
	c.Events = []checkpoint.Event{one, other, bare}
	for range 70 {
		c.Events = append(c.Events, checkpoint.Event{Time: day(2), Kind: checkpoint.EventCustom, Name: "tick", Value: "1"})
	}
	for i := range c.Events {
		c.Head.LastEvent++
		c.Events[i].Seq, c.Events[i].Ephemeral = c.Head.LastEvent, false
	}
}

// filler gives every field a value that follows from the names of what it is a
// part of, so that a new field leaves the values of the others as they are.
type filler struct{ tb testing.TB }

func filled[T any](f *filler, name string) (v T) {
	f.fill(reflect.ValueOf(&v).Elem(), name)
	return v
}

// digit is a small number that follows from a name.
func digit(name string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return uint64(h.Sum32())%100 + 1
}

func (f *filler) fill(v reflect.Value, name string) {
	switch {
	case v.Type() == reflect.TypeFor[payload.JSON]():
		v.SetString(fmt.Sprintf(`{"is": %q}`, name))
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(day(3).Add(time.Duration(digit(name)))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(digit(name)))
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(digit(name))
	case reflect.Bool:
		v.SetBool(true)
	default:
		f.fillMany(v, name)
	}
}

func (f *filler) fillMany(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0), name+"-0")
		f.fill(v.Index(1), name+"-1")
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), fmt.Sprintf("%s-%d", name, i))
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(k, name+"-key")
		f.fill(e, name+"-value")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	default:
		f.tb.Fatalf("a field of kind %s: teach this test", v.Kind())
	}
}
