package wire

import (
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// EnumChecker checks the rule that holds for every message of the contract: no unknown
// enum numbers. proto3 keeps such numbers, and the server would silently ignore a policy
// that it does not understand. The zero value is ready for use.
type EnumChecker struct {
	// fields are those of a kind of message that have enums, or messages that have some.
	fields sync.Map // protoreflect.MessageDescriptor to []protoreflect.FieldDescriptor
}

// CheckMessage checks a message. Errors: INVALID_FIELD, and INTERNAL for a value that is
// no message.
func (c *EnumChecker) CheckMessage(req any) error {
	msg, ok := req.(proto.Message)
	if !ok {
		return runtime.Errorf(runtime.ReasonInternal, "%T is no message", req)
	}
	m := msg.ProtoReflect()
	if !strings.HasPrefix(string(m.Descriptor().FullName()), "graphd.") {
		return nil
	}
	v := &Validator{}
	c.refuseUnknownEnums(v, nil, m)
	return v.Err()
}

// refuseUnknownEnums adds a violation for each enum number in a message that this
// version does not know. No map of the contract holds enums or messages with enums.
func (c *EnumChecker) refuseUnknownEnums(v *Validator, at *fieldPath, m protoreflect.Message) {
	for _, fd := range c.enumFields(m.Descriptor()) {
		if !m.Has(fd) {
			continue
		}
		value := m.Get(fd)
		switch {
		case fd.Enum() != nil && fd.IsList():
			for i := range value.List().Len() {
				checkEnum(v, at, fd, i, value.List().Get(i).Enum())
			}
		case fd.Enum() != nil:
			checkEnum(v, at, fd, notListed, value.Enum())
		case fd.IsList():
			for i := range value.List().Len() {
				c.refuseUnknownEnums(v, &fieldPath{at, fd.Name(), i}, value.List().Get(i).Message())
			}
		default:
			c.refuseUnknownEnums(v, &fieldPath{at, fd.Name(), notListed}, value.Message())
		}
	}
}

// enumFields lists the fields of a kind of message that have enums, or messages that have
// some.
func (c *EnumChecker) enumFields(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	known, _ := c.fields.Load(d)
	if list, ok := known.([]protoreflect.FieldDescriptor); ok {
		return list
	}
	var list []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		if fd := d.Fields().Get(i); leadsToEnum(fd, make(map[protoreflect.FullName]bool)) {
			list = append(list, fd)
		}
	}
	c.fields.Store(d, list)
	return list
}

// leadsToEnum reports whether a field has enums, or messages that have some. seen are the
// messages that were looked into: a message may hold messages of its own kind.
func leadsToEnum(fd protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) bool {
	if fd.Enum() != nil {
		return true
	}
	m := fd.Message()
	if m == nil || fd.IsMap() || seen[m.FullName()] {
		return false
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		if leadsToEnum(m.Fields().Get(i), seen) {
			return true
		}
	}
	return false
}

// fieldPath is where a message is in another one. Its text is only made for a violation.
type fieldPath struct {
	parent *fieldPath // nil = the field is of the request itself
	name   protoreflect.Name
	index  int // in a list, or notListed
}

const notListed = -1

func (p *fieldPath) String() string {
	at := string(p.name)
	if p.parent != nil {
		at = p.parent.String() + "." + at
	}
	if p.index != notListed {
		at += "[" + strconv.Itoa(p.index) + "]"
	}
	return at
}

func checkEnum(v *Validator, parent *fieldPath, fd protoreflect.FieldDescriptor, index int, n protoreflect.EnumNumber) {
	enum := fd.Enum()
	if enum.Values().ByNumber(n) != nil {
		return
	}
	var names []string
	for i := range enum.Values().Len() {
		names = append(names, string(enum.Values().Get(i).Name()))
	}
	at := fieldPath{parent, fd.Name(), index}
	v.AddViolation(at.String(), "%d is not a %s; known are %s", n, enum.Name(), strings.Join(names, ", "))
}
