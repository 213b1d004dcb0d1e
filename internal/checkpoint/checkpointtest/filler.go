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
	"github.com/graphd-dev/graphd/internal/redact"
)

// WriteAll writes the same into a new store whenever it is called, and a value
// into every field that is stored: the stored records then show the format.
func WriteAll(ctx context.Context, tb testing.TB, s Store) {
	tb.Helper()
	f := &filler{tb}
	g := newFilled[checkpoint.GraphRecord](f, "graph")
	require.NoError(tb, s.PutGraph(ctx, g, checkpoint.GraphCondition{}))
	gone := newFilled[checkpoint.GraphRecord](f, "deleted graph")
	require.NoError(tb, s.PutGraph(ctx, gone, checkpoint.GraphCondition{}))
	require.NoError(tb, s.DeleteGraph(ctx, gone.Name, gone.Version, checkpoint.GraphCondition{}))
	for _, c := range f.newChanges() {
		_, err := s.Apply(ctx, c)
		require.NoError(tb, err)
	}
}

// newChanges returns the changes of a thread that is made, goes on and loses its
// past, and of a thread that is a copy.
func (f *filler) newChanges() []*checkpoint.Change {
	first := f.newChange(0)
	first.Checkpoints = []*checkpoint.Checkpoint{f.newCheckpoint(1, ""), f.newCheckpoint(2, "a:1|b:2"), f.newCheckpoint(3, "")}
	f.addRecords(first)
	f.addEvents(first)

	second := f.newChange(1)
	second.Head.LastEvent, second.Head.Seq = first.Head.LastEvent, 4
	second.Checkpoints = []*checkpoint.Checkpoint{f.newCheckpoint(4, "")}
	second.ClearTasks = []string{checkpointID(1)}
	f.addRecords(second)
	f.addEvents(second)

	third := f.newChange(2)
	third.Head.LastEvent, third.Head.Seq, third.Head.Owner = second.Head.LastEvent, 4, ""
	third.DropBefore, third.KeepCheckpoints, third.TrimEvents, third.Lease = 4, []string{checkpointID(1)}, 3, 0

	whole := f.newChange(0)
	whole.Thread, whole.Head.Thread, whole.Op = "copy", "copy", "copy"
	whole.Checkpoints, whole.IsCopy = []*checkpoint.Checkpoint{f.newCheckpoint(3, "")}, true
	return []*checkpoint.Change{first, second, third, whole}
}

func (f *filler) newChange(expect uint64) *checkpoint.Change {
	c := &checkpoint.Change{Thread: "t", Expect: expect, Op: fmt.Sprintf("op-%d", expect), Head: newFilled[checkpoint.Head](f, "head")}
	c.Head.Thread, c.Head.LogID, c.Head.Seq, c.Head.LastEvent, c.Head.FirstEvent = c.Thread, "log", 3, 0, 1
	c.Head.Due = testDay(-1) // sooner than the end of the lease, which is the store's to say
	c.Lease = time.Hour
	return c
}

// newCheckpoint has a value of each length and kind that is stored in a way of its
// own.
func (f *filler) newCheckpoint(seq uint64, namespace string) *checkpoint.Checkpoint {
	cp := newFilled[checkpoint.Checkpoint](f, "checkpoint")
	cp.ID, cp.Seq, cp.Namespace = checkpointID(seq), seq, namespace
	cp.Channels = []checkpoint.Channel{
		{Name: "small", Version: seq, Stored: seq, Value: `{"a": 1.0}`},
		{Name: "old", Version: 1, Stored: 1, Value: payload.JSON(`"` + strings.Repeat("o", 300) + `"`)},
		{Name: "large", Version: seq, Stored: seq, Value: payload.JSON(fmt.Sprintf(`"%0650d"`, seq))},
		{Name: "quoted", Version: seq, Stored: seq, Value: f.largeInput()},
		{Name: "nothing", Version: seq, Stored: seq, Flag: true},
		{Name: "list", Version: seq, Stored: seq, List: &checkpoint.List{
			Items: []payload.JSON{"1", payload.JSON(`"` + strings.Repeat("x", 200) + `"`)}, Appended: 2,
			Segments: []checkpoint.Segment{{ID: seq, Len: 2}},
		}},
	}
	return &cp
}

func (*filler) largeInput() payload.JSON {
	return payload.JSON(`{"long": "` + strings.Repeat("in", 100) + `"}`)
}

// addRecords adds the records of a thread beside its checkpoints.
func (f *filler) addRecords(c *checkpoint.Change) {
	task, memo := newFilled[checkpoint.Task](f, "task"), newFilled[checkpoint.Memo](f, "memo")
	task.Checkpoint, memo.Checkpoint = checkpointID(c.Expect+1), checkpointID(c.Expect+1)
	c.Tasks, c.Memos = []checkpoint.Task{task}, []checkpoint.Memo{memo}
	for _, id := range []string{"q1", "q2"} {
		in := newFilled[checkpoint.Interrupt](f, "question")
		in.ID, in.Thread, in.Checkpoint, in.State = id, c.Thread, checkpointID(1), checkpoint.InterruptOpen
		in.Created = testDay(1)
		c.Interrupts = append(c.Interrupts, in)
	}
	c.Interrupts[0].State = checkpoint.InterruptAnswered
	small, large := newFilled[checkpoint.Run](f, "small"), newFilled[checkpoint.Run](f, "large")
	small.ID, small.Order, large.ID, large.Order = "small", 1, "large", 2
	small.Thread, large.Thread, large.Request.Input = c.Thread, c.Thread, f.largeInput()
	c.Runs = []checkpoint.Run{small, large}
	request := newFilled[checkpoint.Request](f, "request")
	c.Request = &request
}

// addEvents adds events of which some have things in common, and more than share a
// record.
func (f *filler) addEvents(c *checkpoint.Change) {
	one, other := newFilled[checkpoint.Event](f, "event"), newFilled[checkpoint.Event](f, "other")
	other.Time, other.Run = one.Time, one.Run
	bare := checkpoint.Event{Time: one.Time, Kind: checkpoint.EventUpdate}
	c.Events = []checkpoint.Event{one, other, bare}
	for range 70 {
		c.Events = append(c.Events, checkpoint.Event{Time: testDay(2), Kind: checkpoint.EventCustom, Name: "tick", Value: "1"})
	}
	for i := range c.Events {
		c.Head.LastEvent++
		c.Events[i].Seq, c.Events[i].Ephemeral = c.Head.LastEvent, false
	}
}

// filler gives every field a value that follows from the names of its parents, so
// that a new field leaves the values of the others as they are.
type filler struct{ tb testing.TB }

func newFilled[T any](f *filler, name string) (v T) {
	f.fillValue(reflect.ValueOf(&v).Elem(), name)
	return v
}

// numberOf is a small number that follows from a name.
func numberOf(name string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return uint64(h.Sum32())%100 + 1
}

func (f *filler) fillValue(v reflect.Value, name string) {
	switch {
	case v.Type() == reflect.TypeFor[payload.JSON]():
		v.SetString(fmt.Sprintf(`{"is": %q}`, name))
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(testDay(3).Add(time.Duration(numberOf(name)))))
		return
	case v.Type() == reflect.TypeFor[redact.Parts]():
		var b redact.Builder
		b.Add("/"+name, payload.JSON(fmt.Sprintf(`{"is": %q}`, name)))
		v.Set(reflect.ValueOf(b.Parts()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(numberOf(name)))
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(numberOf(name))
	case reflect.Bool:
		v.SetBool(true)
	default:
		f.fillComposite(v, name)
	}
}

func (f *filler) fillComposite(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fillValue(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fillValue(v.Index(0), name+"-0")
		f.fillValue(v.Index(1), name+"-1")
	case reflect.Array:
		for i := range v.Len() {
			f.fillValue(v.Index(i), fmt.Sprintf("%s-%d", name, i))
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fillValue(k, name+"-key")
		f.fillValue(e, name+"-value")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			field := name + "." + fieldName(v.Type(), i)
			if v.Field(i).Type() == reflect.TypeFor[*checkpoint.PropertyChanges]() {
				field = name // these were fields of the interrupt when the listed formats were frozen
			}
			f.fillValue(v.Field(i), field)
		}
	default:
		f.tb.Fatalf("a field of kind %s: teach this test", v.Kind())
	}
}

// fieldName is the name of a field when the listed formats were frozen: a field that
// is renamed keeps its value.
func fieldName(t reflect.Type, i int) string {
	name := t.Field(i).Name
	switch t.Name() + "." + name {
	case "Head.PreferredOwner":
		return "Wish"
	case "Head.PreferredUntil":
		return "WishUntil"
	case "Head.Handoffs":
		return "Moves"
	case "Head.RemoteTasks":
		return "Lent"
	case "Head.NeedsAllAnswers":
		return "Hold"
	case "Run.MaxStep":
		return "Stop"
	case "Interrupt.ShownDigest":
		return "Seen"
	case "List.Appended":
		return "Fresh"
	}
	return name
}
