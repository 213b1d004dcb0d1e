package permission

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
)

// subject is what a request concerns, and the rights that its fields need.
type subject struct {
	thread string
	graph  string
	run    string
	// mayCreate says that the call makes the thread if there is none.
	mayCreate bool
	rights    []access.Right
}

// subjectFields names the fields of a request that say what it concerns, as the proto
// does, from the request inward; "" = it has no such field.
type subjectFields struct {
	method string
	thread string
	graph  string
	run    string
	// create names the field that permits to make the thread; createAlways stands for
	// a method that does nothing else.
	create string
}

const createAlways = "always"

// listSubjectFields returns the rows of all methods of access.ScopeGraph but
// PutGraph, whose graph may be inside a document: its service decides.
func listSubjectFields() []subjectFields {
	return []subjectFields{
		{method: graphdv1.GraphService_Stream_FullMethodName, thread: "run.thread_id", graph: "run.graph", run: "run.run_id", create: "run.create_thread"},
		{method: graphdv1.GraphService_StartRun_FullMethodName, thread: "run.thread_id", graph: "run.graph", run: "run.run_id", create: "run.create_thread"},
		{method: graphdv1.GraphService_Resume_FullMethodName, thread: "resume.thread_id"},
		{method: graphdv1.GraphService_ResumeRun_FullMethodName, thread: "resume.thread_id"},
		{method: graphdv1.GraphService_Watch_FullMethodName, thread: "thread_id", run: "run_id"},
		{method: graphdv1.GraphService_WaitRun_FullMethodName, thread: "thread_id", run: "run_id"},
		{method: graphdv1.GraphService_GetRun_FullMethodName, thread: "thread_id", run: "run_id"},
		{method: graphdv1.GraphService_ListRuns_FullMethodName, thread: "thread_id"},
		{method: graphdv1.GraphService_CancelRun_FullMethodName, thread: "thread_id", run: "run_id"},
		{method: graphdv1.GraphService_AddRunWebhook_FullMethodName, thread: "thread_id", run: "run_id"},

		{method: graphdv1.ThreadService_CreateThread_FullMethodName, thread: "thread_id", graph: "thread.graph", create: createAlways},
		{method: graphdv1.ThreadService_GetThread_FullMethodName, thread: "thread_id"},
		{method: graphdv1.ThreadService_UpdateThread_FullMethodName, thread: "thread.thread_id"},
		{method: graphdv1.ThreadService_DeleteThread_FullMethodName, thread: "thread_id"},
		{method: graphdv1.ThreadService_ForkThread_FullMethodName, thread: "source_thread_id"},
		{method: graphdv1.ThreadService_CopyThread_FullMethodName, thread: "source_thread_id"},
		{method: graphdv1.ThreadService_PruneThread_FullMethodName, thread: "thread_id"},
		{method: graphdv1.ThreadService_GetState_FullMethodName, thread: "thread_id"},
		{method: graphdv1.ThreadService_UpdateState_FullMethodName, thread: "thread_id"},
		{method: graphdv1.ThreadService_BulkUpdateState_FullMethodName, thread: "thread_id"},
		{method: graphdv1.ThreadService_ListCheckpoints_FullMethodName, thread: "thread_id"},

		{method: graphdv1.InterruptService_GetInterrupt_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_UpdateInterrupt_FullMethodName, thread: "interrupt.thread_id"},
		{method: graphdv1.InterruptService_ClaimInterrupt_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_ReleaseInterrupt_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_CheckResponses_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_DelegateInterrupt_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_RevealInterrupt_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_RetractResponse_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_CommentInterrupt_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_MakeLink_FullMethodName, thread: "thread_id"},
		{method: graphdv1.InterruptService_ListTrail_FullMethodName, thread: "thread_id"},

		{method: graphdv1.RegistryService_GetGraph_FullMethodName, graph: "graph"},
		{method: graphdv1.RegistryService_DeleteGraph_FullMethodName, graph: "graph"},
		{method: graphdv1.RegistryService_DeleteGraphVersion_FullMethodName, graph: "graph"},

		{method: graphdv1.AssistantService_CreateAssistant_FullMethodName, graph: "assistant.graph"},

		{method: graphdv1.CronService_CreateCron_FullMethodName, thread: "cron.run.thread_id", graph: "cron.run.graph", create: "cron.run.create_thread"},

		// Items belong to no graph.
		{method: graphdv1.ItemService_PutItem_FullMethodName},
		{method: graphdv1.ItemService_GetItem_FullMethodName},
		{method: graphdv1.ItemService_DeleteItem_FullMethodName},
		{method: graphdv1.ItemService_SearchItems_FullMethodName},
		{method: graphdv1.ItemService_ListItemNamespaces_FullMethodName},
	}
}

// methodReader reads the subject of the requests of one method.
type methodReader struct {
	scope     access.Scope
	thread    fieldPath
	graph     fieldPath
	run       fieldPath
	create    fieldPath
	mayCreate bool
	rights    []fieldRight
	// isDecidedLater says that the service finds the graph in the content of the
	// request, and decides.
	isDecidedLater bool
}

// newMethodReaders makes the readers of all methods of access.Methods. The error names
// a row that does not fit the protos.
func newMethodReaders() (map[string]*methodReader, error) {
	readers := map[string]*methodReader{}
	for _, row := range access.Methods() {
		readers[row.Method] = &methodReader{scope: row.Scope}
	}
	readers[graphdv1.RegistryService_PutGraph_FullMethodName].isDecidedLater = true
	for _, row := range listSubjectFields() {
		request, err := findRequest(row.method)
		if err != nil {
			return nil, err
		}
		r := readers[row.method]
		if r.mayCreate = row.create == createAlways; r.mayCreate {
			row.create = ""
		}
		for _, field := range []struct {
			path *fieldPath
			name string
		}{{&r.thread, row.thread}, {&r.graph, row.graph}, {&r.run, row.run}, {&r.create, row.create}} {
			if *field.path, err = findPath(request, field.name); err != nil {
				return nil, err
			}
		}
	}
	for _, row := range access.Rights() {
		for _, field := range row.Fields {
			if isDecidedByService(row.Right, field) {
				continue
			}
			request, err := findRequest(field.Method)
			if err != nil {
				return nil, err
			}
			right, err := newFieldRight(row.Right, field, request)
			if err != nil {
				return nil, err
			}
			readers[field.Method].rights = append(readers[field.Method].rights, right)
		}
	}
	return readers, nil
}

// readSubject reads the subject of a request. It allocates only for rights.
func (r *methodReader) readSubject(request proto.Message) subject {
	m := request.ProtoReflect()
	s := subject{thread: r.thread.readText(m), graph: r.graph.readText(m), run: r.run.readText(m), mayCreate: r.mayCreate || r.create.readBool(m)}
	for i := range r.rights {
		if r.rights[i].isNeededBy(m) {
			s.rights = append(s.rights, r.rights[i].right)
		}
	}
	return s
}

// findRequest returns the type of the requests of a method, by its full name.
func findRequest(method string) (protoreflect.MessageDescriptor, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("permission: method %s: %w", method, err)
	}
	described, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("permission: %s is no method", method)
	}
	return described.Input(), nil
}

// fieldPath leads from a message to a field of it, or of a message inside.
type fieldPath []protoreflect.FieldDescriptor

// findPath returns the path with these names, nil for none.
func findPath(message protoreflect.MessageDescriptor, names string) (fieldPath, error) {
	if names == "" {
		return nil, nil
	}
	var path fieldPath
	at := message
	for name := range strings.SplitSeq(names, ".") {
		if at == nil {
			return nil, fmt.Errorf("permission: %s has no field %s", message.FullName(), names)
		}
		field := at.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return nil, fmt.Errorf("permission: %s has no field %s", message.FullName(), names)
		}
		path, at = append(path, field), field.Message()
	}
	return path, nil
}

// readValue returns the value at the end of a path without lists.
func (p fieldPath) readValue(m protoreflect.Message) protoreflect.Value {
	for _, field := range p[:len(p)-1] {
		m = m.Get(field).Message()
	}
	return m.Get(p[len(p)-1])
}

func (p fieldPath) readText(m protoreflect.Message) string {
	if len(p) == 0 {
		return ""
	}
	return p.readValue(m).String()
}

func (p fieldPath) readBool(m protoreflect.Message) bool {
	return len(p) > 0 && p.readValue(m).Bool()
}

// isSetTo reports whether a field at the end of the path, in any element of the lists on
// the way, is set and has a value that fits; a nil fits means any value.
func (p fieldPath) isSetTo(m protoreflect.Message, fits func(protoreflect.Value) bool) bool {
	field := p[0]
	if !m.Has(field) {
		return false
	}
	value := m.Get(field)
	switch {
	case len(p) == 1:
		return fits == nil || fits(value)
	case !field.IsList():
		return p[1:].isSetTo(value.Message(), fits)
	}
	list := value.List()
	for i := range list.Len() {
		if p[1:].isSetTo(list.Get(i).Message(), fits) {
			return true
		}
	}
	return false
}
