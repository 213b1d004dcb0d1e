package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Every name of the domain has a number, and every number but UNSPECIFIED has a
// name.
func TestEnumNamesAndNumbersMatch(t *testing.T) {
	complete := func(enum protoreflect.EnumDescriptor, numbers ...int32) {
		t.Helper()
		seen := map[int32]bool{}
		for _, n := range numbers {
			require.NotZero(t, n, "%s: a word has no number", enum.Name())
			require.False(t, seen[n], "%s: two words have the number %d", enum.Name(), n)
			seen[n] = true
		}
		require.Len(t, numbers, enum.Values().Len()-1, "%s: a number has no word", enum.Name())
	}
	var n []int32
	for _, s := range []checkpoint.RunState{
		checkpoint.RunQueued, checkpoint.RunRunning, checkpoint.RunInterrupted, checkpoint.RunCancelling,
		checkpoint.RunSucceeded, checkpoint.RunFailed, checkpoint.RunCancelled, checkpoint.RunTimedOut,
		checkpoint.RunSuperseded,
	} {
		n = append(n, int32(runStateToProto(s)))
	}
	complete(graphdv1.RunState(0).Descriptor(), n...)

	n = nil
	for _, s := range []checkpoint.ThreadState{
		checkpoint.ThreadIdle, checkpoint.ThreadBusy, checkpoint.ThreadInterrupted, checkpoint.ThreadFailed,
	} {
		n = append(n, int32(threadStateToProto(s)))
	}
	complete(graphdv1.ThreadState(0).Descriptor(), n...)

	n = nil
	for _, s := range []checkpoint.InterruptState{
		checkpoint.InterruptOpen, checkpoint.InterruptAnswered, checkpoint.InterruptConsumed,
		checkpoint.InterruptExpired, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded,
	} {
		n = append(n, int32(interruptStateToProto(s)))
	}
	complete(graphdv1.InterruptState(0).Descriptor(), n...)

	n = nil
	for _, s := range []checkpoint.Source{
		checkpoint.SourceInput, checkpoint.SourceLoop, checkpoint.SourceUpdate, checkpoint.SourceFork,
	} {
		n = append(n, int32(sourceToProto(s)))
	}
	complete(graphdv1.CheckpointSource(0).Descriptor(), n...)

	n = nil
	for _, p := range []checkpoint.Phase{
		checkpoint.PhaseScheduled, checkpoint.PhaseStarted, checkpoint.PhaseRetrying, checkpoint.PhaseSucceeded,
		checkpoint.PhaseFailed, checkpoint.PhaseInterrupted, checkpoint.PhaseCancelled, checkpoint.PhaseUnassigned, checkpoint.PhaseRestarted,
	} {
		n = append(n, int32(phaseToProto(p)))
	}
	complete(graphdv1.TaskChange_Phase(0).Descriptor(), n...)

	n = nil
	for _, a := range []checkpoint.ExpiryAction{
		checkpoint.ExpiryFailNode, checkpoint.ExpiryResumeDefault, checkpoint.ExpiryCancelRun,
	} {
		require.Equal(t, a, expiryFromProto(expiryToProto(a)))
		n = append(n, int32(expiryToProto(a)))
	}
	complete(graphdv1.ExpiryAction(0).Descriptor(), n...)
	require.Zero(t, expiryToProto(checkpoint.ExpiryNone))

	n = nil
	for _, p := range []string{persistenceInherit, PersistencePersist, persistenceDisabled} {
		require.Equal(t, p, PersistenceFromProto(persistenceToProto(p)))
		n = append(n, int32(persistenceToProto(p)))
	}
	complete(graphdv1.SubgraphPersistence(0).Descriptor(), n...)
}

func TestUnknownEnumsAreNamedByTheirPaths(t *testing.T) {
	emit := &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{}, {Channel: 99}}}}
	var c EnumChecker
	err := c.CheckMessage(&graphdv1.ConnectRequestBatch{Requests: []*graphdv1.ConnectRequest{
		{}, {Kind: &graphdv1.ConnectRequest_Update{Update: &graphdv1.TaskUpdate{Kind: emit}}},
	}})
	require.ErrorContains(t, err, "requests[1].update.emit.items[1].channel: 99 is not a Channel; known are CHANNEL_UNSPECIFIED, ")
	err = c.CheckMessage(&graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_CUSTOM, 99}})
	require.ErrorContains(t, err, "channels[1]: 99 is not a Channel")
}

// A kind of message that may hold itself is looked into as deep as it goes.
func TestUnknownEnumsAreFoundInEveryMessage(t *testing.T) {
	var c EnumChecker
	for _, file := range []protoreflect.FileDescriptor{
		graphdv1.File_graphd_v1_run_proto, graphdv1.File_graphd_v1_graph_proto, graphdv1.File_graphd_v1_worker_proto,
		graphdv1.File_graphd_v1_interrupt_proto, graphdv1.File_graphd_v1_graph_service_proto,
	} {
		for i := range file.Messages().Len() {
			d := file.Messages().Get(i)
			for j := range d.Fields().Len() {
				fd := d.Fields().Get(j)
				if fd.Enum() == nil {
					continue
				}
				m := dynamicpb.NewMessage(d)
				if fd.IsList() {
					m.Mutable(fd).List().Append(protoreflect.ValueOfEnum(99))
				} else {
					m.Set(fd, protoreflect.ValueOfEnum(99))
				}
				require.ErrorContains(t, c.CheckMessage(m), "99 is not a "+string(fd.Enum().Name()), fd.FullName())
			}
		}
	}
	batch := &graphdv1.ConnectRequestBatch{Requests: []*graphdv1.ConnectRequest{{Kind: &graphdv1.ConnectRequest_Update{
		Update: &graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{Channel: 99}}}}},
	}}}}
	for range 3 {
		batch = &graphdv1.ConnectRequestBatch{Requests: []*graphdv1.ConnectRequest{{Kind: &graphdv1.ConnectRequest_Batch{Batch: batch}}}}
	}
	require.ErrorContains(t, c.CheckMessage(batch), "requests[0].batch.requests[0].batch.requests[0].batch.requests[0].update.emit.items[0].channel: 99")
	require.NoError(t, c.CheckMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Complete{Complete: &graphdv1.CompleteTaskRequest{}}}))
}

// An EnumChecker does not look into maps: no map of the contract may hold enums
// or messages with enums.
func TestNoMapHoldsEnums(t *testing.T) {
	for _, file := range []protoreflect.FileDescriptor{
		graphdv1.File_graphd_v1_payload_proto, graphdv1.File_graphd_v1_graph_proto, graphdv1.File_graphd_v1_run_proto,
		graphdv1.File_graphd_v1_thread_proto, graphdv1.File_graphd_v1_event_proto,
		graphdv1.File_graphd_v1_interrupt_proto, graphdv1.File_graphd_v1_worker_proto,
		graphdv1.File_graphd_v1_graph_service_proto, graphdv1.File_graphd_v1_thread_service_proto,
		graphdv1.File_graphd_v1_interrupt_service_proto, graphdv1.File_graphd_v1_registry_service_proto, graphdv1.File_graphd_v1_assistant_service_proto,
		graphdv1.File_graphd_v1_item_service_proto,
	} {
		for i := range file.Messages().Len() {
			fields := file.Messages().Get(i).Fields()
			for j := range fields.Len() {
				if f := fields.Get(j); f.IsMap() {
					require.Equal(t, protoreflect.StringKind, f.MapValue().Kind(), f.FullName())
				}
			}
		}
	}
}

func TestSelection(t *testing.T) {
	pick := func(f *graphdv1.EventFilter) EventSelection {
		v := &Validator{}
		s := EventSelectionFromProto(v, f)
		require.NoError(t, v.Err())
		return s
	}
	depth := func(n uint32) *uint32 { return &n }
	in := func(namespace string) *checkpoint.Event {
		return &checkpoint.Event{Kind: checkpoint.EventUpdate, Namespace: namespace}
	}
	for name, c := range map[string]struct {
		filter *graphdv1.EventFilter
		event  *checkpoint.Event
		want   bool
	}{
		"default update":         {nil, in("a:1|b:2"), true},
		"default message":        {nil, &checkpoint.Event{Kind: checkpoint.EventMessage}, true},
		"default custom":         {nil, &checkpoint.Event{Kind: checkpoint.EventCustom}, true},
		"default no values":      {nil, &checkpoint.Event{Kind: checkpoint.EventValues}, false},
		"default no tasks":       {nil, &checkpoint.Event{Kind: checkpoint.EventTask}, false},
		"default restart":        {nil, &checkpoint.Event{Kind: checkpoint.EventTask, Phase: checkpoint.PhaseRestarted}, true},
		"custom restart":         {newChannelFilter(graphdv1.Channel_CHANNEL_CUSTOM), &checkpoint.Event{Kind: checkpoint.EventTask, Phase: checkpoint.PhaseRestarted}, true},
		"restart elsewhere":      {newNamespaceFilter("x"), &checkpoint.Event{Kind: checkpoint.EventTask, Phase: checkpoint.PhaseRestarted, Namespace: "a:1"}, false},
		"restart of no interest": {newChannelFilter(graphdv1.Channel_CHANNEL_VALUES), &checkpoint.Event{Kind: checkpoint.EventTask, Phase: checkpoint.PhaseRestarted}, false},
		"lonely":                 {newChannelFilter(graphdv1.Channel_CHANNEL_VALUES), &checkpoint.Event{Kind: checkpoint.EventTask, Phase: checkpoint.PhaseUnassigned, Namespace: "a:1"}, true},
		"root only":              {&graphdv1.EventFilter{Depth: depth(0)}, in("a:1"), false},
		"root":                   {&graphdv1.EventFilter{Depth: depth(0)}, in(""), true},
		"depth":                  {&graphdv1.EventFilter{Depth: depth(1)}, in("a:1"), true},
		"too deep":               {&graphdv1.EventFilter{Depth: depth(1)}, in("a:1|b:2"), false},
		"by node":                {newNamespaceFilter("a"), in("a:1|b:2"), true},
		"by task":                {newNamespaceFilter("a:1"), in("a:1"), true},
		"other task":             {newNamespaceFilter("a:2"), in("a:1"), false},
		"other node":             {newNamespaceFilter("b"), in("a:1"), false},
		"node name as prefix":    {newNamespaceFilter("a"), in("ab:1"), false},
		"above":                  {newNamespaceFilter("a", "b"), in("a:1"), false},
		"root is not below":      {newNamespaceFilter("a"), in(""), false},
		"custom name":            {&graphdv1.EventFilter{CustomNames: []string{"x"}}, &checkpoint.Event{Kind: checkpoint.EventCustom, Name: "x"}, true},
		"other custom name":      {&graphdv1.EventFilter{CustomNames: []string{"x"}}, &checkpoint.Event{Kind: checkpoint.EventCustom, Name: "y"}, false},
		"debug shows tasks":      {newChannelFilter(graphdv1.Channel_CHANNEL_DEBUG), &checkpoint.Event{Kind: checkpoint.EventTask}, true},
		"debug hides updates":    {newChannelFilter(graphdv1.Channel_CHANNEL_DEBUG), in(""), false},
		"states are not hidden":  {newNamespaceFilter("x"), &checkpoint.Event{Kind: checkpoint.EventRunState}, true},
		"questions are not hidden": {
			&graphdv1.EventFilter{
				Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS}, Depth: depth(0),
				Namespaces: []*graphdv1.Namespace{{Path: []string{"x"}}},
			},
			&checkpoint.Event{Kind: checkpoint.EventInterrupt, Namespace: "a:1"}, true,
		},
		"answers are not hidden": {newNamespaceFilter("x"), &checkpoint.Event{Kind: checkpoint.EventResolved}, true},
	} {
		s := pick(c.filter)
		require.Equal(t, c.want, s.SelectsEvent(c.event), name)
	}
}

func newNamespaceFilter(path ...string) *graphdv1.EventFilter {
	return &graphdv1.EventFilter{Namespaces: []*graphdv1.Namespace{{Path: path}}}
}

func newChannelFilter(c graphdv1.Channel) *graphdv1.EventFilter {
	return &graphdv1.EventFilter{Channels: []graphdv1.Channel{c}}
}
