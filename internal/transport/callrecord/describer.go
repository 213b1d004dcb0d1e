package callrecord

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// Describer describes the calls of one method.
type Describer struct {
	Kind Kind

	thread, run, graph, version, worker, questions path
	answers, shown, digests, answered              []path
}

// path is a list of fields, each of the message that the one before leads to.
type path struct {
	name   string
	fields []protoreflect.FieldDescriptor
}

// NewDescribers makes the describers of the rows, by method. The error names a path
// that leads nowhere.
func NewDescribers(rows []Row) (map[string]*Describer, error) {
	all := make(map[string]*Describer, len(rows))
	for _, row := range rows {
		d, err := newDescriber(row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Method, err)
		}
		all[row.Method] = d
	}
	return all, nil
}

func newDescriber(row Row) (*Describer, error) {
	method, err := findMethod(row.Method)
	if err != nil {
		return nil, err
	}
	d := &Describer{Kind: row.Kind}
	for _, single := range []struct {
		to   *path
		text string
	}{
		{&d.thread, row.Thread},
		{&d.run, row.Run},
		{&d.graph, row.Graph},
		{&d.version, row.Version},
		{&d.worker, row.Worker},
		{&d.questions, row.Questions},
	} {
		if single.text == "" {
			continue
		}
		if *single.to, err = newPath(method.Input(), single.text); err != nil {
			return nil, err
		}
	}
	for _, list := range []struct {
		to    *[]path
		texts []string
		in    protoreflect.MessageDescriptor
	}{
		{&d.answers, row.Answers, method.Input()},
		{&d.shown, row.Shown, method.Input()},
		{&d.digests, row.Digests, method.Input()},
		{&d.answered, row.Answered, method.Output()},
	} {
		for _, text := range list.texts {
			p, err := newPath(list.in, text)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, p)
		}
	}
	for _, text := range row.Skipped {
		if _, err := newPath(method.Input(), text); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// findMethod returns the descriptor of a method of graphd.v1.
func findMethod(name string) (protoreflect.MethodDescriptor, error) {
	service, method, _ := strings.Cut(strings.TrimPrefix(name, "/graphd.v1."), "/")
	for _, file := range serviceFiles() {
		if s := file.Services().ByName(protoreflect.Name(service)); s != nil {
			if m := s.Methods().ByName(protoreflect.Name(method)); m != nil {
				return m, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no such method")
}

// serviceFiles lists the files of the protocol that have services.
func serviceFiles() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		graphdv1.File_graphd_v1_graph_service_proto, graphdv1.File_graphd_v1_thread_service_proto,
		graphdv1.File_graphd_v1_interrupt_service_proto, graphdv1.File_graphd_v1_registry_service_proto, graphdv1.File_graphd_v1_assistant_service_proto, graphdv1.File_graphd_v1_item_service_proto,
		graphdv1.File_graphd_v1_cron_service_proto,
		graphdv1.File_graphd_v1_worker_service_proto, graphdv1.File_graphd_v1_node_service_proto,
	}
}

func newPath(in protoreflect.MessageDescriptor, text string) (path, error) {
	p := path{name: text}
	for name := range strings.SplitSeq(text, ".") {
		if in == nil {
			return path{}, fmt.Errorf("%s leads nowhere", text)
		}
		field := in.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return path{}, fmt.Errorf("%s leads nowhere: %s has no field %s", text, in.FullName(), name)
		}
		p.fields = append(p.fields, field)
		in = field.Message()
	}
	return p, nil
}

// SecretsOf returns the pointers to the secret parts of the answer to a question. ok is false when it
// is not known whether there are some.
type SecretsOf func(interrupt string) (secret []string, ok bool)

// Describe records what a call concerns. request may be nil: it was not read.
// withDigests is false for calls that were refused: their values cost nothing. Of an answer there
// is a digest only where secrets knows its question, and it is that of what is shown.
func (d *Describer) Describe(r *audit.Record, request proto.Message, withDigests bool, secrets SecretsOf) {
	if request == nil {
		return
	}
	m := request.ProtoReflect()
	for _, single := range []struct {
		to   *string
		from path
	}{{&r.Thread, d.thread}, {&r.Run, d.run}, {&r.Graph, d.graph}, {&r.Version, d.version}, {&r.Worker, d.worker}} {
		single.from.visitValues(m, func(v protoreflect.Value) { *single.to = v.String() })
	}
	d.questions.visitValues(m, func(v protoreflect.Value) { r.Questions = append(r.Questions, audit.Question{ID: v.String()}) })
	for _, p := range d.answers {
		p.visitValues(m, func(v protoreflect.Value) {
			if a, ok := v.Message().Interface().(*graphdv1.InterruptResponse); ok {
				known := secrets
				if !withDigests {
					known = nil
				}
				r.Questions = append(r.Questions, describeAnswer(a, known, r.Outcome == audit.OutcomeOK))
			}
		})
	}
	for _, p := range d.shown {
		p.visitValues(m, func(v protoreflect.Value) { addText(r, p, showValue(p.lastField(), v)...) })
	}
	if !withDigests {
		return
	}
	for _, p := range d.digests {
		p.visitValues(m, func(v protoreflect.Value) { addText(r, p, digestValue(p.lastField(), v)) })
	}
}

// DescribeAnswer records what became of a call that is done. answer may be nil, or the
// first message of a stream.
func (d *Describer) DescribeAnswer(r *audit.Record, answer proto.Message) {
	if answer == nil {
		return
	}
	m := answer.ProtoReflect()
	for _, p := range d.answered {
		p.visitValues(m, func(v protoreflect.Value) {
			r.What = addTo(r.What, "answer."+p.name, showValue(p.lastField(), v)...)
		})
	}
	fields := m.Descriptor().Fields()
	for _, single := range []struct {
		to    *string
		names []protoreflect.Name
	}{
		{&r.Thread, []protoreflect.Name{"thread_id"}},
		{&r.Run, []protoreflect.Name{"run_id"}},
		{&r.Graph, []protoreflect.Name{"graph"}},
		{&r.Version, []protoreflect.Name{"graph_version", "version"}},
	} {
		for _, name := range single.names {
			if f := fields.ByName(name); f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() && *single.to == "" {
				*single.to = m.Get(f).String()
			}
		}
	}
}

// describeAnswer records an answer. One that was not stored may have what is secret at a place where
// the question has none: it has a digest only where something was taken out.
func describeAnswer(a *graphdv1.InterruptResponse, secrets SecretsOf, isStored bool) audit.Question {
	q := audit.Question{ID: a.GetInterruptId(), Dismissed: a.GetDismissal() != nil}
	v := a.GetValue()
	if v == nil || secrets == nil {
		return q
	}
	secret, isKnown := secrets(a.GetInterruptId())
	if !isKnown {
		return q
	}
	if len(secret) == 0 {
		q.Value = digestPayload(v)
		return q
	}
	if shown, hidden, err := redact.Hide(payload.JSON(v.GetJson()), secret); err == nil && shown != "" && (isStored || !hidden.IsEmpty()) {
		q.Value = digestPayload(&graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: string(shown)}})
	}
	return q
}

func addText(r *audit.Record, p path, texts ...string) { r.What = addTo(r.What, p.name, texts...) }

func addTo(what map[string][]string, name string, texts ...string) map[string][]string {
	if len(texts) == 0 {
		return what
	}
	if what == nil {
		what = make(map[string][]string)
	}
	if len(what[name]) <= maxTexts { // one more says that there are more
		what[name] = append(what[name], texts...)
	}
	return what
}

// maxTexts bounds the texts of one path that a record has.
const maxTexts = 64

func (p path) lastField() protoreflect.FieldDescriptor { return p.fields[len(p.fields)-1] }

// visitValues calls do with the value at the path, or with each of them.
func (p path) visitValues(m protoreflect.Message, do func(protoreflect.Value)) {
	if len(p.fields) > 0 {
		visitFields(m, p.fields, do)
	}
}

func visitFields(m protoreflect.Message, fields []protoreflect.FieldDescriptor, do func(protoreflect.Value)) {
	field, rest := fields[0], fields[1:]
	if !m.Has(field) {
		return
	}
	v := m.Get(field)
	step := func(v protoreflect.Value) {
		if len(rest) == 0 {
			do(v)
			return
		}
		visitFields(v.Message(), rest, do)
	}
	if !field.IsList() {
		step(v)
		return
	}
	list := v.List()
	for i := range min(list.Len(), maxTexts+1) {
		step(list.Get(i))
	}
}

// showValue returns a value as text; of a map its keys.
func showValue(field protoreflect.FieldDescriptor, v protoreflect.Value) []string {
	switch {
	case field.IsMap():
		var keys []string
		v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, k.String())
			return true
		})
		slices.Sort(keys)
		return keys
	case field.Kind() == protoreflect.EnumKind:
		if named := field.Enum().Values().ByNumber(v.Enum()); named != nil {
			return []string{string(named.Name())}
		}
	case field.Message() != nil:
		return nil
	}
	return []string{v.String()}
}

// digestValue returns the digest of a value.
func digestValue(field protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if field.Message() == nil {
		return digestBytes([]byte(v.String()))
	}
	message := v.Message().Interface()
	if p, ok := message.(*graphdv1.Payload); ok {
		return digestPayload(p)
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return ""
	}
	return digestBytes(text)
}

// Bounds of values that are digested in canonical form: that form takes steps for each
// byte and level.
const (
	maxCanonicalBytes = 64 << 10
	maxCanonicalDepth = 32
)

// The forms of digests: of the canonical text of a JSON value, which white space and the
// order of keys don't change, or of bytes as they came.
const (
	canonicalPrefix = "canonical:"
	rawPrefix       = "raw:"
)

func digestPayload(p *graphdv1.Payload) string {
	text := p.GetJson()
	if text == "" {
		return digestBytes(p.GetData())
	}
	limits := payload.Limits{MaxBytes: maxCanonicalBytes, MaxDepth: maxCanonicalDepth, RepeatedKeys: payload.AllowRepeatedKeys}
	if payload.Validate(text, limits) != nil {
		return digestBytes([]byte(text))
	}
	return canonicalPrefix + payload.CanonicalDigest(payload.JSON(text))
}

func digestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return rawPrefix + hex.EncodeToString(sum[:16])
}
