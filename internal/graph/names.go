package graph

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds names, in bytes: they become part of keys, ids and metrics.
const maxName = 128

// name checks what all names have in common.
func (b *builder) name(path, what, name, forbidden string) bool {
	switch {
	case name == "":
		b.add(path, ReasonMissing, "the %s has no name", what)
	case len(name) > maxName:
		b.add(path, ReasonInvalidName, "the name of the %s has %d bytes; at most %d are allowed", what, len(name), maxName)
	case !utf8.ValidString(name):
		b.add(path, ReasonInvalidName, "the name of the %s is not UTF-8", what)
	case strings.ContainsFunc(name, unicode.IsControl):
		b.add(path, ReasonInvalidName, "%s name %q contains a control character", what, name)
	case strings.TrimSpace(name) != name:
		b.add(path, ReasonInvalidName, "%s name %q begins or ends with a space", what, name)
	case strings.ContainsAny(name, forbidden):
		b.add(path, ReasonInvalidName, "%s name %q contains %s", what, name, oneOf(name, forbidden))
	default:
		return true
	}
	return false
}

// oneOf names the forbidden character that was found and says which others are.
func oneOf(name, forbidden string) string {
	i := strings.IndexAny(name, forbidden)
	return "'" + name[i:i+1] + "'; names must not contain any of " + strings.Join(strings.Split(forbidden, ""), " ")
}

func (b *builder) nodeName(path, name string) bool {
	switch {
	case name == Start || name == End:
		b.add(path, ReasonReservedName, "%q is reserved; every graph has it without declaring it", name)
		return false
	case strings.HasPrefix(name, "__"):
		b.add(path, ReasonReservedName, "node name %q begins with __, which is reserved", name)
		return false
	case name == Every || name == "START" || name == "END":
		b.add(path, ReasonReservedName, "node name %q is reserved", name)
		return false
	}
	return b.name(path, "node", name, "|:")
}

func (b *builder) channelName(path, name string) bool {
	if name == Root && len(b.spec.Channels) == 1 {
		return true
	}
	if name == Root {
		b.add(path, ReasonReservedName, "%s makes the whole state one value, so it must be the only channel", Root)
		return false
	}
	for _, prefix := range []string{"__", "branch:", "join:"} {
		if strings.HasPrefix(name, prefix) {
			b.add(path, ReasonReservedName, "channel name %q begins with %s, which is reserved", name, prefix)
			return false
		}
	}
	return b.name(path, "channel", name, "")
}

// nodeNames lists the declared nodes.
func (b *builder) nodeNames() []string {
	names := make([]string, 0, len(b.g.nodes))
	for _, n := range b.g.Nodes {
		if n.Spec != nil {
			names = append(names, n.Name)
		}
	}
	return names
}

// namesAnd lists the declared nodes and a name that every graph has.
func (b *builder) namesAnd(name string) func() []string {
	return func() []string { return append(b.nodeNames(), name) }
}

// keyNames lists the state keys.
func (b *builder) keyNames() []string {
	names := make([]string, 0, len(b.g.State))
	for _, i := range b.g.State {
		names = append(names, b.g.Channels[i].Name)
	}
	return names
}

// keys resolves a list of state keys; an empty list is all of them.
func (b *builder) keys(path string, names []string) []int {
	if len(names) == 0 {
		return b.g.State
	}
	positions := make([]int, 0, len(names))
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		at, ok := b.g.channels[name]
		switch {
		case !ok || !b.g.Channels[at].State:
			b.unknown(index(path, i), ReasonUnknownChannel, "channel", name, b.keyNames)
		case seen[name]:
			b.add(index(path, i), ReasonDuplicateName, "channel %q is listed twice", name)
		default:
			positions = append(positions, at)
		}
		seen[name] = true
	}
	return positions
}
